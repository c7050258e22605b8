# SPDX-License-Identifier: MIT
"""stakeout offcpu: stacks, of the right thread and whole, whatever code they lead through."""

import os
import platform
import re
import subprocess
import time
from pathlib import Path

import pytest
from harness import TIMEOUT, built, native, state, thread, until, wait_until
from offcpu_recording import added, assert_whole, let_run, names, over, rows_of, wake
from offcpu_truth import SITES, measured, switches

pytestmark = pytest.mark.usefixtures("root")


def without_stack(rows, rung):
    """Where stacks are taken before the wait, there is none of one that had begun before the recording."""
    return [row for row in rows if rung == "switch" and not row["user_stack"] and row["user_stack_error"]]


@pytest.mark.arch
@pytest.mark.parametrize("minimum", [native("1ms"), "0"])
def test_right_thread(target, record, rung, minimum):
    """Two processes that switch to each other on one CPU: neither has the other one's stack, state or name."""
    t = target("waits_pair")
    other = t.tids["child"]
    recording = record("--json", "--min", minimum, f"--source={rung}", "-p", t.pid, "-p", other)
    let_run(t, 60)
    doc = recording.finish()
    for pid, tid, mine, foreign in (
        (t.pid, t.tids["ping"], "ping", "pong"),
        (other, other, "pong", "ping"),
    ):
        slept = rows_of(doc, tid, state="SD")
        assert added(slept) >= 20
        early = without_stack(slept, rung)
        assert added(early) <= 1
        for row in slept:
            assert (row["pid"], row["thread_name"], row["state"]) == (pid, mine, "S")
            if row in early:
                continue
            assert f"{mine}_wait" in names(row["user_stack"]) and mine in names(row["user_stack"])
            assert_whole(row)
            assert any("pipe_read" in (name or "") for name in names(row["kernel_stack"])), names(row["kernel_stack"])
        for row in rows_of(doc, tid):
            assert not {foreign, f"{foreign}_wait"} & set(names(row["user_stack"])), row["state"]
            assert row["thread_name"] == mine


def addresses(frames):
    return [frame["address"] for frame in frames if not frame["inlined"]]


BLOCKED = """plain plain_nopie plain_static plain_static_pie plain_no_hdr plain_debug_frame plain_frame_pointer signals vla
    noreturn cxx deadlock lost_cfa contexts""".split()


@pytest.mark.asan
@pytest.mark.arch
def test_stacks_are_those_of_a_snapshot(target, record, stakeout, rung):
    """Of every kind of code that a snapshot is tested with, frame by frame."""
    targets = [*(target(name).settle() for name in BLOCKED), target("recursion", 100).settle()]
    recording = record("--json", "--min", 0, f"--source={rung}", *(a for t in targets for a in ("-p", t.pid)))
    for t in targets * 2:  # what had begun before the recording, and what has begun within it
        wake(t)
    doc = recording.finish()
    for snapped in stakeout("--json", *(t.pid for t in targets)).docs:
        for th in snapped["threads"]:
            rows = rows_of(doc, th["tid"], state="S")
            early = without_stack(rows, rung)
            assert added(rows) > 1 and added(early) <= 1, (th["name"], early)
            for row in rows:
                if row in early:
                    continue
                assert addresses(row["user_stack"]) == addresses(th["user_stack"]), (names(row["user_stack"]), th)
                assert (row["user_stack_error"] is None) == (th["user_stack_end"] == "complete"), row


@pytest.mark.arch
@pytest.mark.parametrize("name", ["plain_musl", "plain_musl_static"])
def test_thread_of_musl(target, record, name):
    """Its clone() has no unwind information, and the frame pointer leads on to the thread that made this one."""
    if os.uname().machine != "aarch64":
        pytest.skip("musl's system calls have neither unwind information nor frame pointers here")
    t = target(name).settle()
    recording = record("--json", "--min", 0, "-p", t.pid)
    wake(t)
    wake(t)
    rows = rows_of(recording.finish(), t.tids["worker"], state="S")
    assert added(rows)
    for row in rows:
        found = names(row["user_stack"])
        assert row["user_stack_error"] is None
        assert found[found.index("inner") :][:5] == ["inner", "middle", "outer", "worker", "target_thread_main"]
        assert len(found[found.index("target_thread_main") :]) == 3, found  # and what has called it, in the library


