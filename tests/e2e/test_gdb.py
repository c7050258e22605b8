# SPDX-License-Identifier: MIT
"""
Frame by frame the same as gdb, for every thread, where the target cannot move: it is sent SIGSTOP before.

Program counters of real frames have to be equal, names too as far as both know one. What may differ, and who is right:
- Where gdb's walk breaks off with an error, ours may go on: there is no more to compare with. The same at pc 0, which
  gdb reaches by guessing at frames without CFI: nameless frames just before it are such guesses.
- Lines: gdb looks only at rows that begin a statement, ours and addr2line at the row of the address itself. Where
  they differ, addr2line decides.
- Tail-call frames, which gdb guesses from DWARF call sites: nothing of them is on the stack, ours does not show them.
- Parameter lists: gdb's frame.name() has none. Compared without.
- One of several names of one address (read, __libc_read, __GI___libc_read): all right; ours takes the exported one.
- musl is left out: without CFI gdb guesses, and shows words of the stack that are no return addresses.
"""

import functools
import itertools
import json
import os
import platform
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest
from harness import TIMEOUT, bare, built, states, stop, wait_until

GDB_SETTINGS = [
    "set debuginfod enabled off",
    "set backtrace past-main on",
    "set backtrace past-entry on",
    "set backtrace limit unlimited",
    "set auto-load off",
    "set python print-stack full",
]


@pytest.fixture
def gdb_stacks(tool):
    gdb = tool("gdb")

    def run(pid):
        args = [gdb, "-nx", "-batch"]
        for setting in GDB_SETTINGS:
            args += ["-iex", setting]
        args += ["-p", str(pid), "-x", str(Path(__file__).with_name("gdb_stacks.py"))]
        done = subprocess.run(args, capture_output=True, text=True, timeout=TIMEOUT * 4, stdin=subprocess.DEVNULL)
        lines = [line for line in done.stdout.splitlines() if line.startswith("STACKS ")]
        assert lines, (done.stdout, done.stderr)
        return {int(tid): frames for tid, frames in json.loads(lines[0][len("STACKS ") :]).items()}

    return run


def same_name(ours, theirs):
    plain = lambda name: bare(name).replace("__GI_", "").lstrip("_")
    return not ours or not theirs or plain(ours) == plain(theirs)


def same_function(our, its):
    """The names are equal, or they are two names of one address."""
    start = int(our["address"], 16) - our["offset"] if our["offset"] is not None else None
    return same_name(our["symbol"], its["name"]) or (start is not None and start == its["start"])


def drop_what_is_no_frame(theirs):
    """gdb's frames that are frames, and whether its walk ended by itself."""
    frames = []
    for frame in theirs:
        if "stopped" in frame:
            return frames, False
        if frame["pc"] == 0:
            while frames and frames[-1]["name"] is None:
                frames.pop()
            return frames, False
        if frame["kind"] != "other":
            frames.append(frame)
    return frames, True


def side_by_side(ours, theirs):
    columns = itertools.zip_longest(
        [f"{frame['address']} {frame['symbol']}{' (inlined)' * frame['inlined']}" for frame in ours],
        [f"{frame['pc']:#x} {frame['name']} ({frame['kind']})" for frame in theirs],
        fillvalue="-",
    )
    return "\n".join(f"{left:60} | {right}" for left, right in columns)


@functools.lru_cache(maxsize=None)
def addr2line(module, offset):
    """The referee where lines differ: (file, line) of each function at an address, the innermost inlined one first."""
    done = subprocess.run(["addr2line", "-ie", module, hex(offset)], capture_output=True, text=True, check=True)
    places = [line.partition(" ")[0].rpartition(":") for line in done.stdout.splitlines()]
    return [(os.path.basename(file), int(line)) for file, _, line in places if line.isdigit()]


def same_line(our, its, is_return_address):
    if not our["source"] or not its["line"]:
        return True
    place = (os.path.basename(our["source"]["file"]), our["source"]["line"])
    if place == (os.path.basename(its["file"]), its["line"]):
        return True
    return place in addr2line(our["module"], int(our["module_offset"], 16) - is_return_address)


