# SPDX-License-Identifier: MIT
"""What threads of Java and Python wait for, in terms of their languages, who holds it, and deadlocks: against programs that know."""

import json
import os
import re
import subprocess

import pytest
from harness import ROOT, TIMEOUT, native, rounds, run, until, wait_until
from javas import JAVA
from pythons import CHOSEN

LONG = 1000  # ms that a thread has to wait for a lock of an inferred owner before that counts
LOOKS = int(os.environ.get("STAKEOUT_TEST_LOOKS", "60"))  # at a program with many locks


def wait_of(doc, name):
    """What the thread of that name waits for; None: for nothing that is known."""
    found = [th for th in doc["threads"] if th["name"] == name]
    return found[0]["waits_for"] if len(found) == 1 else None


def tid_of(doc, name):
    return next(th["tid"] for th in doc["threads"] if th["name"] == name)


def why(t, *args, settled):
    """The document, once it says what is expected: a thread may still be on its way there, and others may run."""

    def look():
        r = run("why", "--json", *args, t.pid)
        assert r.code in (0, 3, 4), r
        return r.doc

    return until(look, settled)


def said(condition, *args):
    """What a command says in the end: threads that wait for a monitor get up now and then, and may do so just when they are looked at."""
    results = []

    def again():
        results.append(run(*args))
        return condition(results[-1])

    wait_until(again, "it is said")
    return results[-1]


def blocked(doc, name):
    """It sleeps, for whatever it is."""
    return [th["waits_for"]["kind"] for th in doc["threads"] if th["name"] == name and th["waits_for"]] in (["time"], ["python_condition"])


def kind_is(name, kind, **facts):
    def is_there(doc):
        found = wait_of(doc, name)
        return found and found["kind"] == kind and all(found[key] == value for key, value in facts.items())

    return is_there


def assert_cycle(doc, names):
    assert len(doc["deadlocks"]) == 1, doc["deadlocks"]
    cycle = [member["tid"] for member in doc["deadlocks"][0]]
    assert sorted(cycle) == sorted(tid_of(doc, name) for name in names)
    waits = {th["tid"]: th["waits_for"] for th in doc["threads"]}
    for tid, following in zip(cycle, cycle[1:] + cycle[:1]):
        assert waits[tid]["owner_tid"] == following and waits[tid]["certain"] and not waits[tid]["timed"]


def assert_healthy(t, kinds):
    """Somebody waits for somebody, but never all round."""
    seen = set()

    def look_again():
        r = run("why", "--json", t.pid)
        assert r.code in (0, 3, 4), r
        waits = {th["tid"]: (th["name"], th["state"], th["off_cpu_ms"], th["waits_for"]) for th in r.doc["threads"]}
        found = [[waits[member["tid"]] for member in ring] for ring in r.doc["deadlocks"] + r.doc["likely_deadlocks"]]
        assert not found and r.code != 4, json.dumps(found)
        seen.update(w["kind"] for w in (th["waits_for"] for th in r.doc["threads"]) if w and w["holder"] in ("thread", "inferred"))
        return seen & kinds

    for _ in rounds(LOOKS):
        look_again()
    wait_until(look_again, f"one of {kinds} was seen")


# Java

NONFAIR = "java.util.concurrent.locks.ReentrantLock$NonfairSync"
JAVA_OWNED = {
    "monitor": ("monitor", "JavaLocks$Account"),
    "recursive": ("monitor", "JavaLocks$Account"),
    "inflated": ("monitor", "JavaLocks$Account"),
    "again": ("monitor", "JavaLocks$Account"),
    "lock": ("java_lock", NONFAIR),
    "fair": ("java_lock", "java.util.concurrent.locks.ReentrantLock$FairSync"),
    "timed": ("java_lock", NONFAIR),
    "write": ("java_lock", "java.util.concurrent.locks.ReentrantReadWriteLock$NonfairSync"),
    "read": ("java_lock", "java.util.concurrent.locks.ReentrantReadWriteLock$NonfairSync"),
    "join": ("java_join", "java.lang.Thread"),
}


@pytest.mark.parametrize("what", JAVA_OWNED)
def test_java_owner(java, source, what):
    t = java(what, main="JavaLocks")
    kind, type_name = JAVA_OWNED[what]
    doc = why(t, source, settled=kind_is("waiter", kind, holder="thread", certain=True))
    found = wait_of(doc, "waiter")
    assert (found["owner_tid"], found["owner_pid"]) == (tid_of(doc, "holder"), t.pid)
    assert found["type"] == type_name
    assert found["timed"] == (what == "timed")
    assert doc["deadlocks"] == []
    if what == "recursive":
        assert found["count"] in (3, 1)  # where locks are not part of the monitor, these count


