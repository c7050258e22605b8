# SPDX-License-Identifier: MIT
"""stakeout offcpu with fewer rights than those of root."""

import json
import subprocess

import pytest
from harness import run
from offcpu_recording import RUNGS, added, let_run, names, rows_of

pytestmark = pytest.mark.usefixtures("root")


@pytest.fixture
def as_tracer(setpriv):
    """Another user with the capabilities that BPF programs need, and no more."""
    caps = "+cap_38,+cap_39"  # perfmon and bpf: names that older versions do not know
    wrap = [*setpriv, f"--inh-caps={caps}", f"--ambient-caps={caps}"]
    if subprocess.run([*wrap, "true"], capture_output=True).returncode:
        pytest.skip("CAP_BPF and CAP_PERFMON cannot be given here")
    return wrap


def test_hanging_threads_of_another_user(target, as_tracer):
    """Their stacks are read from outside, which is refused: that is what is said, not where the walk got stuck."""
    t = target("deadlock").settle()
    doc = run("offcpu", "--json", "-d", "0.3", "-p", t.pid, wrap=as_tracer).doc
    rows = [row for row in doc["stacks"] if row["tid"] in t.tids.values()]
    assert rows and all("CAP_SYS_PTRACE" in row["user_stack_error"] for row in rows), rows


def test_without_bpf_it_is_an_estimate(target, record, as_nobody, tmp_path):
    """Sampled from /proc: rough, but the stacks are right, and it says what is missing."""
    t = target("waits_deep", 3, 100000, wrap=as_nobody)
    recording = record("--json", "-p", t.pid, wrap=as_nobody)
    recording.until_seen(3)
    result = recording.end()
    assert result.code == 3, result
    doc = json.loads(result.out)
    assert doc["estimate"] is True and doc["method"] == "proc"
    for way in ("sudo", "CAP_BPF"):
        assert way in " ".join(doc["notes"]), doc["notes"]
    rows = rows_of(doc, t.tids["worker"], "bottom_wait")
    assert rows and added(rows, "total_ns") <= doc["duration_ns"] * 1.1
    assert "descend_even" in names(rows[0]["user_stack"])


def test_forced_estimate(target, record):
    """The same rung as root, forced: it is near the truth for waits that are long beside the interval."""
    t = target("waits_deep", 3, 100000)
    recording = record("--json", "--source=proc", "-p", t.pid)
    recording.until_seen(3)  # the first look at a process takes long, and so a pause comes after it
    doc = recording.finish()
    assert doc["estimate"] is True
    rows = rows_of(doc, t.tids["worker"], "bottom_wait")
    assert rows and added(rows, "total_ns") <= doc["duration_ns"]


def test_exact_is_no_estimate(target, record):
    t = target("waits_deep", 3)
    recording = record("--json", "-p", t.pid)
    let_run(t)
    doc = recording.finish()
    assert doc["estimate"] is False and doc["method"] in RUNGS


@pytest.mark.arch
def test_capabilities_are_enough(target, record, as_tracer, as_nobody):
    t = target("waits_deep", 3, wrap=as_nobody)
    recording = record("--json", "-p", t.pid, wrap=as_tracer)
    let_run(t)
    doc = recording.finish()
    assert doc["method"] in RUNGS
    rows = rows_of(doc, t.tids["worker"])
    assert added(rows) >= 15
    assert any("bottom_wait" in names(row["user_stack"]) for row in rows)


@pytest.mark.arch
def test_foreign_process_with_capabilities(target, record, as_tracer):
    """Whether its maps can be read depends on the kernel; where not, the waits are there, and a reason."""
    t = target("waits_deep", 3)
    readable = subprocess.run([*as_tracer, "cat", f"/proc/{t.pid}/maps"], capture_output=True).returncode == 0
    recording = record("--json", "-p", t.pid, wrap=as_tracer)
    let_run(t)
    doc = recording.finish()
    rows = rows_of(doc, t.tids["worker"], state="S")
    assert added(rows) >= 15
    for row in rows:
        assert row["kernel_stack"] or row["kernel_stack_error"]
        assert (row["user_stack_error"] is None) == readable == ("bottom_wait" in names(row["user_stack"]))
    reasons = [*doc["notes"], *(row["user_stack_error"] or "" for row in rows)]
    assert readable or any("CAP_SYS_PTRACE" in reason for reason in reasons), reasons


def test_another_users_process(target, stakeout, as_nobody):
    t = target("waits_deep", 3)
    result = stakeout("offcpu", "-d", "0.2", "-p", t.pid, wrap=as_nobody)
    said = result.out + result.err
    assert "root" in said and ("CAP_BPF" in said or "CAP_SYS_PTRACE" in said), result
    assert "bottom_wait" not in result.out


def test_forced_bpf_without_privileges(target, stakeout, as_nobody):
    t = target("waits_deep", 3, wrap=as_nobody)
    result = stakeout("offcpu", "--source=switch", "-d", "0.2", "-p", t.pid, wrap=as_nobody)
    assert result.code == 1 and result.out == "" and "CAP_BPF" in result.err, result
