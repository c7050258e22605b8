# SPDX-License-Identifier: MIT
"""The program is killed at random points; the target has to run on, whatever was going on."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from harness import TIMEOUT, command, native, rounds, states, tids, wait_until


def traced(pid):
    return [tid for tid in tids(pid) if "\nTracerPid:\t0\n" not in Path(f"/proc/{pid}/task/{tid}/status").read_text()]


def runs_freely(pid):
    return not traced(pid) and not states(pid) & {"T", "t"}


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda s: s.name)
@pytest.mark.parametrize("stop_mode", ["auto", "all"])
def test_target_runs_on(target, rng, sig, stop_mode):
    t = target("sleepers", "-n", 100, "-d", 20, "-s", 1)
    args = command("--json", f"--stop={stop_mode}", t.pid)
    began = time.monotonic()
    done = subprocess.run(args, stdout=subprocess.PIPE, timeout=TIMEOUT)
    whole = time.monotonic() - began
    # Most of the time goes to naming what was captured, when nothing is held any more: aim at what comes before.
    before_names = whole - json.loads(done.stdout)["timings_ms"]["symbolize"] / 1000

    for i in rounds(30):
        proc = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        # Not to wait for something: to pick a random point.
        time.sleep(rng.uniform(0, whole if i % 5 == 0 else before_names))
        proc.send_signal(sig)
        proc.communicate(timeout=TIMEOUT)
        assert proc.returncode in (0, 3, -sig, 128 + sig), "it ended, by itself or by the signal"
        # A tracer that was killed is detached when it is reaped at the latest: communicate() has done that.
        wait_until(lambda: runs_freely(t.pid), "the target is neither traced nor stopped")
        t.assert_progress()


@pytest.mark.asan
@pytest.mark.arch
@pytest.mark.parametrize("sig", [native(signal.SIGINT), signal.SIGKILL], ids=lambda s: s.name)
def test_target_runs_on_after_ptrace_mode(target, rng, sig):
    """--ptrace unwinds while the threads are held: the longest window there is."""
    t = target("sleepers", "-n", 50, "-d", 50, "-s", 1)
    for _ in rounds(10):
        proc = subprocess.Popen(command("--ptrace", t.pid), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(rng.uniform(0, 0.05))  # a random point again
        proc.send_signal(sig)
        proc.communicate(timeout=TIMEOUT)
        wait_until(lambda: runs_freely(t.pid), "the target is neither traced nor stopped")
        t.assert_progress()


def test_stopped_target_stays_stopped_when_the_tool_is_killed(target, rng):
    t = target("spinners", "loop")
    t.proc.send_signal(signal.SIGSTOP)
    wait_until(lambda: states(t.pid) == {"T"}, "the target has stopped")
    for _ in rounds(10):
        proc = subprocess.Popen(command("--stop=all", t.pid), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(rng.uniform(0, 0.02))  # a random point again
        proc.kill()
        proc.communicate(timeout=TIMEOUT)
        wait_until(lambda: not traced(t.pid), "nothing traces the target")
        wait_until(lambda: states(t.pid) == {"T"}, "the target is in state T again")
