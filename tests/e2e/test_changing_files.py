# SPDX-License-Identifier: MIT
"""Files that change while they are read. `make torture` does this for longer."""

import os
import subprocess

import pytest
from harness import CRASHED, ROOT, SLOW, STAKEOUT, TARGETS, TIMEOUT, built


def test_library_that_changes_all_the_time(root):
    """Whatever comes out, the program comes to an end of its own."""
    built("flipper"), built("mapped")
    env = {
        **os.environ,
        "STAKEOUT": str(STAKEOUT),
        "STAKEOUT_TARGETS": str(TARGETS),
        "RUNS": str(max(20, int(200 / SLOW))),
        "SNAPSHOTS": str(max(5, int(40 / SLOW))),
        "RECORDINGS": "2",
    }
    done = subprocess.run([ROOT / "tests/torture/run"], env=env, capture_output=True, text=True, timeout=TIMEOUT * 5)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, f"{CRASHED}:\n{done.stdout}{done.stderr}"
