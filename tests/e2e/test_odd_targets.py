# SPDX-License-Identifier: MIT
"""Processes that others hold or guard, or that are large: right, or one line that says why not."""

import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from harness import NOBODY, TIMEOUT, assert_calls, built, state, states, symbols, thread, tids, wait_until

pytestmark = pytest.mark.usefixtures("root")


@pytest.fixture
def open_dir():
    """A directory that every user may enter."""
    place = Path(tempfile.mkdtemp(prefix="stakeout-test-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


def test_setuid_program(target, snap, stakeout, as_nobody, tool, open_dir):
    """Whoever started it may not look at it: its rights are another's. Root may."""
    program = open_dir / "program"
    shutil.copy2(built("plain"), program)
    program.chmod(0o4755)
    user = [tool("setpriv"), f"--ruid={NOBODY}", f"--euid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    t = target(program, wrap=user).settle()
    assert Path(f"/proc/{t.pid}/status").read_text().split("Uid:")[1].split()[:2] == [str(NOBODY), "0"]
    result = stakeout(t.pid, wrap=as_nobody)
    assert result.code == 1 and result.out == "", result
    (line,) = result.err.splitlines()
    assert f"its user ids ({NOBODY}, 0, 0) are not all yours ({NOBODY})" in line
    assert_calls(thread(snap(t), "worker"), "inner", "middle", "outer")


def test_undumpable_process_as_root(target, snap, source):
    doc = snap(target("undumpable"), source)
    assert_calls(doc["threads"][0], "target_serve", "main")


def tracers(pid):
    found = [re.search(r"TracerPid:\t(\d+)", Path(f"/proc/{pid}/task/{tid}/status").read_text()) for tid in tids(pid)]
    return {int(match.group(1)) for match in found}


@pytest.fixture
def beside():
    """beside(COMMAND…): a program that runs until the test is over, without a terminal."""
    started = []

    def start(*command):
        quiet = dict(stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        started.append(subprocess.Popen(command, **quiet))
        return started[-1]

    yield start
    for proc in started:
        proc.kill()
        proc.wait(TIMEOUT)
        proc.stdin.close()


def test_under_gdb(target, snap, tool, beside, source):
    """All its threads stand still, and so can be read."""
    t = target("spinners", "loop").settle("loop")
    gdb = beside(tool("gdb"), "-nx", "-q", "-p", str(t.pid))
    wait_until(lambda: tracers(t.pid) == {gdb.pid} and states(t.pid) == {"t"}, "gdb holds all threads")
    doc = snap(t, source)
    loop = thread(doc, "loop")
    assert doc["capture"]["stopped_threads"] == 0 and loop["tracer_pid"] == gdb.pid
    assert_calls(loop, "spin_loop")
    assert_calls(thread(doc, t.pid), "target_serve", "main")
    assert states(t.pid) == {"t"}


def test_under_strace(target, snap, tool, beside, source):
    """Sleeping threads are read; that another tracer has one that runs is said."""
    t = target("spinners", "loop").settle("loop")
    strace = beside(tool("strace"), "-f", "-q", "-o", "/dev/null", "-p", str(t.pid))
    wait_until(lambda: tracers(t.pid) == {strace.pid} and state(t.pid) == "S", "strace has all threads")
    doc = snap(t, source)
    assert doc["capture"]["stopped_threads"] == 0
    assert_calls(thread(doc, t.pid), "target_serve", "main")
    loop = thread(doc, "loop")
    if loop["capture"] == "none":  # it was not just waiting for a CPU
        assert (loop["status"], loop["tracer_pid"]) == ("traced", strace.pid) and str(strace.pid) in loop["status_reason"], loop
    else:
        assert_calls(loop, "spin_loop")


def test_under_rr(target, snap, tool, tmp_path):
    """rr runs one thread at a time, and has code of its own in the process."""
    rr = tool("rr")
    env = {**os.environ, "_RR_TRACE_DIR": str(tmp_path)}
    tried = subprocess.run([rr, "record", "-n", "true"], env=env, capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"rr does not work here: {tried.stderr.strip().splitlines()[-1]}")
    t = target("plain", wrap=[rr, "record", "-n"], env=env)
    (pid,) = Path(f"/proc/{t.pid}/task/{t.pid}/children").read_text().split()
    assert "inner" in symbols(thread(snap(int(pid)), "worker"))


@pytest.mark.parametrize("emulated", ("arm", "i386"))
def test_under_qemu(target, stakeout, tool, emulated):
    """The emulator's own stacks, and a line that says so."""
    qemu = tool(f"qemu-{emulated}")
    program = built({"arm": "plain_arm", "i386": "waits_32bit"}[emulated])
    t = target(program, wrap=[qemu])
    result = stakeout("--json", t.pid)
    assert result.code == 0 and result.doc["exe"] == qemu, result
    assert any("it is an emulator" in note for note in result.doc["notes"])
    assert any("cpu_loop" in symbols(th) for th in result.doc["threads"])


def copy_of(name, to):
    shutil.copy2(built(name), to)
    to.chmod(0o755)
    return to


def build_id(path, tool):
    notes = subprocess.run([tool("readelf"), "-n", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)


@pytest.fixture(params=["as root", "as its user"])
def upgraded(target, stakeout, as_nobody, open_dir, tool, request):
    """A process whose library was replaced by another one, as an upgrade of a package does: the document, and the old build-id."""
    library = copy_of("plugin", open_dir / "library.so")
    old = build_id(library, tool)
    t = target("dlopen", library, wrap=as_nobody).settle()
    new = open_dir / "new"
    source = open_dir / "new.c"
    source.write_text("".join(f"int wrong_{i}(int x) {{ return x * {i}; }}\n" for i in range(500)))
    subprocess.run([tool("cc"), "-g", "-shared", "-fPIC", "-Wl,--build-id", "-o", new, source], check=True)
    new.rename(library)
    assert build_id(library, tool) != old
    wrap = as_nobody if request.param == "as its user" else ()
    return lambda *args: stakeout("--json", *args, t.pid, wrap=wrap), old, request.param


@pytest.mark.parametrize("option", ((), ("--ignore-deleted",)))
def test_upgraded_library(upgraded, option):
    """The old one is what runs: its file, or what is left of it in memory, and its build-id. The new one names nothing."""
    look, old, who = upgraded
    worker = thread(look(*option).doc, "worker")
    assert "wrong" not in str(worker)
    frames = [frame for frame in worker["user_stack"] if (frame["module"] or "").endswith("library.so")]
    assert len(frames) == 2 and {frame["build_id"] for frame in frames} == {old}
    assert frames[1]["symbol"] == "plugin_enter"
    if who == "as root":
        assert frames[0]["symbol"] == "plugin_inner" and frames[0]["source"]["line"] > 0
    assert_calls(worker, "callback", "plugin_enter", "worker")


def test_upgraded_library_asks_for_the_old_one(upgraded):
    look, old, who = upgraded
    lacking = {module["build_id"] for module in look().doc["lacking"] if module["module"].endswith("library.so")}
    assert lacking == ({old} if who == "as its user" else set())


@pytest.mark.parametrize("source", ("--source=auto", "--source=proc"))
def test_as_many_mappings_as_allowed(target, snap, source):
    """65,000 of them, unless the machine is set up otherwise."""
    most = int(Path("/proc/sys/vm/max_map_count").read_text())
    t = target("waits_maps", (min(most, 65530) - 130) // 2)  # with as many gaps between them
    assert len(Path(f"/proc/{t.pid}/maps").read_text().splitlines()) > min(most, 65530) - 500
    doc = snap(t, source)
    assert_calls(thread(doc, t.pid), "target_serve", "main")


@pytest.mark.skipif("STAKEOUT_TEST_THREADS" not in os.environ, reason="make check-limits does it")
def test_very_many_threads(target, snap, source):
    """As many as a machine has by default, but for some that it needs itself."""
    count = int(os.environ["STAKEOUT_TEST_THREADS"])
    most = min(int(Path(f"/proc/sys/kernel/{name}").read_text()) for name in ("pid_max", "threads-max"))
    if most < count + 5000:
        pytest.skip(f"the machine has {most} numbers for threads: sysctl kernel.pid_max={2 * count} gives more")
    t = target("sleepers", "-n", count, "-d", 5).settle()
    doc = snap(t, source)
    assert len(doc["threads"]) == count + 1 and doc["capture"]["stopped_threads"] == 0 and doc["capture"]["consistent"]
    assert sum(symbols(th).count("descend") == 5 for th in doc["threads"]) == count


@pytest.fixture
def arm(target):
    """arm(NAME): a program of 32-bit ARM, where the machine runs such."""

    def start(name):
        if platform.machine() != "aarch64":
            pytest.skip("only aarch64 runs programs of 32-bit ARM")
        try:
            return target(name).settle()
        except OSError as error:
            pytest.skip(f"this machine runs no 32-bit programs: {error}")

    return start


def test_32bit_arm(arm, snap, source):
    """Its own registers, unwind tables and system calls; by DWARF where it has that, and by exception tables in the C library."""
    t = arm("plain_arm")
    doc = snap(t, source)
    worker = thread(doc, "worker")
    assert doc["arch"] == "arm" and worker["syscall"]["name"] in ("pause", "ppoll", "nanosleep"), worker["syscall"]
    assert_calls(worker, "inner", "middle", "outer")
    assert next(frame for frame in worker["user_stack"] if frame["symbol"] == "inner")["source"]["line"] > 0
    assert_calls(thread(doc, t.pid), "read", "target_serve", "main")


def test_32bit_arm_by_exception_tables(arm, snap, tmp_path, stakeout):
    """Which are all that there is; a saved snapshot knows the architecture, too."""
    t = arm("plain_arm_tables")
    saved = tmp_path / "saved"
    assert_calls(thread(snap(t, "--save", saved), "worker"), "inner", "middle", "outer")
    replayed = stakeout("replay", "--json", saved).doc
    assert replayed["arch"] == "arm"
    assert_calls(thread(replayed, "worker"), "inner", "middle", "outer")
    held = snap(t, "--stop=all", "-r")
    assert_calls(thread(held, "worker"), "inner", "middle", "outer")
    assert {"r0", "sp", "pc", "cpsr"} <= set(thread(held, "worker")["registers"])


def test_32bit_arm_signals(arm, snap):
    """Frames of handlers without a siginfo are others; what was interrupted is where it was."""
    doc = snap(arm("signals_arm"))
    assert_calls(thread(doc, "normal"), "target_block", "block_in_handler", "interrupted", "normal", "target_thread_main")
    leaf = thread(doc, "leaf")
    assert_calls(leaf, "block_in_handler", "leaf_fault", "leaf", "target_thread_main")
    assert [frame["kind"] for frame in leaf["user_stack"]].count("signal") == 1
    assert next(frame for frame in leaf["user_stack"] if frame["symbol"] == "leaf_fault")["offset"] == 0
