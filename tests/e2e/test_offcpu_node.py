# SPDX-License-Identifier: MIT
"""JavaScript in waits over time: the frames that V8 itself tells of, named while the process lives."""

import os
import subprocess
from collections import defaultdict

import pytest
from harness import let_wait
from nodes import (
    CHOSEN,
    INLINED,
    PATHS,
    RECURSION,
    STACKS,
    TIERS,
    assert_calls_fit,
    assert_same,
    no_maglev,
    program,
    shown,
    tier_options,
    truth,
)
from offcpu_recording import assert_whole, over, rows_of, validator

WAITS = 20


@pytest.fixture(params=CHOSEN)
def node(request):
    return program(request.param)


def recorded(record, t, *options, tid=None):
    """The waits of a thread that sleeps again and again; those that are over."""
    recording = record("--json", "-p", t.pid, *options)
    let_wait([tid or t.pid], WAITS)
    doc = recording.finish()
    rows = over(rows_of(doc, tid or t.pid, state="S"))
    assert rows
    return doc, rows


@pytest.mark.parametrize("path", PATHS)
def test_paths(node, target, record, path):
    t = target(node, *tier_options(node, "interpreted"), STACKS, path, "naps")
    expected = truth(t)
    _, rows = recorded(record, t)
    for row in rows:
        assert_whole(row)
        assert_same(row, expected)


@pytest.mark.parametrize("way", ["reads", "execs"])
def test_ways(node, target, record, tmp_path, way):
    """Where the thread blocks in native code below functions of Node.js itself."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    t = target(node, *tier_options(node, "interpreted"), STACKS, "callback", way, fifo)
    expected = truth(t)
    with open(fifo, "r+b", buffering=0) as pipe:  # does not wait for anybody who reads
        writer = subprocess.Popen(["sh", "-c", "while sleep 0.005; do echo; done"], stdout=pipe)
        try:
            _, rows = recorded(record, t)
        finally:
            writer.kill()
            writer.wait()
    for row in rows:
        assert_whole(row)
        assert_same(row, expected)
        kinds = [frame["kind"] for frame in row["user_stack"]]
        assert kinds[0] == "native" and kinds[-1] == "native" and "stub" in kinds


@pytest.mark.parametrize("source, way", [("auto", "reads"), ("proc", "wait")])
def test_waits_that_are_not_over(node, target, record, tmp_path, source, way):
    """
    They are read at the end, or by looking at the thread, without BPF: what hangs is among them. /proc does not show the register that libuv
    has its frame by when it reads on x86_64.
    """
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    t = target(node, *tier_options(node, "interpreted"), STACKS, "callback", way, fifo)
    expected = truth(t)
    with open(fifo, "r+b", buffering=0):
        rows = rows_of(record("--json", f"--source={source}", "-p", t.settle().pid).finish(), t.pid, state="S")
    assert rows
    for row in rows:
        assert_same(row, expected)


def test_worker(node, target, record):
    """Each thread of workers has objects of its own."""
    t = target(node, *tier_options(node, "interpreted"), STACKS, "worker", "callback", "naps")
    expected = truth(t)
    recording = record("--json", "-p", t.pid)
    recording.until_seen(WAITS)
    rows = [row for row in over(rows_of(recording.finish(), state="S")) if shown(row)]
    assert rows and all(row["tid"] != t.pid for row in rows)
    for row in rows:
        assert_whole(row)
        assert_same(row, expected)


def test_event_loop(node, target, record):
    """It waits for nobody's function."""
    t = target(node, "-e", "setInterval(() => 0, 5); console.log('ready ' + process.pid)")
    _, rows = recorded(record, t)
    for row in rows:
        assert_whole(row)
        assert not shown(row)


WAKER = """
const { Worker } = require('worker_threads');
const cell = new Int32Array(new SharedArrayBuffer(4));
const source = "function waits(c) { for (;;) Atomics.wait(c, 0, 0); } waits(require('worker_threads').workerData)";
new Worker(source, { eval: true, workerData: cell });
setInterval(function wakes() { Atomics.notify(cell, 0); }, 5);
console.log('ready ' + process.pid);
"""


def test_waker(node, target, record):
    """A function that wakes another thread's."""
    t = target(node, "-e", WAKER)
    recording = record("--json", "--wakers", "-p", t.pid)
    recording.until_seen(10 * WAITS)

    def is_in(name, who):
        return name in [frame[0] for frame in shown(who)]

    rows = [row for row in over(rows_of(recording.finish(), state="S")) if is_in("waits", row)]
    wakers = [row["waker"] for row in rows if row["waker"] and is_in("notify", row["waker"])]
    assert wakers and all(who["tid"] == t.pid and is_in("wakes", who) for who in wakers)


def test_command(node, record):
    """It is not known what the program is before it has begun."""
    script = "const cell = new Int32Array(new SharedArrayBuffer(4)); function leaf() { Atomics.wait(cell, 0, 0, 5); }"
    recording = record("--json", "--", node, "-e", script + "for (let i = 0; i < 400; i++) leaf();")
    doc = recording.finish(sig=None)
    assert any("leaf" in [frame[0] for frame in shown(row)] for row in doc["stacks"])


