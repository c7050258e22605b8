# SPDX-License-Identifier: MIT
"""stakeout offcpu: the report, as text, JSON and folded stacks, and the live line."""

import json
import os
import pty
import re
import subprocess
from collections import defaultdict

import pytest
from harness import SLOW, TIMEOUT, command, on_a_terminal, state, wait_until
from offcpu_recording import FOR_A_CPU, MS, Events, added, let_run, rows_of, validator
from offcpu_truth import SITES, TOLERANCE, measured, most_stolen_ns

pytestmark = pytest.mark.usefixtures("root")


@pytest.mark.asan
def test_schema(target, record):
    schema = validator("offcpu")
    t = target("waits_exact", 1000, 5)
    kinds = [(), ("--wakers",), ("--source=proc",), ("--no-threads",), ("--kernel-only",), ("--min", "100s")]
    recordings = [record("--json", *options, "-p", t.pid) for options in (kinds if SLOW == 1 else kinds[:3])]
    t.ask("go")
    docs = [recording.finish() for recording in recordings]
    for doc in docs:
        schema.validate(doc)
    for damage in (
        lambda d: d.pop("lost"),
        lambda d: d.update(lost={}),
        lambda d: d.update(lost=docs[2]["lost"]),  # without BPF other things are lost
        lambda d: d["lost"].update(nonsense=1),
        lambda d: d["lost"].update(waits_ring_full=-1),
        lambda d: d.update(unknown=1),
        lambda d: d["top_blocking_threads"][0].update(percentage=4000),
        lambda d: d["stacks"][0].update(state="sleeping"),
        lambda d: d["stacks"][0].pop("user_stack_error"),
        lambda d: d["stacks"][0].update(user_stack_error="-14"),
        lambda d: d["stacks"][0].update(kernel_stack_error="14"),
        lambda d: d["stacks"][0]["user_stack"][0].pop("symbol"),
    ):
        broken = json.loads(json.dumps(docs[0]))
        damage(broken)
        assert not schema.is_valid(broken)


@pytest.mark.alone("counts of waits are compared with what the threads measure")
def test_folded(target, record):
    """root;…;leaf N, in µs, kernel frames marked; the thread first."""
    t = target("waits_exact", 1000, 20)
    recording, doc = record("--folded", "--min", 0, "-p", t.pid), record("--json", "--min", 0, "-p", t.pid)
    truth = measured(t)
    result, doc = recording.end(), doc.finish()
    assert result.code in (0, 3), result
    ns, lines = defaultdict(int), defaultdict(int)
    for line in result.out.splitlines():
        stack, _, weight = line.rpartition(" ")
        frames = stack.split(";")
        assert int(weight) >= 1 and all(frames), line
        marked = [frame.endswith("_[k]") for frame in frames]
        assert marked == sorted(marked), "kernel frames are the leaves"
        assert FOR_A_CPU not in frames[:-1], line
        for site in set(SITES) & set(frames):
            assert frames.index(SITES[site][:15]) < frames.index(site)
            assert marked[-1]
            kind = site, "R" if frames[-1] == FOR_A_CPU else "SD"
            ns[kind] += int(weight) * 1000
            lines[kind] += 1
    for th in truth["threads"]:
        for site in set(SITES) & set(th["sites"]):
            for states in ("SD", "R"):
                rows = rows_of(doc, site=site, state=states)
                slack = TOLERANCE * added(rows, "total_ns") + 10000 * added(rows) + 1000 * lines[site, states]
                slack += most_stolen_ns(truth)  # between the two who record
                assert abs(ns[site, states] - added(rows, "total_ns")) <= slack, (site, states, ns, rows)
            own, slept = th["sites"][site], ns[site, "SD"]
            slack = TOLERANCE * own["off_ns"] + 50000 * (own["switches"] + own["preempted"] + own["calls"])  # see test_offcpu.py
            least = own["off_ns"] - most_stolen_ns(truth) - slack
            assert least <= slept + ns[site, "R"], (site, ns, own)
            # it may be pushed off its CPU while it looks at the clock, too
            assert slept <= own["all_ns"] + 1000 * lines[site, "SD"], (site, ns, own)


