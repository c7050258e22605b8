# SPDX-License-Identifier: MIT
"""What threads wait for, who holds it, and deadlocks: against programs that know."""

import json
import os
import re

import pytest
from harness import ROOT, child_of, is_known, name_of, rounds, run, symbols, thread, tids, until, wait_of

LOOKS = int(os.environ.get("STAKEOUT_TEST_LOOKS", "60"))  # at a program with many locks

OWNED = {
    "mutex": "mutex",
    "recursive": "mutex",
    "errorcheck": "mutex",
    "adaptive": "mutex",
    "robust": "mutex",
    "pi": "mutex",
    "timed": "mutex",
    "write": "write_lock",
    "read": "read_lock",
    "stream": "stream",
    "join": "join",
}
OWNERLESS = {  # and the functions that tell it
    "condition": "pthread_cond_wait",
    "semaphore": "(new_)?sem_wait",
    "barrier": "pthread_barrier_wait",
    "once": "pthread_once",
}


def why(t, *args, codes=(0, 4)):
    """The document, once nobody in the process runs."""

    def look():
        r = run("why", "--json", *args, t.pid)
        assert r.code in codes, r
        return r.doc

    return until(look, lambda doc: all(th["state"] != "R" for th in doc["threads"]))


@pytest.mark.asan
@pytest.mark.arch("bpf-mutex", "bpf-robust", "bpf-write", "bpf-stream", "bpf-join", "proc-mutex", "proc-join")
@pytest.mark.parametrize("what", OWNED)
def test_owner(target, source, what):
    t = target("locks", what).settle()
    doc = why(t, source)
    found = wait_of(doc, t.tids["waiter"])
    if what == "stream" and source == "--source=proc":  # which does not tell where threads have their descriptors
        assert (found["kind"], found["holder"]) == ("stream", "not_recorded")
        return
    assert (found["kind"], found["holder"]) == (OWNED[what], "thread")
    assert (found["owner_tid"], found["owner_pid"]) == (t.tids["holder"], t.pid)
    if what == "join" and source == "--source=proc":  # likewise; then a name has to tell it
        names = symbols(thread(run("--json", source, t.pid).doc, "waiter"))
        assert found["certain"] == any("join" in (name or "") for name in names)
    else:
        assert found["certain"]
    assert found["timed"] == (what == "timed") and not found["shared"]
    if found["kind"] == "mutex":
        types = {"recursive": "recursive", "errorcheck": "error_checking", "adaptive": "adaptive"}
        assert found["mutex_type"] == types.get(what, "normal")
        assert (found["robust"], found["inherits_priority"]) == (what == "robust", what == "pi")
        assert found["count"] == (1 if what == "recursive" else None)
    if what not in ("join", "stream"):
        assert found["module"].endswith("/locks"), found
        assert found["variable"] == ("global_rwlock" if "lock" in OWNED[what] else "global_mutex") and found["variable_offset"] == "0x0"
    assert doc["deadlocks"] == []
    assert wait_of(doc, t.tids["holder"])["kind"] == "signal"  # it is in pause()


MUSL = {  # and the owner, if it is recorded
    "mutex": ("mutex", "not_recorded"),
    "recursive": ("mutex", "thread"),
    "errorcheck": ("mutex", "thread"),
    "robust": ("mutex", "thread"),
    "pi": ("mutex", "thread"),
    "write": ("write_lock", "not_recorded"),
    "read": ("read_lock", "not_recorded"),
    "readers": ("write_lock", "readers"),
    "condition": ("condition", "not_recorded"),
    "semaphore": ("semaphore", "not_recorded"),
    "barrier": ("barrier", "not_recorded"),
    "stream": ("stream", "thread"),
    "join": ("join", "not_recorded"),
}


def check_wait(t, found, kind, holder):
    assert (found["kind"], found["holder"]) == (kind, holder)
    if holder == "thread":
        assert (found["owner_tid"], found["owner_pid"], found["certain"]) == (t.tids["holder"], t.pid, True)
    else:
        assert not found["certain"]