def compare_real_frames(ours, theirs, where):
    assert [int(frame["address"], 16) for frame in ours] == [frame["pc"] for frame in theirs], where
    is_return_address = False
    for our, its in zip(ours, theirs):
        assert same_function(our, its), f"{our['symbol']} is {its['name']} to gdb: {where}"
        assert same_line(our, its, is_return_address), f"line of {our['symbol']}: {where}"
        assert (our["kind"] == "signal") == (its["kind"] == "signal"), f"{our['symbol']}: {where}"
        is_return_address = our["kind"] != "signal"


def compare_inlined(ours, theirs, where):
    assert [int(frame["address"], 16) for frame in ours] == [frame["pc"] for frame in theirs], where
    for our, its in zip(ours, theirs):
        assert same_name(our["symbol"], its["name"]), f"{our['symbol']} is {its['name']} to gdb: {where}"
        assert same_line(our, its, True), f"line of {our['symbol']}: {where}"


def drop_what_gdb_misses(ours, theirs):
    """
    In the vDSO of aarch64, which has no unwind information, gdb follows the frame pointer even where the function has not
    made a frame: so it goes on with the caller's caller.
    """
    missed = (
        platform.machine() == "aarch64"
        and len(ours) > 2
        and len(theirs) > 1
        and ours[0]["module"] == "[vdso]"
        and int(ours[1]["address"], 16) != theirs[1]["pc"] == int(ours[2]["address"], 16)
    )
    return [ours[0], *ours[2:]] if missed else ours


def compare(ours, theirs, where):
    """Asserts that one thread's stack is what gdb shows."""
    theirs, ended = drop_what_is_no_frame(theirs)
    where = f"{where}\n{side_by_side(ours, theirs)}\n"
    gdb_real = [frame for frame in theirs if frame["kind"] != "inlined"]
    our_real = drop_what_gdb_misses([frame for frame in ours if not frame["inlined"]], gdb_real)
    compare_real_frames(our_real if ended else our_real[: len(gdb_real)], gdb_real, where)
    if ended:
        our_inlined = [frame for frame in ours if frame["inlined"]]
        compare_inlined(our_inlined, [frame for frame in theirs if frame["kind"] == "inlined"], where)


def assert_agreement(pid, snap, gdb_stacks):
    """SIGSTOPs the process and compares every thread; returns how many frames were compared."""
    stop(pid)
    doc = snap(pid, "--no-runtime")  # gdb knows native frames only
    theirs = gdb_stacks(pid)
    assert {th["tid"] for th in doc["threads"] if th["status"] != "zombie"} == set(theirs)
    for th in doc["threads"]:
        if th["tid"] in theirs:
            compare(th["user_stack"], theirs[th["tid"]], f"{doc['comm']} {th['tid']} {th['name']}")
    return sum(len(frames) for frames in theirs.values())


BUNDLED = [
    ("plain",),
    ("plain_nopie",),
    ("plain_static",),
    ("plain_static_pie",),
    ("plain_no_hdr",),
    ("plain_debug_frame",),
    ("plain_frame_pointer",),
    ("plain_stripped",),
    ("signals",),
    ("cxx",),
    ("vla",),
    ("noreturn",),
    ("deadlock",),
    ("eintr",),
    ("recursion", 1000),
    ("sleepers", "-n", 10, "-s", 1),
    ("spinners", "loop", "vdso", "plt"),
    ("dlopen", "PLUGIN"),
]
# What differs most between architectures: gdb takes the emulated machine longer than anything else.
WALKS = ("plain_frame_pointer", "signals")