def test_name_that_would_write_to_the_terminal(record):
    """A program chooses its name; what is said of it is text."""
    t = subprocess.Popen(["sh", "-c", "printf '\\033[31mRED' > /proc/self/comm; kill -STOP $$"])
    try:
        wait_until(lambda: state(t.pid) == "T", "it is stopped")
        result = record("--folded", "-p", t.pid).end()
        assert "\\x1b[31mRED" in result.err and "\033[31m" not in result.err, result
    finally:
        t.kill()
        t.wait()


def test_output_file(target, record, tmp_path):
    t = target("waits_exact", 1000, 5)
    for option, name in (("--json", "a.json"), ("--folded", "b.folded"), (None, "c.txt")):
        recording = record(*([option] if option else []), "-o", tmp_path / name, "-p", t.pid)
        t.ask("go")
        result = recording.end()
        assert result.code in (0, 3) and result.out == "", result
        assert "sleep_long" in (tmp_path / name).read_text()
    assert json.loads((tmp_path / "a.json").read_text())["schema"] == "stakeout.offcpu/1"


def test_output_file_that_cannot_be_written(target, stakeout, tmp_path):
    """It is known before the recording, not after it."""
    t = target("plain")
    result = stakeout("offcpu", "-d", "1h", "-o", tmp_path / "none/file", "-p", t.pid)
    assert result.code == 1 and str(tmp_path / "none/file") in result.err, result


def test_text(target, record):
    t = target("waits_exact", 1000, 30)
    recording = record("-p", t.pid)
    t.ask("go")
    result = recording.end()
    assert result.code in (0, 3), result
    for site, thread_name in SITES.items():
        assert site in result.out and thread_name[:15] in result.out
    for word in ("total", "average", "longest", "blocked", "uninterruptible", "waiting for a CPU"):
        assert word in result.out, word
    assert "lost" not in result.out
    lines = result.out.splitlines()
    at = next(i for i, line in enumerate(lines) if re.search(r"\bpipe_wait\b", line))
    above = [i for i, line in enumerate(lines) if "pipe_read" in line and "pipe_reader" not in line and i < at]
    assert above, "kernel over user"
    assert "\033[" not in result.out


def test_losses_in_the_text(target, record):
    """What is looked at through /proc now and then has waits in between of which nobody knows how long they were."""
    t = target("waits_deep", 3)
    recording = record("--source=proc", "-p", t.pid)
    assert recording._until_enough(recording._terminal, re.compile(rb" [1-9]\d* lost").search, "loss")
    result = recording.end()
    assert result.code == 3 and re.search(r"^lost: [1-9]\d* waits_seen_once$", result.out, re.MULTILINE), result


