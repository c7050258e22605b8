# SPDX-License-Identifier: MIT
"""Node.js: frames of the program in the place of those of interpreter and compilers, as V8 itself tells them."""

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from harness import SLOW, TIMEOUT, rounds, thread, until
from load import Load
from nodes import (
    CHOSEN,
    INLINED,
    PATHS,
    RECURSION,
    SERVER,
    STACKS,
    TIERS,
    always_options,
    assert_calls_fit,
    assert_same,
    has_maglev,
    no_maglev,
    program,
    shown,
    tier_options,
    truth,
)

LOOKS = int(os.environ.get("STAKEOUT_TEST_LOOKS", "30"))


@pytest.fixture(params=CHOSEN)
def node(request):
    return program(request.param)


def blocked(snap, t, tid, name):
    """A snapshot in which the thread has come to where it blocks."""

    def is_there(doc):
        found = [thread for thread in doc["threads"] if thread["tid"] == tid]
        return found and sleeps_in(found[0], name)

    return thread(until(lambda: snap(t), is_there), tid)


def sleeps_in(thread, calls):
    """In one of these system calls; V8 has locks of its own, so in a futex only for Atomics.wait()."""
    if not thread["syscall"] or thread["syscall"]["name"] not in calls or thread["capture"] != "asleep":
        return False
    return thread["syscall"]["name"] != "futex" or [frame[:2] for frame in shown(thread)[:1]] == [("wait", None)]


@pytest.mark.parametrize("path", PATHS)
def test_paths(node, target, snap, path):
    t = target(node, STACKS, path, "wait")
    expected = truth(t)
    main = blocked(snap, t, t.pid, ["futex"])
    assert main["runtime"]["name"] == "v8" and main["runtime"]["problem"] is None and main["runtime"]["daemon"] is None
    assert re.fullmatch(r"\d+(\.\d+){2,3}", main["runtime"]["version"])
    assert main["user_stack_end"] == "complete"
    assert_same(main, expected)


@pytest.mark.parametrize("tier", ["baseline", "optimised"])
@pytest.mark.parametrize("path", PATHS)
def test_compiled_paths(node, target, snap, path, tier):
    """All that V8 can compile is compiled, that of Node.js itself, too."""
    t = target(node, *always_options(node, tier), STACKS, path, "wait")
    expected = truth(t)
    main = blocked(snap, t, t.pid, ["futex"])
    assert main["user_stack_end"] == "complete"
    assert_same(main, expected)
    assert "compiled" in [f.get("tier") for f in main["user_stack"]]


@pytest.mark.parametrize("way, calls", [("wait", ["futex"]), ("read", ["read"]), ("exec", ["epoll_pwait", "epoll_wait"])])
def test_ways(node, target, snap, tmp_path, way, calls):
    """Where the thread blocks in native code below functions of Node.js itself."""
    os.mkfifo(tmp_path / "fifo")
    t = target(node, STACKS, "callback", way, tmp_path / "fifo")
    expected = truth(t)
    main = blocked(snap, t, t.pid, calls)
    assert_same(main, expected)
    assert main["user_stack_end"] == "complete"
    kinds = [frame["kind"] for frame in main["user_stack"]]
    assert kinds[0] == "native" and kinds[-1] == "native" and "stub" in kinds


@pytest.mark.asan
def test_worker(node, target, snap):
    """Each thread of workers has objects of its own."""
    t = target(node, STACKS, "worker", "callback", "wait")
    expected = truth(t)
    doc = until(lambda: snap(t), lambda d: any(sleeps_in(other, ["futex"]) for other in d["threads"]))
    (worker,) = [other for other in doc["threads"] if shown(other)]
    assert worker["tid"] != t.pid
    assert_same(worker, expected)


def test_optimised(node, target, snap):
    """A function of optimised code has the line where it is, as that has called something."""
    t = target(node, "--allow-natives-syntax", STACKS, "optimised", "wait")
    expected = truth(t)
    main = blocked(snap, t, t.pid, ["futex"])
    assert_same(main, expected)
    (hot,) = [f for f in main["user_stack"] if f["kind"] == "js" and f["symbol"] == "hot"]
    assert hot["tier"] == "compiled" and not hot["inlined"]
    assert main["user_stack_end"] == "complete"


def inlined_of(main):
    """Functions that were compiled into another, with the one that they are in."""
    frames = [f for f in main["user_stack"] if f["kind"] == "js" and f["tier"] == "compiled"]
    return [f["symbol"] for f in frames if f["inlined"]], [f for f in frames if not f["inlined"]]


