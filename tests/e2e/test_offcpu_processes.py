# SPDX-License-Identifier: MIT
"""stakeout offcpu: which processes are recorded, from their beginnings to their ends."""

import json
import os
import signal
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from harness import BEHIND_A_SHELL, SANITIZER_ENV, TIMEOUT, built, command, gather, gone, state
from harness import wait_for_zombie, wait_until
from offcpu_recording import assert_adds_up, assert_nothing_lost, assert_whole, names, rows_of
from offcpu_truth import SITES, assert_exact, churned, measured, recorded_churn, skip_unless

pytestmark = pytest.mark.usefixtures("root")


@pytest.fixture
def record_churn(target, record):
    """record_churn(ARG…)(NAP_US): a recording of waits_churn, which is named unless pid=False, for recorded_churn."""

    def prepare(*args, pid=True):
        def record_one(nap):
            t = target("waits_churn", built("plugin"), nap)
            recording = record("--json", *args, *(("-p", t.pid) if pid else ()))
            said = churned(t)
            doc = recording.finish()
            t.end()  # else its files are known to the next recording of everything
            return doc, said

        return record_one

    return prepare


@pytest.mark.asan
@pytest.mark.alone("how soon tables for new programs are made decides which stacks are whole")
def test_children(record_churn):
    doc = recorded_churn(record_churn("--children"))
    assert_nothing_lost(doc)


@pytest.mark.asan
def test_children_that_are_there_already(target, record):
    """And their children, as far as there are any."""
    nest = "sh -c 'sh -c \"sleep 1000 & wait\" & wait'"
    t = subprocess.Popen(["sh", "-c", nest + " & wait"], start_new_session=True)
    try:
        wait_until(lambda: [state(pid) for pid in family(t.pid)] == ["S"] * 4, "all are there, and asleep")
        pids = family(t.pid)
        doc = record("--json", "--min", 0, "--children", "-p", t.pid).finish()
        assert {row["pid"] for row in doc["stacks"]} == pids
        assert {row["unfinished"] for row in doc["stacks"]} == {1}
    finally:
        os.killpg(t.pid, signal.SIGKILL)
        t.wait()


def test_children_of_who_records(stakeout):
    """It is a child of the process too, and does not record itself."""
    script = f"{' '.join(command('offcpu', '--json', '--min', '0', '-d', '0.2', '--children', '-p'))} $$; :"
    result = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=TIMEOUT,
                            env={**os.environ, **SANITIZER_ENV})
    doc = json.loads(result.stdout)
    assert [row["thread_name"] for row in doc["stacks"]] == ["sh"], result


def family(pid):
    """The process and all that descend from it."""
    found = {pid}
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            found |= family(int(child))
    return found


@pytest.mark.asan
@pytest.mark.alone("how soon tables for new programs are made decides which stacks are whole")
def test_without_children(record_churn):
    doc = recorded_churn(record_churn(), ("loader",))
    assert len({row["pid"] for row in doc["stacks"]}) == 1
    whole = [row for row in rows_of(doc, site="late_wait", state="S") if row["user_stack_error"] is None]
    assert all("plugin_enter" in names(row["user_stack"]) for row in whole), "the object that was loaded later"


@pytest.mark.alone("what other tests start would be recorded as well")
def test_all_processes(record_churn):
    recorded_churn(record_churn("-a", pid=False))


@pytest.mark.asan
@pytest.mark.alone("counts of waits are compared with what the threads measure")
def test_process_that_ends_before_the_report(target, record):
    t = target("waits_exact", 1000, 20)
    recording = record("--json", "-p", t.pid)
    truth = measured(t)
    t.proc.kill()
    t.proc.wait(TIMEOUT)
    doc = recording.finish()
    certain = assert_exact(doc, truth)
    for site, thread_name in SITES.items():
        for row in rows_of(doc, t.tids[thread_name], site):
            assert_whole(row)
            frame = next(f for f in row["user_stack"] if f["symbol"] == site)
            assert frame["source"], "debug info of a file whose process has gone"
    skip_unless(certain)


@pytest.mark.asan
@pytest.mark.parametrize("waited", [True, False], ids=["reaped", "zombie"])
@pytest.mark.parametrize("source", ["auto", "proc"])
def test_ends_with_the_last_process(record, source, waited):
    """Nobody has to end it, however long it was to last, nor to wait for the processes."""
    sleepers = [subprocess.Popen(["sleep", "1000"]) for _ in range(2)]
    pids = ",".join(str(sleeper.pid) for sleeper in sleepers)
    recording = record("--json", "--source", source, "--min", 0, "-d", "1h", "-p", pids)
    for sleeper in sleepers:
        assert recording.proc.poll() is None
        sleeper.kill()
        if waited:
            sleeper.wait()
    doc = recording.finish(None)
    for sleeper in sleepers:
        sleeper.wait()
    if source == "auto":  # /proc may have been looked at only once
        assert {row["pid"] for row in doc["stacks"]} == {sleeper.pid for sleeper in sleepers}