@pytest.mark.parametrize("what", MUSL)
def test_musl(target, source, what):
    t = target("locks_musl", what).settle()
    kind, holder = MUSL[what]
    found = wait_of(why(t, source, codes=(0, 3)), t.tids["waiter"])  # the library of some distributions has no tables for unwinding
    check_wait(t, found, kind, holder)
    if kind in ("mutex", "write_lock", "read_lock"):
        assert found["variable"].startswith("global_") and found["variable_offset"] == "0x0"


@pytest.mark.parametrize("what", ["mutex", "write", "read", "readers", "condition", "semaphore", "barrier"])
def test_static_musl(target, what):
    """There is no library to know it by, only what its locks look like."""
    t = target("locks_musl_static", what).settle()
    found = wait_of(why(t, codes=(0, 3)), t.tids["waiter"])
    check_wait(t, found, *MUSL[what])
    if what in ("write", "read", "readers"):
        assert (found["variable"], found["variable_offset"]) == ("global_rwlock", "0x0")


CXX = {
    "mutex": ("mutex", "thread", "global_mutex"),
    "recursive": ("mutex", "thread", "global_recursive"),
    "timed": ("mutex", "thread", "global_timed"),
    "write": ("write_lock", "thread", "global_shared"),
    "read": ("read_lock", "thread", "global_shared"),
    "condition": ("condition", "not_recorded", "global_condition"),
    "future": ("future", "not_recorded", None),
    "semaphore": ("semaphore", "not_recorded", "global_semaphore"),
    "once": ("once", "not_recorded", "global_once"),
    "static": ("once", "not_recorded", "guard variable for make_static()::value"),
}


def is_named(t, function, *args):
    """Without its symbol table the C library's inner functions, which the outer ones have jumped to, have no names."""
    names = symbols(thread(run("--json", *args, t.pid).doc, "waiter"))
    return any(re.match(rf"_*(GI_+)?{function}", name or "") for name in names)


@pytest.mark.parametrize("what", CXX)
def test_cxx(target, what):
    t = target("locks_cxx", what).settle()
    kind, holder, variable = CXX[what]
    found = wait_of(why(t), t.tids["waiter"])
    check_wait(t, found, kind if what != "once" or is_named(t, "pthread_once") else "futex", holder)
    assert found["variable"] == variable and found["variable_offset"] in ("0x0", None)


@pytest.mark.parametrize("what", OWNERLESS)
def test_nobody_is_recorded(target, source, what):
    t = target("locks", what).settle()
    found = wait_of(why(t, source), t.tids["waiter"])
    kind = what if is_named(t, OWNERLESS[what], source) else "futex"
    assert (found["kind"], found["holder"], found["owner_tid"]) == (kind, "not_recorded", None)


def test_readers_are_not_recorded(target):
    t = target("locks", "readers").settle()
    found = wait_of(why(t), t.tids["waiter"])
    assert (found["kind"], found["holder"], found["owner_tid"]) == ("write_lock", "readers", None)


STATIC = {
    "mutex": ("mutex", "thread"),
    "robust": ("mutex", "thread"),
    "timed": ("mutex", "thread"),
    "write": ("write_lock", "thread"),
    "read": ("read_lock", "thread"),
    "readers": ("write_lock", "readers"),
    "condition": ("condition", "not_recorded"),
    "semaphore": ("semaphore", "not_recorded"),
    "barrier": ("barrier", "not_recorded"),
    "once": ("once", "not_recorded"),
    "stream": ("stream", "thread"),
    "join": ("join", "thread"),
}


@pytest.mark.arch("mutex", "condition", "join")
@pytest.mark.parametrize("what", STATIC)
def test_static_program(target, what):
    """Its functions and the C library's are in one file."""
    t = target("locks_static", what).settle()
    found = wait_of(why(t), t.tids["waiter"])
    kind, holder = STATIC[what]
    assert (found["kind"], found["holder"]) == (kind, holder)
    assert found["owner_tid"] == (t.tids["holder"] if holder == "thread" else None)


