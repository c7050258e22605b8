# SPDX-License-Identifier: MIT
"""stakeout offcpu without BPF: waits estimated by looking at /proc."""


import pytest
from harness import BEHIND_A_SHELL, SLOW, bare, gather, run, state, wait_until

pytestmark = pytest.mark.usefixtures("root")


# Who sleeps on is seen at the first look and at the last one, which comes with the end.
LOOKS = 0.3 if SLOW == 1 else 3
LOOKS_AT_ALL = 1 if SLOW == 1 else 10  # when all processes are gone through


def sampled(*args, **how):
    result = run("offcpu", "--json", "-d", LOOKS, *args, **how)
    assert result.code == 3, result  # an estimate is never complete
    doc = result.doc
    assert doc["method"] == "proc" and doc["estimate"] is True
    assert any("estimates" in note for note in doc["notes"]), doc["notes"]
    return doc


def of(doc, tid):
    rows = [row for row in doc["stacks"] if row["tid"] == tid]
    assert rows, doc["stacks"]
    return max(rows, key=lambda row: row["total_ns"])


def names(frames):
    return [bare(frame["symbol"]) for frame in frames]


def test_many_groups(target):
    """/proc/PID/task/TID/status lists all groups before most of what counts in it."""
    t = target("plain", extra_groups=range(100001, 100601)).settle()
    assert of(sampled("--source=proc", "-p", t.pid), t.tids["worker"])["state"] == "S"


@pytest.mark.asan
@pytest.mark.arch
def test_forced(target):
    """As root: kernel and user stacks."""
    t = target("plain").settle()
    row = of(sampled("--source=proc", "-p", t.pid), t.tids["worker"])
    assert row["state"] == "S"
    assert row["user_stack_error"] is None, row
    found = iter(names(row["user_stack"]))
    assert all(name in found for name in ("inner", "middle", "outer")), names(row["user_stack"])
    assert row["kernel_stack_error"] is None and row["kernel_stack"], row


def test_without_privileges(target, as_nobody):
    """It is taken by itself where BPF is refused, and says what is missing."""
    t = target("plain", wrap=as_nobody).settle()
    doc = sampled("-p", t.pid, wrap=as_nobody)
    assert any("CAP_BPF" in note or "BPF" in note for note in doc["notes"]), doc["notes"]
    row = of(doc, t.tids["worker"])
    assert row["user_stack_error"] is None, row
    assert "inner" in names(row["user_stack"])
    assert row["kernel_stack"] == [] and "CAP_SYS_ADMIN" in row["kernel_stack_error"]


def test_another_users_process(target, as_nobody):
    """Waits by thread, and why there are no stacks."""
    t = target("plain").settle()
    row = of(sampled("-p", t.pid, wrap=as_nobody), t.tids["worker"])
    assert row["thread_name"] == "worker"
    assert row["user_stack"] == [] and "CAP_SYS_PTRACE" in row["user_stack_error"]
    assert row["kernel_stack"] == [] and row["kernel_stack_error"]


def test_one_kind_of_stack(target):
    t = target("plain").settle()
    row = of(sampled("--source=proc", "--kernel-only", "-p", t.pid), t.tids["worker"])
    assert row["kernel_stack"] and row["user_stack"] == [] and row["user_stack_error"] is None
    row = of(sampled("--source=proc", "--user-only", "-p", t.pid), t.tids["worker"])
    assert row["user_stack"] and row["kernel_stack"] == [] and row["kernel_stack_error"] is None


def test_threads_together(target):
    t = target("plain").settle()
    doc = sampled("--source=proc", "--no-threads", "-p", t.pid)
    assert {row["tid"] for row in doc["stacks"]} == {None}


def test_children_of_a_command(tool):
    def look(patience):
        script = f"sleep {LOOKS_AT_ALL * patience}; true"
        result = run("offcpu", "--json", "--source=proc", "--", tool("sh"), "-c", script)
        assert result.code == 3, result
        return {row["thread_name"] for row in result.doc["stacks"]}

    gather(look, {"sh", "sleep"})


def test_main_thread_has_ended(target):
    """The process lives on in its other threads, also as somebody's child."""
    t = target("zombie_main").settle()
    wait_until(lambda: state(t.pid) == "Z", "the main thread is a zombie")
    doc = sampled("--source=proc", "-p", t.pid)
    assert {row["tid"] for row in doc["stacks"]} == {t.tids["worker"]}
    t = target("zombie_main", wrap=["sh", "-c", BEHIND_A_SHELL])
    doc = sampled("--source=proc", "--children", "-p", t.pid, "-d", LOOKS_AT_ALL)
    assert {row["tid"] for row in doc["stacks"]} == {t.pid, t.tids["worker"]}


@pytest.mark.parametrize("option", ("--events", "--wakers"))
def test_what_needs_bpf(option):
    result = run("offcpu", "--source=proc", option, "-a")
    assert result.code == 2 and f"{option} needs BPF" in result.err, result


def test_events_without_privileges(target, as_nobody):
    t = target("plain", wrap=as_nobody).settle()
    result = run("offcpu", "--events", "-p", t.pid, "-d", "1", wrap=as_nobody)
    assert result.code == 1 and result.out == "" and "--events needs BPF" in result.err, result
