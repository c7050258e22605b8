# SPDX-License-Identifier: MIT
"""Code made at run time: named and unwound by what JIT compilers tell debuggers and perf."""

import os
import subprocess
from pathlib import Path

import pytest
from agreement import newest_llvm
from harness import Target, assert_calls, built, native, symbols, thread, until

pytestmark = pytest.mark.asan

MADE = ("jit_inner", "jit_outer")


def made(t):
    """The frames of code that was made at run time."""
    return [f for f in t["user_stack"] if f["symbol_source"] in ("gdb_jit", "jitdump", "perf_map")]


def frame_of(t, name):
    return next(frame for frame in t["user_stack"] if frame["symbol"] == name)


@pytest.fixture
def files(target, tmp_path):
    """files(MODE): the target that writes files for perf; what it leaves in /tmp is removed."""
    left = []

    def start(mode, **popen):
        t = target("jit_files", mode, tmp_path, **popen)
        left.append(Path(f"/tmp/perf-{t.pid}.map"))
        return t.settle()

    yield start
    for path in left:
        path.unlink(missing_ok=True)


@pytest.mark.arch
@pytest.mark.parametrize("kind", ["rel", native("abs")])
def test_announced_to_debuggers(target, stakeout, snap, kind):
    """Names and unwind tables: the frame pointer is of no use in this code."""
    t = target("jit_gdb", kind).settle()
    worker = thread(snap(t), "worker")
    assert_calls(worker, "jit_inner", "between", "jit_outer", "worker")
    assert [f["symbol"] for f in made(worker)] == list(MADE)
    for frame in made(worker):
        assert frame["symbol_source"] == "gdb_jit"
        assert frame["module"] == "[jit]"
        assert frame["offset"] > 0
    for caller in ("between", "worker"):
        assert frame_of(worker, caller)["found_by"] == "cfi"
    text = stakeout(t.pid)
    assert text.code == 0 and "jit_inner" in text.out and "jit_outer" in text.out, text


BARE_CALLS = ("target_block", "between", "worker")


@pytest.mark.arch
@pytest.mark.parametrize("kind", ["record", "sub", "push"])
def test_code_that_goes_straight_to_its_return(target, stakeout, snap, tmp_path, kind):
    """Without tables and names, and also where the frame pointer is somebody else's: the code itself leaves no doubt."""
    t = target("jit_bare", kind).settle()
    worker = thread(snap(t), "worker")
    assert_calls(worker, *BARE_CALLS)
    assert worker["user_stack_end"] == "complete"
    for caller in ("between", "worker"):
        assert frame_of(worker, caller)["found_by"] == "code"
    saved = tmp_path / "saved"
    assert stakeout("--save", saved, t.pid).code == 0
    assert_calls(thread(stakeout("replay", "--json", saved).doc, "worker"), *BARE_CALLS)


def test_code_in_a_file_in_memory(target, snap, stakeout):
    """That file is no module which lacks something."""
    t = target("jit_bare", "record", "memfd").settle()
    try:
        worker = thread(snap(t), "worker")
        assert_calls(worker, "target_block", "made_inner", "between", "made_outer", "worker")
        assert [f["module"] for f in made(worker)] == [None, None]
        assert "memfd" not in stakeout(t.pid).out
    finally:
        Path(f"/tmp/perf-{t.pid}.map").unlink(missing_ok=True)


def test_dead_root_directory(target, snap, root):
    """There can be no file with names, and nobody wants to hear of it."""
    t = target("jit_bare", "record", "sandboxed").settle()
    doc = snap(t)
    assert_calls(thread(doc, "worker"), "target_block", "between", "worker")
    assert not [note for note in doc["notes"] if "names of code made at run time" in note], doc["notes"]


@pytest.mark.arch
@pytest.mark.parametrize("option", ["--stop=auto", native("--stop=all"), "--ptrace"])
def test_code_with_a_borrowed_frame_pointer(target, stakeout, option):
    """What was passed by frame pointer may have been more than one frame: between is missing here."""
    t = target("jit_bare", "borrowed").settle()
    result = stakeout("--json", option, t.pid)
    worker = thread(result.doc, "worker")
    assert {"target_block", "worker"} < set(symbols(worker)) and "between" not in symbols(worker)
    assert worker["user_stack_end"] == "doubtful" and result.code == 3
    text = stakeout(t.pid)
    assert "-- frames may be missing" in text.out and text.code == 3, text


def test_announced_code_is_symbolized(target, stakeout, snap):
    t = target("jit_gdb", "rel").settle()
    address = frame_of(thread(snap(t), "worker"), "jit_inner")["address"]
    result = stakeout("symbolize", "--json", "-p", t.pid, address)
    assert '"gdb_jit"' in result.out and "jit_inner" in result.out, result


