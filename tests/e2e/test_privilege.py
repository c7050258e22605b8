# SPDX-License-Identifier: MIT
"""What is done with which rights: whoever parses has none, and what it could not do is said."""

import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from debuginfods import stall
from harness import NOBODY, SANITIZER_ENV, STAKEOUT, TIMEOUT, Target, built, child_of, command, wait_until

pytestmark = pytest.mark.usefixtures("root")

OTHER = 12345  # a user whom nobody knows
SUDO = {"SUDO_UID": str(OTHER), "SUDO_GID": str(OTHER)}


def status(pid):
    lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    return {key: value.split() for key, value in (line.split(":", 1) for line in lines)}


def assert_no_rights(pid, uid, seccomp="2"):
    s = status(pid)
    for kind in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(s[kind][0], 16) == 0, (kind, s)
    assert s["NoNewPrivs"] == ["1"] and s["Seccomp"] == [seccomp], s
    assert s["Uid"] == [str(uid)] * 4, s


@pytest.fixture
def stripped(tmp_path, tool):
    """A target whose debug info is looked for on servers."""
    program = tmp_path / "plain"
    subprocess.run([tool("strip"), "-o", program, built("plain")], check=True)
    tmp_path.chmod(0o755)
    t = Target([program])
    yield t.settle()
    t.end()


@pytest.fixture
def waiting(libdebuginfod, serve, stripped, tmp_path):
    """Starts the program, which then waits for a server while it looks for names."""
    started = []

    def start(*args, env=(), wrap=(), program=STAKEOUT, **popen):
        server = serve(stall)
        env = {**os.environ, **SANITIZER_ENV, "DEBUGINFOD_CACHE_PATH": str(tmp_path / "cache"), **dict(env)}
        proc = subprocess.Popen(
            [*wrap, program, *map(str, args), "--no-cache", f"--debuginfod={server.url}", f"--pid={stripped.pid}"],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **popen,
        )
        started.append(proc)
        assert server.asked.wait(TIMEOUT)
        return proc

    yield start
    for proc in started:
        proc.kill()
        proc.communicate()


def test_parser(waiting):
    proc = waiting()
    assert_no_rights(child_of(proc.pid, "stakeout-parser"), 0)
    assert_no_rights(child_of(proc.pid, "stakeout-fetch"), 0, seccomp="0")
    assert int(status(proc.pid)["CapEff"][0], 16), "the broker needs rights"


@pytest.fixture
def others_place():
    """A directory of that user's."""
    with tempfile.TemporaryDirectory(dir="/tmp") as path:
        os.chown(path, OTHER, OTHER)
        yield Path(path)


def test_parser_under_sudo(waiting, others_place):
    proc = waiting(env={**SUDO, "DEBUGINFOD_CACHE_PATH": str(others_place)})
    for name, seccomp in (("stakeout-parser", "2"), ("stakeout-fetch", "0")):
        child = child_of(proc.pid, name)
        assert_no_rights(child, OTHER, seccomp)
        assert status(child)["Gid"] == [str(OTHER)] * 4 and status(child)["Groups"] == [str(OTHER)]


def test_parser_has_nothing_open(waiting):
    """Neither what belongs to the process nor the user's files: only files to parse, and the way to ask for more."""
    proc = waiting("-o", "/dev/null")
    parser = child_of(proc.pid, "stakeout-parser")
    links = {int(fd.name): os.readlink(fd) for fd in Path(f"/proc/{parser}/fd").iterdir()}
    others = [link for fd, link in links.items() if fd > 2 and link != "/dev/null"]
    sockets = [link for link in others if link.startswith("socket:")]
    assert len(sockets) == 1, links
    for link in set(others) - set(sockets):
        assert link.startswith("/") and not link.startswith("/proc") and Path(link.removesuffix(" (deleted)")).is_file() \
            or link.startswith("/memfd:stakeout-report"), links


@pytest.mark.parametrize("how", [signal.SIGSEGV, signal.SIGKILL])
def test_parser_dies(waiting, how):
    """Its report is written by who is left, without names, and says so."""
    proc = waiting("--json")
    os.kill(child_of(proc.pid, "stakeout-parser"), how)
    out, err = proc.communicate(timeout=TIMEOUT)
    assert proc.returncode == 3, err
    doc = json.loads(out)
    assert any("has died" in note and f"signal {int(how)}" in note for note in doc["notes"]), doc["notes"]
    frames = [frame for thread in doc["threads"] for frame in thread["user_stack"]]
    assert frames and all(frame["symbol"] is None for frame in frames)
    assert {"plain", "libc.so.6"} <= {os.path.basename(frame["module"]) for frame in frames}, frames


def test_text_of_a_parser_that_dies(waiting):
    proc = waiting()
    os.kill(child_of(proc.pid, "stakeout-parser"), signal.SIGABRT)
    out, err = proc.communicate(timeout=TIMEOUT)
    assert proc.returncode == 3, err
    assert "has died" in out and "signal 6" in out and "in plain+0x" in out, out


