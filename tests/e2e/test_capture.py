# SPDX-License-Identifier: MIT
"""How threads are taken: who is stopped, who is not, and what is known of each."""

import os
import time
from pathlib import Path

import pytest
from harness import SLOW, UNSTOPPED, assert_calls, refusing, rounds, run, symbols, thread, tids, until, wait_until, without_btf
from offcpu_recording import MS
from offcpu_truth import TICK_NS, is_stolen_from, stolen

pytestmark = pytest.mark.asan


def waited_for_cpu_ns(pid):
    """All threads together, by the scheduler's account; and what was stolen from this machine, which is on no account."""
    accounts = (Path(f"/proc/{pid}/task/{tid}/schedstat").read_text() for tid in tids(pid))
    return sum(int(account.split()[1]) for account in accounts) + stolen() * TICK_NS


def snaps_of_one_moment(t, take):
    """
    Snapshots that are consistent. A thread that does not get a CPU cannot stop within the 10 ms that the others wait for
    it: that is said, and only then may it be said. Of what was stolen the last tick is not told.
    """
    docs, unexplained = [], []
    for _ in range(20 if SLOW == 1 else 3):
        before = waited_for_cpu_ns(t.pid)
        doc = take()
        waited = waited_for_cpu_ns(t.pid) - before
        why = doc["capture"]["inconsistent_reason"]
        assert doc["capture"]["consistent"] == (why is None)
        assert why in (None, "a thread stopped later than the others")
        if why and waited < 5 * MS:
            unexplained.append(waited)
        docs.append(doc)
    assert SLOW > 1 or len(unexplained) <= is_stolen_from(), unexplained
    return [*docs, until(take, lambda doc: doc["capture"]["consistent"])]


@pytest.mark.arch
def test_sleeping_threads_are_not_stopped(target, snap, source):
    t = target("sleepers", "-n", 20, "-d", 12).settle()
    doc = snap(t, source)
    assert doc["capture"]["method"] == source.partition("=")[2]
    assert doc["capture"]["threads"] == len(doc["threads"]) == 21
    assert doc["capture"]["stopped_threads"] == 0
    assert doc["capture"]["max_pause_us"] == 0
    assert doc["capture"]["consistent"] is True
    for th in doc["threads"]:
        assert th["capture"] in UNSTOPPED and (th["state"], th["stopped"], th["pause_us"]) == ("S", False, 0)
        assert th["user_stack_end"] == "complete"
    sleepers = [th for th in doc["threads"] if th["name"] == "sleeper"]
    assert len(sleepers) == 20
    for th in sleepers:
        assert symbols(th).count("descend") == 12
        assert_calls(th, "target_block", "descend", "sleeper")


@pytest.mark.alone("whether a thread runs, and stops in time, is looked at")
@pytest.mark.arch
def test_only_the_running_thread_is_stopped(target, snap, source, apart):
    t = apart(target("spinners", "loop").settle("loop"))

    def held(doc):
        return thread(doc, "loop")["capture"] == "held"

    docs = snaps_of_one_moment(t, lambda: snap(t, source, "--stop=hold"))
    docs.append(until(lambda: snap(t, source, "--stop=hold"), held))  # BPF need not stop a thread that has just lost its CPU
    for doc in docs:
        loop = thread(doc, "loop")
        assert symbols(loop)[0] == "spin_loop"
        assert_calls(loop, "spin_loop", "target_thread_main")
        assert thread(doc, t.pid)["capture"] == "asleep"
        assert doc["capture"]["stopped_threads"] == held(doc)
        if held(doc):
            assert (loop["stopped"], loop["state"]) == (True, "R")
            assert loop["pause_us"] > 0
    t.assert_progress()


@pytest.mark.arch
def test_a_preempted_thread_is_not_stopped(target, snap, bpf_missing, root):
    """It is runnable, but it does not run: its registers and its stack are as good as a sleeping thread's."""
    if bpf_missing:
        pytest.skip(bpf_missing)
    t = target("spinners", "loop").settle("loop")
    cpu = min(os.sched_getaffinity(0))
    os.sched_setaffinity(t.tids["loop"], {cpu})
    os.sched_setscheduler(t.tids["loop"], os.SCHED_IDLE, os.sched_param(0))
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        doc = until(lambda: snap(t, "--stop=hold"), lambda doc: thread(doc, "loop")["capture"] == "asleep")
    finally:
        os.sched_setaffinity(0, before)
    loop = thread(doc, "loop")
    assert (loop["state"], loop["stopped"]) == ("R", False)
    assert symbols(loop)[0] == "spin_loop"
    assert_calls(loop, "spin_loop", "target_thread_main")
    t.assert_progress()


def test_running_beside_many_asleep(target, snap, source):
    t = target("sleepers", "-n", 200, "-s", 2).settle("spinner")
    doc = snap(t, source)
    spinners = [th for th in doc["threads"] if th["name"] == "spinner"]
    assert len(spinners) == 2
    for th in spinners:
        assert_calls(th, "spin", "spinner")
    assert doc["capture"]["stopped_threads"] <= 2
    assert all(th["capture"] in UNSTOPPED for th in doc["threads"] if th["name"] == "sleeper")
    t.assert_progress()


