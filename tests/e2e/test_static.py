# SPDX-License-Identifier: MIT
"""The program in one static file (make static): it needs nothing of where it is copied to, and finds what the usual one finds."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from harness import STAKEOUT, built, run

STATIC = STAKEOUT.parent / "static/stakeout"
MOST = 8 << 20  # bytes

# Where `make check-roots` has systems of other distributions, which take minutes to make: tools/prepare-roots.
ROOTS = [Path(place) for place in os.environ.get("STAKEOUT_TEST_ROOTS", "").split()]


@pytest.fixture
def static():
    if not STATIC.exists():
        pytest.skip("it was not built: make static")
    return STATIC


@pytest.fixture
def empty(tmp_path):
    """A directory that can be a root, with nothing in it but places for what the kernel tells."""
    for place in ("proc", "sys"):
        (tmp_path / "root" / place).mkdir(parents=True)
    return tmp_path / "root"


@pytest.fixture
def inside(root, static, unshare):
    """
    inside(DIRECTORY): for `wrap`: the static program takes the place of the usual one, as /stakeout of that directory, which
    is its root and has /proc and /sys.
    """
    copies = []

    def enter(directory, kernel=("proc", "sys")):
        copies.append(directory / "stakeout")
        shutil.copy2(static, copies[-1])
        mount = f'for d in {" ".join(kernel)}; do mount --rbind "/$d" "$root/$d" || exit; done'
        return [unshare, "-m", "sh", "-c", f'root=$1; shift 2; {mount}; exec chroot "$root" /stakeout "$@"', "sh", str(directory)]

    yield enter
    for copy in copies:
        copy.unlink()


def lasting(value):
    """What a look at a sleeping process tells again: all but times, which have their units in their names."""
    if isinstance(value, dict):
        return {key: lasting(one) for key, one in value.items() if not re.search("_(ns|us|ms)$", key)}
    return [lasting(one) for one in value] if isinstance(value, list) else value


def without_debug_files(wrap):
    """For `wrap`: the usual program finds no more debug files of the distribution in its own root than one in `wrap` does."""
    hide = "[ ! -d /usr/lib/debug ] || mount -t tmpfs none /usr/lib/debug || exit"
    return [wrap[0], "-m", "sh", "-c", f'{hide}; exec "$@"', "sh"]


def assert_same_look(pid, wrap, usual_wrap=()):
    """A snapshot by both; returns the static one's document."""
    usual, other = (run("--json", "--no-cache", pid, wrap=how) for how in (usual_wrap, wrap))
    assert (other.code, other.err) == (usual.code, usual.err), other
    usual, other = (
        {**doc, "taken_at": None, "capture": {**doc["capture"], "instant": None}} for doc in map(lasting, (usual.doc, other.doc))
    )
    assert other == usual
    return other


def assert_same_waits(pid, wrap):
    """A recording of threads that sleep throughout, by both."""
    args = ("offcpu", "--json", "--no-cache", "-d", "50ms", "-p", pid)
    usual, other = (run(*args, wrap=how) for how in (without_debug_files(wrap), wrap))
    assert (other.code, other.err) == (usual.code, usual.err), other

    def told(doc):
        stacks = sorted((lasting(row) for row in doc["stacks"]), key=lambda row: row["tid"])
        return stacks, [doc[what] for what in ("method", "notes", "lost", "incomplete", "unfinished_events")]

    assert told(other.doc) == told(usual.doc)
    return other.doc


def test_needs_nothing(static, tool):
    assert static.stat().st_size < MOST
    headers = subprocess.run([tool("readelf"), "-lWd", static], capture_output=True, text=True, check=True).stdout
    assert "LOAD" in headers and "INTERP" not in headers and "NEEDED" not in headers, headers
    said = subprocess.run([static, "--version"], capture_output=True, text=True, check=True, env={}).stdout
    assert re.search(" -debuginfod .*; one static file$", said, re.M), said


@pytest.mark.parametrize("program", ["plain", "plain_musl", "plain_static", "plain_stripped", "cxx"])
def test_snapshot_in_an_empty_root(inside, empty, target, program):
    t = target(program).settle()
    doc = assert_same_look(t.pid, inside(empty))
    assert all(th["user_stack"] and th["kernel_stack"] for th in doc["threads"]), doc


def test_python_in_an_empty_root(inside, empty, target):
    script = "import time\nprint('ready 1', flush=True)\ndef dream():\n    time.sleep(1000)\ndream()\n"
    t = target(Path("/usr/bin/python3"), "-c", script).settle()
    doc = assert_same_look(t.pid, inside(empty))
    assert "dream" in [frame["symbol"] for frame in doc["threads"][0]["user_stack"]]