def test_parsers_of_a_watch_die(waiting):
    """Each round has one, and the summary: what they would have named is shown without names, and the watch goes on."""
    proc = waiting("watch", "--json", "-n", "1")
    killed = set()
    for _ in ("round", "summary"):
        parser = wait_until(lambda: {child_of(proc.pid, "stakeout-parser")} - killed, "there is another parser").pop()
        os.kill(parser, signal.SIGSEGV)
        killed.add(parser)
    out, err = proc.communicate(timeout=TIMEOUT)
    assert proc.returncode == 3, err
    look, summary = [json.loads(line) for line in out.splitlines()]
    assert any("has died" in note for note in look["notes"]), look["notes"]
    assert look["threads"] and all("plain" in t["place"] for t in look["threads"]), look  # the module is all that is known
    assert [t["looks"] for t in summary["threads"]] == [1] * len(look["threads"])
    assert all(sum(place["looks"] for place in t["places"]) == 1 for t in summary["threads"])


RUNGS = [["--source=auto"], ["--source=proc"]]


@pytest.mark.parametrize("rung", RUNGS)
def test_parser_of_waits(waiting, rung):
    proc = waiting("offcpu", "-d", "0.3", *rung)
    assert_no_rights(child_of(proc.pid, "stakeout-parser"), 0)


@pytest.mark.parametrize("rung", RUNGS)
def test_parser_of_waits_dies(waiting, rung):
    proc = waiting("offcpu", "--json", "-d", "0.3", *rung)
    os.kill(child_of(proc.pid, "stakeout-parser"), signal.SIGSEGV)
    out, err = proc.communicate(timeout=TIMEOUT)
    assert proc.returncode == 3, err
    doc = json.loads(out)
    assert any("has died" in note and "signal 11" in note for note in doc["notes"]), doc["notes"]
    frames = [frame for row in doc["stacks"] for frame in row["user_stack"]]
    assert frames and all(frame["symbol"] is None and frame["module"] for frame in frames), frames


def test_no_process_can_be_made(target, stakeout, as_nobody, tool):
    """On such a day, too, what is known is shown."""
    t = target("plain", wrap=as_nobody).settle()
    few = [*as_nobody, tool("prlimit"), "--nproc=1"]
    result = stakeout("--json", "--stop=none", t.pid, wrap=few)
    assert result.code == 3, result
    assert any("could not be made" in note for note in result.doc["notes"]), result
    assert all(frame["symbol"] is None for th in result.doc["threads"] for frame in th["user_stack"])
    result = stakeout("symbolize", "-e", built("plain"), "0", wrap=few)
    assert result.code == 1 and "a process cannot be made" in result.err, result


def test_parser_ends_with_its_parent(waiting):
    proc = waiting()
    children = [child_of(proc.pid, name) for name in ("stakeout-parser", "stakeout-fetch")]
    proc.kill()
    proc.wait()
    for child in children:
        wait_until(lambda pid=child: not Path(f"/proc/{pid}").exists() or status(pid)["State"][0] == "Z", "it has ended")


def allowed(pid, kind="CapBnd"):
    return int(status(pid)[kind][0], 16)


def test_needless_rights_are_dropped_at_start(waiting):
    proc = waiting()
    needless = sum(1 << number for number in (9, 12, 13, 16, 17, 18, 22, 25, 27, 31))  # net_admin, sys_module, mknod…
    assert allowed("self") & needless, "there is nothing to drop"
    for kind in ("CapBnd", "CapPrm", "CapEff"):
        assert not allowed(proc.pid, kind) & needless


def test_a_command_keeps_all_rights(stakeout):
    result = stakeout("offcpu", "-o", "/dev/null", "--", "grep", "CapBnd", "/proc/self/status")
    assert int(result.out.split()[1], 16) == allowed("self"), result


def owner(path):
    return path.stat().st_uid, path.stat().st_gid


@pytest.mark.parametrize("option", ["-o", "--save"])
def test_output_under_sudo(stakeout, stripped, others_place, option):
    """It belongs to who called sudo, and can be written to again."""
    there = others_place / "file"
    for _ in range(2):
        result = stakeout(option, there, stripped.pid, env=SUDO)
        assert result.code == 0 and there.stat().st_size, result
        assert owner(there) == (OTHER, OTHER)


def test_output_of_root_itself(stakeout, stripped, tmp_path):
    assert stakeout("-o", tmp_path / "file", stripped.pid).code == 0
    assert owner(tmp_path / "file") == (0, 0)