@pytest.mark.arch
def test_deep_stack(target, record):
    t = target("waits_deep", 240)
    recording = record("--json", "-p", t.pid)
    let_run(t)
    rows = rows_of(recording.finish(), t.tids["worker"], "bottom_wait", "S")
    assert added(rows) >= 15
    for row in rows:
        found = names(row["user_stack"])
        assert [name for name in found if name.startswith("descend")] == ["descend_odd", "descend_even"] * 120
        assert_whole(row)
        assert {f["found_by"] for f in row["user_stack"] if not f["inlined"]} <= {None, "cfi"}


@pytest.mark.arch
def test_stack_that_is_too_deep(target, record):
    """At least 256 frames are there, and it says that there are more."""
    t = target("waits_deep", 2000)
    recording = record("--json", "-p", t.pid)
    let_run(t)
    rows = rows_of(recording.finish(), t.tids["worker"], "bottom_wait", "S")
    assert added(rows) >= 15
    for row in rows:
        assert len([f for f in row["user_stack"] if not f["inlined"]]) >= 256
        assert row["user_stack_error"] and re.search("[a-z] [a-z]", row["user_stack_error"]), "words"


@pytest.mark.arch
def test_code_without_unwind_information(target, record):
    t = target("waits_deep_frame_pointer", 50)
    recording = record("--json", "-p", t.pid)
    let_run(t)
    rows = rows_of(recording.finish(), t.tids["worker"], "bottom_wait", "S")
    assert added(rows) >= 15
    for row in rows:
        assert names(row["user_stack"]).count("descend_even") == 25
        callers = [f for f in row["user_stack"] if (f["symbol"] or "").startswith("descend")]
        assert {f["found_by"] for f in callers[1:]} == {"frame_pointer"}


def test_many_mappings(target, record):
    t = target("waits_maps", 1000)
    assert len(Path(f"/proc/{t.pid}/maps").read_text().splitlines()) > 2000
    recording = record("--json", "-p", t.pid)
    let_run(t)
    rows = rows_of(recording.finish(), t.tids["worker"], "crowded_wait", "S")
    assert added(rows) >= 15
    for row in rows:
        assert_whole(row)


