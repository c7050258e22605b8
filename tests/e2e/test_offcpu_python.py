# SPDX-License-Identifier: MIT
"""stakeout offcpu: frames of Python in the stacks of waits, compared with what Python itself says of them."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from harness import built, name_of, native, preemptions, run, state, stop, tids, until, wait_until
from offcpu_recording import added, assert_whole, names, over, rows_of, wake, why_not
from pythons import CHOSEN, LOOKS, SCRIPTS, check_recursion, command, python_frames

pytestmark = pytest.mark.usefixtures("root")

TOLD = 255  # frames that BPF tells of a stack; what tells their places takes room, too


@pytest.fixture(params=[CHOSEN[0], *[native(version) for version in CHOSEN[1:]]])
def version(request):
    return request.param


def truth(t):
    return {int(tid): frames for tid, frames in json.loads(t.ask("truth"))["frames"].items()}


def markers(row):
    return [frame["symbol"] for frame in row["user_stack"] if frame["kind"] == "marker"]


def assert_same(rows, frames, *, whole=True):
    """All waits of the thread were where Python says that it is. /proc does not know enough for all native frames."""
    assert rows
    for row in rows:
        assert not (whole and row["user_stack_error"]) or len(row["user_stack"]) > TOLD, row
        told = python_frames(row)
        assert told == frames[: len(told)]
        assert len(told) == len(frames) or (len(told) > TOLD // 2 and markers(row)), markers(row)


def asleep(doc, tid):
    return [row for row in rows_of(doc, tid, state="S") if row["user_stack"]]


@pytest.mark.arch
def test_frames_of_waits(python, record):
    """BPF takes them when a wait ends: of calls in C, generators, coroutines and all else that a thread can be in."""
    t = python("waits.py").settle()
    frames = truth(t.settle())
    recording = record("--json", "--min", "0", "-p", t.pid)
    for _ in range(3):
        wake(t)
    doc = recording.finish()
    assert len(frames) == 19
    for tid, expected in frames.items():
        assert added(asleep(doc, tid)) >= 2
        assert_same(asleep(doc, tid), expected)


@pytest.mark.parametrize("source", ["auto", "proc"])
def test_waits_that_are_not_over(python, record, source):
    """Their stacks are read at the end, or by looking at the threads, without BPF: what hangs is among them."""
    t = python("waits.py").settle()
    frames = {tid: said for tid, said in truth(t.settle()).items() if len(said) < TOLD}
    recording = record("--json", f"--source={source}", "-p", t.pid)
    doc = recording.finish()
    for tid, expected in frames.items():
        assert_same(asleep(doc, tid), expected, whole=source != "proc")


def test_preempted(python, target, record):
    """A thread that recurses and returns as fast as it can loses its CPU anywhere: what is shown of it was there then."""
    t, spinner = python("recurse.py", "7"), target("spinners", "loop")
    (recursing,) = set(tids(t.pid)) - {t.pid}
    for tid in (recursing, *spinner.tids.values()):
        os.sched_setaffinity(tid, {max(os.sched_getaffinity(0))})
    recording = record("--json", "--min", 0, "--state", "R", "-p", t.pid)
    enough = preemptions(t.pid, recursing) + LOOKS
    wait_until(lambda: preemptions(t.pid, recursing) >= enough, "it was preempted")
    rows = [row for row in rows_of(recording.finish(), recursing) if python_frames(row) and not row["user_stack_error"]]
    for row in rows:
        check_recursion(python_frames(row))
    assert added(rows) > LOOKS / 2


# What a function waits for, and whether that is idle.
CAUSES = {
    "for_turn": ("lock", False),
    "for_another_turn": ("lock", False),
    "for_condition": ("condition", True),
    "for_event": ("condition", True),
    "for_queue": ("condition", True),
    "for_simple_queue": ("condition", True),
    "for_thread": ("condition", False),
    "_worker": ("condition", True),
}


def causes(doc):
    """{function: {(cause, idle)}} of the waits of all threads, by the innermost function that tells what it is for."""
    found = {}
    for row in rows_of(doc, state="S"):
        for name, _, _ in python_frames(row):
            if name in CAUSES or name == "for_interpreter":
                found.setdefault(name, set()).add((row["cause"], row["idle"]))
    return found


def test_causes(python, record):
    """Python waits for nearly all with a lock, and for its own lock with a condition: its library tells them apart."""
    t = python("causes.py")

    def look():
        recording = record("--json", "-p", t.pid)
        recording.until_seen(50)
        return causes(recording.finish())

    # Who has just begun to wait, or has to wait for the interpreter first, is where it belongs the next time.
    expected = {name: {told} for name, told in CAUSES.items()}
    found = until(look, lambda found: {name: found.get(name) for name in CAUSES} == expected)
    assert ("lock", False) in found["for_interpreter"]
    assert not any(idle or cause == "condition" for cause, idle in found["for_interpreter"])


def test_forked_by_other_code(python, record):
    """Its thread state says that it is the parent's thread."""
    child = python("forked.py").tids["child"]
    wait_until(lambda: state(child) == "S", "it waits")
    recording = record("--json", "--min", "0", "-p", child)
    for _ in range(3):
        stop(child)
        os.kill(child, signal.SIGCONT)
        wait_until(lambda: state(child) == "S", "it waits again")
    rows = over(asleep(recording.finish(), child))
    assert rows and all([f[0] for f in python_frames(row)] == ["wait", "main", "<module>"] for row in rows), rows