def test_cache_under_sudo(stakeout, target, others_place):
    cache = others_place / "cache"
    t = target("plain").settle()
    for _ in range(2):
        assert stakeout(t.pid, env={**SUDO, "XDG_CACHE_HOME": str(cache)}).code == 0
    files = [*cache.rglob("*")]
    assert any(file.suffix == ".sym" for file in files), files
    assert all(owner(file) == (OTHER, OTHER) for file in [cache, *files]), files
    shown = stakeout("cache", "--json", env={**SUDO, "XDG_CACHE_HOME": str(cache)})
    assert shown.code == 0 and shown.doc["files"], shown


def test_home_under_sudo(stakeout):
    """That of the caller, whatever $HOME is."""
    nobody = pwd.getpwuid(NOBODY)
    env = {"SUDO_UID": str(nobody.pw_uid), "SUDO_GID": str(nobody.pw_gid), "XDG_CACHE_HOME": "", "HOME": "/root"}
    result = stakeout("cache", env=env)
    assert f"{nobody.pw_dir}/.cache/stakeout" in result.out + result.err, result


@pytest.fixture
def gifted(setpriv, tool):
    """The program with capabilities of its own file, run by nobody: more than `stakeout setup` gives."""
    with tempfile.TemporaryDirectory(dir="/tmp") as path:
        place = Path(path)
        place.chmod(0o755)
        program = place / "stakeout"
        shutil.copy(STAKEOUT, program)
        tried = subprocess.run([tool("setcap"), "cap_sys_ptrace,cap_dac_override,cap_dac_read_search+ep", program])
        if tried.returncode:
            pytest.skip("file capabilities cannot be set there")

        def start(*args, env=()):
            env = {**os.environ, "XDG_CACHE_HOME": str(place / "nowhere"), **dict(env)}
            return subprocess.run([*setpriv, program, *map(str, args)], capture_output=True, text=True, env=env)

        yield start


def test_rights_of_the_file_are_for_processes(gifted, stripped):
    """What they are for: another user's process."""
    result = gifted("--source=proc", stripped.pid)
    assert result.returncode in (0, 3) and f"pid {stripped.pid}" in result.stdout, result


@pytest.fixture
def closed_place(tmp_path):
    """A directory that only root can enter, with a program and a snapshot."""
    place = tmp_path / "closed"
    place.mkdir(mode=0o700)
    shutil.copy(built("plain"), place / "program")
    return place


def assert_denied(result):
    assert result.returncode == 1 and "Permission denied" in result.stderr, result


def test_files_are_opened_with_the_callers_rights(gifted, stakeout, stripped, closed_place):
    program, saved = closed_place / "program", closed_place / "saved"
    assert stakeout("--save", saved, stripped.pid).code == 0
    assert_denied(gifted("symbolize", "-e", program, "0"))
    assert_denied(gifted("replay", saved))
    for option in ("-o", "--save"):
        assert_denied(gifted(option, closed_place / "new", stripped.pid))
        assert_denied(gifted(option, saved, stripped.pid))
    assert_denied(gifted("offcpu", "--source=proc", "-d", "1", "-o", closed_place / "new", "-p", stripped.pid))
    assert not (closed_place / "new").exists()


def test_cache_with_the_callers_rights(gifted, target, closed_place):
    t = target("plain").settle()
    gifted("--source=proc", t.pid, env={"XDG_CACHE_HOME": str(closed_place)})
    assert not (closed_place / "stakeout").exists()


@pytest.fixture
def symbolizing():
    """`stakeout symbolize -e`, which waits for addresses."""
    proc = subprocess.Popen(
        command("symbolize", "--no-cache", "-f", "-e", built("plain")),
        env={**os.environ, **SANITIZER_ENV},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield proc
    proc.kill()
    proc.communicate()


def test_symbolize(symbolizing):
    parser = child_of(symbolizing.pid, "stakeout-parser")
    symbolizing.stdin.write("0\n")
    symbolizing.stdin.flush()
    assert symbolizing.stdout.readline() == "??\n"
    assert_no_rights(parser, 0)
    os.kill(parser, signal.SIGSEGV)
    out, err = symbolizing.communicate(timeout=TIMEOUT)
    assert symbolizing.returncode == 3 and "has died" in err and "signal 11" in err, err


def test_replay(stakeout, stripped, tmp_path):
    """The file itself may be what does harm: all of it is read without rights."""
    saved, fifo = tmp_path / "saved", tmp_path / "fifo"
    assert stakeout("--save", saved, stripped.pid).code == 0
    os.mkfifo(fifo)
    proc = subprocess.Popen(command("replay", fifo), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        with open(fifo, "wb") as f:
            f.write(saved.read_bytes()[:100])
            f.flush()
            parser = child_of(proc.pid, "stakeout-parser")
            wait_until(lambda: status(parser)["Seccomp"] == ["2"], "it has given up its rights")
            assert_no_rights(parser, 0)
            os.kill(parser, signal.SIGSEGV)
            out, err = proc.communicate(timeout=TIMEOUT)
    finally:
        proc.kill()
        proc.wait()
    assert proc.returncode == 1 and "has died" in err, err
