# SPDX-License-Identifier: MIT
"""
Processes in systems of other generations of the distribution, and of another C library, as containers have them: a root of their
own, below which the machine's own files are not found. tools/prepare-roots makes the larger ones.
"""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from harness import assert_calls, built, state, symbols, thread, tids, wait_until

pytestmark = pytest.mark.usefixtures("root")

CACHE = Path(os.environ.get("STAKEOUT_ROOTS") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stakeout-roots")
ENTER = """
mkdir -p "$0/proc" "$0/mnt" && mount --bind "$0" "$0" && mount -t proc proc "$0/proc" && cd "$0" && pivot_root . mnt && cd / || exit
[ ! -e /bin/umount ] || umount -l mnt
exec "$@"
"""


def build_id(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)


def inside(unshare, root):
    """The start of a command line that runs a program in namespaces of its own, with that root."""
    return [unshare, "-mpf", "--kill-child", "sh", "-c", ENTER, root]


@pytest.fixture(params=["bullseye", "bookworm", "trixie"])
def sleeper(tool, unshare, request):
    """A program of another generation, which sleeps in a root of its own: its number here, and the root."""
    root = CACHE / f"{request.param}-{platform.machine()}"
    if not root.exists():
        pytest.skip(f"{root} is not there: tools/prepare-roots {request.param} makes it")
    script = "sub weigh { sleep 1000 } weigh()"
    proc = subprocess.Popen([*inside(unshare, root), "/usr/bin/perl", "-e", script], stdin=subprocess.DEVNULL)
    children = Path(f"/proc/{proc.pid}/task/{proc.pid}/children")
    wait_until(lambda: children.read_text(), "the first process of the namespace is there")
    pid = int(children.read_text())
    comm = Path(f"/proc/{pid}/comm")
    wait_until(lambda: comm.read_text() == "perl\n" and state(pid) == "S", "the program sleeps")
    yield pid, root
    proc.kill()
    proc.wait()


def test_another_generation(sleeper, snap, source):
    """Names and frames are those of the root's own libraries, not of the machine's under the same paths."""
    pid, root = sleeper
    doc = snap(pid, source)
    (main,) = doc["threads"]
    assert_calls(main, "clock_nanosleep", "Perl_runops_standard", "perl_run", "main", "_start")
    assert doc["inner_pid"] == 1 and doc["exe"] == "/usr/bin/perl"
    libc = next(frame for frame in main["user_stack"] if "libc" in frame["module"])
    assert libc["build_id"] == build_id(root / libc["module"].lstrip("/"))
    perl = next(frame for frame in main["user_stack"] if frame["symbol"] == "main")
    assert perl["build_id"] == build_id(root / "usr/bin/perl")


def test_offcpu_of_another_generation(sleeper, stakeout):
    pid, _ = sleeper
    (row,) = stakeout("offcpu", "--json", "-d", "0.2", "-p", pid).doc["stacks"]
    names = [frame["symbol"] for frame in row["user_stack"]]
    assert row["user_stack_error"] is None and "Perl_runops_standard" in names and "main" in names, row


def test_another_c_library(target, snap, unshare, tmp_path, source):
    """musl, whose loader is all that there is of it."""
    loader = Path(f"/lib/ld-musl-{platform.machine()}.so.1")
    if not loader.exists():
        pytest.skip("musl is not installed")
    program = built("plain_musl")
    (tmp_path / "lib").mkdir()
    shutil.copy2(loader, tmp_path / "lib")
    shutil.copy2(program, tmp_path / "program")
    t = target(Path("/program"), wrap=inside(unshare, tmp_path))
    (pid,) = Path(f"/proc/{t.pid}/task/{t.pid}/children").read_text().split()
    wait_until(lambda: {state(int(pid), tid) for tid in tids(int(pid))} == {"S"}, "all threads are asleep")
    doc = snap(int(pid), source)
    worker = thread(doc, "worker")
    assert worker["inner_tid"] == t.tids["worker"]
    assert [name for name in symbols(worker) if name in ("inner", "middle", "outer")] == ["inner", "middle", "outer"]
    assert {frame["module"] for frame in worker["user_stack"]} <= {"/program", str(loader), "[vdso]", None}
