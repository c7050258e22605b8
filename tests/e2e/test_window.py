# SPDX-License-Identifier: MIT
"""Threads that run are read while others have their CPUs: nobody is stopped, and no stack is torn."""

import json
import os
import re
import signal
import subprocess
import time

import pytest
from harness import TIMEOUT, UNSTOPPED, assert_calls, command, native, rounds, run, state, symbols, thread, until, wait_until

pytestmark = pytest.mark.usefixtures("root", "windows")


@pytest.fixture
def windows(bpf_missing):
    if bpf_missing:
        pytest.skip(bpf_missing)
    release = tuple(int(part) for part in re.match(r"(\d+)\.(\d+)", os.uname().release).groups())
    if release < (5, 17):
        pytest.skip("windows need Linux 5.17")


def is_quiet(doc):
    return doc["capture"]["consistent"] and doc["capture"]["windows"] > 0 and not doc["capture"]["stopped_threads"]


def assert_no_torn_stack(doc):
    """Each thread is in one chain of calls, or between two."""
    for th in doc["threads"]:
        if th["name"] == "chain" and th["capture"] in ("quiet", "held", "asleep") and th["user_stack_end"] == "complete":
            calls = [name for name in symbols(th) if name and re.fullmatch(r"(inner|middle|outer)_\d", name)]
            assert len({name[-1] for name in calls}) <= 1, calls
            assert [name[:-2] for name in calls] in ([], ["outer"], ["middle", "outer"], ["inner", "middle", "outer"]), calls


@pytest.mark.asan
@pytest.mark.arch
def test_nobody_is_stopped(target, snap):
    t = target("spinners", "loop").settle("loop")
    doc = until(lambda: snap(t), is_quiet)
    loop = thread(doc, "loop")
    assert (loop["capture"], loop["stopped"], loop["state"], loop["pause_us"]) == ("quiet", False, "R", 0), loop
    assert symbols(loop)[0] == "spin_loop"
    assert_calls(loop, "spin_loop", "target_thread_main")
    assert thread(doc, t.pid)["capture"] in UNSTOPPED
    assert 1 <= doc["capture"]["cpus_taken"] <= os.cpu_count() and doc["capture"]["window_us"] > 0
    t.assert_progress()


@pytest.mark.arch
@pytest.mark.parametrize("count", [1, native(8)])
def test_no_stack_is_torn(target, snap, count):
    t = target("chains", count, wrap=["nice", "-n", "10"])
    for _ in rounds(100):
        assert_no_torn_stack(snap(t))
    assert_no_torn_stack(until(lambda: snap(t), is_quiet))
    t.assert_progress()


@pytest.mark.parametrize("stop", ["hold", "all"])
def test_no_stack_is_torn_by_holding(target, snap, stop):
    t = target("chains", 2)
    for _ in rounds(10):
        doc = snap(t, f"--stop={stop}")
        assert doc["capture"]["windows"] == doc["capture"]["cpus_taken"] == 0 and doc["capture"]["stop_mode"] == stop
        assert_no_torn_stack(doc)


@pytest.mark.parametrize("depth", [2000, 30000])
def test_deep_stack(target, snap, depth):
    """One that takes more than a moment to copy, and one that takes more than all of a window."""
    t = target("recursion", depth, "spin").settle("worker")
    doc = snap(t, "--depth", 40000)
    worker = thread(doc, "worker")
    assert worker["user_stack_end"] == "complete" and symbols(worker).count("recurse") >= depth - 1, worker["user_stack_end"]


def test_threads_that_compute_and_nap(target, snap):
    """They run in every round; but not in all of a window."""
    t = target("nappers")
    doc = until(lambda: snap(t), is_quiet)
    assert any(th["capture"] == "quiet" for th in doc["threads"] if th["name"] == "napper")
    assert all(th["user_stack_end"] == "complete" for th in doc["threads"])


@pytest.mark.asan
def test_several_processes_at_one_instant(target, stakeout):
    """Also one that only sleeps."""
    pids = [target(*words).pid for words in (["chains", 2], ["nappers"], ["plain"])]

    def take():
        result = stakeout("--json", *pids)
        assert result.code in (0, 3), result
        docs, decoder, rest = [], json.JSONDecoder(), result.out.strip()
        while rest:
            doc, end = decoder.raw_decode(rest)
            docs.append(doc)
            rest = rest[end:].strip()
        assert [doc["pid"] for doc in docs] == pids
        for doc in docs:
            assert_no_torn_stack(doc)
            assert (doc["capture"]["instant"] is None) == (not doc["capture"]["consistent"])
        return docs

    docs = until(take, lambda docs: all(map(is_quiet, docs)))
    assert len({doc["capture"]["instant"] for doc in docs}) == 1
    text = stakeout(*pids).out
    assert text.count("consistent with 2 other processes") in (0, 3)  # and none if one moved all the time


