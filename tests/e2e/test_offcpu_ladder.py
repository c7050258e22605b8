# SPDX-License-Identifier: MIT
"""stakeout offcpu on kernels that can do less: each step down says what is missing."""

import pytest
from harness import bare, built, run

pytestmark = pytest.mark.usefixtures("root")

PRELOAD_ENV = {"ASAN_OPTIONS": "verify_asan_link_order=0"}
LOADS = 3  # with all stacks, with kernel stacks, without any: the programs are loaded again for each


def recorded(t, refusals, *args, program="on_switch"):
    env = {
        "LD_PRELOAD": str(built("refuse_bpf")),
        "REFUSE_BPF": f"{program} {refusals}",
        **PRELOAD_ENV,
    }
    return run("offcpu", "--json", "-d", "0.5", *args, "-p", t.pid, env=env)


@pytest.fixture
def waiting(target):
    return target("plain").settle()


def row_of(doc, tid):
    return next(row for row in doc["stacks"] if row["tid"] == tid)


def test_nothing_refused(waiting):
    result = recorded(waiting, 0, "--source=switch")
    row = row_of(result.doc, waiting.tids["worker"])
    assert result.code == 0 and result.doc["notes"] == []
    assert row["kernel_stack"] and "worker" in [bare(f["symbol"]) for f in row["user_stack"]]


def test_kernel_stacks_only(waiting):
    result = recorded(waiting, 1, "--source=switch")
    row = row_of(result.doc, waiting.tids["worker"])
    assert result.code == 3
    assert result.doc["method"] == "switch"
    assert row["kernel_stack"] and not row["user_stack"]
    assert "Invalid argument" in row["user_stack_error"]
    assert any(note.startswith("no user stacks: ") for note in result.doc["notes"]), result.doc["notes"]


def test_waits_without_stacks(waiting):
    result = recorded(waiting, 2, "--source=switch")
    row = row_of(result.doc, waiting.tids["worker"])
    assert result.code == 3
    assert not row["kernel_stack"] and not row["user_stack"]
    assert row["thread_name"] == "worker" and row["total_ns"] > 0
    notes = result.doc["notes"]
    for what in ("no user stacks: ", "no kernel stacks: "):
        assert any(note.startswith(what) for note in notes), notes


def test_no_waits(waiting):
    """A rung that was asked for and cannot be had is an error; what could not be loaded is said."""
    result = recorded(waiting, LOADS, "--source=switch")
    assert result.code == 1 and "loading the BPF programs failed" in result.err


def test_estimate(waiting):
    """Nothing loads at all."""
    result = recorded(waiting, 1000)
    assert result.code == 3 and result.doc["method"] == "proc"
    assert any("loading the BPF programs failed" in note for note in result.doc["notes"]), result.doc["notes"]
    assert row_of(result.doc, waiting.tids["worker"])["user_stack"]


def test_command_is_not_run_in_vain(tmp_path):
    """One that cannot be recorded is not started."""
    env = {"LD_PRELOAD": str(built("refuse_bpf")), "REFUSE_BPF": "on_switch 1000", **PRELOAD_ENV}
    result = run("offcpu", "--source=switch", "--", "touch", tmp_path / "ran", env=env)
    assert result.code == 1 and not (tmp_path / "ran").exists()
