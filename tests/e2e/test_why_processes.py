# SPDX-License-Identifier: MIT
"""What threads wait for that other processes have: locks in shared memory."""

import os
import re

import pytest
from harness import child_of, native, rounds, run, until, wait_until

LOOKS = int(os.environ.get("STAKEOUT_TEST_LOOKS", "200"))  # at programs with many locks
KINDS = {"mutex": "mutex", "robust": "mutex", "pi": "mutex", "rwlock": "write_lock"}


def wait_of(doc, tid):
    return next(th["waits_for"] for th in doc["threads"] if th["tid"] == tid)


def look(*args):
    r = run("why", "--json", *args)
    assert r.code in (0, 3, 4), r
    return r.doc


def blocked(tids, *args):
    """The document, once all of these wait for a lock that somebody is known to have."""

    def holders(doc):
        return [(wait_of(doc, tid) or {"holder": None})["holder"] for tid in tids]

    return until(lambda: look(*args), lambda doc: all(holder in ("thread", "ended") for holder in holders(doc)))


def all_maps_are_seen():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            open(f"/proc/{pid}/maps").read()
        except PermissionError:
            return False
        except (FileNotFoundError, ProcessLookupError):
            pass
    return True


@pytest.fixture
def pair(target, tmp_path):
    """pair(KIND, ROLE, ROLE): two processes that share locks."""

    def start(kind, one, other, **how):
        return [target("locks_shared", tmp_path / "memory", kind, role, **how) for role in (one, other)]

    return start


@pytest.mark.arch
@pytest.mark.parametrize("kind", [kind if kind == "robust" else native(kind) for kind in KINDS])
def test_owner_in_another_process(pair, source, kind):
    holder, waiter = pair(kind, "holder", "waiter")
    doc = until(
        lambda: blocked([waiter.tids["waiter"]], source, holder.pid, waiter.pid),
        lambda doc: wait_of(doc, waiter.tids["waiter"])["certain"],
    )
    found = wait_of(doc, waiter.tids["waiter"])
    assert (found["kind"], found["holder"], found["shared"]) == (KINDS[kind], "thread", True)
    assert (found["owner_tid"], found["owner_pid"]) == (holder.tids["holder"], holder.pid)
    text = run("why", source, waiter.pid, holder.pid).out
    assert re.search(rf"waits for .*, held by tid {holder.tids['holder']} holder of pid {holder.pid} \(locks_shared\), which (is in p(ause|poll)\(|waits for a signal)", text), text


@pytest.mark.parametrize("kind", ["mutex", "robust", "rwlock"])
def test_deadlock_between_processes(pair, source, kind):
    both = pair(kind, "first", "second")
    tids = [both[0].tids["first"], both[1].tids["second"]]
    doc = until(lambda: blocked(tids, source, *(t.pid for t in both)), lambda doc: doc["deadlocks"])
    assert sorted((m["pid"], m["tid"]) for m in doc["deadlocks"][0]) == sorted(zip((t.pid for t in both), tids))
    r = run("why", source, *(t.pid for t in both))
    assert r.code == 4
    assert "DEADLOCK: 2 threads of 2 processes wait for each other\n" in r.out


def test_only_one_of_them(pair):
    """The owner is named all the same, and that it should be given, too."""
    first, second = pair("mutex", "first", "second")
    doc = blocked([second.tids["second"]], second.pid)
    found = wait_of(doc, second.tids["second"])
    assert (found["owner_tid"], found["owner_pid"], found["certain"]) == (first.tids["first"], first.pid, False)
    assert doc["deadlocks"] == [] and not doc["maybe_more_deadlocks"]
    words = rf"held by tid {first.tids['first']} of pid {first.pid} \(locks_shared\), which is not looked at: give it, too"
    assert re.search(words, run("why", second.pid).out)
    assert re.search(words, run(second.pid).out)


def test_other_pid_namespace(pair, target, unshare, tmp_path):
    """Numbers of one namespace mean nothing in another: nobody is named, nor is anything certain."""
    holder = target("locks_shared", tmp_path / "memory", "mutex", "holder")
    there = target(
        "locks_shared", tmp_path / "memory", "mutex", "waiter", wrap=[unshare, "--pid", "--fork", "--mount-proc", "--kill-child"]
    )
    pid = child_of(there.pid, "locks_shared")

    def locks(doc):
        return [th["waits_for"] for th in doc["threads"] if th["pid"] == pid and th["waits_for"] and th["waits_for"]["kind"] == "mutex"]

    (found,) = locks(until(lambda: look(pid, holder.pid), locks))
    assert (found["kind"], found["owner_pid"], found["certain"]) == ("mutex", None, False)
    assert found["owner_tid"] == holder.tids["holder"]  # as memory has it
    assert "of another process, which is not known" in run("why", pid).out


def test_same_pid_namespace(target, unshare, tmp_path):
    """In a namespace of their own numbers are small, but mean the same for both."""
    script = '"$0" "$1" mutex first <&3 3<&- & "$0" "$1" mutex second <&3 3<&- & wait'
    there = target(
        "locks_shared",
        tmp_path / "memory",
        wrap=[unshare, "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", f"exec 3<&0; {script}"],
    )
    shell = child_of(there.pid, "sh")

    def processes():
        with open(f"/proc/{shell}/task/{shell}/children") as f:
            return [int(pid) for pid in f.read().split()]

    doc = until(lambda: look(*processes()), lambda doc: doc["deadlocks"] or doc["maybe_more_deadlocks"])
    if all_maps_are_seen():
        assert sorted(m["pid"] for m in doc["deadlocks"][0]) == sorted(processes())
    else:  # somebody else may share the memory
        assert doc["deadlocks"] == []


def test_somebody_else_may_have_it(pair, target, unshare, tmp_path):
    """Where a process of another namespace shares the memory, a number may be its own."""
    both = pair("mutex", "first", "second")
    target("locks_shared", tmp_path / "memory", "mutex", "waiter", wrap=[unshare, "--pid", "--fork", "--mount-proc", "--kill-child"])
    tids = [both[0].tids["first"], both[1].tids["second"]]
    doc = blocked(tids, *(t.pid for t in both))
    assert doc["deadlocks"] == [] and doc["maybe_more_deadlocks"]
    assert not any(wait_of(doc, tid)["certain"] for tid in tids)


def test_memory_that_is_not_shared(target, tmp_path):
    """After a fork the child has a copy of the lock, and nobody opens that."""
    t = target("locks_shared", tmp_path / "memory", "mutex", "private")
    child = child_of(t.pid, "child")
    doc = until(lambda: look(child, t.pid), lambda doc: wait_of(doc, child))
    found = wait_of(doc, child)
    assert (found["kind"], found["holder"], found["owner_pid"], found["certain"]) == ("mutex", "ended", None, False)


def test_healthy_processes(pair):
    """Always somebody waits for somebody, also of the other process, but never all round."""
    both = pair("mutex", "healthy", "healthy-too")
    pids = {t.pid for t in both}
    seen = set()

    def look_again():
        r = run("why", "--json", *pids)
        assert r.code in (0, 3), r
        assert r.doc["deadlocks"] == []
        seen.update(
            (th["pid"] == th["waits_for"]["owner_pid"], th["waits_for"]["certain"])
            for th in r.doc["threads"]
            if th["waits_for"] and th["waits_for"]["owner_pid"] in pids
        )
        return {(True, True), (False, True)} <= seen

    for _ in rounds(LOOKS):
        look_again()
    wait_until(look_again, "both kinds of waits were seen")