@pytest.mark.parametrize(
    "name, args",
    [pytest.param(name, args, marks=pytest.mark.arch if name in WALKS else ()) for name, *args in BUNDLED],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_bundled_targets(target, snap, gdb_stacks, name, args):
    if name == "eintr" and os.geteuid() != 0:
        pytest.skip("eintr needs root, for a namespace of its own")
    args = [built("plugin") if arg == "PLUGIN" else arg for arg in args]
    t = target(name, *args)
    assert assert_agreement(t.pid, snap, gdb_stacks) > 1


def wait_until_idle(pid):
    """Waits until all threads have been asleep for a while: in code of a just-in-time compiler gdb would be lost."""
    looks = itertools.count()

    def idle():
        nonlocal looks
        if states(pid) != {"S"}:
            looks = itertools.count()
        return next(looks) >= 50

    wait_until(idle, f"{pid} is idle")


@pytest.fixture
def server(tmp_path):
    """server(ARGV, ready): a program of the distribution, started and ended by its pid."""
    started = []

    def start(argv, ready, **popen):
        log = open(tmp_path / "log", "wb")
        proc = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log, **popen)
        started.append(proc)

        def is_ready():
            assert proc.poll() is None, (tmp_path / "log").read_text()
            return ready()

        wait_until(is_ready, f"{argv[0]} is ready")
        wait_until_idle(proc.pid)
        return proc

    yield start
    for proc in started:
        proc.kill()
        proc.wait(TIMEOUT)


def log_has(tmp_path, text):
    return lambda: text in (tmp_path / "log").read_text(errors="replace")


def test_redis(server, snap, gdb_stacks, tool, tmp_path):
    options = ["--port", 0, "--unixsocket", tmp_path / "socket", "--save", "", "--appendonly", "no", "--dir", tmp_path]
    proc = server([tool("redis-server"), *options], log_has(tmp_path, "eady to accept connections"))
    assert assert_agreement(proc.pid, snap, gdb_stacks) > 10


PYTHON_SCRIPT = """
import threading, time, select, sys
def wait_lock(lock): lock.acquire()
lock = threading.Lock(); lock.acquire()
threads = [threading.Thread(target=wait_lock, args=(lock,), daemon=True) for _ in range(3)]
threads.append(threading.Thread(target=time.sleep, args=(3600,), daemon=True))
threads.append(threading.Thread(target=sorted, args=([1, 2],), kwargs={"key": lambda x: time.sleep(3600)}, daemon=True))
for t in threads: t.start()
print("started", flush=True)
select.select([], [], [], 3600)
"""


def test_python(server, snap, gdb_stacks, tool, tmp_path):
    python = tool("python3", "/usr/bin")
    proc = server([python, "-c", PYTHON_SCRIPT], log_has(tmp_path, "started"))
    assert assert_agreement(proc.pid, snap, gdb_stacks) > 50


NODE_SCRIPT = """
const { Worker } = require('worker_threads');
const code = "setInterval(() => {}, 3600000); require('worker_threads').parentPort.postMessage(1)";
const worker = new Worker(code, { eval: true });
worker.on('message', () => console.log('started'));
setInterval(() => {}, 3600000);
"""


def test_node(server, snap, gdb_stacks, tool, tmp_path):
    proc = server([tool("node"), "-e", NODE_SCRIPT], log_has(tmp_path, "started"))
    assert assert_agreement(proc.pid, snap, gdb_stacks) > 50


def test_postgres(server, snap, gdb_stacks, tool, tmp_path):
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not places:
        pytest.skip("postgres is not installed")
    if os.geteuid() != 0:
        pytest.skip("needs root, to be another user")
    user = pwd.getpwnam("nobody")
    as_user = dict(user=user.pw_uid, group=user.pw_gid, extra_groups=[], cwd="/")
    data = Path("/tmp") / f"stakeout-test-postgres-{os.getpid()}"
    data.mkdir(mode=0o700)
    os.chown(data, user.pw_uid, user.pw_gid)
    try:
        initdb = [places[-1] / "initdb", "-D", data / "db", "--no-sync", "-A", "trust", "-U", "test"]
        subprocess.run(initdb, check=True, capture_output=True, timeout=TIMEOUT * 2, **as_user)
        options = ["-D", data / "db", "-c", "listen_addresses=", "-k", data, "-F"]
        proc = server([places[-1] / "postgres", *options], log_has(tmp_path, "ready to accept connections"), **as_user)
        children = [int(pid) for pid in Path(f"/proc/{proc.pid}/task/{proc.pid}/children").read_text().split()]
        assert len(children) >= 3
        assert sum(assert_agreement(pid, snap, gdb_stacks) for pid in [proc.pid, *children]) > 40
        for pid in children:
            os.kill(pid, 9)
        proc.kill()
        proc.wait(TIMEOUT)
        wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in children), "postgres has ended")
    finally:
        shutil.rmtree(data, ignore_errors=True)
