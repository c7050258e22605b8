# SPDX-License-Identifier: MIT
"""stakeout offcpu: waits that began before it and are not over when it ends, as those of threads that hang."""

import pytest
from harness import bare, run, thread
from offcpu_recording import Events

pytestmark = pytest.mark.usefixtures("root")


def row_of(doc, tid):
    rows = [row for row in doc["stacks"] if row["tid"] == tid]
    assert len(rows) == 1, rows
    return rows[0]


def addresses(frames):
    return [frame["address"] for frame in frames if not frame["inlined"]]


@pytest.mark.arch
def test_hanging_threads(target, snap, rung):
    """All the time of the recording, in the stacks that a snapshot shows."""
    t = target("deadlock").settle()
    result = run("offcpu", "--json", f"--source={rung}", "-d", "0.3", "-p", t.pid)
    doc, shown = result.doc, snap(t)
    assert result.code == 0, result
    for tid in t.tids.values():
        row = row_of(doc, tid)
        assert (row["count"], row["unfinished"], row["state"]) == (1, 1, "S")
        assert row["total_ns"] == row["max_ns"] == doc["duration_ns"]
        assert addresses(row["user_stack"]) == addresses(thread(shown, tid)["user_stack"])
        assert row["user_stack_error"] is None and row["kernel_stack"]
        assert doc["thread_stats"][f"{t.pid}:{tid}"]["unfinished"] == 1
    assert doc["total_events"] == len(doc["stacks"])


def test_events(target, rung):
    t = target("deadlock").settle()
    result = run("offcpu", "--events", f"--source={rung}", "-d", "0.3", "-p", t.pid)
    waits = Events(result.out).waits
    for tid in t.tids.values():
        (event,) = [e for e in waits if e["tid"] == tid]
        assert event["unfinished"] is True and event["user_stack"]


def test_what_is_waited_for(target, rung):
    """As `stakeout why` says it, for waits that are not over; of others it is not known any more."""
    t = target("locks", "mutex").settle()
    args = ("offcpu", f"--source={rung}", "-d", "0.2", "-p", t.pid)
    wait = row_of(run(*args, "--json").doc, t.tids["waiter"])["waits_for"]
    assert (wait["kind"], wait["variable"], wait["owner_tid"]) == ("mutex", "global_mutex", t.tids["holder"])
    assert f"now: waits for mutex global_mutex {wait['address']}" in run(*args).out
    t = target("nappers", "1").settle("napper")
    doc = run("offcpu", "--json", f"--source={rung}", "-d", "0.2", "-p", t.pid).doc
    assert all(row["waits_for"] is None for row in doc["stacks"] if not row["unfinished"])


def test_lock_of_another_process(target, rung, tmp_path):
    holder, waiter = (target("locks_shared", tmp_path / "memory", "mutex", role) for role in ("holder", "waiter"))
    waiter.settle()
    args = ("offcpu", f"--source={rung}", "-d", "0.2", "-p", holder.pid, "-p", waiter.pid)
    wait = row_of(run(*args, "--json").doc, waiter.tids["waiter"])["waits_for"]
    assert (wait["kind"], wait["owner_tid"], wait["owner_pid"]) == ("mutex", holder.tids["holder"], holder.pid)
    assert wait["certain"]  # both were looked at in one instant


def test_threshold(target, rung):
    """What has not waited long enough when the recording ends is not told."""
    t = target("deadlock").settle()
    doc = run("offcpu", "--json", f"--source={rung}", "-d", "0.2", "--min", "1h", "-p", t.pid).doc
    assert doc["stacks"] == [] and doc["total_events"] == 0


def test_state(target, rung):
    t = target("deadlock").settle()
    doc = run("offcpu", "--json", f"--source={rung}", "-d", "0.2", "--state", "D", "-p", t.pid).doc
    assert doc["stacks"] == []


def test_kernel_only(target, rung):
    t = target("deadlock").settle()
    doc = run("offcpu", "--json", f"--source={rung}", "-d", "0.2", "--kernel-only", "-p", t.pid).doc
    for tid in t.tids.values():
        row = row_of(doc, tid)
        assert row["kernel_stack"] and not row["user_stack"] and row["user_stack_error"] is None
        assert any("futex" in bare(frame["symbol"]) for frame in row["kernel_stack"])


def test_wakers(target, rung):
    """Nobody has woken them."""
    t = target("deadlock").settle()
    doc = run("offcpu", "--json", f"--source={rung}", "-d", "0.2", "--wakers", "-p", t.pid).doc
    assert all(row_of(doc, tid)["waker"] is None for tid in t.tids.values())


def test_many(target, rung):
    """More than the kernel's buffer for them holds at once: none is lost."""
    t = target("sleepers", "-n", 700).settle()
    doc = run("offcpu", "--json", f"--source={rung}", "-d", "0.3", "-p", t.pid).doc
    assert doc["unfinished_events"] == doc["total_events"] == len(doc["thread_stats"]) >= 700