def test_announced_objects_are_saved(target, stakeout, tmp_path):
    t = target("jit_gdb", "rel").settle()
    saved = tmp_path / "saved"
    first = stakeout("--json", "--save", saved, t.pid)
    t.end()
    again = stakeout("replay", "--json", saved)
    assert again.code == first.code == 0, again
    worker = thread(again.doc, "worker")
    assert worker["user_stack"] == thread(first.doc, "worker")["user_stack"]
    assert [f["symbol"] for f in made(worker)] == list(MADE)


def test_agrees_with_gdb(target, snap, tool):
    gdb = tool("gdb")
    t = target("jit_gdb", "rel").settle()
    ours = symbols(thread(snap(t), "worker"))
    done = subprocess.run(
        [gdb, "-p", str(t.pid), "-batch", "-ex", "thread apply all bt"], capture_output=True, text=True, timeout=60
    )
    theirs = [line.split(" in ")[1].split()[0] for line in done.stdout.splitlines() if " in " in line and line[0] == "#"]
    if "jit_inner" not in theirs:
        pytest.skip("this gdb does not read the list: " + done.stderr[-200:])
    # The innermost frame is in libc, whose functions have several names.
    first = theirs.index("jit_inner")
    known = ours[ours.index("jit_inner") :]
    assert theirs[first : first + 5] == known[:5]


def test_perf_map(files, stakeout, snap):
    t = files("perf_map")
    worker = thread(snap(t), "worker")
    assert_calls(worker, "jit_inner with spaces", "between", "jit_outer", "worker")
    for frame in made(worker):
        assert frame["symbol_source"] == "perf_map"
        assert frame["module"] is None
        assert frame["offset"] > 0
    text = stakeout(t.pid)
    assert "jit_inner with spaces+0x" in text.out, text


@pytest.mark.arch
@pytest.mark.parametrize("mode", ["jitdump", native("swapped")])
def test_jitdump(files, stakeout, snap, mode):
    """Replaced and moved code, lines, both byte orders."""
    t = files(mode)
    worker = thread(snap(t), "worker")
    assert_calls(worker, "jit_inner", "between", "jit_outer", "worker")
    assert {frame["symbol_source"] for frame in made(worker)} == {"jitdump"}
    source = frame_of(worker, "jit_inner")["source"]
    assert (source["file"], source["line"]) == ("/src/made.up", 10)
    assert frame_of(worker, "jit_outer")["source"] is None
    text = stakeout(t.pid)
    assert "made.up:10" in text.out, text


def test_jitdump_counts_before_perf_map(files, snap):
    t = files("both")
    assert [f["symbol"] for f in made(thread(snap(t), "worker"))] == list(MADE)


def test_not_for_a_replayed_snapshot(files, stakeout, tmp_path):
    t = files("perf_map")
    saved = tmp_path / "saved"
    assert stakeout("--save", saved, t.pid).code == 0
    worker = thread(stakeout("replay", "--json", saved).doc, "worker")
    assert not made(worker)
    assert worker["user_stack_end"] == "complete"


def test_somebody_elses_file_is_refused(files, snap, root):
    t = files("perf_map")
    path = f"/tmp/perf-{t.pid}.map"
    os.chown(path, 54321, 54321)
    doc = snap(t)
    assert not made(thread(doc, "worker"))
    (note,) = [n for n in doc["notes"] if path in n]
    assert "54321" in note


def test_link_is_not_followed(files, snap, tmp_path):
    t = files("perf_map")
    path = Path(f"/tmp/perf-{t.pid}.map")
    path.rename(tmp_path / "map")
    path.symlink_to(tmp_path / "map")
    doc = snap(t)
    assert not made(thread(doc, "worker"))
    (note,) = [n for n in doc["notes"] if str(path) in n]
    assert "symbolic link" in note


def test_what_is_no_file_is_not_read(files, snap):
    t = files("perf_map")
    path = Path(f"/tmp/perf-{t.pid}.map")
    path.unlink()
    os.mkfifo(path)
    doc = snap(t)
    assert not made(thread(doc, "worker"))
    (note,) = [n for n in doc["notes"] if str(path) in n]
    assert "not a regular file" in note


def test_old_file_of_another_process_is_refused(files, snap):
    t = files("perf_map")
    path = f"/tmp/perf-{t.pid}.map"
    os.utime(path, (1000, 1000))
    doc = snap(t)
    assert not made(thread(doc, "worker"))
    assert any(path in note and "before the process began" in note for note in doc["notes"])


