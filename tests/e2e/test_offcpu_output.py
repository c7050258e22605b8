# SPDX-License-Identifier: MIT
"""stakeout offcpu: where what was recorded goes, and that it gets there whatever happens."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess

import pytest
from harness import SANITIZER_ENV, TIMEOUT, command, gone, kernel_stack, wait_until

pytestmark = [pytest.mark.usefixtures("root"), pytest.mark.asan]


def waits_to_write_its_report(recording):
    return "pipe_write" in kernel_stack(recording.proc.pid, recording.proc.pid)


def test_terminal_that_is_closed_twice(target, record):
    """As by a shell and by the kernel: the report is whole, though the second signal comes while it is written."""
    t = target("waits_deep", 100)
    recording = record("--json", "-p", t.pid)
    fcntl.fcntl(recording.proc.stdout, fcntl.F_SETPIPE_SZ, select.PIPE_BUF)
    recording.until_seen(3)
    recording.proc.send_signal(signal.SIGHUP)
    wait_until(lambda: waits_to_write_its_report(recording), "the pipe is full")
    result = recording.end(signal.SIGHUP)
    assert result.code in (0, 3) and json.loads(result.out)["total_events"] >= 3


def test_events_on_a_full_disk_beside_a_report(target, stakeout, tmp_path):
    """The report is there all the same, of all the time, and the exit code says that something is not."""
    t, report = target("waits_deep", 3), tmp_path / "report"
    result = stakeout("offcpu", "--json", "--events=/dev/full", "-o", report, "-d", "0.5", "-p", t.pid)
    assert result.code == 1 and "the events cannot be written: No space left on device" in result.err, result
    doc = json.loads(report.read_text())
    assert doc["total_events"] > 0 and doc["duration_ns"] >= 500000000 and not doc["lost"]["events_over_limit"]


def test_events_that_nobody_reads_beside_a_report(target, tmp_path):
    t, report = target("waits_deep", 3), tmp_path / "report"
    proc = subprocess.Popen(
        command("offcpu", "--json", "--events=-", "-o", report, "-d", "0.5", "-p", t.pid),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **SANITIZER_ENV},
    )
    assert "begin" in proc.stdout.readline()
    proc.stdout.close()
    err = proc.stderr.read()
    assert proc.wait(TIMEOUT) == 1 and "the events cannot be written" in err
    doc = json.loads(report.read_text())
    assert doc["total_events"] > 0 and doc["duration_ns"] >= 500000000


def test_command_is_asked_once_to_end(record, tmp_path):
    """A second signal would mean that it should put nothing away. It has seen the first one before the report ends."""
    signals, go = tmp_path / "signals", tmp_path / "go"
    script = f"trap 'echo TERM >> {signals}' TERM; echo; while ! [ -e {go} ]; do sleep 0.01; done"
    recording = record("--json", "--", "sh", "-c", script)
    fcntl.fcntl(recording.proc.stdout, fcntl.F_SETPIPE_SZ, select.PIPE_BUF)
    recording.hear()
    recording.until_seen(3)
    recording.proc.send_signal(signal.SIGINT)
    wait_until(lambda: waits_to_write_its_report(recording) and signals.exists(), "the pipe is full")
    assert recording._until(recording._terminal, b"waiting for its end")
    go.touch()
    assert recording.end(None).code in (0, 3)
    assert signals.read_text() == "TERM\n"


def test_notes_on_where_names_come_from(target, stakeout):
    """As in a snapshot: the cache is for who wants all notes, a server that was asked for and is not there for all."""
    t = target("plain").settle()
    env = {"STAKEOUT_CACHE_SIZE": "much"}

    def notes(*args):
        return {note for note in stakeout(*args, env=env).doc["notes"] if "no cache" in note or "debuginfod" in note}

    told = notes("offcpu", "--json", "--debuginfod", "-v", "-d", "0.1", "-p", t.pid)
    assert any(note.startswith("debuginfod is not asked: ") for note in told), told
    assert any(note.startswith("no cache: STAKEOUT_CACHE_SIZE takes bytes") for note in told), told
    assert told == notes("--json", "--debuginfod", "-v", t.pid)
    assert notes("offcpu", "--json", "-d", "0.1", "-p", t.pid) == set()


def test_one_file_for_events_and_report(target, tmp_path):
    """By whatever names; what was in it is still there."""
    t, file = target("plain"), tmp_path / "same"
    file.write_text("before")
    (tmp_path / "way").symlink_to(tmp_path)
    for events in (f"{tmp_path}/./same", tmp_path / "way/same"):
        with open(file, "a") as out:
            for args in (("-o", file), ()):
                proc = subprocess.run(
                    command("offcpu", f"--events={events}", *args, "-d", "0.1", "-p", t.pid),
                    stdout=out, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT,
                )
                assert proc.returncode == 1 and "cannot both go to" in proc.stderr, proc
        assert file.read_text() == "before"


def test_files_that_were_there(target, stakeout, tmp_path):
    """They are replaced. Of what goes nowhere there may be two."""
    t, report, events = target("plain"), tmp_path / "report", tmp_path / "events"
    for file in (report, events):
        file.write_text("before\n" * 10000)
    result = stakeout("offcpu", "--json", f"--events={events}", "-o", report, "-d", "0.1", "-p", t.pid)
    assert result.code in (0, 3), result
    assert json.loads(report.read_text())["schema"]
    assert [json.loads(line)["type"] for line in events.read_text().splitlines()][-1] == "end"
    result = stakeout("offcpu", "--events=/dev/null", "-o", "/dev/../dev/null", "-d", "0.1", "-p", t.pid)
    assert result.code in (0, 3), result


def on_terminal(*args, **env):
    """All that it writes there, where standard output and standard error are the same terminal."""
    ours, theirs = pty.openpty()
    proc = subprocess.Popen(
        command("offcpu", *args), stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, **SANITIZER_ENV, **env}
    )
    os.close(theirs)
    said = b""
    with open(ours, "rb", buffering=0) as terminal:
        try:
            while data := terminal.read(4096):
                said += data
        except OSError:  # how the end of a terminal reads
            pass
    assert proc.wait(TIMEOUT) in (0, 3), said
    return said.decode().replace("\r\n", "\n")


LIVE = "\r\033[K"


def test_live_line_has_the_terminal_for_itself(target):
    t = target("waits_deep", 3)
    assert LIVE in on_terminal("-d", "0.5", "-p", t.pid)
    said = on_terminal("--events", "-d", "0.5", "-p", t.pid)
    assert [json.loads(line)["type"] for line in said.splitlines()][-1] == "end"
    assert LIVE not in on_terminal("-d", "0.5", "--events=/proc/self/fd/1", "-o", "/dev/null", "-p", t.pid)
    said = on_terminal("--", "sh", "-c", "echo hello; sleep 0.5")
    assert said.startswith("hello\n") and LIVE not in said


def test_terminal_that_knows_nothing(target):
    """TERM=dumb: neither colours nor a line that is written again and again."""
    t = target("waits_deep", 3)
    assert "\033[1m" in on_terminal("-d", "0.1", "-p", t.pid)
    assert "\033" not in on_terminal("-d", "0.1", "-p", t.pid, TERM="dumb")
    assert "\033[1m" in on_terminal("--color=always", "-d", "0.1", "-p", t.pid, TERM="dumb")
    assert "\033[1m" not in on_terminal("-d", "0.1", "-p", t.pid, NO_COLOR="1")


def test_last_report_stays_until_there_is_another(stakeout, tmp_path):
    report, events = tmp_path / "report", tmp_path / "events"
    for file in (report, events):
        file.write_text("before")
    assert stakeout("offcpu", f"--events={events}", "-o", report, "-p", gone()).code == 1
    assert report.read_text() == events.read_text() == "before"
    assert stakeout("offcpu", "-o", report, "--", tmp_path / "none").code == 1
    assert report.read_text() == "before"


def test_longest_duration(target, record):
    """To its end there are centuries."""
    t = target("waits_deep", 3)
    recording = record("--json", "-d", "5124095h", "-p", t.pid)
    recording.until_seen(3)
    assert recording.proc.poll() is None
    assert recording.finish()["total_events"] >= 3


def test_every_process_that_is_gone_is_named(stakeout):
    pids = [gone() for _ in range(3)]
    result = stakeout("offcpu", "-p", ",".join(map(str, pids)))
    assert result.code == 1 and [len(re.findall(rf"\b{pid}\b", result.err)) for pid in pids] == [1, 1, 1], result