def test_java_owner_that_has_ended(java):
    t = java("ended", main="JavaLocks")
    found = wait_of(why(t, settled=kind_is("waiter", "java_lock", holder="ended")), "waiter")
    assert (found["owner_tid"], found["type"], found["certain"]) == (None, NONFAIR, False)
    said(lambda r: re.search(r" waiter waits for lock .*, held by a thread that has ended$", r.out, re.M), "why", t.pid)
    assert "has ended" in run("why", "--dot", t.pid).out


def test_java_sleep(java, source):
    """What it uses to wait for that long is of no interest."""
    t = java("sleep", main="JavaLocks")
    found = wait_of(why(t, source, settled=kind_is("waiter", "time", timed=True)), "waiter")
    assert (found["address"], found["holder"]) == (None, "not_recorded")
    said(lambda r: re.search(r" waiter sleeps, .* left$", r.out, re.M), "why", source, t.pid)


JAVA_OWNERLESS = {
    "readers": ("java_lock", "java.util.concurrent.locks.ReentrantReadWriteLock$NonfairSync", "readers"),
    "condition": ("java_condition", "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject", "not_recorded"),
    "semaphore": ("java_semaphore", "java.util.concurrent.Semaphore$NonfairSync", "not_recorded"),
    "latch": ("java_latch", "java.util.concurrent.CountDownLatch$Sync", "not_recorded"),
    "park": ("java_park", "JavaLocks$Account", "not_recorded"),
    "bare-park": ("java_park", None, "not_recorded"),
    "wait": ("notification", "JavaLocks$Account", "not_recorded"),
    "wait-timed": ("notification", "JavaLocks$Account", "not_recorded"),
    "join-self": ("notification", "java.lang.Thread", "not_recorded"),
}


@pytest.mark.parametrize("what", JAVA_OWNERLESS)
def test_java_without_owner(java, source, what):
    t = java(what, main="JavaLocks")
    kind, type_name, holder = JAVA_OWNERLESS[what]
    doc = why(t, source, settled=kind_is("waiter", kind, type=type_name))
    found = wait_of(doc, "waiter")
    assert (found["holder"], found["owner_tid"], found["certain"]) == (holder, None, False)
    assert found["timed"] == (what == "wait-timed")
    assert doc["deadlocks"] == [] and not doc["maybe_more_deadlocks"]


def jstack_cycles(text):
    """The names in the deadlocks that it tells, each once."""
    return [set(re.findall(r'^"(.*)":$', part.split("=" * 10)[-1].partition("Java stack")[0], re.M))
            for part in text.split("Found one Java-level deadlock:")[1:]]


RINGS = {"monitors": 3, "locks": 3, "mixed": 4, "join-ring": 2}


@pytest.mark.parametrize("what", RINGS)
def test_java_deadlock(java, source, what):
    t = java(what, main="JavaLocks")
    names = [f"ring-{i}" for i in range(RINGS[what])]
    assert_cycle(why(t, source, settled=lambda doc: doc["deadlocks"]), names)
    r = said(lambda r: r.code == 4, "why", source, t.pid)
    assert re.search(rf"^DEADLOCK: {len(names)} threads wait for each other$", r.out, re.M), r.out
    for name in names:
        assert re.search(rf"^  tid \d+ {name} waits for .*(, held by|:) tid \d+ ring-\d(; blocked for .*)?$", r.out, re.M), r.out
    assert "JavaLocks." in r.out.partition("DEADLOCK")[2]


@pytest.mark.parametrize("what", ["monitors", "locks", "mixed"])
def test_java_deadlock_as_jstack_says(java, tool, what):
    if JAVA != ["java"]:
        pytest.skip("jstack is of the host's Java")
    t = java(what, main="JavaLocks")
    doc = why(t, settled=lambda doc: doc["deadlocks"])
    said = subprocess.run([tool("jstack"), str(t.pid)], capture_output=True, text=True, check=True, timeout=TIMEOUT).stdout
    names = {th["tid"]: th["name"] for th in doc["threads"]}
    assert [{names[member["tid"]] for member in cycle} for cycle in doc["deadlocks"]] == jstack_cycles(said), said