def test_big_binary(record, tool):
    """clang waits for its input, deep in libraries of more than a hundred MB."""
    proc = subprocess.Popen([tool("clang"), "-E", "-x", "c", "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:

        def is_reading():
            read = Path(f"/proc/{proc.pid}/syscall").read_text().startswith(("0 0x0 ", "63 0x0 "))
            return read and state(proc.pid) == "S"

        wait_until(is_reading, "clang reads its input")
        recording = record("--json", "-p", proc.pid)
        for _ in range(3):
            proc.stdin.write(b"int x;\n")
            proc.stdin.flush()
            wait_until(is_reading, "clang reads on")
            time.sleep(0.01)  # not to wait for something: for clang's wait to be longer than the threshold
        proc.stdin.close()
        proc.wait(TIMEOUT)
        doc = recording.finish()
    finally:
        proc.kill()
        proc.wait()
    (row,) = [r for r in rows_of(doc, state="S") if names(r["user_stack"])[-1] == "_start"][:1]
    assert any("libLLVM" in (f["module"] or "") for f in row["user_stack"]), names(row["user_stack"])
    assert_whole(row)


def test_no_threads(target, record):
    """Rows of a process, not of its threads."""
    t = target("waits_exact", 1000, 20)
    every = ("--json", "--min", "0", "-p", t.pid)
    each, one = record(*every), record("--no-threads", *every)
    t.ask("go")
    each, one = each.finish(), one.finish()
    assert {row["tid"] for row in one["stacks"]} == {None}
    assert None not in {row["tid"] for row in each["stacks"]}
    assert {row["pid"] for row in one["stacks"]} == {t.pid}
    for site in SITES:
        assert added(rows_of(one, site=site, state="SD")) == added(rows_of(each, site=site, state="SD")), site


def test_threads_with_the_same_stack(target, record):
    """Ten threads sleep in the same function: one row a thread, or one a process."""
    t = target("sleepers", "-n", 10, "-d", 5).settle()
    every = ("--json", "--min", 0, "-p", t.pid)
    each, one = record(*every), record("--no-threads", *every)
    wake(t)
    wake(t)
    each, one = each.finish(), one.finish()
    by_thread, by_process = (rows_of(doc, site="descend", state="S") for doc in (each, one))
    tids = {row["tid"] for row in by_thread}
    assert len(tids) == 10 and {row["tid"] for row in by_process} == {None}
    assert all(2 <= added(rows_of(each, tid, state="S")) <= 3 for tid in tids)
    assert added(by_thread) == added(by_process)
    for doc in (each, one):
        stacks = [
            (row["tid"], row["state"], row["user_stack_error"], *addresses(row["user_stack"] + row["kernel_stack"]))
            for row in doc["stacks"]
        ]
        assert len(stacks) == len(set(stacks)), "one row for one stack"


@pytest.mark.alone("counts of waits are compared with what the threads measure")
def test_sides(target, record):
    t = target("waits_exact", 1000, 10)
    kernel = record("--json", "--min", 0, "--kernel-only", "-p", t.pid)
    user = record("--json", "--min", 0, "--user-only", "-p", t.pid)
    truth = measured(t)
    kernel, user = kernel.finish(), user.finish()
    assert all(row["user_stack"] == [] and row["kernel_stack"] for row in kernel["stacks"])
    assert all(row["kernel_stack"] == [] for row in user["stacks"])
    slept = switches(truth, "sleep_long")
    assert added(rows_of(user, site="sleep_long", state="S")) == slept > 0
    in_nanosleep = [
        row
        for row in rows_of(kernel, t.tids["sleeper"], state="S")
        if any("nanosleep" in name for name in names(row["kernel_stack"]))
    ]
    assert added(in_nanosleep) == slept + switches(truth, "sleep_short")


@pytest.mark.arch
def test_kernel_stacks(target, record):
    """Not the tracer's own frames on top, and named down to the system call."""
    t = target("waits_exact", 1000, 10)
    recording = record("--json", "-p", t.pid)
    t.ask("go")
    doc = recording.finish()
    for site, function in (("sleep_long", "nanosleep"), ("pipe_wait", "pipe_read"), ("lock_wait", "futex")):
        rows = rows_of(doc, t.tids[SITES[site]], site, "S")
        assert rows, site
        for row in rows:
            found = names(row["kernel_stack"])
            assert row["kernel_stack_error"] is None and "?" not in found
            assert any(function in name for name in found), found
            assert not any(name.startswith("bpf_") for name in found), found
            assert all(f["kind"] == "kernel" for f in row["kernel_stack"])


def test_frames_are_those_of_a_snapshot(target, record, snap):
    t = target("waits_deep", 3)
    recording = record("--json", "-p", t.pid)
    let_run(t)
    row = max(rows_of(recording.finish(), t.tids["worker"], "bottom_wait", "S"), key=lambda row: row["count"])
    fields = {frozenset(f) for f in row["user_stack"] + row["kernel_stack"]}
    snapped = until(lambda: thread(snap(t), "worker"), lambda th: (th["capture"], th["state"]) == ("asleep", "S"))
    assert fields == {frozenset(f) for f in snapped["user_stack"] + snapped["kernel_stack"]}
    ours = [(f["symbol"], f["module"], f["build_id"]) for f in row["user_stack"][-3:]]
    assert ours == [(f["symbol"], f["module"], f["build_id"]) for f in snapped["user_stack"][-3:]]


@pytest.mark.arch
def test_return_to_nowhere(target, record):
    """The kernel says at once that no code is there, unless it is just changing the map; and it is no frame."""
    t = target("waits_astray")
    recording = record("--json", "-p", t.pid)
    let_run(t, 50)
    doc = recording.finish()
    rows = rows_of(doc, t.tids["worker"], "astray", "S")
    known = [row for row in rows if "return address is not in executable memory" in row["user_stack_error"]]
    assert {names(row["user_stack"])[-1] for row in known} == {"astray"}
    assert added(known) > added(rows) / 2


@pytest.mark.asan
@pytest.mark.skipif(platform.machine() == "x86_64", reason="BPF does not know rbx, by which this stack is found there")
def test_call_that_is_being_bound(target, record):
    """As in a snapshot: the stub that the call goes through has pushed a return address."""
    t = target("dlopen", built("plugin_lazy")).settle()
    recording = record("--json", "-p", t.pid)
    wake(t)
    rows = over(rows_of(recording.finish(), t.tids["worker"]))
    assert rows
    for row in rows:
        assert_whole(row)
        found = names(row["user_stack"])
        assert found[found.index("plugin_inner") + 1 :][:2] == ["plugin_enter", "worker"], found
