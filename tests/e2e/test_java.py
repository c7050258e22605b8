# SPDX-License-Identifier: MIT
"""Java: frames of the program in the place of those of interpreter and compilers, as the virtual machine tells them."""

import os
import re
import subprocess
from collections import Counter

import pytest
from harness import TIMEOUT, gather, name_of, tids, until, wait_until
from harness import thread as by_tid
from javas import (
    APART,
    IN_PYTHON,
    JAVA,
    MODES,
    RUNNING,
    STUBS,
    answers,
    assert_chain,
    assert_stub,
    bare,
    frames_of,
    is_hidden,
    shown,
    truth,
    version,
)

# Stacks of threads that run.
LOOKS = int(os.environ.get("STAKEOUT_TEST_LOOKS", "30"))

KINDS = [
    "enterer",
    "initialiser",
    "latched",
    "locker",
    "plain",
    "recursion",
    "reflector",
    "schläfer mit langem Namen",
    "sleeper",
    "streamer",
    "waiter",
    "睡眠 😴",
]


def thread(doc, name):
    """The thread that the program has given this name."""
    found = [t for t in doc["threads"] if t["runtime"] and t["runtime"]["thread_name"] == name]
    assert len(found) == 1, f"{name}: {[(t['name'], t['status'], t['runtime']) for t in doc['threads']]}"
    return found[0]


def assert_like_truth(doc, stacks, names):
    for name in names:
        assert shown(thread(doc, name)) == stacks[name], name


@pytest.fixture
def look(stakeout):
    """look(TARGET, ARG…): the JSON document. How whole it is is told for each thread; on a busy machine they get more time to stop."""
    return lambda t, *args: stakeout("--json", "--stop-timeout", int(TIMEOUT / 2 * 1000), *args, t.pid).doc


@pytest.mark.parametrize("mode", MODES)
def test_as_the_target_says(java, look, mode):
    """Every thread that blocks: names, files, lines and order, and whole."""
    t = java("all", options=MODES[mode])
    doc = look(t)
    stacks = truth(t)
    others = [name for name in ("Reference Handler", "Finalizer", "Common-Cleaner") if name in stacks]
    assert_like_truth(doc, stacks, [*KINDS, *others])
    for kind in KINDS:
        assert thread(doc, kind)["user_stack_end"] == "complete", kind


def test_threads(java, look):
    """Names of any length and language, states and daemons, of all threads but the one that answers."""
    t = java("all")
    doc = look(t)
    told = {name: (state, daemon == "true") for name, state, daemon in answers(t, "threads") if name != "main"}
    assert set(KINDS) <= set(told)
    for name, (state, daemon) in told.items():
        runtime = thread(doc, name)["runtime"]
        assert (runtime["name"], runtime["state"], runtime["daemon"]) == ("openjdk", state, daemon), name
        assert runtime["version"] == doc["runtimes"][0]["version"]
    others = {"VM Thread", "VM Periodic Tas"}
    assert others == {t["name"] for t in doc["threads"] if t["name"] in others and not t["runtime"]}


def notes_of_threads(doc):
    return [note for note in doc["notes"] if "Java's threads" in note]


def test_threads_with_zgc(java, look):
    """Where their objects cannot be read, all that they tell is said to be unknown, and why, once; the frames are the same."""
    if version() < 17:
        pytest.skip("this Java's ZGC is an experiment, if there is one")
    t = java("plain", options=["-XX:+UseZGC"])
    doc = look(t)
    stacks = truth(t)
    known = [t for t in doc["threads"] if t["runtime"]]
    told = {tuple(t["runtime"][key] is not None for key in ("thread_name", "state", "daemon")) for t in known}
    can_read = version() < 23  # before its objects had generations
    assert (can_read,) * 3 in told and told <= {(can_read,) * 3, (False,) * 3}  # one may just be moved
    assert len(notes_of_threads(doc)) == (0 if can_read else 1)
    assert stacks["plain"] in [shown(t) for t in known]


def test_tiers(java, look):
    """How each frame is executed; only compiled code has inlined frames."""
    recursion = frames_of(thread(look(java("recursion", options=["-XX:-TieredCompilation"])), "recursion"))
    assert {f["tier"] for f in recursion} == {"native", "interpreted", "C2"}
    assert {f["tier"] for f in recursion if f["inlined"]} == {"C2"}
    assert {(f["source"]["line"], f["line_kind"]) for f in recursion if f["tier"] == "native"} == {(None, None)}
    recursion = frames_of(thread(look(java("recursion", options=["-XX:TieredStopAtLevel=1"])), "recursion"))
    assert "C1" in {f["tier"] for f in recursion}
    recursion = frames_of(thread(look(java("recursion", options=["-Xint"])), "recursion"))
    assert {f["tier"] for f in recursion} == {"native", "interpreted"}