def test_java_words(java):
    t = java("recursive", main="JavaLocks")
    doc = why(t, settled=kind_is("waiter", "monitor", holder="thread", certain=True))
    waits = rf"tid {tid_of(doc, 'waiter')} waiter waits for the monitor of JavaLocks\$Account 0x[0-9a-f]+, held by tid {tid_of(doc, 'holder')} holder"
    said(lambda r: re.search(rf"^{waits}", r.out, re.M), "why", t.pid)
    words = r"^  waits for the monitor of JavaLocks\$Account 0x[0-9a-f]+, held by tid \d+ holder"
    said(lambda r: re.search(words, r.out, re.M), t.pid)


def test_java_one_thread(java):
    """The owner is told also where it is not looked at, and then it is not certain."""
    t = java("lock", main="JavaLocks")
    doc = why(t, settled=kind_is("waiter", "java_lock", holder="thread", certain=True))
    found = run("--json", "-t", tid_of(doc, "waiter"), t.pid).doc["threads"][0]["waits_for"]
    assert (found["owner_tid"], found["certain"]) == (tid_of(doc, "holder"), False)


def test_java_saved(java, tmp_path):
    t = java("mixed", main="JavaLocks")
    why(t, settled=lambda doc: doc["deadlocks"])
    file = tmp_path / "snap"

    def waits(doc):
        return {th["tid"]: th["waits_for"] for th in doc["threads"]}

    live = said(lambda r: any(wait and wait["certain"] and wait["kind"] == "java_lock" for wait in waits(r.doc).values()),
                "--json", "--save", file, t.pid).doc
    assert waits(run("replay", "--json", file).doc) == waits(live)


@pytest.mark.parametrize("collector", ["-XX:+UseSerialGC", "-XX:+UseParallelGC", "-XX:-UseCompressedOops"])
def test_java_other_heaps(java, collector):
    t = java("mixed", main="JavaLocks", options=[collector])
    assert_cycle(why(t, settled=lambda doc: doc["deadlocks"]), [f"ring-{i}" for i in range(4)])


def test_java_healthy(java):
    assert_healthy(java("healthy", main="JavaLocks", options=["-Xmx64m"]), {"monitor", "java_lock"})


def test_java_schema(java):
    jsonschema = pytest.importorskip("jsonschema")
    t = java("mixed", main="JavaLocks")
    doc = why(t, settled=lambda doc: doc["deadlocks"])
    jsonschema.validate(doc, json.loads((ROOT / "docs/schema/why.schema.json").read_text()))


# Python


@pytest.fixture(params=[CHOSEN[0], *[native(version) for version in CHOSEN[1:]]])
def version(request):
    return request.param


PYTHON_OWNED = {"gil": "gil", "rlock": "python_rlock", "rlock-timed": "python_rlock", "with": "python_rlock"}


@pytest.mark.parametrize("what", PYTHON_OWNED)
def test_python_owner(python, source, what):
    t = python("locks.py", what)
    doc = why(t, source, settled=kind_is("waiter", PYTHON_OWNED[what], holder="thread", certain=True))
    found = wait_of(doc, "waiter")
    assert (found["owner_tid"], found["owner_pid"]) == (tid_of(doc, "holder"), t.pid)
    assert found["timed"] == (what == "rlock-timed")
    assert found["count"] == {"gil": None, "rlock": 3}.get(what, 1)
    assert doc["deadlocks"] == []


PYTHON_OWNERLESS = {
    "lock": "python_lock",
    "condition": "python_condition",
    "wait-for": "python_condition",
    "event": "python_event",
    "event-timed": "python_event",
    "semaphore": "python_semaphore",
    "barrier": "python_barrier",
    "item": "python_item",
    "room": "python_room",
    "done": "python_done",
    "future": "python_future",
    "simple-item": "python_item",
    "futures": "python_future",
    "processes-event": "python_event",
    "processes-condition": "python_condition",
    "processes-room": "python_room",
    "processes-lock": "semaphore",
}


@pytest.mark.parametrize("what", PYTHON_OWNERLESS)
def test_python_without_owner(python, source, what):
    t = python("locks.py", what)
    doc = why(t, source, settled=kind_is("waiter", PYTHON_OWNERLESS[what]))
    found = wait_of(doc, "waiter")
    assert (found["holder"], found["owner_tid"], found["certain"]) == ("not_recorded", None, False)
    assert found["timed"] == (what == "event-timed")


@pytest.mark.parametrize("what", ["block", "blocks", "block-event", "block-item", "block-future", "block-barrier"])
def test_python_owner_in_a_block(python, what):
    """A Lock does not record who has it, but frames tell who is in a `with` block of it."""
    t = python("locks.py", what)
    doc = why(t, settled=kind_is("waiter", "python_lock", holder="inferred"))
    found = wait_of(doc, "waiter")
    assert (found["owner_tid"], found["owner_pid"], found["certain"]) == (tid_of(doc, "holder"), t.pid, False)
    assert doc["deadlocks"] == doc["likely_deadlocks"] == [] and not doc["maybe_more_deadlocks"]


