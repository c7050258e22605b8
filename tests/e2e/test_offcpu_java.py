# SPDX-License-Identifier: MIT
"""stakeout offcpu and Java: waits with the frames of the program, as the virtual machine tells them, and whole stacks."""

import os

import javas
import pytest
from harness import gather, until
from javas import APART, IN_PYTHON, MODES, RUNNING, STUBS, answers, assert_chain, assert_stub, frames_of, shown, truth
from offcpu_recording import added, over, rows_of, wake

pytestmark = pytest.mark.usefixtures("root")

ONE_CPU = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]

NAPPERS = [
    "asleep",
    "enterer",
    "entered",
    "forked",
    "holder",
    "locker",
    "monitor",
    "parked",
    "plain",
    "pooled",
    "queue",
    "recursion",
    "reflector",
    "streamer",
]


def rows_by_name(doc, state="S"):
    rows = {}
    for row in over(rows_of(doc, state=state)):
        rows.setdefault(row["thread_name"], []).append(row)
    return rows


def naps(frames):
    """Which of them are the method in which the thread waits."""
    return [i for i, (function, _, _) in enumerate(frames) if function.startswith("JavaWaits.nap")]


def callers(frames):
    return frames[naps(frames)[-1] + 1 :]


def whole_naps(rows):
    return [row for row in rows if row["user_stack_error"] is None and naps(shown(row))]


@pytest.mark.parametrize("mode", MODES)
def test_as_the_target_says(java, record, mode):
    """Names, files, lines and order of every wait that is whole, as nearly all are: some may be of threads that just start."""
    t = java(main="JavaWaits", options=MODES[mode])
    recording = record("--json", "--min", 0, "-p", t.pid)
    assert t.ask("naps") == "done"
    stacks = truth(t)
    assert t.ask("naps") == "done"
    rows = rows_by_name(recording.finish())
    assert set(stacks) == set(NAPPERS)
    whole = {name: whole_naps(rows[name]) for name in NAPPERS}
    for name in NAPPERS:
        for row in whole[name]:
            assert callers(shown(row)) == callers(stacks[name]), name
        assert stacks[name] in [shown(row) for row in whole[name]], name
    waits, enough = (added(row for name in NAPPERS for row in by_name[name]) for by_name in (rows, whole))
    assert enough >= 0.9 * waits, [row for name in NAPPERS for row in rows[name] if row["user_stack_error"]]


def chain_rows(doc):
    return [row for name, rows in rows_by_name(doc, "R").items() if name.startswith("chains") for row in rows]


@pytest.mark.alone("its threads are to wait for the one processor that they have, and nothing else")
@pytest.mark.parametrize("mode", RUNNING)
def test_interrupted(java, record, mode):
    """Threads that call and return as fast as they can, and have to take turns: what is said to be whole is right."""
    t = java("3", options=RUNNING[mode], main="JavaChains", before=ONE_CPU)

    def count(patience):
        recording = record("--json", "--min", 0, "-p", t.pid)
        recording.until_seen(200 * patience)
        whole = [row for row in chain_rows(recording.finish()) if row["user_stack_error"] is None]
        return {depth for depth in map(assert_chain, whole) if depth > 3} and {"deep"}

    gather(count, {"deep"})
    t.assert_progress()


def carriers(doc):
    """What the virtual thread waited in, on the stack of its carrier."""
    return [row for row in over(rows_of(doc, state="R")) if "JavaVirtual.run" in [f["symbol"] for f in frames_of(row)]]


def find_carrier(record, t):
    def look():
        recording = record("--json", "--min", 0, "-p", t.pid)
        recording.until_seen(50)
        return carriers(recording.finish())

    return until(look, lambda rows: rows)[0]


@pytest.mark.alone("its threads are to wait for the one processor that they have, and nothing else")
def test_stubs(java, record):
    """Threads that lose their CPU in stubs, which have frames of any kind: as soon as their code is known, stacks are whole, and right."""
    t = java(*STUBS, options=APART, main="JavaStubs", before=ONE_CPU)

    def see(patience):
        recording = record("--json", "--min", 0, "--state", "R", "-p", t.pid)
        recording.until_seen(200 * patience)
        seen = set()
        for kind, rows in rows_by_name(recording.finish(), state="R").items():
            for row in rows if kind in STUBS else ():
                if row["user_stack_error"] is None and assert_stub(row, kind) and row["user_stack"][0]["kind"] == "stub":
                    seen.add(kind)
        return seen

    gather(see, {"checksum", "copy"})  # for the others not all releases and processors have stubs


@pytest.mark.alone("its thread is to wait for the one processor that it has")
def test_virtual_thread(virtual, record):
    t = virtual("mounted", before=ONE_CPU)
    virtual("mounted", before=ONE_CPU)
    row = find_carrier(record, t)
    names = [f["symbol"] for f in frames_of(row)]
    assert names.count("JavaVirtual.mounted") == 21
    assert names.index("JavaVirtual.run") < names.index("JavaVirtual.mounted") < names.index("jdk.internal.vm.Continuation.run")
    assert names[-1] == "java.util.concurrent.ForkJoinWorkerThread.run"
    assert row["user_stack_error"] is None


