# SPDX-License-Identifier: MIT
"""stakeout offcpu: options that choose waits, usage, and what ends a recording."""

import json
import signal
from pathlib import Path

import pytest
from harness import gone, wait_until
from offcpu_recording import MS, added, rows_of
from offcpu_truth import assert_counts, measured, switches

pytestmark = pytest.mark.usefixtures("root")


@pytest.mark.alone("counts of waits are compared with what the threads measure")
@pytest.mark.parametrize("letter", ["S", "D"])
def test_state_option(target, record, letter):
    t = target("waits_exact", 1000, 20)
    recording = record("--json", "--min", 0, "--state", letter, "-p", t.pid)
    truth = measured(t)
    doc = recording.finish()
    assert {row["state"] for row in doc["stacks"]} == {letter}
    for site, its_state in (("sleep_long", "S"), ("vfork_wait", "D")):
        assert switches(truth, site) > 0
        assert added(rows_of(doc, site=site)) == (switches(truth, site) if letter == its_state else 0), site


@pytest.mark.alone("counts of waits are compared with what the threads measure")
def test_thresholds(target, record):
    """
    A wait is in one of two recordings that divide them at 2 ms; two clocks may see it on different sides of that. Of a nap
    of 4 ms is left less than that when the thread lost its CPU on the way to its sleep.
    """
    t = target("waits_exact", 1000, 20)
    recordings = {
        limits: record("--json", *limits, "-p", t.pid)
        for limits in (("--min", "2ms"), ("--min", "1us", "--max", "2ms"), ("--min", "100s"))
    }
    truth = measured(t)
    long, short, none = (recording.finish() for recording in recordings.values())
    assert long["min_time_ns"] >= 2 * MS
    assert 1000 <= short["min_time_ns"] and short["max_time_ns"] <= 2 * MS
    (sleeper,) = (th for th in truth["threads"] if th["name"] == "sleeper")
    cut_short = {}
    for name, site in sleeper["sites"].items():
        naps = {limit: added(rows_of(doc, site=name, state="S")) for limit, doc in (("long", long), ("short", short))}
        assert abs(sum(naps.values()) - site["switches"]) <= 2, (name, naps, site)
        most = site["preempted"] + truth["stolen"] if name == "sleep_long" else site["switches"]
        cut_short[f"{name} {naps} {site}"] = naps["short"] - most
    assert_counts(cut_short)
    assert none["total_events"] == 0 and none["stacks"] == [] and none["thread_stats"] == {}


def test_terminal_that_is_closed(record, tmp_path):
    """What was recorded is written, and the command ended."""
    script = f"echo $$ > {tmp_path}/pid; while :; do sleep 0.01; done"
    pid = tmp_path / "pid"
    recording = record("--json", "-o", tmp_path / "out", "--", "sh", "-c", script)
    wait_until(lambda: pid.exists() and pid.read_text().endswith("\n"), "the command has told its number")
    recording.until_seen(3)
    assert recording.end(signal.SIGHUP).code in (0, 3)
    assert json.loads((tmp_path / "out").read_text())["total_events"] >= 3
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()


@pytest.mark.alone("counts of waits are compared with what the threads measure")
@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_the_recording(target, record, sig):
    t = target("waits_exact", 1000, 5)
    recording = record("--json", "--min", 0, "-p", t.pid)
    truth = measured(t)
    doc = recording.finish(sig)
    assert added(rows_of(doc, site="sleep_long", state="S")) == switches(truth, "sleep_long") > 0
    assert t.ask("go"), "the target runs on"


def test_duration(target, stakeout):
    t = target("waits_deep", 3)
    doc = json.loads(stakeout("offcpu", "--json", "-d", "0.3", "-p", t.pid).out)
    assert doc["duration_ns"] >= 300 * MS
    assert all(s["total_time_ns"] <= doc["duration_ns"] for s in doc["thread_stats"].values()), "of each thread"
    naps = added(rows_of(doc, t.tids["worker"], "bottom_wait", "S"))
    assert 0 < (naps - 2) * 4 * MS <= doc["duration_ns"], "all but what is cut off at the beginning and the end"


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("-p",),
        ("-p", "0"),
        ("-p", "1,"),
        ("-p", "-1"),
        ("-a", "-p", "1"),
        ("-a", "--", "true"),
        ("-p", "1", "--", "true"),
        ("--",),
        ("-a", "--no-such-option"),
        ("-a", "-d", "soon"),
        ("-a", "-d", "-1"),
        ("-a", "--min", "long"),
        ("-a", "--min", "-1"),
        ("-a", "--min", "5ms", "--max", "1ms"),
        ("-a", "--max", "1parsec"),
        ("-a", "--state", "Q"),
        ("-a", "--state", ""),
        ("-a", "--kernel-only", "--user-only"),
        ("-a", "--json", "--folded"),
        ("-a", "--source=other"),
        ("-a", "1"),
    ],
    ids=lambda args: " ".join(args) or "nothing",
)
def test_wrong_usage(stakeout, args):
    result = stakeout("offcpu", *args)
    assert result.code == 2, result
    assert result.out == "" and result.err


def test_no_such_process(stakeout):
    pid = gone()
    result = stakeout("offcpu", "-d", "1", "-p", pid)
    assert result.code == 1 and result.out == "" and str(pid) in result.err, result


def test_help(stakeout):
    result = stakeout("offcpu", "--help")
    assert result.code == 0 and result.err == ""
    options = """-p -a -d --duration --min --max --state --children --threads --no-threads --wakers --kernel-only
        --user-only --json --folded -o --events --hide-idle""".split()
    assert [option for option in options if option not in result.out] == []