LET_GO = ["after-block", "block-let-go", "block-condition", "block-wait-for", "block-argument", "block-contested", "block-inner", "block-running"]


@pytest.mark.parametrize("what", LET_GO)
def test_python_owner_not_in_a_block(python, what):
    """Somebody was in a block of it, or is, and has let go of it; who has it now is not to be said."""
    t = python("locks.py", what)
    asleep = ["holder"] if what == "block-running" else ["holder", "other"]
    doc = why(t, settled=lambda doc: kind_is("waiter", "python_lock")(doc) and all(blocked(doc, name) for name in asleep))
    assert (wait_of(doc, "waiter")["holder"], wait_of(doc, "waiter")["owner_tid"]) == ("not_recorded", None)
    assert doc["deadlocks"] == doc["likely_deadlocks"] == [] and not doc["maybe_more_deadlocks"]


@pytest.mark.parametrize("what, names", [("abba-blocks", ["ring-0", "ring-1"]), ("join-block", ["ring-0", "ring-1"]), ("block-twice", ["ring-0"])])
def test_python_likely_deadlock(python, source, what, names):
    t = python("locks.py", what)
    doc = why(t, source, settled=lambda doc: doc["likely_deadlocks"])
    assert doc["deadlocks"] == [] and not doc["maybe_more_deadlocks"]
    assert [sorted(member["tid"] for member in ring) for ring in doc["likely_deadlocks"]] == [sorted(tid_of(doc, name) for name in names)]
    r = said(lambda r: "most likely" in r.out, "why", source, t.pid)
    who = "a thread waits for itself, if it has not" if what == "block-twice" else "2 threads wait for each other, if none has"
    assert r.code == 3 and f"\nDEADLOCK, most likely: {who} let go of " in r.out and "No deadlock" not in r.out, r
    for name in names:
        lock = r"lock 0x\w+, held by tid \d+ ring-\d \(in a with block of it\)"
        thing = r"the end of a thread: tid \d+ ring-1" if (what, name) == ("join-block", "ring-0") else lock
        assert re.search(rf"^  tid \d+ {name} waits for {thing}", r.out, re.M), r.out
    assert "locks.py" in r.out.partition("DEADLOCK")[2]


def test_python_likely_deadlock_watched_and_drawn(python):
    t = python("locks.py", "abba-blocks")
    doc = why(t, settled=lambda doc: doc["likely_deadlocks"])
    ring = sorted([tid_of(doc, "ring-0"), tid_of(doc, "ring-1")])
    r = run("watch", "--json", "-n", "3", "-i", "100ms", t.pid)
    told = [[sorted(member["tid"] for member in cycle) for cycle in look["likely_deadlocks"]] for look in r.docs]
    assert r.code == 3 and told == [[ring], [], [], [ring]], r  # once, and in the summary
    assert not any(look["deadlocks"] or look["maybe_more_deadlocks"] for look in r.docs)
    edges = [line for line in run("why", "--dot", t.pid).out.splitlines() if "->" in line and "lock 0x" in line]
    assert len(edges) == 2 and all('color="#c00000"' in edge and "style=dashed" in edge for edge in edges), edges


@pytest.mark.parametrize("what", ["join", "shutdown"])
def test_python_join(python, source, what):
    t = python("locks.py", what)

    def waits(doc):
        waiter = t.pid if what == "shutdown" else tid_of(doc, "waiter")
        return next(th["waits_for"] for th in doc["threads"] if th["tid"] == waiter)

    doc = why(t, source, settled=lambda doc: waits(doc) and waits(doc)["kind"] == "python_join" and waits(doc)["certain"])
    found = waits(doc)
    assert (found["owner_tid"], found["owner_pid"], found["timed"]) == (tid_of(doc, "joined"), t.pid, False)
    assert doc["deadlocks"] == []
    said(lambda r: re.search(r"waits for the end of a thread: tid \d+ joined, which sleeps", r.out), "why", t.pid)


def test_python_worker_of_a_pool(python):
    why(python("locks.py", "worker"), settled=kind_is("waiter_0", "python_item"))