@pytest.mark.alone("its thread is to wait for the one processor that it has")
def test_virtual_thread_that_was_away(virtual, record):
    """What is not on the stack is said to be missing, and what called it is there."""
    t = virtual("resumed", before=ONE_CPU)
    virtual("mounted", before=ONE_CPU)
    row = find_carrier(record, t)
    kinds = [f["kind"] for f in row["user_stack"]]
    names = [f["symbol"] for f in row["user_stack"]]
    assert kinds.count("marker") == 1
    at = kinds.index("marker")
    assert set(names[:at]) == {"JavaVirtual.run", "JavaVirtual.resumed"} and names.count("JavaVirtual.resumed") < 21
    assert names[at + 1] == "jdk.internal.vm.Continuation.run"
    assert row["user_stack_error"] is None


@pytest.mark.parametrize("source", ["auto", "proc"])
@pytest.mark.parametrize("mode", ["interpreted", "c2"])
def test_waits_that_are_not_over(java, record, mode, source):
    """They are read at the end, or by looking at the threads, without BPF: what hangs is among them."""
    t = java(options=MODES[mode])
    stacks = truth(t.settle())
    rows = {}
    for row in rows_of(record("--json", f"--source={source}", "-p", t.settle().pid).finish(), state="S"):
        rows.setdefault(row["thread_name"], []).append(row)
    found = [name for name in stacks if name in rows and name != "main"]  # which wrote where the others are
    assert len(found) > 5
    lacking = {row["user_stack_error"] for name in found for row in rows[name]}
    if source == "proc" and lacking == {"the step needs register x30, which is not known"}:
        pytest.skip("its C library waits in a function that keeps no return address on the stack, and /proc does not tell x30")
    for name in found:
        assert stacks[name] in [shown(row) for row in rows[name]], name


def test_java_in_python(java_in_python, record):
    """Two runtimes in one stack, which call each other through native code."""
    t = java_in_python.settle()
    recording = record("--json", "--min", "0", "-p", t.pid)
    for _ in range(3):
        wake(t)
    rows = [row for row in over(rows_of(recording.finish(), t.pid, state="S")) if row["user_stack"]]
    assert rows
    for row in rows:
        assert [(f["kind"], f["symbol"]) for f in row["user_stack"] if f["kind"] in ("python", "java")] == IN_PYTHON
        assert row["user_stack_error"] is None


@pytest.mark.parametrize("source", ["auto", "proc"])
def test_names_of_threads(java, record, source):
    """Of any length and language, though not that of the thread that answers, which may run."""
    t = java("all")
    expected = {name for name, _, _ in answers(t, "threads")} - {"main"}
    assert any(len(name) > 15 for name in expected)

    def look():
        doc = record("--json", f"--source={source}", "-p", t.pid).finish()
        return {row["thread_name"] for row in doc["stacks"]}

    until(look, lambda found: expected <= found)


# Threads of JavaPools: what each waits for, and whether that is idle.
CAUSES = {
    "writer": ("lock", False),
    "timed writer": ("lock", False),
    "enterer 1": ("lock", False),
    "enterer 2": ("lock", False),
    "waiter": ("condition", True),
    "timer": ("condition", True),
    "pool-1-thread-2": ("condition", True),
    "pool-2-thread-1": ("condition", True),
    "getter": ("condition", False),
    "joiner": ("condition", False),
}


def test_causes(java, record):
    """A thread parks for a lock as for a condition: the methods of Java's library tell."""
    t = java(options=["-Djava.util.concurrent.ForkJoinPool.common.parallelism=3"], main="JavaPools")

    def look():
        rows = rows_of(record("--json", "-p", t.pid).finish())
        return {name: {(row["cause"], row["idle"]) for row in rows if row["thread_name"] == name} for name in CAUSES}

    # Who says that it waits may still be on its way to sleep.
    until(look, lambda told: told == {name: {expected} for name, expected in CAUSES.items()})


def test_raw_and_without(java, record):
    """--raw keeps native frames behind those that stand for them, --no-runtime shows nothing else."""
    t = java(main="JavaWaits")

    def look(*args):
        recording = record("--json", "--min", 0, *args, "-p", t.pid)
        assert t.ask("naps") == "done"
        return rows_by_name(recording.finish())["plain"]

    usual, raw, without = look(), look("--raw"), look("--no-runtime")
    assert [place for place in map(shown, raw) if place in map(shown, usual)]
    for row in raw:
        native = [f for f in row["user_stack"] if f["kind"] == "native"]
        assert [f for f in native if not f["module"]] and frames_of(row)
    for row in usual:
        assert not [f for f in row["user_stack"] if f["kind"] == "native" and not f["module"]]
    assert {f["kind"] for row in without for f in row["user_stack"]} == {"native"}


def test_program_that_has_ended(record, classes):
    """It is watched from its start on, and its names are known when nothing is left of it."""
    recording = record("--json", "--min", 0, "--", *javas.JAVA, "-cp", classes, "JavaWaits")
    assert recording.hear() == "ready"
    for _ in range(5):
        assert recording.ask("naps") == "done"
    recording.proc.stdin.close()
    rows = rows_by_name(recording.finish(None))
    for name in NAPPERS:
        found = [shown(row) for row in whole_naps(rows[name])]
        assert found, name
        for frames in found:
            assert callers(frames)[-1][0].endswith(".run"), frames