@pytest.mark.arch("locks_static")
@pytest.mark.parametrize("program", ["locks", "locks_static", "locks_musl_static"])
def test_own_futex_inside_once(target, program):
    """A function of the library's that is further out does not say what the program's own waits for."""
    t = target(program, "inside-once").settle()
    found = wait_of(why(t, codes=(0, 3)), t.tids["waiter"])
    assert (found["kind"], found["variable_offset"]) == ("futex", "0x0")
    assert "word" in found["variable"]


@pytest.mark.arch("locks")
@pytest.mark.parametrize("program", ["locks", "locks_static"])
def test_reader_behind_a_writer(target, program):
    """A reader that is inside keeps out the writer, and that the next reader."""
    t = target(program, "read-behind-writer").settle()
    doc = why(t)
    for who, kind in (("waiter", "read_lock"), ("writer", "write_lock")):
        found = wait_of(doc, t.tids[who])
        assert (found["kind"], found["holder"], found["owner_tid"]) == (kind, "readers", None)
        assert (found["variable"], found["variable_offset"]) == ("global_rwlock", "0x0")


def test_owner_that_has_ended(target):
    t = target("locks", "ended")
    doc = until(lambda: why(t), lambda doc: (wait_of(doc, t.tids["waiter"]) or {}).get("kind") == "mutex")
    found = wait_of(doc, t.tids["waiter"])
    assert (found["holder"], found["owner_tid"], found["owner_pid"], found["certain"]) == ("ended", t.tids["holder"], None, False)
    assert f"held by tid {t.tids['holder']}, which is no thread of the process any more" in run("why", t.pid).out


@pytest.mark.parametrize(
    "program, what", [*(("locks", what) for what in ("mutex", "robust", "pi", "timed", "write")), ("locks_musl", "robust"), ("locks_musl", "stream")]
)
@pytest.mark.parametrize("apart", [False, True], ids=["here", "in-a-namespace"])
def test_owner_that_was_not_wanted(target, unshare, tmp_path, program, what, apart):
    """With -t the owner may be a thread that is not looked at, and lives all the same."""
    wrap = {"wrap": [unshare, "--pid", "--fork", "--mount-proc", "--kill-child"]} if apart else {}
    t = target(program, what, **wrap)
    pid = child_of(t.pid, program) if apart else t.pid
    threads = {name_of(pid, tid): int(tid) for tid in tids(pid)}

    def look(*args):
        r = run("-t", threads["waiter"], "--json", *args, pid)
        assert r.code in (0, 3), r
        return r.doc

    doc = until(look, lambda doc: (doc["threads"][0]["waits_for"] or {}).get("holder") == "thread")
    assert [th["tid"] for th in doc["threads"]] == [threads["waiter"]]
    found = doc["threads"][0]["waits_for"]
    assert (found["owner_tid"], found["owner_pid"], found["certain"]) == (threads["holder"], pid, False)
    said = f", held by tid {threads['holder']} holder, which is not looked at\n"
    assert said in run("-t", threads["waiter"], "--save", tmp_path / "saved", pid).out
    assert said in run("replay", tmp_path / "saved").out


def assert_cycle(t, doc, names):
    assert len(doc["deadlocks"]) == 1, doc["deadlocks"]
    cycle = [member["tid"] for member in doc["deadlocks"][0]]
    assert sorted(cycle) == sorted(t.tids[name] for name in names)
    for tid, following in zip(cycle, cycle[1:] + cycle[:1]):
        assert wait_of(doc, tid)["owner_tid"] == following


