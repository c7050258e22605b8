# SPDX-License-Identifier: MIT
"""Targets that change, end, or are held by somebody else while they are looked at."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from harness import TIMEOUT, UNSTOPPED, assert_calls, built, command, native, rounds, state, states
from harness import stop, symbols, thread, until, wait_for_zombie, wait_until

pytestmark = pytest.mark.asan


def assert_runs_freely(pid):
    """Nothing of a stop is left behind."""
    assert not states(pid) & {"T", "t"}
    status = Path(f"/proc/{pid}/status").read_text()
    assert "\nTracerPid:\t0\n" in status


def test_threads_come_and_go(target, stakeout, source):
    t = target("churn")
    for _ in rounds(10):
        result = stakeout("--json", source, t.pid)
        assert result.code in (0, 3), result
        for th in result.doc["threads"]:
            assert th["user_stack_end"] == "complete" or th["status_reason"] or th["user_stack_error"], th
        assert_runs_freely(t.pid)
    t.assert_progress()


def test_threads_come_and_go_while_all_are_stopped(target, stakeout):
    t = target("churn")
    for _ in rounds(10):
        result = stakeout("--json", "--stop=all", t.pid)
        assert result.code in (0, 3), result
        for th in result.doc["threads"]:
            assert th["user_stack_end"] == "complete" or th["status_reason"] or th["user_stack_error"], th
    assert_runs_freely(t.pid)
    t.assert_progress()


@pytest.mark.parametrize("who", ["main", "thread"])
@pytest.mark.parametrize("mode", ["--stop=auto", "--stop=all", "--ptrace"])
def test_execve_in_the_middle(target, stakeout, who, mode):
    t = target("execloop", who)

    def executions():
        words = Path(f"/proc/{t.pid}/cmdline").read_bytes().split(b"\0")
        return int(words[2]) if len(words) > 3 else 0

    for _ in rounds(15):
        result = stakeout("--json", mode, t.pid)
        assert result.code in (0, 1, 3), result
        assert result.code != 1 or result.err, result
    before = executions()
    wait_until(lambda: executions() > before, "the target executes itself again")


def test_process_exits_during_capture(target, stakeout, rng):
    for _ in rounds(15):
        t = target("sleepers", "-n", 100, "-s", 1)
        proc = subprocess.Popen(command("--json", t.pid), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(rng.uniform(0, 0.03))  # not to wait for something: to end the target at a random point
        t.proc.kill()
        out, err = proc.communicate(timeout=TIMEOUT)
        assert proc.returncode in (0, 1, 3), (proc.returncode, out, err)
        assert out or err


def test_main_thread_has_ended(target, snap, source):
    t = target("zombie_main").settle()
    wait_until(lambda: state(t.pid) == "Z", "the main thread is a zombie")
    doc = snap(t, source)
    main = thread(doc, t.pid)
    assert (main["state"], main["status"]) == ("Z", "zombie")
    assert main["user_stack"] == []
    assert_calls(thread(doc, "worker"), "target_serve", "worker")


def test_zombie_process(target, stakeout):
    t = target("plain")
    t.proc.stdin.close()
    wait_for_zombie(t.pid)
    result = stakeout(t.pid)
    assert result.code == 0 and result.err == "", result
    assert "Z zombie" in result.out and "it has ended and waits to be reaped" in result.out, result


@pytest.mark.arch
def test_state_d_is_read_without_a_stop(target, snap, source):
    t = target("vfork_parent")
    wait_until(lambda: state(t.pid) == "D", "the parent of the vfork is in state D")
    doc = snap(t, source)
    main = thread(doc, t.pid)
    assert main["state"] == "D" and main["capture"] in UNSTOPPED
    if source == "--source=proc" and doc["arch"] == "aarch64":
        # vfork() keeps its return address in a register, which /proc does not show, and state D cannot be stopped.
        assert main["user_stack_end"] == "missing_register"
    else:
        assert_calls(main, "wait_for_child", "main")
    assert_calls(thread(doc, "spinner"), "spinner")


def test_state_d_is_not_waited_for_beyond_the_timeout(target, snap):
    t = target("vfork_parent")
    wait_until(lambda: state(t.pid) == "D", "the parent of the vfork is in state D")

    def take():
        doc = snap(t, "--stop=all", "--stop-timeout", 200)
        main = thread(doc, t.pid)
        assert main["state"] == "D"
        assert main["status_reason"] or main["capture"] == "asleep"
        return thread(doc, "spinner")

    assert_calls(until(take, lambda th: th["capture"] == "held"), "spinner")  # it gets a CPU in time, as a rule
    assert state(t.pid, t.tids["spinner"]) == "R"
    # Killing the child lets the parent go on, and no stop is left for it to run into.
    os.kill(t.tids["child"], signal.SIGKILL)
    assert t.proc.wait(TIMEOUT) == 0


@pytest.mark.arch
@pytest.mark.alone("whether a thread runs is looked at")
@pytest.mark.parametrize("mode", ["run", "hold"])
def test_already_traced(target, snap, source, apart, mode):
    t = apart(target("spinners", "loop").settle("loop"))
    tracer = target("tracer", mode, t.pid)
    doc = until(lambda: snap(t, source), lambda doc: mode == "hold" or thread(doc, "loop")["capture"] == "none")
    assert doc["capture"]["stopped_threads"] == 0
    main, loop = thread(doc, t.pid), thread(doc, "loop")
    assert loop["tracer_pid"] == tracer.pid
    assert_calls(main, "target_serve", "main")
    if mode == "run":
        assert (loop["status"], loop["user_stack_end"]) == ("traced", "not_captured")
        assert str(tracer.pid) in loop["status_reason"]
        t.assert_progress()
    else:
        assert loop["state"] == "t"
        assert symbols(loop)[0] == "spin_loop"
        assert_calls(loop, "spin_loop")


def test_already_traced_with_stop_all(target, stakeout):
    t = target("plain").settle()
    target("tracer", "run", t.pid)
    result = stakeout("--json", "--stop=all", t.pid)
    assert result.code == 0, result
    assert_calls(thread(result.doc, "worker"), "inner", "middle", "outer")


@pytest.mark.arch
@pytest.mark.parametrize("stop_mode", ["auto", "all", native("none")])
def test_state_t_stays(target, snap, stop_mode):
    t = target("spinners", "loop")
    stop(t.pid)
    for _ in rounds(3):
        doc = snap(t, f"--stop={stop_mode}")
        assert_calls(thread(doc, "loop"), "spin_loop")
        wait_until(lambda: states(t.pid) == {"T"}, "it is stopped again, if it was held in between")
    os.kill(t.pid, signal.SIGCONT)
    t.assert_progress()


def test_no_such_pid(stakeout):
    proc = subprocess.Popen(["true"])
    proc.wait()
    result = stakeout(proc.pid)
    assert result.code == 1
    assert result.out == ""
    assert str(proc.pid) in result.err and "no process" in result.err, result


def test_kernel_thread(stakeout, kthreadd):
    result = stakeout("--json", kthreadd)
    assert result.code == 0, result
    (th,) = result.doc["threads"]
    assert (th["status"], th["user_stack"], th["name"]) == ("kernel_thread", [], "kthreadd")
    if not th["kernel_stack_error"]:
        assert "kthreadd" in [frame["symbol"] for frame in th["kernel_stack"]]


def test_one_of_several_is_gone(target, stakeout):
    gone = subprocess.Popen(["true"])
    gone.wait()
    t = target("plain").settle()
    result = stakeout("--json", gone.pid, t.pid)
    assert [doc["pid"] for doc in result.docs] == [t.pid]
    assert str(gone.pid) in result.err
    assert result.code == 3, "one of two pids was captured: that is partial"


def test_odd_file_descriptors(target, stakeout):
    """Closed standard streams and a full pipe are errors of the output, not crashes."""
    t = target("plain").settle()
    with open("/dev/full", "w") as full:
        done = subprocess.run(command(t.pid), stdout=full, stderr=subprocess.PIPE, timeout=TIMEOUT)
    assert done.returncode == 1
    assert done.stderr


@pytest.mark.arch
@pytest.mark.parametrize("stop_mode", ["auto", native("all")])
def test_thread_of_the_kernel_in_the_process(target, snap, source, stop_mode):
    """io_uring's polling thread belongs to the process and has no user stack."""
    if subprocess.run([built("uring")], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).returncode == 77:
        pytest.skip("io_uring is not allowed here")
    t = target("uring").settle()
    doc = snap(t, source, f"--stop={stop_mode}")
    (poller,) = (th for th in doc["threads"] if th["tid"] != t.pid)
    assert poller["name"].startswith("iou-")
    assert (poller["status"], poller["user_stack"], poller["stopped"]) == ("kernel_thread", [], False)
    assert_calls(thread(doc, t.pid), "target_serve", "main")


@pytest.mark.parametrize("stop_mode", ["auto", "all"])
def test_stacks_in_one_mapping(target, stakeout, stop_mode, tmp_path):
    t = target("shared_stacks").settle()
    saved = tmp_path / "saved"
    result = stakeout("--json", f"--stop={stop_mode}", "--save", saved, t.pid)
    assert result.code == 0, result
    assert len(result.doc["threads"]) == 51
    for th in result.doc["threads"]:
        assert_calls(th, "main" if th["tid"] == t.pid else "wait_here")
    # Each copy ends where the next stack begins: all of them together are not 50 copies of one mapping.
    assert saved.stat().st_size < 50 * 64 * 1024 + (1 << 20)