@pytest.mark.parametrize("program", ["plain", "plain_musl"])
def test_offcpu_in_an_empty_root(inside, empty, target, program):
    t = target(program).settle()
    doc = assert_same_waits(t.pid, inside(empty))
    assert len(doc["stacks"]) == len(t.tids) + 1, doc


def test_without_sys(inside, empty, target):
    """There is no BTF then: the waits are looked for in /proc, and it says so in its own words alone."""
    t = target("plain").settle()
    wrap = inside(empty, ["proc"])
    assert_same_look(t.pid, wrap)
    result = run("offcpu", "--json", "-d", "50ms", "-p", t.pid, wrap=wrap)
    assert (result.code, result.err) == (3, ""), result
    assert result.doc["method"] == "proc", result
    assert any("/sys/kernel/btf/vmlinux" in note for note in result.doc["notes"]), result


def test_without_proc(inside, empty):
    result = run(os.getpid(), wrap=inside(empty, []))
    assert result.code == 1 and "/proc is not mounted" in result.err, result


def test_doctor(inside, empty):
    usual, other = (run("doctor", "--json", wrap=how).doc["findings"] for how in ((), inside(empty)))
    states = [{one["name"]: one["state"] for one in findings} for findings in (usual, other)]
    assert states[0] == states[1]
    (debuginfod,) = (one for one in other if one["name"] == "debuginfod")
    assert "one static file" in debuginfod["remedy"], debuginfod


def test_users_of_the_root(inside, empty, target):
    """Their names are those of its /etc/passwd, whatever services its nsswitch.conf names: they are in libraries."""
    first, second = target("plain"), target("plain")
    (empty / "etc").mkdir()
    (empty / "etc/nsswitch.conf").write_text("passwd: systemd sss files\n")
    wrap = inside(empty)
    for passwd, name in (("", "0"), ("bin:x:2:2::/:\nadmin:x:0:0::/:\n", "admin")):
        (empty / "etc/passwd").write_text(passwd)
        result = run("plain", wrap=wrap)
        for t in (first, second):
            assert re.search(rf"^ *{t.pid}  {name} ", result.err, re.M), result


def test_debuginfod_is_left_out(static, tool, tmp_path):
    """It says so; what another program has downloaded before is used."""
    def names(build_id):
        env = {**os.environ, "DEBUGINFOD_CACHE_PATH": str(tmp_path), "DEBUGINFOD_URLS": "http://127.0.0.1:1"}
        return subprocess.run([static, "symbolize", "-f", "--build-id", build_id, "0"], capture_output=True, text=True, env=env)

    assert names("00ff").returncode == 1
    assert "this stakeout is one static file, which cannot load libdebuginfod.so.1" in names("00ff").stderr
    program = tmp_path / "program"
    (tmp_path / "empty.c").write_text("int main(void) { return 0; }")
    subprocess.run([tool("gcc"), "-Wl,--build-id=0xc0ffee", "-o", program, tmp_path / "empty.c"], check=True)
    (tmp_path / "c0ffee").mkdir()
    shutil.copy2(program, tmp_path / "c0ffee/debuginfo")
    shutil.copy2(program, tmp_path / "c0ffee/executable")
    found = names("c0ffee")
    assert (found.returncode, found.stdout) == (0, "??\n??:0\n"), found


@pytest.fixture(params=ROOTS or [None], ids=lambda place: place.name if place else "none")
def foreign(request):
    """The root of another system."""
    if not request.param:
        pytest.skip("no systems of other distributions: make check-roots")
    return request.param


@pytest.fixture
def natives(foreign, target, tool):
    """Programs of that system, which wait: a shell, Perl, or what was linked with its C library."""
    chroot = [tool("chroot"), foreign]
    if not (foreign / "bin/sh").exists():
        shutil.copy2(built("plain_musl"), foreign / "program")
        yield [target(Path("/program"), wrap=chroot).settle()]
        (foreign / "program").unlink()
        return
    shell = target(Path("/bin/sh"), "-c", "echo ready 1; read line", wrap=chroot)
    perl = target(Path("/usr/bin/perl"), "-e", '$| = 1; print "ready 1\\n"; sleep 1000', wrap=chroot, env={"LC_ALL": "C"})
    yield [shell.settle(), perl.settle()]


def test_in_a_foreign_root(foreign, natives, inside):
    wrap = inside(foreign)
    for t in natives:
        doc = assert_same_look(t.pid, wrap, without_debug_files(wrap))
        assert all(th["user_stack_end"] == "complete" for th in doc["threads"]), doc
        assert_same_waits(t.pid, wrap)
    usual, other = (run("doctor", "--json", wrap=how).doc["findings"] for how in ((), wrap))
    assert [(one["name"], one["state"]) for one in other] == [(one["name"], one["state"]) for one in usual]