@pytest.mark.asan
def test_ends_with_the_last_child(target, record):
    """A child that outlives its parent is still recorded."""
    t = subprocess.Popen(["sh", "-c", "sleep 1000 & echo $!; read line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child = int(t.stdout.readline())
    recording = record("--json", "--min", 0, "--children", "-p", t.pid)
    t.stdin.close()
    t.wait()
    recording.until_seen(1)
    assert recording.proc.poll() is None
    os.kill(child, signal.SIGKILL)
    assert child in {row["pid"] for row in recording.finish(None)["stacks"]}
    t.stdout.close()


@pytest.mark.asan
def test_process_that_is_gone(target, record, stakeout):
    """Lists from pgrep are soon out of date: the others are recorded."""
    t, dead = target("waits_deep", 3), gone()
    recording = record("--json", "-p", f"{dead},{t.pid}")
    recording.until_seen(3)
    result = recording.end()
    doc = json.loads(result.out)
    assert result.code == 3 and {row["pid"] for row in doc["stacks"]} == {t.pid}
    assert any(f"no process {dead}" in note for note in doc["notes"])
    result = stakeout("offcpu", "-p", dead)
    assert result.code == 1 and f"no process {dead}" in result.err


def test_process_that_is_not_waited_for(target, stakeout):
    t = target("plain")
    t.proc.stdin.close()
    wait_for_zombie(t.pid)
    result = stakeout("offcpu", "-p", t.pid)
    assert result.code == 1 and "has ended: it is only not yet waited for" in result.err, result


@pytest.mark.asan
def test_main_thread_has_ended(target, stakeout):
    """The process lives on in its other threads, also as somebody's child."""
    t = target("zombie_main").settle()
    wait_until(lambda: state(t.pid) == "Z", "the main thread is a zombie")
    doc = stakeout("offcpu", "--json", "-d", "0.3", "-p", t.pid).doc
    assert {row["tid"] for row in doc["stacks"]} == {t.tids["worker"]}
    t = target("zombie_main", wrap=["sh", "-c", BEHIND_A_SHELL])
    (child,) = family(t.pid) - {t.pid}
    wait_until(lambda: state(child) == "Z", "the main thread is a zombie")
    doc = stakeout("offcpu", "--json", "-d", "0.3", "--children", "-p", t.pid).doc
    assert {row["tid"] for row in doc["stacks"]} == {t.pid, t.tids["worker"]}


def test_kernel_thread(stakeout, kthreadd):
    result = stakeout("offcpu", "-p", kthreadd)
    assert result.code == 1 and "kthreadd" in result.err and "thread of the kernel" in result.err


def test_process_that_is_stopped(record):
    t = subprocess.Popen(["sleep", "1000"])
    try:
        t.send_signal(signal.SIGSTOP)
        wait_until(lambda: state(t.pid) == "T", "it is stopped")
        doc = record("--json", "-p", t.pid).finish()
        assert doc["total_events"] == 0
        assert any(f"process {t.pid}" in note and "was stopped by a signal" in note for note in doc["notes"])
    finally:
        t.kill()
        t.wait()


REUSE = """
import os, pathlib, sys, time
last = pathlib.Path("/proc/sys/kernel/ns_last_pid")
def child(name, *then, number=None):
    if number:
        last.write_text(str(number - 1))
    pid = os.fork()
    if not pid:
        pathlib.Path("/proc/self/comm").write_text(name)
        time.sleep(float(sys.argv[1]))
        if then:
            os.execvp(then[0], then)
        os._exit(0)
    os.waitpid(pid, 0)
    return pid
first = child("first")
for attempt in range(100):
    if child("second", "sleep", sys.argv[1], number=first) == first:
        sys.exit()
"""


@pytest.mark.asan
@pytest.mark.parametrize("source, nap", [("auto", 0.02), ("proc", 0.5)])
def test_reused_number(unshare, record, source, nap):
    """A process that has the number of one that has ended is another; one that executes something is the same."""
    private = [unshare, "--pid", "--fork", "--mount-proc"]
    choice = [*private, "sh", "-c", "echo 99 >/proc/sys/kernel/ns_last_pid"]
    tried = subprocess.run(choice, capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"no number can be chosen: {tried.stderr.strip()}")

    def look(patience):
        args = f"--source={source}", "--", "/usr/bin/python3", "-c", REUSE, nap * patience
        doc = record("--json", *args, wrap=private).finish(None)
        assert_adds_up(doc)
        called = defaultdict(set)
        for row in doc["stacks"]:
            called[row["thread"]].add(row["thread_name"])
        assert not any("first" in names and names & {"second", "sleep"} for names in called.values()), called
        found = {(name, "again" if key.endswith("#2") else "") for key, names in called.items() for name in names}
        assert ("first", "again") not in found, called
        return found

    gather(look, {("first", ""), ("second", "again"), ("sleep", "again")})