def names_of(t):
    """What the target calls its threads; a main thread has the name of the process."""
    told = {int(tid): name for tid, (name, _) in json.loads(t.ask("truth"))["names"].items()}
    return {**told, t.pid: name_of(t.pid, t.pid)}


@pytest.mark.parametrize("source", ["auto", "proc"])
def test_names_of_threads(python, record, source):
    t = python("waits.py").settle()
    expected = names_of(t)

    def look():
        doc = record("--json", f"--source={source}", "-p", t.settle().pid).finish()
        return {row["tid"]: row["thread_name"] for row in doc["stacks"]}

    until(look, lambda found: found == expected)


def test_names_of_threads_in_events(python, record, tmp_path):
    """They are read while it records, too: a thread may end before that does."""
    t = python("waits.py").settle()
    expected = names_of(t)
    events = tmp_path / "events"
    recording = record("--json", "--min", "0", f"--events={events}", "-p", t.pid)

    def are_named():
        wake(t)
        seen = [json.loads(line) for line in events.read_text().split("\n")[:-1]]
        return expected.items() <= {(e["tid"], e["thread_name"]) for e in seen if e["type"] == "wait"}

    wait_until(are_named, "all threads have their names")
    recording.finish()


def test_from_the_start(version):
    """The interpreter of a command is found as soon as there is one, and its functions as they come and go."""
    doc = run("offcpu", "--json", "--", *command(version), SCRIPTS / "replaced.py").doc
    assert not [note for note in doc["notes"] if "not shown" in note]
    waits = {}
    for row in rows_of(doc, state="S"):
        for name in {name for name, _, _ in python_frames(row) if name and name.startswith("made_")}:
            waits[name] = waits.get(name, 0) + row["count"]
    assert waits, "some can be named before they are given up, however slow it is"
    assert max(waits.values()) <= 2, "each waits twice"


def load_unseen(t, recording, library):
    """Lets the target wait in a library that whoever records gets to know only later, if at all."""
    shutil.copy(built("plugin"), library)
    recording.proc.send_signal(signal.SIGSTOP)
    os.waitpid(recording.proc.pid, os.WUNTRACED)
    assert t.ask(str(library)) == "done"
    recording.proc.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("minimum", ("0", "1ms"))
def test_library_that_is_known_too_late(python, record, tmp_path, minimum):
    """The native stack is walked in the end, and the frames of Python beyond its cut get their places then."""
    if why_not("sched_exit"):
        pytest.skip(why_not("sched_exit"))
    t = python("extension.py").settle()
    recording = record("--json", "--raw", "--min", minimum, "-p", t.pid)
    library, maps = tmp_path / "library", Path(f"/proc/{recording.proc.pid}/maps")
    load_unseen(t, recording, library)
    wait_until(lambda: str(library) in maps.read_text(), "the library is known")
    rows = rows_of(recording.finish(), t.pid, "usleep", state="S")
    assert rows
    for row in rows:
        assert_whole(row)
        found = names(row["user_stack"])
        told = [found.index(name) for name in ("plugin_inner", "plugin_enter", "call", "load", "<module>", "_start")]
        assert told == sorted(told), found


def test_library_that_is_not_known(python, record, tmp_path):
    """The native stack ends in it: it is not taken for something that Python has compiled, and Python's frames come behind it."""
    t = python("extension.py").settle()
    recording = record("--json", "--read-maps", "-p", t.pid)
    load_unseen(t, recording, tmp_path / "library")
    rows = rows_of(recording.finish(), t.pid, "usleep", state="S")
    assert rows
    for row in rows:
        found = row["user_stack"]
        first = [frame["kind"] for frame in found].index("python")
        assert [frame["symbol"] for frame in found[first:]] == ["call", "load", "<module>"], found
        assert {frame["tier"] for frame in found[first:]} == {None} and not found[first].get("replaces"), found
        assert names(found[:first])[-2] == "usleep" and row["user_stack_error"], found


def test_native_frames(python, record):
    """They are kept beside the others, or are all that there is."""
    t = python("waits.py", "methods").settle()
    frames = truth(t.settle())
    docs = {}
    for option in ("--raw", "--no-runtime"):
        recording = record("--json", "--min", "0", option, "-p", t.pid)
        wake(t)
        docs[option] = recording.finish()
    for tid, expected in frames.items():
        for row in asleep(docs["--raw"], tid):
            assert python_frames(row) == expected
            assert any(frame.get("replaces") for frame in row["user_stack"])
        for row in asleep(docs["--no-runtime"], tid):
            assert {frame["kind"] for frame in row["user_stack"]} == {"native"}


@pytest.mark.parametrize("what", ["lengths", "type", "list"])
def test_hostile_memory(python, record, what):
    """Strings without end, something else in the place of a function, a list that is a ring: the report comes all the same."""
    t = python("hostile.py", what).settle()
    recording = record("--json", "--min", "0", "-p", t.pid)
    wake(t)
    doc = recording.finish()
    assert added(rows_of(doc, t.pid)) >= 1