@pytest.mark.parametrize("tier", ["baseline", "optimised"])
def test_compiled(node, target, record, tier):
    """With the line where it is, as it has called something."""
    t = target(node, *tier_options(node, tier), "--allow-natives-syntax", STACKS, "optimised", "naps")
    expected = truth(t)
    _, rows = recorded(record, t)
    for row in rows:
        assert_whole(row)
        assert_same(row, expected)
        (hot,) = [frame for frame in row["user_stack"] if frame["kind"] == "js" and frame["symbol"] == "hot"]
        assert hot["tier"] == "compiled" and not hot["inlined"]


@pytest.mark.parametrize("tier", ["turbofan", "osr", "baseline"])
def test_inlined(node, target, record, tier):
    """What was inlined is shown as V8 itself tells it."""
    options = ["--no-opt", *no_maglev(node)] if tier == "baseline" else []
    t = target(node, "--allow-natives-syntax", *options, INLINED, tier, "naps")
    expected = truth(t)
    _, rows = recorded(record, t)
    for row in rows:
        assert_whole(row)
        assert_same(row, expected)
        inlined = [frame["symbol"] for frame in row["user_stack"] if frame["kind"] == "js" and frame["inlined"]]
        assert inlined.count("each") == (tier != "baseline")


@pytest.mark.parametrize("tier", ["resumed", "continued"])
def test_left_code(node, target, record, tier):
    """Frames of the interpreter, and of a builtin, that V8 made when it left optimised code."""
    t = target(node, "--allow-natives-syntax", INLINED, tier, "naps")
    expected = truth(t)
    _, rows = recorded(record, t)
    for row in rows:
        assert_whole(row)
        assert_same(row, expected)


def test_program_that_has_ended(node, target, record):
    """The names were read before."""
    t = target(node, *tier_options(node, "interpreted"), STACKS, "spelled", "naps")
    expected = truth(t)
    recording = record("--json", "-p", t.pid)
    let_wait([t.pid], WAITS)
    t.end()
    rows = over(rows_of(recording.finish(), t.pid, state="S"))
    assert rows
    for row in rows:
        assert_same(row, expected)


def test_objects_that_move(node, target, record):
    """A function that was somewhere else when it was to be named has no name, and never a wrong one."""
    t = target(node, "--expose-gc", "--compact-on-every-full-gc", STACKS, "recursion", "moves")
    expected = truth(t)
    recording = record("--json", "--min", "0", "-p", t.pid)
    let_wait([t.pid], 10 * WAITS)
    rows = rows_of(recording.finish(), t.pid)
    assert any(shown(row) for row in rows)
    for row in rows:
        left = iter(expected)  # in this order, though not all of them
        for name, file, _, _ in shown(row):
            assert not file or any(true[0] in (None, name) and true[1] == file for true in left), (name, row, expected)


@pytest.mark.asan
def test_options(node, target, record):
    """All native frames besides, or nothing else; and the document is as its schema says."""
    t = target(node, *tier_options(node, "interpreted"), STACKS, "callback", "naps")
    expected = truth(t)
    doc, _ = recorded(record, t)
    validator("offcpu").validate(doc)
    _, raw = recorded(record, t, "--raw")
    _, none = recorded(record, t, "--no-runtime")
    assert_same(raw[0], expected)
    assert {frame["kind"] for row in none for frame in row["user_stack"]} == {"native"}

    def natives(row):
        return [(frame["address"], frame["symbol"]) for frame in row["user_stack"] if frame["kind"] == "native"]

    assert natives(raw[0]) == natives(none[0])


@pytest.mark.parametrize("tier", TIERS)
def test_recursion(node, target, record, tier):
    """
    It recurses and returns as fast as it can, and now and then loses its CPU: no frame is missing or wrong. An address is in
    one function, whoever called that.
    """
    t = target(node, *tier_options(node, tier), RECURSION, stderr=subprocess.DEVNULL)
    cpu = {min(os.sched_getaffinity(0))}
    os.sched_setaffinity(t.pid, cpu)
    other = subprocess.Popen(["sh", "-c", "while :; do :; done"], preexec_fn=lambda: os.sched_setaffinity(0, cpu))
    try:
        recording = record("--json", "--min", "0", "--state", "R", "-p", t.pid)
        recording.until_seen(10 * WAITS)
        rows = rows_of(recording.finish(), t.pid)
    finally:
        other.kill()
        other.wait()
    assert sum(assert_calls_fit(row) for row in rows) > 1
    functions = defaultdict(set)
    for row in rows:
        assert row["user_stack_error"] is None, row
        innermost = row["user_stack"][0]
        if innermost["kind"] == "js" and innermost["tier"] == "compiled":
            functions[innermost["address"]].add(innermost["symbol"])
    assert all(len(names) == 1 for names in functions.values()), functions