def test_saved(java, stakeout, tmp_path):
    """Of the process nothing is left then."""
    t = java("all")
    saved = tmp_path / "saved"
    first = stakeout("--json", "--save", saved, t.pid)
    t.end()
    again = stakeout("replay", "--json", saved)
    for kind in KINDS:
        assert thread(again.doc, kind)["user_stack"] == thread(first.doc, kind)["user_stack"]
    assert again.doc["runtimes"] == first.doc["runtimes"] and first.doc["runtimes"][0]["name"] == "openjdk"


def test_raw_and_without(java, stakeout):
    """--raw keeps native frames behind those that stand for them, --no-runtime shows nothing else."""
    t = java("plain")
    found = thread(stakeout("--json", t.pid).doc, "plain")
    usual = found["user_stack"]
    raw = thread(stakeout("--json", "--raw", t.pid).doc, "plain")["user_stack"]
    doc = stakeout("--json", "--no-runtime", t.pid).doc
    without = next(other["user_stack"] for other in doc["threads"] if other["tid"] == found["tid"])
    native = [f["address"] for f in raw if f["kind"] == "native"]
    made = [f for f in usual if f["kind"] != "native"]
    assert [f["symbol"] for f in raw if f["kind"] != "native"] == [f["symbol"] for f in made]
    assert len(native) == sum(f.get("replaces", 0) or 0 for f in made) + len([f for f in usual if f["kind"] == "native"])
    assert {f["kind"] for f in without} == {"native"}


def test_text(java, stakeout):
    t = java("sleeper")
    text = stakeout(t.pid).out
    assert "openjdk" in text.splitlines()[0]
    assert "java.lang.Thread.sleep" in text and "JavaStacks.sleep  at JavaStacks.java:" in text
    assert "[interpreted]" in text and "perfmap" not in text


@pytest.fixture
def pools(java):
    return java(options=["-Djava.util.concurrent.ForkJoinPool.common.parallelism=3"], main="JavaPools")


def look_at_rest(t, look):
    """A snapshot between two accounts of the target that are the same: idle threads of a pool may just look for work."""

    def take():
        before, doc, after = truth(t), look(t), truth(t)
        return before == after and (doc, after)

    return wait_until(take, "all threads stay where they are")


# What the virtual machine leaves out when it tells of a virtual thread, though not when it tells of other threads.
LEFT_OUT = ("jdk.internal.vm.Continuation.enter", "java.lang.Thread.runWith", "java.lang.VirtualThread$VThreadContinuation$")


def without_left_out(stack):
    return [place for place in stack if "$$Lambda" not in place[0] and not place[0].startswith(LEFT_OUT)]


def test_application(pools, look):
    """Pools, a parallel stream, futures, locks, conditions, monitors and timers: all threads, as the target says."""
    doc, stacks = look_at_rest(pools, look)
    virtual = stacks.pop("(pinned)", None)
    del stacks["main"]
    kinds = {"getter", "supplier", "joiner", "completer", "streamer", "writer", "timed writer", "holder", "enterer 1", "enterer 2",
             "waiter", "timer", "pool-2-thread-1", *(f"pool-1-thread-{n}" for n in range(1, 7))}  # fmt: skip
    assert kinds <= stacks.keys() and len([name for name in stacks if "commonPool-worker-" in name]) == 3
    carriers = [name for name, stack in stacks.items() if "java.lang.VirtualThread.runContinuation" in [place[0] for place in stack]]
    assert len(carriers) == bool(virtual)
    assert_like_truth(doc, stacks, stacks.keys() - set(carriers))
    for name in carriers:
        assert without_left_out(shown(thread(doc, name))) == without_left_out(virtual + stacks[name])
    for name in stacks:
        assert thread(doc, name)["user_stack_end"] == "complete", name


def jstack_truth(text):
    """Of each thread that jstack shows with frames: {name: (tid, frames)}."""
    threads = {}
    for part in text.split("\n\n"):
        head = re.match(r'"(.*)" #\d+.* nid=(\w+) ', part)
        if not head:
            continue  # a thread of the virtual machine
        places = []
        for function, place in re.findall(r"^\tat (.*)\((?:\S+/)?(.*)\)$", part, re.M):
            file, _, line = place.partition(":")
            if not is_hidden(function):
                places.append((bare(function), file if line else None, int(line) if line else None))
        threads[head[1]] = int(head[2], 0), places
    return threads


