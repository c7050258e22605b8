# SPDX-License-Identifier: MIT
"""Another user's process, one's own process without privileges, and what is said about it."""

import pytest
from harness import NOBODY, assert_calls, symbols, thread

pytestmark = pytest.mark.usefixtures("root")


def test_another_users_process(target, stakeout, as_nobody):
    t = target("plain").settle()
    result = stakeout(t.pid, wrap=as_nobody)
    assert result.code == 1, result
    assert result.out == ""
    for way in ("root", "CAP_SYS_PTRACE", "ptrace_scope"):
        assert way in result.err, result
    assert str(t.pid) in result.err


SAME_IDS = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
OBSTACLES = {
    "user": (["--clear-groups"], "the process belongs to another user"),
    "user ids": ([f"--ruid={NOBODY}", *SAME_IDS[1:]], f"its user ids ({NOBODY}, 0, 0) are not all yours ({NOBODY})"),
    "group ids": ([SAME_IDS[0], "--regid=0", SAME_IDS[2]], f"its group ids (0, 0, 0) are not all yours ({NOBODY})"),
    "capabilities": ([*SAME_IDS, "--inh-caps=+chown", "--ambient-caps=+chown"], "capabilities that stakeout lacks"),
}


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_what_is_in_the_way(target, stakeout, tool, as_nobody, obstacle):
    options, words = OBSTACLES[obstacle]
    t = target("plain", wrap=[tool("setpriv"), *options]).settle()
    result = stakeout(t.pid, wrap=as_nobody)
    assert result.code == 1 and words in result.err, result


def test_ones_own_process(target, stakeout, as_nobody):
    t = target("spinners", "loop", wrap=as_nobody).settle("loop")
    result = stakeout("--json", t.pid, wrap=as_nobody)
    assert result.code == 0, result
    doc = result.doc
    assert doc["capture"]["method"] == "proc"
    assert symbols(thread(doc, "loop"))[0] == "spin_loop"
    assert_calls(thread(doc, t.pid), "target_serve", "main")
    assert doc["capture"]["stopped_threads"] == 1
    t.assert_progress()


@pytest.mark.parametrize("count", [600, 60000])
def test_many_groups(target, snap, source, count):
    """/proc/PID/status lists all groups before most of what counts in it."""
    t = target("plain", extra_groups=range(100001, 100001 + count)).settle()
    assert_calls(thread(snap(t, source), "worker"), "inner", "middle", "outer")


def test_own_groups_hide_no_namespace(target, stakeout, tool, unshare):
    """That /proc is of another pid namespace is noticed by what comes behind the groups of our own."""
    t = target("plain").settle()
    result = stakeout("--json", t.pid, wrap=[unshare, "-pf"], extra_groups=range(100001, 100601))
    assert any("/proc is of another pid namespace" in note for note in result.doc["notes"]), result


def test_kernel_stacks_are_refused_once(target, stakeout, as_nobody):
    """Without privileges there is no kernel stack; the reason is told once, and user stacks do not suffer."""
    t = target("sleepers", "-n", 5, wrap=as_nobody).settle()
    doc = stakeout("--json", t.pid, wrap=as_nobody).doc
    assert all(th["kernel_stack"] == [] for th in doc["threads"])
    assert all(th["kernel_stack_error"] for th in doc["threads"])
    text = stakeout("--no-group", t.pid, wrap=as_nobody)
    assert text.code == 0, text
    assert (text.out + text.err).count(doc["threads"][0]["kernel_stack_error"]) == 1


def test_bpf_without_privileges(target, stakeout, as_nobody):
    t = target("plain", wrap=as_nobody).settle()
    result = stakeout("--source=bpf", t.pid, wrap=as_nobody)
    assert result.code == 1 and result.out == "", result
    assert "CAP_BPF" in result.err, result


def test_root_sees_another_users_process(target, snap, as_nobody, source):
    t = target("plain", wrap=as_nobody).settle()
    assert_calls(thread(snap(t, source), "worker"), "inner", "middle", "outer")


def test_process_that_is_not_dumpable(target, stakeout, as_nobody):
    """It belongs to root as far as ptrace is concerned: being its user is not enough."""
    t = target("undumpable", wrap=as_nobody)
    result = stakeout(t.pid, wrap=as_nobody)
    assert result.code == 1, result
    assert "CAP_SYS_PTRACE" in result.err and "PR_SET_DUMPABLE" in result.err, result