@pytest.mark.asan
@pytest.mark.arch("bpf-argv0-names0", "bpf-argv3-names3", "proc-argv0-names0")
@pytest.mark.parametrize(
    "argv, names",
    [
        (("deadlock",), ("a_then_b", "b_then_a")),
        (("locks", "ring"), ("ring_0", "ring_1", "ring_2", "ring_3")),
        (("locks", "relock"), ("waiter",)),
        (("locks", "rwlock-cycle"), ("holder", "waiter")),
    ],
)
def test_deadlock(target, source, argv, names):
    t = target(*argv).settle()
    doc = why(t, source)
    assert_cycle(t, doc, names)
    for member in doc["deadlocks"][0]:
        (there,) = [th for th in doc["threads"] if th["tid"] == member["tid"]]
        assert there["place"]["function"] in [frame["symbol"] for frame in member["stack"]]
    r = run("why", source, t.pid)
    assert r.code == 4
    assert re.search(r"^DEADLOCK: (%d threads wait for each other|a thread waits for itself)$" % len(names), r.out, re.M), r.out
    assert "No deadlock" not in r.out
    since = "" if source == "--source=proc" else r"; blocked for \S+ \w+"  # /proc does not tell
    for name in names:
        assert re.search(rf"^  tid {t.tids[name]} {name} waits for .*, held by tid \d+ \w+{since}$", r.out, re.M), r.out


@pytest.mark.asan
@pytest.mark.arch
@pytest.mark.parametrize("what, names", [("ring-pi", ("ring_0", "ring_1", "ring_2", "ring_3")), ("relock-pi", ("waiter",))])
def test_deadlock_that_the_kernel_refused(target, bpf_missing, tmp_path, what, names):
    """The last of them is told so, and glibc has it wait for a word of its own for ever: its registers have the mutex."""
    if bpf_missing:
        pytest.skip(bpf_missing)
    t = target("locks", what).settle()
    doc = until(lambda: why(t), lambda doc: doc["deadlocks"])
    assert_cycle(t, doc, names)
    waits = [wait_of(doc, t.tids[name]) for name in names]
    assert all((wait["kind"], wait["certain"]) == ("mutex", True) for wait in waits), waits
    variable = "global_mutex" if what == "relock-pi" else "others"
    assert {wait["variable"] for wait in waits} == {variable}
    file = tmp_path / "snap"
    run("--save", file, t.pid)
    assert [len(d) for d in run("replay", "--json", file).doc["deadlocks"]] == [len(names)]


def test_memory_behind_variables(target):
    """It is none of the file's."""
    t = target("locks", "behind").settle()
    found = wait_of(until(lambda: why(t), lambda doc: is_known(wait_of(doc, t.tids["waiter"]))), t.tids["waiter"])
    assert (found["kind"], found["module"], found["module_offset"], found["variable"]) == ("mutex", None, None, None)
    assert found["owner_tid"] == t.tids["holder"]


def test_words(target):
    t = target("locks", "mutex").settle()
    r = run("why", t.pid)
    assert r.code == 0
    waits = rf"tid {t.tids['waiter']} waiter waits for mutex global_mutex 0x[0-9a-f]+ \(locks\+0x[0-9a-f]+\), held by tid {t.tids['holder']} holder"
    assert re.search(rf"^{waits}, which waits for a signal$", r.out, re.M), r.out
    assert re.search(r"^  in want_mutex; blocked for \S+ \w+$", r.out, re.M), r.out
    assert r.out.endswith("\nNo deadlock was found.\n")


def test_each_waits_for_its_own(target):
    """Then a pool of threads takes three lines, and not three for each."""
    t = target("locks", "pool").settle()
    out = run("why", t.pid).out
    assert re.search(r"^8 threads wait for semaphore .* and 7 others like it$", out, re.M), out
    assert out.count("semaphore") == 2  # and the place
    few = target("locks", "few").settle()
    assert len(re.findall(r"^tid \d+ pooled waits for semaphore", run("why", few.pid).out, re.M)) == 3