# Of which function the code is, what the innermost is that is inlined there at least, and the options that it takes.
COMPILED = {
    "turbofan": ("outer", "calls", []),
    "deoptimised": ("outer", "calls", []),  # it is left as soon as what it called returns
    "osr": ("loops", "inner", []),          # the function has other code, too
    "maglev": ("outer", "inner", []),
    "baseline": ("outer", None, ["--no-opt"]),
}  # fmt: skip


@pytest.mark.asan
@pytest.mark.parametrize("tier", COMPILED)
def test_inlined(node, target, snap, stakeout, tmp_path, tier):
    """What was inlined is shown as V8 itself tells it, and the same from a file."""
    function, innermost, options = COMPILED[tier]
    if tier == "maglev" and not has_maglev(node):
        pytest.skip("this Node.js does not use Maglev")
    if tier == "baseline":
        options = [*options, *no_maglev(node)]
    t = target(node, "--allow-natives-syntax", *options, INLINED, tier)
    expected = truth(t)
    main = blocked(snap, t, t.pid, ["futex"])
    assert main["user_stack_end"] == "complete" and main["runtime"]["problem"] is None
    assert_same(main, expected)
    inlined, others = inlined_of(main)
    assert function in [f["symbol"] for f in others]
    assert {"each", innermost} <= set(inlined) if innermost else not inlined
    outer = next(f for f in others if f["symbol"] == function)
    assert {f["address"] for f in main["user_stack"] if f["symbol"] == "each" and f["inlined"]} <= {outer["address"]}

    saved = tmp_path / "saved"
    before = stakeout("--json", "--save", saved, t.pid).doc
    t.end()
    after = stakeout("replay", "--json", saved).doc
    assert thread(after, t.pid)["user_stack"] == thread(before, t.pid)["user_stack"]
    assert_same(thread(after, t.pid), expected)


@pytest.mark.parametrize("tier, function", [("resumed", "again"), ("continued", "outer")])
def test_left_code(node, target, snap, tier, function):
    """Frames of the interpreter, and of a builtin, that V8 made when it left optimised code."""
    t = target(node, "--allow-natives-syntax", INLINED, tier)
    expected = truth(t)
    main = blocked(snap, t, t.pid, ["futex"])
    assert main["user_stack_end"] == "complete"
    assert_same(main, expected)
    (left,) = [f for f in main["user_stack"] if f["kind"] == "js" and f["symbol"] == function]
    assert left["tier"] == "interpreted"


def test_inlined_text(node, target, snap, stakeout):
    t = target(node, "--allow-natives-syntax", INLINED, "turbofan")
    truth(t)
    blocked(snap, t, t.pid, ["futex"])
    (line,) = [line for line in stakeout("-t", t.pid, t.pid).out.splitlines() if line.split()[1:3] == ["js", "each"]]
    assert line.endswith("[compiled]  [inlined]")


@pytest.mark.asan
@pytest.mark.parametrize("how", ["quiet", "held"])
def test_running(node, target, snap, how, bpf_missing):
    """A thread that has to be held, or kept from running: its objects are read when it runs on."""
    if how == "quiet" and bpf_missing:
        pytest.skip(bpf_missing)
    t = target(node, STACKS, "callback", "spin")
    expected = truth(t)

    def spins(doc):
        main = thread(doc, t.pid)
        return main["capture"] == how and shown(main)[:1] and shown(main)[0][:2] == expected[0][:2]

    stop = "--stop=hold" if how == "held" else "--stop=auto"
    main = thread(until(lambda: snap(t, stop), spins), t.pid)
    assert main["runtime"]["problem"] is None
    assert_same(main, expected[1:], inner=1)


@pytest.mark.asan
def test_replay(node, target, snap, stakeout, tmp_path):
    """Nothing but the file is needed for the same frames."""
    t = target(node, STACKS, "spelled", "wait")
    truth(t)
    blocked(snap, t, t.pid, ["futex"])
    saved = tmp_path / "saved"
    before = stakeout("--json", "--save", saved, t.pid).doc
    t.end()
    after = stakeout("replay", "--json", saved).doc
    assert shown(thread(before, t.pid)) and after["runtimes"] == before["runtimes"]
    for old, new in zip(before["threads"], after["threads"]):
        assert new["user_stack"] == old["user_stack"] and new["runtime"] == old["runtime"]