@pytest.mark.parametrize("what", ["abba", "gil-mutex", "join-ring"])
def test_python_deadlock(python, source, what):
    t = python("locks.py", what)
    assert_cycle(why(t, source, settled=lambda doc: doc["deadlocks"]), ["ring-0", "ring-1"])
    r = said(lambda r: r.code == 4, "why", source, t.pid)
    things = {"abba": r"RLock 0x\w+, held by", "gil-mutex": r"(the GIL|mutex 0x.*), held by", "join-ring": r"(RLock 0x\w+, held by|the end of a thread:)"}
    for name in ("ring-0", "ring-1"):
        assert re.search(rf"^  tid \d+ {name} waits for {things[what]} tid \d+ ring-\d(; blocked for .*)?$", r.out, re.M), r.out
    assert "locks.py" in r.out.partition("DEADLOCK")[2]


@pytest.mark.parametrize("what", ["abba-main", "abba-handler", "abba-blocks-main", "abba-blocks-handler"])
def test_python_main_thread(python, what):
    """It runs handlers while it waits for a lock; Python's own one for Ctrl-C does not count."""
    t = python("locks.py", what)
    known = {"kind": "python_lock", "holder": "inferred"} if "blocks" in what else {"kind": "python_rlock", "certain": True}

    def both(doc):
        both = [th for th in doc["threads"] if th["name"] == "ring-0" or th["tid"] == t.pid]
        blocked = all(th["waits_for"] and known.items() <= th["waits_for"].items() for th in both)
        return len(both) == 2 and blocked and ("blocks" not in what or all(th["off_cpu_ms"] is None or th["off_cpu_ms"] > LONG for th in both))

    doc = why(t, settled=both)
    ring = [{t.pid, tid_of(doc, "ring-0")}] if what.endswith("main") else []
    found = {key: [{member["tid"] for member in ring} for ring in doc[key]] for key in ("deadlocks", "likely_deadlocks")}
    assert found == ({"deadlocks": [], "likely_deadlocks": ring} if "blocks" in what else {"deadlocks": ring, "likely_deadlocks": []})
    assert doc["maybe_more_deadlocks"] == (not ring)


def test_python_words(python):
    t = python("locks.py", "lock")
    said(lambda r: re.search(r"^tid \d+ waiter waits for lock 0x\w+, which does not record who holds it$", r.out, re.M), "why", t.pid)
    t = python("locks.py", "rlock")
    said(lambda r: re.search(r"^tid \d+ waiter waits for RLock 0x\w+, held by tid \d+ holder \(3 times\)", r.out, re.M), "why", t.pid)
    t = python("locks.py", "gil")
    said(lambda r: re.search(r"^tid \d+ waiter waits for the GIL, held by tid \d+ holder, which ", r.out, re.M), "why", t.pid)


def test_python_threads_that_wait_for_the_same(python):
    """Each has a lock of its own underneath, which is of no interest."""
    t = python("locks.py", "workers")
    said(lambda r: re.search(r"^5 threads wait for an item of a queue$", r.out, re.M), "why", t.pid)


def test_python_threads_that_wait_for_locks_of_a_table(python):
    """The first lock stands for all that are held by somebody who does the same; -v shows each."""
    t = python("locks.py", "buckets")
    held = r"wait for RLock 0x\w+, held by tid \d+ holder, which sleeps, .* left"
    said(lambda r: re.search(rf"^12 threads {held}; and for 5 others held in the same way$", r.out, re.M), "why", t.pid)
    said(lambda r: len(re.findall(rf"^2 threads {held}$", r.out, re.M)) == 6, "why", "-v", t.pid)


@pytest.mark.parametrize("what", ["abba", "gil-mutex", "join-ring", "abba-blocks"])
def test_python_saved(python, tmp_path, what):
    t = python("locks.py", what)
    file = tmp_path / "snap"

    def waits(doc):
        return {th["tid"]: th["waits_for"] for th in doc["threads"]}

    def is_known(wait):
        return wait and (wait["certain"] or wait["holder"] == "inferred")

    live = said(lambda r: sum(bool(is_known(wait)) for wait in waits(r.doc).values()) >= 2, "--json", "--save", file, t.pid).doc
    again = run("replay", "--json", file).doc
    assert waits(again) == waits(live)
    assert (again["deadlocks"], again["likely_deadlocks"]) == (live["deadlocks"], live["likely_deadlocks"])


def test_python_healthy(python):
    assert_healthy(python("locks.py", "healthy"), {"python_rlock", "python_lock", "python_join", "gil", "mutex"})


def test_python_healthy_joins(python):
    """A new thread's state is its creator's for a moment."""
    assert_healthy(python("locks.py", "healthy-joins"), {"python_join"})