def test_damaged_jitdump_is_told(files, snap, tmp_path):
    t = files("jitdump")
    dump = tmp_path / f"jit-{t.pid}.dump"
    data = bytearray(dump.read_bytes())
    data[0:4] = b"junk"
    dump.write_bytes(data)
    doc = snap(t)
    assert not made(thread(doc, "worker"))
    assert any(str(dump) in note and "not a jitdump" in note for note in doc["notes"])


def test_number_in_another_namespace(snap, root, unshare, tmp_path):
    """A process in a container knows itself, and names its file, by another number."""
    program = built("jit_files")
    # A /tmp of its own, with the program in reach, which is perhaps below the other one.
    shell = f'exec 3<{program} && mount -t tmpfs t /tmp && cp /dev/fd/3 /tmp/p && chmod +x /tmp/p && exec /tmp/p perf_map /tmp'
    t = Target([unshare, "-mpf", "--kill-child", "sh", "-c", shell])
    try:
        (child,) = Path(f"/proc/{t.pid}/task/{t.pid}/children").read_text().split()
        inside = [int(n) for n in next(l for l in Path(f"/proc/{child}/status").read_text().splitlines()
                                       if l.startswith("NSpid:")).split()[1:]]
        assert len(inside) >= 2 and inside[-1] != int(child)
        assert not os.path.exists(f"/tmp/perf-{child}.map")
        worker = thread(snap(int(child)), "worker")
        assert [f["symbol"] for f in made(worker)] == ["jit_inner with spaces", "jit_outer"]
    finally:
        t.end()


# Real compilers.

LLVM_IR = """
declare i32 @pause()
declare i32 @putchar(i32)
declare i32 @fflush(i64)

define i32 @made_leaf(i32 %x) noinline uwtable {
  %1 = call i32 @putchar(i32 114)
  %2 = call i32 @putchar(i32 101)
  %3 = call i32 @putchar(i32 97)
  %4 = call i32 @putchar(i32 100)
  %5 = call i32 @putchar(i32 121)
  %6 = call i32 @putchar(i32 10)
  %7 = call i32 @fflush(i64 0)
  br label %again
again:
  %8 = call i32 @pause()
  br label %again
}

define i32 @made_middle(i32 %x) noinline uwtable {
  %y = add i32 %x, 1
  %r = call i32 @made_leaf(i32 %y)
  %s = mul i32 %r, 3
  ret i32 %s
}

define i32 @main(i32 %argc) uwtable {
  %r = call i32 @made_middle(i32 %argc)
  %s = add i32 %r, 5
  ret i32 %s
}
"""


def test_llvm(target, snap, tool, tmp_path):
    lli = tool(newest_llvm("lli") or "lli")
    source = tmp_path / "made.ll"
    source.write_text(LLVM_IR)
    t = target(Path(lli), "-jit-kind=mcjit", source).settle()
    main = thread(snap(t), t.pid)
    assert_calls(main, "made_leaf", "made_middle", "main")
    assert [f["symbol"] for f in made(main)] == ["made_leaf", "made_middle", "main"]
    assert {f["symbol_source"] for f in made(main)} == {"gdb_jit"}


# Functions enough after the one of interest, so that V8 has written it out: it keeps a buffer.
SCRIPT = """
const cell = new Int32Array(new SharedArrayBuffer(4));
function waiter(ms) { return Atomics.wait(cell, 0, 0, ms); }
for (let i = 0; i < 20000; i++) waiter(0);
for (let k = 0; k < 200; k++) {
  const f = new Function('x', `let s = ${k}; for (let i = 0; i < x; i++) s += i % 7; return s;`);
  for (let i = 0; i < 300; i++) f(100);
}
console.log('ready ' + process.pid);
function blocks() { waiter(1000000); }
blocks();
"""


@pytest.mark.parametrize("option, source", [("--perf-basic-prof", "perf_map"), ("--perf-prof", "jitdump")])
def test_node(target, snap, tool, tmp_path, option, source):
    node = tool("node")
    script = tmp_path / "script.js"
    script.write_text(SCRIPT)
    t = target(Path(node), option, script, cwd=tmp_path)
    try:
        # What it says comes just before it waits.
        doc = until(lambda: snap(t, "--no-runtime"), lambda d: any("waiter" in f["symbol"] for f in made(thread(d, t.pid))))
        found = [f for f in made(thread(doc, t.pid)) if "waiter" in f["symbol"]]
        assert found[0]["symbol_source"] == source
        assert str(script) in found[0]["symbol"]
    finally:
        Path(f"/tmp/perf-{t.pid}.map").unlink(missing_ok=True)