@pytest.mark.arch
@pytest.mark.parametrize("kind", ["vdso", "plt"])
def test_code_outside_the_program(target, snap, kind):
    """Wherever it is caught (vDSO, PLT stub, library, resolver), the walk gets back to the function that spins."""
    t = target("spinners", kind).settle(kind)
    for _ in rounds(12):
        assert_calls(thread(snap(t), kind), f"spin_{kind}", "target_thread_main")


@pytest.mark.alone("whether a thread runs, and stops in time, is looked at")
@pytest.mark.arch
def test_stop_all(target, snap):
    t = target("sleepers", "-n", 10, "-d", 5, "-s", 1)
    for doc in snaps_of_one_moment(t, lambda: snap(t, "--stop=all")):
        assert doc["capture"]["stopped_threads"] == doc["capture"]["threads"] == 12
        assert doc["capture"]["max_pause_us"] > 0
        for th in doc["threads"]:
            assert (th["capture"], th["stopped"], th["user_stack_end"]) == ("held", True, "complete")
    t.assert_progress()


@pytest.mark.alone("whether a thread runs, and stops in time, is looked at")
@pytest.mark.arch
def test_stop_none(target, snap, source, apart):
    t = apart(target("spinners", "loop").settle("loop"))
    doc = until(lambda: snap(t, "--stop=none", source), lambda doc: thread(doc, "loop")["capture"] == "none")
    assert doc["capture"]["stopped_threads"] == 0
    loop = thread(doc, "loop")
    assert (loop["capture"], loop["status"], loop["stopped"]) == ("none", "running", False)
    assert loop["user_stack_end"] == "not_captured"
    assert loop["status_reason"]
    assert thread(doc, t.pid)["user_stack_end"] == "complete"


@pytest.mark.arch
def test_stacks_are_not_torn(target, snap, source):
    """Threads that sleep and move all the time: each copy is of one moment, or says that it may not be."""
    t = target("nappers")
    seen = {"whole": 0, "moved": 0}
    for _ in rounds(15):
        for th in snap(t, source)["threads"]:
            names = symbols(th)
            if th["name"] != "napper":
                continue
            seen["moved" if th["capture"] == "moved" else "whole"] += 1
            if th["capture"] == "moved":
                continue
            assert_calls(th, "napper", "target_thread_main")
            own = names[: names.index("napper")]
            assert [name for name in own if name in ("nap", "descend")] == sorted(
                (name for name in own if name in ("nap", "descend")), reverse=True
            )
            assert own.count("descend") <= 40 and own.count("nap") <= 1
    assert seen["whole"] > seen["moved"] / SLOW, seen
    t.assert_progress()


def counts(t):
    return {name: int(n) for name, n in (word.split("=") for word in t.ask().split())}


@pytest.mark.arch
def test_no_eintr(target, snap, source, root):
    t = target("eintr").settle()
    for _ in rounds(10):
        doc = snap(t, source)
        assert doc["capture"]["stopped_threads"] == 0
    assert set(counts(t.settle()).values()) == {0}


@pytest.mark.arch
def test_stop_all_is_what_causes_eintr(target, snap, root):
    """Shows that the target can tell: the test above would see a stop."""
    t = target("eintr").settle()
    snap(t, "--stop=all")
    # Each of the two counts when it gets a CPU, and again when it was late and had to be stopped again.
    wait_until(lambda: min(counts(t).values()) >= 2, "each call has failed")


@pytest.mark.arch
def test_system_calls(target, snap, source, root):
    t = target("eintr").settle()
    doc = snap(t, source)
    expected = {
        "epoll_wait": {"epoll_wait", "epoll_pwait"},
        "semtimedop": {"semtimedop"},
        "sigtimedwait": {"rt_sigtimedwait"},
        "recv": {"recvfrom"},
    }
    for name, calls in expected.items():
        th = thread(doc, t.tids[name])
        assert th["syscall"]["name"] in calls
        assert th["syscall"]["nr"] >= 0
        assert len(th["syscall"]["args"]) <= 6
        assert name in symbols(th) or th["syscall"]["name"] in symbols(th) or f"__{name}" in symbols(th)


@pytest.mark.arch
def test_system_call_arguments(target, snap, source):
    t = target("plain").settle()
    call = thread(snap(t, source), t.pid)["syscall"]
    assert call["name"] == "read"
    assert int(str(call["args"][0]), 0) == 0
    assert int(str(call["args"][2]), 0) == 1


