# SPDX-License-Identifier: MIT
"""stakeout offcpu -- COMMAND."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from harness import SANITIZER_ENV, TIMEOUT, built, command, gather, wait_until
from offcpu_recording import assert_adds_up, assert_exit_code, rows_of
from offcpu_truth import SITES, assert_thread_counts, churned, measured, recorded_churn

pytestmark = [pytest.mark.usefixtures("root"), pytest.mark.asan]


def test_command_when_children_are_ignored(tmp_path):
    """Somebody has left SIGCHLD ignored: the end of the command is seen all the same."""
    proc = subprocess.run(command("offcpu", "--json", "--", "sleep", "0.1"), capture_output=True, text=True,
                          timeout=TIMEOUT, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
                          env={**os.environ, **SANITIZER_ENV})
    assert json.loads(proc.stdout)["total_events"] >= 1 and "SIGTERM" not in proc.stderr, proc


def test_command_that_has_to_put_things_away(record, tmp_path):
    """It has all the time that it needs, while the report can be read already."""
    done, go = tmp_path / "done", tmp_path / "go"
    script = f"trap 'while ! [ -e {go} ]; do sleep 0.01; done; echo > {done}; exit' TERM; echo; while :; do sleep 0.01; done"
    recording = record("--json", "-o", tmp_path / "out", "--", "sh", "-c", script)
    recording.hear()
    recording.proc.send_signal(signal.SIGTERM)
    wait_until(lambda: (tmp_path / "out").stat().st_size, "the report is written")
    assert recording._until(recording._terminal, b"waiting for its end")
    go.write_text("")
    assert recording.end(None).code in (0, 3)
    assert done.exists()


@pytest.mark.alone("counts of waits are compared with what the threads measure")
def test_command(record, tmp_path):
    """It is recorded from its first instruction to its end, which is the end of the recording."""
    report = tmp_path / "report"

    def look(patience):
        recording = record("--json", "-o", report, "--", built("waits_exact"), 1000, 40 * patience)
        assert recording.hear().startswith("ready ")
        truth = measured(recording)
        recording.proc.stdin.close()
        result = recording.end(None)
        doc = json.loads(report.read_text())
        assert_exit_code(result, doc)
        assert_thread_counts(doc, truth)
        assert_adds_up(doc)
        return {site for site in SITES if rows_of(doc, site=site, state="SD")}

    gather(look, set(SITES))


@pytest.mark.alone("how soon tables for new programs are made decides which stacks are whole")
def test_commands_children_are_followed(record, tmp_path):
    report = tmp_path / "report"

    def record_one(nap):
        recording = record("--json", "-o", report, "--", built("waits_churn"), built("plugin"), nap)
        recording.hear()
        said = churned(recording)
        recording.proc.stdin.close()
        assert recording.end(None).code in (0, 3)
        return json.loads(report.read_text()), said

    recorded_churn(record_one)


def test_commands_exit_code(stakeout, tmp_path):
    """However the command ends, it is the end of the recording; the exit code is about that."""
    for script in ("sleep 0.01", "sleep 0.01; exit 7", "kill -TERM $$"):
        report = tmp_path / "report"
        result = stakeout("offcpu", "--json", "-o", report, "--", "sh", "-c", script)
        assert result.code in (0, 3), result
        doc = json.loads(report.read_text())
        assert_exit_code(result, doc)
        assert doc["total_events"] or "sleep" not in script


def test_command_that_is_not_there(stakeout, tmp_path):
    result = stakeout("offcpu", "--", tmp_path / "no-such-program")
    assert result.code == 1 and "no-such-program" in result.err and result.out == "", result


@pytest.mark.alone("counts of waits are compared with what the threads measure")
def test_signal_while_a_command_runs(record, tmp_path):
    """Ctrl-C reaches the command too; when it reaches only the recorder the report comes all the same."""
    report = tmp_path / "report"
    recording = record("--json", "-o", report, "--", built("waits_exact"), 1000, 5)
    recording.hear()
    truth = measured(recording)
    recording.end()
    doc = json.loads(report.read_text())
    assert_thread_counts(doc, truth)
    wait_until(lambda: not Path(f"/proc/{truth['pid']}").exists(), "the command has ended with it")
