# SPDX-License-Identifier: MIT
"""stakeout offcpu and threads that share a CPU: one that sleeps, and two that never do."""

import os
from pathlib import Path

import pytest
from harness import SLOW, gather, preemptions, tids, wait_until
from offcpu_recording import FOR_A_CPU, added, let_run, rows_of

pytestmark = [
    pytest.mark.usefixtures("root"),
    pytest.mark.alone("what threads wait for a CPU is compared with the scheduler's account"),
]

# How far the account of the scheduler is off that of waits: it begins and ends a little beside the switches.
TOLERANCE = 0.1 if SLOW == 1 else 0.3
SLACK_NS = 10000 * SLOW  # of each wait


class Sharing:
    """The three threads; the one that sleeps does not push the others off the CPU when it is woken."""

    def __init__(self, target):
        self.sleeper, self.spinners = target("waits_deep", 3), target("spinners", "loop", "plt")
        self.worker = self.sleeper.tids["worker"]
        self.subjects = ("-p", self.sleeper.pid, "-p", self.spinners.pid)
        os.sched_setscheduler(self.worker, os.SCHED_BATCH, os.sched_param(0))
        for tid in (self.worker, *self.spinners.tids.values()):
            os.sched_setaffinity(tid, {max(os.sched_getaffinity(0))})

    def run(self):
        """Until the one has slept often enough, and each of the others was preempted."""
        enough = self._preemptions() + 5
        let_run(self.sleeper)
        wait_until(lambda: self._preemptions() >= enough, "each spinner was preempted")

    def _preemptions(self):
        return min(preemptions(self.spinners.pid, tid) for tid in self.spinners.tids.values())

    def waited_for_cpu(self):
        """By the scheduler's account, in ns. It has a wait when that is over: so the last is over here."""
        let_run(self.sleeper, 2)
        stat = Path(f"/proc/{self.sleeper.pid}/task/{self.worker}/schedstat")
        return int(stat.read_text().split()[1]) if stat.exists() else 0


@pytest.fixture
def sharing(target):
    return Sharing(target)


@pytest.mark.arch
def test_woken_and_waiting_for_a_cpu(sharing, record, rung):
    """
    That part of a sleep is told apart from the sleep itself, and is what the scheduler says: for a while that may be
    nothing at all, when it lets who wakes go first.
    """

    def look(patience):
        before = sharing.waited_for_cpu()
        recording = record("--json", "--min", 0, f"--source={rung}", *sharing.subjects)
        begun = sharing.waited_for_cpu()
        for _ in range(patience):
            sharing.run()
        ending = sharing.waited_for_cpu()
        doc = recording.finish()
        after = sharing.waited_for_cpu()
        rows = rows_of(doc, sharing.worker)
        assert all(row["runnable_ns"] == row["total_ns"] for row in rows if row["state"] == "R")
        slept = rows_of(doc, sharing.worker, "bottom_wait", "S")
        assert added(slept, "runnable_ns") < added(slept, "total_ns")
        waited = added(rows, "runnable_ns")
        assert waited == doc["thread_stats"][f"{sharing.sleeper.pid}:{sharing.worker}"]["runnable_time_ns"]
        if after:
            slack = SLACK_NS * added(rows)
            assert (ending - begun) * (1 - TOLERANCE) - slack <= waited <= (after - before) * (1 + TOLERANCE) + slack
        return {"delay"} if added(slept, "runnable_ns") else set()

    gather(look, {"delay"})
    if not sharing.waited_for_cpu():
        pytest.skip("this kernel does not tell how long a thread waits for a CPU")


def test_only_sleeps(sharing, record):
    """--state S: those who never sleep are not there, nor is what the sleeper lost its CPU for."""
    recording = record("--json", "--min", 0, "--state", "S", *sharing.subjects)
    sharing.run()
    doc = recording.finish()
    assert {row["state"] for row in doc["stacks"]} == {"S"}
    assert added(rows_of(doc, sharing.worker)) >= 15
    assert not {row["tid"] for row in doc["stacks"]} & set(sharing.spinners.tids.values())


def test_folded(sharing, record):
    """What a thread lost its CPU in, or slept in, is not where it waits for a CPU: that is a leaf of its own."""
    recording = record("--folded", "--min", 0, *sharing.subjects)
    sharing.run()
    stacks = [line.rpartition(" ")[0].split(";") for line in recording.end().out.splitlines()]
    for name in sharing.spinners.tids:
        leaves = {stack[-1] for stack in stacks if stack[0] == name}
        assert leaves == {FOR_A_CPU}, leaves
    slept = [stack for stack in stacks if "bottom_wait" in stack and "nanosleep" in stack[-1]]
    assert slept and all(stack[0] == "worker" for stack in slept), stacks


@pytest.mark.arch
def test_interrupt_that_wakes(sharing, record):
    """The timer's, which hits a thread that has nothing to do with it."""
    recording = record("--json", "--min", 0, "--wakers", *sharing.subjects)
    sharing.run()
    doc = recording.finish()
    woken = rows_of(doc, sharing.worker, "bottom_wait", "S")
    by = [(row["count"], row["waker"] and (row["waker"]["tid"], row["waker"]["thread_name"])) for row in woken]
    assert sum(count for count, waker in by if waker == (0, "interrupt")) >= 0.8 * added(woken) > 0, by
    assert not {row["waker"]["tid"] for row in woken if row["waker"]} & set(tids(sharing.spinners.pid))
