# SPDX-License-Identifier: MIT
"""stakeout offcpu: where what was recorded goes, and that it gets there whatever happens."""

import fcntl
import json
import select
import signal
from pathlib import Path

import pytest
from harness import wait_until
from test_offcpu import record  # noqa: F401: a fixture

pytestmark = pytest.mark.usefixtures("root")


def waits_to_write_its_report(recording):
    return "pipe_write" in Path(f"/proc/{recording.proc.pid}/stack").read_text()


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