def test_options(node, target, snap, stakeout):
    """All native frames besides, or nothing else."""
    t = target(node, STACKS, "callback", "wait")
    expected = truth(t)
    usual = blocked(snap, t, t.pid, ["futex"])
    raw, none = (thread(snap(t, option), t.pid) for option in ("--raw", "--no-runtime"))
    assert_same(raw, expected)
    assert {f["kind"] for f in none["user_stack"]} == {"native"} and none["runtime"] is None

    def natives(thread):
        return [(f["address"], f["symbol"]) for f in thread["user_stack"] if f["kind"] == "native"]

    assert natives(raw) == natives(none)
    assert len(none["user_stack"]) == sum(f.get("replaces", f["kind"] == "native") for f in usual["user_stack"])


def test_text(node, target, snap, stakeout):
    """Where frames have names nobody needs to be told how to get them."""
    t = target(node, STACKS, "callback", "wait")
    truth(t)
    blocked(snap, t, t.pid, ["futex"])
    result = stakeout("-t", t.pid, t.pid)
    assert ", v8 " in result.out.splitlines()[0]
    assert any(line.split()[1:3] == ["js", "each"] for line in result.out.splitlines())
    assert "--perf-basic-prof" not in result.out


@pytest.fixture
def server(node, target, tmp_path):
    """server(OPTION…): the application, its FIFO and its ports."""
    fifo = tmp_path / "fifo"
    for path in (fifo, *(Path(f"{fifo}.{role}") for role in ("serving", "reading", "waiting"))):
        os.mkfifo(path)

    def start(*options):
        t = target(node, *options, SERVER, fifo)
        return t, fifo, json.loads(t.readline())

    return start


def next_truth(t):
    said = json.loads(t.readline())
    return said["who"], [tuple(site) for site in said["stack"]]


def worker_of(doc, expected, calls):
    """The thread that is where a worker says that it is; None before it has come to wait there."""
    place = expected[0][1:]
    found = [t for t in doc["threads"] if sleeps_in(t, calls) and place in [frame[1:3] for frame in shown(t)]]
    return found[0] if found else None


def assert_shown_under_load(server, snap, path, same):
    """A handler that blocks is shown with all that has called it; requests to another thread go on, and none fails."""
    t, fifo, ports = server
    with Load(ports["workerPort"], "/orders", clients=2) as others, Load(ports["port"], "/orders", clients=2) as load:
        load.go_on(20)
        with Load(ports["port"], None, clients=0, once=[path]) as once, open(fifo, "wb", buffering=0) as release:
            who, expected = next_truth(t)
            try:
                assert who == "main"
                for _ in rounds(3):
                    main = blocked(snap, t, t.pid, ["read"])
                    assert main["user_stack_end"] == "complete" and main["runtime"]["problem"] is None
                    same(main, expected)
                    others.go_on()
            finally:
                release.write(b"x")
            once.finish_once()
        load.go_on()


@pytest.mark.parametrize("path", ["/handled", "/awaited", "/timer"])
def test_server_under_load(server, node, snap, path):
    """Interpreted, whatever is called often."""
    started = server("--no-opt", "--no-sparkplug", *no_maglev(node))
    workers = dict(next_truth(started[0]) for _ in range(2))
    assert_shown_under_load(started, snap, path, assert_same)
    for role, calls in (("reading", ["read"]), ("waiting", ["futex"])):
        doc = until(lambda: snap(started[0]), lambda d: worker_of(d, workers[role], calls))
        assert_same(worker_of(doc, workers[role], calls), workers[role])


def test_optimised_server_under_load(server, snap):
    """With V8's usual options: whatever it has just compiled."""
    started = server()
    for _ in range(2):
        next_truth(started[0])
    for path in ("/handled", "/awaited", "/timer"):
        assert_shown_under_load(started, snap, path, assert_same)


WORKERS = 7  # many stacks in a look


@pytest.mark.parametrize("tier", [*TIERS, "usual"])
def test_recursion(node, target, snap, tier):
    """Threads that recurse and return as fast as they can: no frame is missing or wrong."""
    options = [] if tier == "usual" else tier_options(node, tier)
    t = target(node, *options, RECURSION, str(WORKERS), wrap=["nice", "-n", "10"], stderr=subprocess.DEVNULL)
    count, workers = Counter(), set()
    for _ in rounds(LOOKS / (1 + WORKERS)):
        for found in snap(t)["threads"]:
            if assert_calls_fit(found):
                count[found["user_stack_end"]] += 1
                count["held"] += found["capture"] == "held"
                workers |= {found["tid"]} - {t.pid}
    print(dict(count))
    assert count["complete"] > LOOKS / SLOW / 2 and len(workers) == WORKERS