@pytest.mark.arch
def test_time_off_cpu(target, snap, bpf_missing):
    """Between two snapshots of a thread that sleeps on it has become longer by the time that went by."""
    if bpf_missing:
        pytest.skip(bpf_missing)
    started, before = time.monotonic_ns(), stolen()
    t = target("plain").settle()
    looks = []
    for _ in range(2):
        begin = time.monotonic_ns()
        looks.append((begin, snap(t, "--source=bpf"), time.monotonic_ns()))
        time.sleep(0.2)  # not to wait for something: for the sleep to become longer
    (begin, first, end), (begin_again, second, end_again) = looks
    # The scheduler's clock is as old as its last tick, and leaves out what was stolen from this machine.
    slack = (2 + stolen() - before) * TICK_NS * SLOW
    for th in second["threads"]:
        off, more = thread(first, th["tid"])["off_cpu_ms"], th["off_cpu_ms"]
        if off is None:
            pytest.skip("this kernel does not tell when a thread left its CPU")
        assert 0 <= off * 1e6 <= end - started + slack
        assert begin_again - end - slack <= (more - off) * 1e6 <= end_again - begin + slack


def test_time_off_cpu_is_not_known_to_proc(target, snap):
    assert {th["off_cpu_ms"] for th in snap(target("plain").settle(), "--source=proc")["threads"]} == {None}


@pytest.mark.arch
def test_kernel_stack(target, snap, source, root):
    t = target("plain").settle()
    doc = snap(t, source)
    for th in doc["threads"]:
        if th["kernel_stack_error"]:
            pytest.skip(th["kernel_stack_error"])
        names = [frame["symbol"] or "" for frame in th["kernel_stack"]]
        assert any("schedule" in name or "pause" in name or "poll" in name or "read" in name for name in names), names
        assert any("entry_SYSCALL" in name or "do_syscall" in name or "el0" in name for name in names), names
        assert {frame["kind"] for frame in th["kernel_stack"]} == {"kernel"}


@pytest.mark.arch
def test_all_sources_agree(target, stakeout, snap, bpf_missing, root):
    if bpf_missing:
        pytest.skip(bpf_missing)
    t = target("signals").settle()

    def view(doc):
        return {
            th["tid"]: (
                th["name"],
                th["state"],
                th["syscall"],
                [frame["address"] for frame in th["user_stack"]],
                [frame["symbol"] for frame in th["kernel_stack"]],
            )
            for th in doc["threads"]
        }

    assert view(snap(t, "--source=bpf")) == view(snap(t, "--source=libbpf")) == view(snap(t, "--source=proc"))


@pytest.mark.arch
def test_kernel_that_does_not_relocate_programs(target, bpf_missing, root):
    """Before Linux 5.17 libbpf has to: all is as usual, only later."""
    if bpf_missing:
        pytest.skip(bpf_missing)
    t = target("plain").settle()
    doc = run("--json", t.pid, env=refusing({"REFUSE_LOADER": "1"})).doc
    assert doc["capture"]["method"] == "bpf"
    assert all(th["off_cpu_ms"] is not None for th in doc["threads"])
    assert [note for note in doc["notes"] if note.startswith("BPF took longer to set up than it should: ")] == [
        "BPF took longer to set up than it should: the kernel did not load the program by itself, as Linux 5.17 and later "
        "can (Invalid argument)"
    ]
    assert not any("BPF" in note for note in run("--json", "--source=libbpf", t.pid).doc["notes"]), "it was asked for"


@pytest.mark.arch
def test_btf_that_is_hidden(target, unshare, bpf_missing, root):
    """As in a container without it: the kernel itself needs no file to relocate programs. With libbpf there is /proc."""
    if bpf_missing:
        pytest.skip(bpf_missing)
    t = target("plain").settle()
    hide = without_btf(unshare)
    if any("BPF took longer" in note for note in run("--json", t.pid).doc["notes"]):
        pytest.skip("this kernel does not relocate BPF programs")
    doc = run("--json", t.pid, wrap=hide).doc
    assert doc["capture"]["method"] == "bpf" and not any("BPF" in note for note in doc["notes"])
    doc = run("--json", t.pid, wrap=hide, env=refusing({"REFUSE_LOADER": "1"})).doc
    assert doc["capture"]["method"] == "proc"
    assert any("this kernel has no BTF (/sys/kernel/btf/vmlinux)" in note for note in doc["notes"]), doc["notes"]


def test_deadlock(target, snap):
    t = target("deadlock").settle()
    doc = snap(t)
    for name in ("a_then_b", "b_then_a"):
        th = thread(doc, name)
        assert_calls(th, "take_second", "take_both", name)
        assert th["syscall"]["name"] == "futex"


@pytest.mark.alone("ten thousand threads keep all processors busy")
def test_ten_thousand_threads(target, snap):
    try:
        t = target("sleepers", "-n", 10_000, "-d", 20)
    except AssertionError as e:
        pytest.skip(f"10,000 threads are not allowed here: {e}")
    t.settle()
    doc = snap(t)
    assert len(doc["threads"]) == 10_001 == len(tids(t.pid))
    assert doc["capture"]["stopped_threads"] == 0
    assert sum(symbols(th).count("descend") == 20 for th in doc["threads"]) == 10_000
