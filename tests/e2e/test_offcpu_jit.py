# SPDX-License-Identifier: MIT
"""stakeout offcpu and code that was made at run time: named by what JIT compilers tell debuggers and perf."""

import os
from pathlib import Path

import pytest
from harness import let_wait, native
from offcpu_recording import names, rows_of

pytestmark = [pytest.mark.usefixtures("root"), pytest.mark.asan]


@pytest.fixture
def forget():
    """forget(PID): what the process leaves in /tmp is removed."""
    left = []
    yield left.append
    for pid in left:
        Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)


def made(row):
    """The frames of code that was made at run time."""
    return [f for f in row["user_stack"] if f["symbol_source"] in ("gdb_jit", "jitdump", "perf_map")]


@pytest.mark.parametrize("mode, inner", [("perf_map", "jit_inner with spaces"), ("jitdump", "jit_inner")])
def test_wait_that_is_not_over(target, record, tmp_path, forget, mode, inner):
    t = target("jit_files", mode, tmp_path).settle()
    forget(t.pid)
    (row,) = rows_of(record("--json", "--min", 0, "-p", t.pid).finish(), t.tids["worker"])
    assert row["user_stack_error"] is None
    assert [f["symbol"] for f in made(row)] == [inner, "jit_outer"]
    assert {f["symbol_source"] for f in made(row)} == {mode}
    for frame in made(row):
        assert frame["module"] is None and frame["offset"] > 0


@pytest.mark.arch
@pytest.mark.parametrize("kind, whole", [("record", True), native("sub", True), ("push", True), ("borrowed", False)])
def test_code_that_nobody_announces(target, record, kind, whole):
    """It is passed by what it does until it returns; else by frame pointer, which may miss frames."""
    t = target("jit_bare", kind, "naps")
    recording = record("--json", "--min", 0, "-p", t.pid)
    let_wait([t.tids["worker"]], 20)
    rows = rows_of(recording.finish(), t.tids["worker"], state="S")
    assert rows
    for row in rows:
        assert ("between" in names(row["user_stack"]), "worker" in names(row["user_stack"])) == (whole, True)
        assert (row["user_stack_error"] is None) == whole
        found = [f["found_by"] for f in row["user_stack"] if f["symbol"] == "worker"]
        assert found == ["code" if whole else "frame_pointer"]


def test_names_that_are_refused(target, record, tmp_path, forget):
    """That is said, and why."""
    t = target("jit_files", "perf_map", tmp_path).settle()
    forget(t.pid)
    path = f"/tmp/perf-{t.pid}.map"
    os.chown(path, 54321, 54321)
    doc = record("--json", "--min", 0, "-p", t.pid).finish()
    (row,) = rows_of(doc, t.tids["worker"])
    (note,) = [note for note in doc["notes"] if path in note]
    assert "54321" in note and not made(row)


def test_many_names_that_are_refused(target, record, tmp_path, forget):
    targets = [target("jit_files", "perf_map", tmp_path).settle() for _ in range(10)]
    for t in targets:
        forget(t.pid)
        os.chown(f"/tmp/perf-{t.pid}.map", 54321, 54321)
    doc = record("--json", "--min", 0, *(arg for t in targets for arg in ("-p", t.pid))).finish()
    notes = [note for note in doc["notes"] if note.startswith("names of code made at run time")]
    assert len(notes) == 9 and notes[-1].endswith(": 2 more notes are not shown"), notes


@pytest.mark.arch
@pytest.mark.parametrize("kind", ["rel", native("abs")])
def test_code_announced_to_debuggers(target, record, kind):
    """By the names in the objects, and walked by their unwind tables: the wait is not over."""
    t = target("jit_gdb", kind).settle()
    (row,) = rows_of(record("--json", "--min", 0, "-p", t.pid).finish(), t.tids["worker"])
    assert row["user_stack_error"] is None
    assert [f["symbol"] for f in made(row)] == ["jit_inner", "jit_outer"]
    assert {f["symbol_source"] for f in made(row)} == {"gdb_jit"}
    for frame in made(row):
        assert frame["module"] is None and frame["offset"] > 0


# V8 keeps a buffer: functions enough after the one of interest, so that it has written that out.
SCRIPT = """
const cell = new Int32Array(new SharedArrayBuffer(4));
function waiter(ms) { return Atomics.wait(cell, 0, 0, ms); }
for (let i = 0; i < 20000; i++) waiter(0);
for (let k = 0; k < 200; k++) {
  const f = new Function('x', `let s = ${k}; for (let i = 0; i < x; i++) s += i % 7; return s;`);
  for (let i = 0; i < 300; i++) f(100);
}
console.log('ready ' + process.pid);
function waits() { for (;;) waiter(5); }
waits();
"""


@pytest.mark.parametrize("end", ["alive", "ended"])
@pytest.mark.parametrize("option, source", [("--perf-basic-prof", "perf_map"), ("--perf-prof", "jitdump")])
def test_node(target, record, tool, tmp_path, forget, option, source, end):
    script = tmp_path / "script.js"
    script.write_text(SCRIPT)
    t = target(Path(tool("node")), option, script, cwd=tmp_path)
    forget(t.pid)
    recording = record("--json", "--no-runtime", "-p", t.pid)  # V8 itself would tell
    let_wait([t.pid], 20)
    if end == "ended":
        t.proc.kill()
        t.proc.wait()
    doc = recording.finish()
    found = [f for row in rows_of(doc, t.pid, state="S") for f in made(row) if "waiter" in f["symbol"]]
    assert found and {f["symbol_source"] for f in found} == {source}
    assert all(str(script) in f["symbol"] for f in found)


def test_help_where_names_are_missing(target, record, tool, tmp_path):
    script = tmp_path / "script.js"
    script.write_text(SCRIPT)
    t = target(Path(tool("node")), script, cwd=tmp_path)
    recording = record("--no-runtime", "-p", t.pid)
    recording.until_seen(20)
    out = recording.end().out
    assert " ??" in out
    assert "--perf-basic-prof" in out.splitlines()[-1]