def test_application_as_jstack_says(pools, look, tool):
    """Names, numbers, methods and lines; of native methods and of those without lines it does not tell the file."""
    if JAVA != ["java"]:
        pytest.skip("jstack is of the host's Java")
    jstack = [tool("jstack"), str(pools.pid)]
    told = jstack_truth(subprocess.run(jstack, capture_output=True, text=True, check=True, timeout=TIMEOUT).stdout)
    doc, stacks = look_at_rest(pools, look)
    assert stacks.keys() - told.keys() <= {"(pinned)"}
    # Carriers of virtual threads may look for work; and of what is on them jstack does not tell.
    names = [name for name in stacks if name not in ("(pinned)", "main") and not name.startswith("ForkJoinPool-")]
    for name in names:
        tid, places = told[name]
        found = thread(doc, name)
        assert found["tid"] == tid
        assert [(function, file if line else None, line) for function, file, line in shown(found)] == places, name


# More than there are processors: what runs and what has just lost its processor are seen alike.
RUNNERS = 4


def runners(t):
    """Their threads, once all have their names."""
    named = lambda: [tid for tid in tids(t.pid) if (name_of(t.pid, tid) or "").startswith("chains")]
    return wait_until(lambda: len(named()) == RUNNERS and named(), "they have their names")


@pytest.mark.parametrize("mode", RUNNING)
def test_running(java, look, mode):
    """Threads that call and return as fast as they can: what is said to be whole is right."""
    t = java(str(RUNNERS), options=RUNNING[mode], main="JavaChains", before=["nice", "-n", "10"])
    chosen = ",".join(map(str, runners(t)))
    count = Counter()

    def see(patience):
        seen = set()
        for _ in range(0, LOOKS, RUNNERS):
            for found in look(t, "-t", chosen)["threads"]:
                count[found["user_stack_end"]] += 1
                count["held"] += found["capture"] == "held"
                if found["user_stack_end"] == "complete" and assert_chain(found) > 3:
                    seen.add("deep")
        return seen

    gather(see, {"deep"})
    print(dict(count))
    t.assert_progress()


def test_stubs(java, look):
    """Threads that run in stubs, and so have no frames of Java at the top: what is said to be whole is right."""
    t = java(*STUBS, options=APART, main="JavaStubs")

    def see(patience):
        seen = set()
        for _ in range(patience):
            doc = look(t)
            for kind in STUBS:
                found = thread(doc, kind)
                if found["user_stack_end"] == "complete" and assert_stub(found, kind):
                    seen |= {kind, (kind, found["user_stack"][0]["kind"])}
        return seen

    gather(see, {*STUBS, ("copy", "stub")})


def test_java_in_python(java_in_python, look):
    """Two runtimes in one stack, which call each other through native code."""
    t = java_in_python
    doc = until(lambda: look(t), lambda doc: (by_tid(doc, t.pid)["syscall"] or {}).get("name") == "read")
    found = by_tid(doc, t.pid)
    kinds = [(f["kind"], f["symbol"]) for f in found["user_stack"]]
    assert [frame for frame in kinds if frame[0] in ("python", "java")] == IN_PYTHON
    between = kinds[kinds.index(("python", "back")) : kinds.index(("java", "JavaInPython.back"))]
    assert "native" in [kind for kind, _ in between] and kinds[-1] == ("native", "_start")
    assert found["user_stack_end"] == "complete"
    assert {runtime["name"] for runtime in doc["runtimes"]} == {"python", "openjdk"}


def carrier(doc):
    """The one that a virtual thread is on."""
    found = [t for t in doc["threads"] if any("JavaVirtual.run" == f["symbol"] for f in frames_of(t))]
    return found[0] if found else None


def test_virtual_thread(virtual, look):
    """On the stack of its carrier, below its own frames."""
    t = virtual("mounted")
    found = carrier(until(lambda: look(t), carrier))
    names = [f["symbol"] for f in frames_of(found)]
    assert names.count("JavaVirtual.mounted") == 21
    assert names.index("JavaVirtual.run") < names.index("JavaVirtual.mounted") < names.index("jdk.internal.vm.Continuation.run")
    assert names[-1] == "java.util.concurrent.ForkJoinWorkerThread.run"
    assert found["user_stack_end"] == "complete"


def test_virtual_thread_that_was_away(virtual, look):
    """What is not on the stack is said to be missing, and what called it is there."""
    t = virtual("resumed")
    found = carrier(until(lambda: look(t), carrier))
    kinds = [f["kind"] for f in found["user_stack"]]
    names = [f["symbol"] for f in found["user_stack"]]
    assert kinds.count("marker") == 1
    at = kinds.index("marker")
    assert set(names[:at]) == {"JavaVirtual.run", "JavaVirtual.resumed"} and names.count("JavaVirtual.resumed") < 21
    assert names[at + 1] == "jdk.internal.vm.Continuation.run"
    assert found["user_stack_end"] == "complete"
