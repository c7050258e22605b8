# SPDX-License-Identifier: MIT
"""stakeout offcpu and processes and code that come and go while it records."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from harness import TIMEOUT, native, state, wait_until
from offcpu_recording import added, assert_whole, let_run, names, rows_of

pytestmark = pytest.mark.usefixtures("root")


FORKING = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
print("ready", flush=True)
sys.stdin.readline()
for i in range(int(sys.argv[1])):
    pid = os.fork()
    if not pid:
        signal.pause()
    print(pid, flush=True)
    time.sleep(0.001)
print("done", flush=True)
signal.pause()
"""


@pytest.mark.asan
def test_children_that_come_while_it_begins(record):
    """Whoever is started between the first look at /proc and the first switch that is seen is recorded as well."""
    parent = subprocess.Popen(
        [sys.executable, "-c", FORKING, "100"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    children = []
    try:
        assert parent.stdout.readline() == "ready\n"
        print(file=parent.stdin, flush=True)
        recording = record("--json", "--min", 0, "--children", "-p", parent.pid)
        children = [int(line) for line in iter(parent.stdout.readline, "done\n")]
        wait_until(lambda: all(state(pid) == "S" for pid in children), "all sleep")
        doc = recording.finish()
    finally:
        for child in filter(state, children):
            os.kill(child, signal.SIGTERM)
        parent.terminate()
        parent.wait(TIMEOUT)
    assert set(children) - {row["pid"] for row in doc["stacks"]} == set()


def children_of(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_exiting(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[6]) & 4


@pytest.mark.parametrize("minimum", [0, "1us"])
@pytest.mark.parametrize(
    "who",
    [
        pytest.param("alone", marks=pytest.mark.asan),
        pytest.param("beside another", marks=pytest.mark.asan),
        pytest.param("all", marks=pytest.mark.alone("what other tests start would be recorded as well")),
    ],
)
def test_wait_at_the_very_end(target, record, unshare, who, minimum):
    """The first process of a pid namespace cannot end before all others have, and one of them is held by its tracer."""
    first = subprocess.Popen(
        [unshare, "--pid", "--fork", "sh", "-c", "sleep 1000 & echo ready; read line"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert first.stdout.readline() == "ready\n"
        (init,) = children_of(first.pid)
        wait_until(lambda: children_of(init), "it has a child")
        (held,) = children_of(init)
        whom = {"alone": ["-p", init], "all": ["-a"]}.get(who)
        if not whom:
            whom = ["-p", init, "-p", target("sleepers", "-n", 1, "-d", 1).settle().pid]
        tracer = target("tracer", "run", held)
        recording = record("--json", "--min", minimum, *whom)
        print(file=first.stdin, flush=True)
        wait_until(lambda: is_exiting(init) and state(init) == "S", "it waits for the other")
        recording.until_seen(1)
        assert recording.proc.poll() is None
        doc = recording.finish()
        tracer.end()
    except BaseException:
        first.kill()  # the first of the namespace ends with its input, and all others with it
        raise
    finally:
        first.stdin.close()
        first.stdout.close()
        first.wait(TIMEOUT)
    waits = [row for row in rows_of(doc, state="S") if row["pid"] == init]
    waits = [row for row in waits if "zap_pid_ns_processes" in names(row["kernel_stack"])]
    assert added(waits) == 1
    assert not waits[0]["kernel_stack_error"] and not waits[0]["user_stack_error"]


@pytest.mark.asan
@pytest.mark.arch
@pytest.mark.parametrize("minimum", [0, native("1ms")])
def test_wait_for_a_child_of_vfork(target, record, minimum):
    """Where the return address is in a register meanwhile: the child uses the same stack."""
    t = target("waits_vfork")
    recording = record("--json", "--state", "D", "--min", minimum, "-p", t.pid)
    recording.until_seen(20)  # how often it was called tells less: it need not wait for a child that was faster
    doc = recording.finish()
    rows = rows_of(doc, t.tids["worker"], "vforks", "D")
    assert added(rows) >= 15
    for row in rows:
        assert_whole(row)
        frames = names(row["user_stack"])
        assert "vfork" in frames[0] and frames[1:3] == ["vforks", "worker"]


@pytest.mark.asan
def test_code_that_is_made_beside_a_stack_that_leads_astray(target, record):
    """Pages that can be written and executed are code, too, which the kernel does not count as such."""
    t = target("waits_astray")
    recording = record("--json", "-p", t.pid)
    let_run(t, 100)
    doc = recording.finish()
    rows = rows_of(doc, t.tids["maker"], "called_by_made_code", "S")
    assert added(rows) > 20
    assert not [row for row in rows if "not in executable memory" in (row["user_stack_error"] or "")]
