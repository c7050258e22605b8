# SPDX-License-Identifier: MIT
"""stakeout offcpu --events: each wait as it ends."""

import fcntl
import json
import os
import select
import signal
import subprocess
import time
from collections import defaultdict
from datetime import datetime, timezone

import pytest
from harness import SANITIZER_ENV, TIMEOUT, command, kernel_stack, state, tids, wait_until
from offcpu_recording import MS, Events, added, assert_adds_up, names, rows_of
from offcpu_truth import SITES, WAKERS, assert_counts, limits, measured

pytestmark = [pytest.mark.usefixtures("root"), pytest.mark.asan]


def when(time):
    """Seconds since 1970."""
    return datetime.strptime(time[:26] + "Z", "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc).timestamp()


@pytest.mark.alone("counts of waits are compared with what the threads measure")
def test_events(target, record):
    t = target("waits_exact", 1000, 20)
    before = time.time()
    recording = record("--events", "--wakers", "-p", t.pid)
    truth = measured(t)
    result = recording.end()
    after = time.time()
    assert result.code in (0, 3), result
    events = Events(result.out)
    begin, waits, end = events.begin, events.waits, events.end
    assert (begin["type"], begin["schema"], end["type"]) == ("begin", "stakeout.offcpu-events/2", "end")
    assert before <= when(begin["start_time"]) <= min(when(e["time"]) for e in waits)
    assert (begin["min_ns"], begin["max_ns"], begin["states"]) == (MS, None, ["S", "D", "R"])
    assert {e["type"] for e in waits} == {"wait"}
    assert (end["total_events"], end["total_time_ns"]) == (len(waits), sum(e["duration_ns"] for e in waits))
    lacking = {}
    for th in truth["threads"]:
        for name, site in th["sites"].items():
            mine = [e for e in waits if e["tid"] == th["tid"] and name in names(e["user_stack"]) and e["state"] in "SD"]
            least, most = limits(site, truth)
            lacking[f"{name}: {len(mine)} of {site}"] = least - len(mine)
            assert len(mine) <= most, (name, len(mine), site)
            assert all(MS <= e["duration_ns"] <= site["max_ns"] for e in mine)
    assert_counts(lacking)
    for e in waits:
        assert e["pid"] == t.pid and e["thread_name"]
        assert before <= when(e["time"]) <= after
    for site, (waker, function) in WAKERS.items():
        by = [e["waker"] for e in waits if e["tid"] == t.tids[SITES[site]] and site in names(e["user_stack"])]
        right = [w for w in by if w and (w["pid"], w["tid"]) == (t.pid, t.tids[waker])]
        taken = [w for w in right if not w["user_stack_error"]]  # one that woke too early to count has none
        assert taken and all(function in names(w["user_stack"]) for w in taken), (site, by)
    events.validate()


def test_events_beside_the_report(target, record, tmp_path):
    """With a file for the events there are both, and they tell of the same waits."""
    t = target("waits_exact", 1000, 10)
    recording = record(f"--events={tmp_path / 'events'}", "--json", "-p", t.pid)
    t.ask("go")
    doc = recording.finish()
    events = Events((tmp_path / "events").read_text())
    begin, waits, end = events.begin, events.waits, events.end
    assert_adds_up(doc)
    for name in ("duration_ns", "lost", "notes", "total_time_ns", "total_events", "max_time_ns", "min_time_ns"):
        assert end[name] == doc[name], name
    for name in ("start_time", "method", "min_ns"):
        assert begin[name] == doc[name], name
    by_thread = defaultdict(list)
    for e in waits:
        by_thread[f"{e['pid']}:{e['tid']}"].append(e["duration_ns"])
    told = {who: (len(durations), sum(durations)) for who, durations in by_thread.items()}
    assert told == {who: (s["count"], s["total_time_ns"]) for who, s in doc["thread_stats"].items()}
    for site, thread_name in SITES.items():
        mine = [e for e in waits if e["tid"] == t.tids[thread_name] and site in names(e["user_stack"])]
        assert mine and len(mine) == added(rows_of(doc, t.tids[thread_name], site)), site
    assert not any(e["waker"] for e in waits)
    events.validate()


def test_events_are_streamed(target, record):
    """A line comes when the wait is over, not at the end of the recording."""
    t = target("waits_deep", 3)
    recording = record("--events", "-p", t.pid)
    recording.hear()
    wait_until(lambda: "bottom_wait" in recording.hear(), "a wait is told of")
    assert recording.proc.poll() is None
    assert recording.end().code in (0, 3)


@pytest.fixture
def stalled(target):
    """stalled(ARG…): a recording into a pipe of one page, which is full and which nobody reads, once it has ended."""
    started = []

    def start(*args):
        t = target("waits_deep", 100)
        ours, theirs = os.pipe()
        fcntl.fcntl(ours, fcntl.F_SETPIPE_SZ, select.PIPE_BUF)  # refused when there is more in it already
        proc = subprocess.Popen(
            command("offcpu", "--events", "-p", t.pid, *args),
            stdout=theirs,
            stderr=subprocess.PIPE,
            env={**os.environ, **SANITIZER_ENV},
        )
        os.close(theirs)
        proc.stdout = open(ours, "rb")
        started.append(proc)
        wait_until(lambda: waits_to_write(proc.pid), "the pipe is full")
        if "-d" not in args:
            proc.send_signal(signal.SIGINT)
        wait_until(lambda: len(os.listdir(f"/proc/{proc.pid}/task")) == 2, "only the writer is left, beside the first")
        return proc

    yield start
    for proc in started:
        if proc.poll() is None:
            proc.kill()
        proc.communicate()


def waits_to_write(pid):
    return any("pipe_write" in kernel_stack(pid, tid) for tid in tids(pid))


@pytest.mark.parametrize("how", [(), ("-d", "0.5")])
def test_events_into_a_reader_that_stalls(stalled, how):
    """The recording ends in time, and all that was recorded can still be read."""
    begin = time.monotonic_ns()
    proc = stalled(*how)
    end = time.monotonic_ns()
    out, err = proc.communicate(timeout=TIMEOUT)
    assert proc.returncode in (0, 3), err
    events = Events(out)
    assert (events.begin["type"], events.end["type"]) == ("begin", "end")
    assert events.end["duration_ns"] < end - begin
    assert events.waits and events.end["total_events"] == len(events.waits)


def test_second_interrupt_gives_up(stalled):
    proc = stalled()
    proc.send_signal(signal.SIGINT)
    assert proc.wait(TIMEOUT) == -signal.SIGINT


def test_events_that_nobody_reads(target, tmp_path):
    """As other tools do it goes without words, but not without the command that it has started."""
    gone = tmp_path / "gone"
    script = f"echo $$ > {gone}; while :; do sleep 0.01; done"
    proc = subprocess.Popen(command("offcpu", "--events", "--", "sh", "-c", script), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env={**os.environ, **SANITIZER_ENV})
    assert b"begin" in proc.stdout.readline()
    wait_until(lambda: gone.exists() and gone.read_text().endswith("\n"), "the command has told its number")
    proc.stdout.close()
    assert proc.wait(TIMEOUT) == -signal.SIGPIPE
    command_pid = int(gone.read_text())
    left = state(command_pid)
    if left:  # it has our end of standard error, which would not end
        os.kill(command_pid, signal.SIGKILL)
    with proc.stderr:
        assert proc.stderr.read() == b""
    assert not left


def test_events_on_a_full_disk(target, stakeout):
    t = target("waits_deep", 3)
    result = stakeout("offcpu", "--events", "-o", "/dev/full", "-d", "20", "-p", t.pid)
    assert result.code == 1 and "No space left on device" in result.err, result


@pytest.mark.parametrize("args", [("--events=F", "-o", "F"), ("--events=-",)])
def test_events_and_report_in_one_file(stakeout, args):
    result = stakeout("offcpu", "-a", *args)
    assert result.code == 2 and "both" in result.err