def test_snapshot_says_it_too(target, snap):
    t = target("deadlock").settle()
    doc = snap(t)
    assert thread(doc, "a_then_b")["waits_for"]["owner_tid"] == t.tids["b_then_a"]
    words = rf"  waits for mutex b 0x[0-9a-f]+ \(deadlock\+0x[0-9a-f]+\), held by tid {t.tids['b_then_a']} b_then_a"
    out = run(t.pid).out
    assert re.search(rf"^{words}$", out, re.M)
    both = rf"{t.tids['a_then_b']} a_then_b, {t.tids['b_then_a']} b_then_a"
    assert re.search(rf"^DEADLOCK: 2 threads wait for each other: tid {both} \(stakeout why\)$", out, re.M), out
    assert [[member["tid"] for member in d] for d in doc["deadlocks"]] == [[t.tids["a_then_b"], t.tids["b_then_a"]]]
    one = run("--json", "-t", t.tids["a_then_b"], t.pid).doc
    assert one["deadlocks"] == []  # the other one was not looked at


def test_snapshot_without_deadlock(target, snap):
    t = target("locks", "mutex").settle()
    assert snap(t)["deadlocks"] == [] and "DEADLOCK" not in run(t.pid).out


def test_saved_snapshot(target, tmp_path):
    t = target("deadlock").settle()
    file = tmp_path / "snap"
    assert run("--save", file, t.pid).code == 0
    doc = run("replay", "--json", file).doc
    found = thread(doc, "a_then_b")["waits_for"]
    assert found["owner_tid"] == t.tids["b_then_a"] and found["certain"]


def test_several_processes(target):
    both = [target("deadlock").settle(), target("locks", "ring").settle()]
    r = run("why", "--json", *(t.pid for t in both))
    doc = r.doc
    assert r.code == 4
    assert {frozenset(m["tid"] for m in d) for d in doc["deadlocks"]} == {frozenset(t.tids.values()) for t in both}
    assert len({p["instant"] for p in doc["processes"]}) == 1


def test_healthy_program(target):
    """Always somebody waits for somebody, but never all round."""
    t = target("locks", "healthy")
    seen = set()
    for _ in rounds(LOOKS):
        r = run("why", "--json", t.pid)
        assert r.code in (0, 3), r
        doc = r.doc
        assert doc["deadlocks"] == []
        seen |= {th["waits_for"]["holder"] for th in doc["threads"] if th["waits_for"] and th["waits_for"]["kind"] == "mutex"}
    assert "thread" in seen, seen


def test_schema(target):
    jsonschema = pytest.importorskip("jsonschema")
    t = target("locks", "ring").settle()
    schema = json.loads((ROOT / "docs/schema/why.schema.json").read_text())
    jsonschema.validate(why(t), schema)


def test_small_numbers(target, unshare):
    """In a pid namespace of its own numbers of threads are small, and look like those of locks."""
    t = target("locks", "shared-futexes", wrap=[unshare, "--pid", "--fork", "--mount-proc", "--kill-child"])
    pid = child_of(t.pid, "locks")

    def locks(doc):
        return [th["waits_for"] for th in doc["threads"] if th["waits_for"] and th["waits_for"]["address"]]

    doc = until(lambda: run("why", "--json", pid).doc, lambda doc: len(locks(doc)) == 3)
    assert doc["deadlocks"] == [], doc
    assert sorted(wait["kind"] for wait in locks(doc)) == ["futex", "futex", "mutex"]
    assert not any(wait["certain"] for wait in locks(doc))


def test_robust_mutex_that_changed_hands(target):
    """Who waits since before still has the number of the first owner in its system call."""
    t = target("locks", "handed-on").settle()
    found = wait_of(why(t), t.tids["waiter"])
    assert (found["kind"], found["owner_tid"]) == ("mutex", t.tids["heir"])


def test_wrong_usage():
    assert run("why").code == 2
    assert run("why", "--registers", "1").code == 2
    assert run("why", "--stop=all", "1").code == 2
    assert "Exit status: 0 no deadlock" in run("why", "--help").out