def test_live_line(target):
    """On a terminal one line is kept up to date; it does not get into the report."""
    t = target("waits_deep", 3)
    ours, theirs = pty.openpty()
    proc = subprocess.Popen(
        command("offcpu", "--json", "-d", "2.5", "-p", t.pid), stdout=subprocess.PIPE, stderr=theirs, stdin=theirs
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            data = os.read(ours, 4096)
        except OSError:  # how the end of a terminal reads
            break
        if not data:
            break
        said += data
    out, _ = proc.communicate(timeout=TIMEOUT)
    os.close(ours)
    assert proc.returncode in (0, 3) and json.loads(out)["total_events"]
    updates = [line.decode() for line in said.split(b"\r") if b"lost" in line]
    assert len(updates) >= 2, said
    seen = [int(re.search(r"([\d,]+) waits", line)[1].replace(",", "")) for line in updates]
    assert seen == sorted(seen) and seen[-1] > seen[0], updates
    left = [int(re.match(r"\033\[K(\d+) s left, ", line)[1]) for line in updates]
    assert left == sorted(left, reverse=True) and 3 >= left[0] > left[-1], updates


def test_idle_threads(target, record):
    t = target("waits_idle")
    shown, hidden = record("--json", "-p", t.pid), record("--json", "--hide-idle", "-p", t.pid)
    let_run(t, 60)
    shown, hidden = shown.finish(), hidden.finish()
    for site in ("events_wait", "pool_wait", "worker_wait"):
        rows = rows_of(shown, site=site, state="S")
        assert rows and {row["idle"] for row in rows} == {site != "worker_wait"}, site
        stats = shown["thread_stats"][f"{t.pid}:{rows[0]['tid']}"]
        assert stats["idle_time_ns"] == added([row for row in rows if row["idle"]], "total_ns"), site
    for site in ("events_wait", "pool_wait"):
        assert not rows_of(hidden, site=site, state="S"), site  # what waits for a CPU there is not idle
    assert added(rows_of(hidden, site="worker_wait", state="S")) >= 45
    only_idle = {key for key, s in hidden["thread_stats"].items() if s["idle_time_ns"] == s["total_time_ns"]}
    for doc in (shown, hidden):
        top = {f"{th['pid']}:{th['tid']}" for th in doc["top_blocking_threads"]}
        assert top == doc["thread_stats"].keys() - (only_idle if doc is hidden else set())


def test_idle_threads_in_the_text(target, record):
    """However many idle, who does not comes first; they are one line of the table, and one stack."""
    t = target("waits_idle", 60).settle("events", "pool", "worker")
    recording = record("-p", t.pid)
    recording.until_seen(200)  # whoever asks the target keeps its first thread from being idle
    head, table, *stacks = recording.end().out.split("\n\n")
    assert "--hide-idle" in head
    assert table.splitlines()[1].endswith(f"tid {t.tids['worker']} worker")
    assert re.search(r"  60 threads: tid .*sleeper", table) and table.count("sleeper") < 20
    (sleepers,) = [stack for stack in stacks if "sleeper_wait" in stack and " S sleeping" in stack]
    (worker,) = [stack for stack in stacks if "worker_wait" in stack and " S sleeping" in stack]
    assert stacks.index(worker) < stacks.index(sleepers)
    assert "60 threads  S sleeping, condition  [idle]" in sleepers and "60 waits, 60 not over" in sleepers


def test_filter_is_told(target, record):
    t = target("waits_idle")
    wanted = ("--min", "1.5ms", "--max", "100s", "--state", "D,S", "-p", t.pid)
    recordings = record("--json", *wanted), record(*wanted), record("--state", "D", "--min", "90s", "-p", t.pid)
    let_run(t)
    doc, text, nothing = recordings[0].finish(), recordings[1].end().out, recordings[2].end()
    assert (doc["min_ns"], doc["max_ns"], doc["states"]) == (1_500_000, 100_000_000_000, ["S", "D"])
    assert ", waits of 1.5 ms to 100 s in state S or D; method" in text.splitlines()[0]
    assert nothing.out.splitlines()[1] == "no waits of at least 90 s in state D: see --min, --state"


def test_estimate_in_the_text(target, record, as_nobody):
    t = target("waits_deep", 3, 100000, wrap=as_nobody)
    recording = record("-p", t.pid, wrap=as_nobody)
    let_run(t, 5)
    result = recording.end()
    said = result.out + result.err
    assert result.code == 3 and "estimate" in said and "CAP_BPF" in said, result


def test_causes(target, record):
    """Each call site by what it waits for; all causes add up to the total."""
    causes = {"sleep_long": "timer", "lock_wait": "lock", "pipe_wait": "pipe", "cond_wait": "condition", "vfork_wait": "child"}
    t = target("waits_exact", 1000, 10)
    recording = record("--json", "-p", t.pid)
    t.ask("go")
    doc = recording.finish()
    for site, cause in causes.items():
        rows = rows_of(doc, t.tids[SITES[site]], site, "SD")
        assert rows and {row["cause"] for row in rows} == {cause}, site
    assert sum(c["total_ns"] for c in doc["causes"]) == doc["total_time_ns"]
    assert next(c["total_ns"] for c in doc["causes"] if c["cause"] == "no CPU") == doc["runnable_time_ns"]


MOST_OFF = 0.0625  # of a quantile


def nth(values, share):
    """The one that so many of them do not exceed, in percent."""
    return sorted(values)[-(-len(values) * share // 100) - 1]


def test_quantiles_are_those_of_the_events(target, record, tmp_path):
    t = target("waits_exact", 1000, 60)
    recording = record("--json", f"--events={tmp_path / 'events'}", "--min", 0, "-p", t.pid)
    t.ask("go")
    doc, lengths = recording.finish(), defaultdict(list)
    key = lambda w: (w["tid"], w["state"], json.dumps([w["kernel_stack"], w["user_stack"], w["user_stack_error"]]))
    for wait in Events((tmp_path / "events").read_text()).waits:
        lengths[key(wait)].append(wait["duration_ns"])
    seen = 0
    for row in doc["stacks"]:
        assert row["min_ns"] <= row["p50_ns"] <= row["p99_ns"] <= row["max_ns"], row
        truth = lengths[key(row)]
        if row["unfinished"] or len(truth) != row["count"]:  # rows of which the last is not over
            continue
        for share in (50, 99):
            exact = nth(truth, share)
            assert abs(row[f"p{share}_ns"] - exact) <= MOST_OFF * exact, (share, sorted(truth), row)
        seen += row["count"]
    assert seen >= doc["total_events"] / 2, doc["total_events"]


def test_quantiles_are_those_that_threads_measure(target, record):
    """Without events waits are counted in the kernel. A wait is no longer than the call that it is in."""
    t = target("waits_lengths").settle("napper")
    recording = record("--json", "--min", 0, "-p", t.pid)
    took = sorted(json.loads(t.ask("go")))
    doc = recording.finish()
    row = max(rows_of(doc, t.tids["napper"], "nap_wait", "S"), key=lambda row: row["count"])
    assert row["min_ns"] <= row["p50_ns"] <= row["p99_ns"] <= row["max_ns"]
    assert 100 <= row["count"] <= len(took), row
    missing = len(took) - row["count"]
    for share, least in ((50, 2 * MS), (99, 30 * MS)):
        most = took[min(-(-row["count"] * share // 100) - 1 + missing, len(took) - 1)]
        assert least <= row[f"p{share}_ns"] <= most * (1 + MOST_OFF), (share, row, took)


@pytest.mark.parametrize("columns", [80, 120])
def test_lines_fit_the_terminal(target, stakeout, columns):
    t = target("cxx").settle()
    run = ("offcpu", "-d", "0.2", "-p", t.pid)
    frames = lambda text: [line for line in text.splitlines() if line.startswith("  #")]
    _, said = on_a_terminal(*run, "--no-color", columns=columns)
    lines = [line for line in said.splitlines() if not line.startswith(("module ", "note: "))]
    assert frames(said) and max(map(len, lines)) <= columns, said
    assert any("0x0000" in line for line in frames(said)) == (columns >= 100)
    _, whole = on_a_terminal(*run, "--no-color", "--long", columns=columns)
    piped = stakeout(*run)
    for text in (whole, piped.out):
        assert max(map(len, frames(text))) > columns, text
    bare = stakeout(*run, "--no-addresses")
    assert frames(bare.out) and "0x0000" not in bare.out and "0x0000" in piped.out, bare


def test_processes_of_one_program(target, record):
    """With --no-threads they are one row, wherever each has its code, and tell of whom it is."""
    a, b = (target("waits_deep", 3, nap) for nap in (4000, 4001))
    args = "-p", a.pid, "-p", b.pid
    apart, together, text = record("--json", *args), record("--json", "--no-threads", *args), record("--no-threads", *args)
    for t in (a, b):
        let_run(t)
    apart, together, text = apart.finish(), together.finish(), text.end().out
    pids = {a.pid, b.pid}
    assert {row["pid"] for row in rows_of(apart, site="bottom_wait", state="S")} == pids
    row = rows_of(together, site="bottom_wait", state="S")[0]
    assert row["pid"] is row["tid"] is row["thread"] is None
    assert (row["processes"], row["threads"], set(row["pids"])) == (2, 2, pids), row
    assert added(together["stacks"]) == together["total_events"]
    assert "processes" not in apart["stacks"][0] and "pids" not in apart["stacks"][0]
    for doc in (apart, together):
        validator("offcpu").validate(doc)
        assert {p["pid"]: p["cmdline"].split()[1:] for p in doc["processes"]} == {a.pid: ["3", "4000"], b.pid: ["3", "4001"]}
        assert all(p["name"] == "waits_deep" and p["program"].endswith("/waits_deep") for p in doc["processes"])
    assert re.search(r"^[\d.]+ m?s  [\d.]+ %  2 processes of waits_deep  S sleeping, timer$", text, re.M), text
    assert re.search(r"^( +[\d.]+( [mµ]?s| %)?)+  2 processes of waits_deep, 4 threads$", text, re.M), text


def test_command_lines_tell_processes_apart(target, record):
    a, b = (target("waits_deep", 3, nap) for nap in (4000, 4001))
    one, both = record("-p", a.pid), record("-p", a.pid, "-p", b.pid)
    for t in (a, b):
        let_run(t)
    one, both = one.end().out, both.end().out
    assert "waits_deep 3 4000)" not in one
    for t, nap in ((a, 4000), (b, 4001)):
        assert re.search(rf"  tid {t.tids['worker']} worker \(pid {t.pid}: \S+/waits_deep 3 {nap}\)$", both, re.M), both