def test_threads_of_another_tracer(target, snap, tool):
    """Nobody else can stop them; but that is not needed."""
    t = target("spinners", "loop").settle("loop")
    strace = subprocess.Popen([tool("strace"), "-f", "-q", "-o", "/dev/null", "-p", str(t.pid)])
    try:
        wait_until(lambda: f"\nTracerPid:\t{strace.pid}\n" in open(f"/proc/{t.pid}/task/{t.tids['loop']}/status").read(), "it is traced")
        doc = until(lambda: snap(t), is_quiet)
        assert_calls(thread(doc, "loop"), "spin_loop", "target_thread_main")
    finally:
        strace.kill()
        strace.wait(TIMEOUT)
    t.assert_progress()


@pytest.fixture
def urgent(target):
    """urgent(PRIORITY): a target whose thread has a processor to itself."""
    cpus, started = os.sched_getaffinity(0), []
    if len(cpus) < 2:
        pytest.skip("needs two processors")

    def start(priority):
        t = target("spinners", "loop").settle("loop")
        started.append(t.tids["loop"])
        os.sched_setaffinity(t.tids["loop"], {min(cpus)})
        os.sched_setscheduler(t.tids["loop"], os.SCHED_RR, os.sched_param(priority))
        return t

    yield start
    for tid in started:
        os.sched_setscheduler(tid, os.SCHED_OTHER, os.sched_param(0))


@pytest.mark.alone("a thread keeps a processor to itself")
def test_threads_of_real_time_priority(urgent, snap):
    """Whoever takes its CPU has a higher one."""
    t = urgent(30)
    doc = until(lambda: snap(t), is_quiet)
    assert_calls(thread(doc, "loop"), "spin_loop", "target_thread_main")
    t.assert_progress()


@pytest.mark.alone("a thread keeps a processor to itself")
def test_above_all_others(urgent, snap):
    """Nobody can be above the highest priority: such a thread is held."""
    t = urgent(99)
    doc = until(lambda: snap(t), lambda doc: thread(doc, "loop")["capture"] == "held")
    assert doc["capture"]["windows"] == 0 and any("priority" in note for note in doc["notes"])
    assert_calls(thread(doc, "loop"), "spin_loop", "target_thread_main")
    t.assert_progress()


@pytest.mark.alone("where threads run is looked at")
def test_on_cpus_that_are_not_ours(target, snap, apart):
    """They are not taken."""
    t = apart(target("spinners", "loop").settle("loop"))
    doc = until(lambda: snap(t), lambda doc: thread(doc, "loop")["capture"] == "held")
    assert doc["capture"]["windows"] == 0 and any("may not use" in note for note in doc["notes"])
    t.assert_progress()


@pytest.mark.asan
def test_without_the_right(target, snap, setpriv):
    """Then they are held, and what would help is said."""
    t = target("spinners", "loop").settle("loop")
    caps = "+cap_2,+cap_19,+cap_38,+cap_39"  # dac_read_search, sys_ptrace, perfmon, bpf; but not sys_nice
    wrap = [*setpriv, f"--inh-caps={caps}", f"--ambient-caps={caps}"]
    doc = until(lambda: run("--json", t.pid, wrap=wrap).doc, lambda doc: thread(doc, "loop")["capture"] == "held")
    assert doc["capture"]["windows"] == 0
    (note,) = (note for note in doc["notes"] if "cap_sys_nice" in note)
    assert "held" in note


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGSTOP], ids=lambda s: s.name)
def test_target_runs_on(target, rng, sig):
    """Also if the tool dies or is stopped with all CPUs in its hands."""
    t = target("spinners", "loop", "loop").settle("loop")
    for _ in rounds(12):
        proc = subprocess.Popen(command("--json", "--window=100ms", "--window-lingers", t.pid), stdout=subprocess.DEVNULL)
        time.sleep(rng.uniform(0, 0.2))  # a random point
        proc.send_signal(sig)
        t.assert_progress()
        proc.kill()
        proc.wait(TIMEOUT)
        assert state(t.pid) not in "Tt"


def test_window_is_bounded(target, snap):
    t = target("spinners", "loop").settle("loop")
    doc = until(lambda: snap(t, "--window=3ms", "--window-lingers"), is_quiet)
    assert doc["capture"]["window_us"] >= 3000
    for wrong in ("0", "1us", "1s", "x"):
        assert subprocess.run(command(f"--window={wrong}", t.pid), capture_output=True).returncode == 2
