# SPDX-License-Identifier: MIT
"""Debug info from debuginfod servers: a real one, and ones that behave badly. All are on the loopback interface."""

import os
import pty
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request

import pytest
from debuginfods import garbage, not_found, stall, stall_half_way
from harness import SANITIZER_ENV, TIMEOUT, Target, built, child_of, command, tids, wait_until

pytestmark = [pytest.mark.asan, pytest.mark.usefixtures("libdebuginfod")]

SOURCE = """
static int __attribute__((noinline)) hidden(int x) { __asm__ volatile(""); return x * 3; }
static inline __attribute__((always_inline)) int inlined(int x) { return hidden(x) + 1; }
int main(int argc, char **argv) { return inlined(argc) + 2; }
"""


class Program:
    """A stripped program, its debug file elsewhere, and an address in it with what is there."""

    def __init__(self, where, tool):
        source, self.full, self.stripped = where / "prog.c", where / "full", where / "stripped"
        self.debug_dir = where / "debug"
        self.debug_dir.mkdir()
        source.write_text(SOURCE)
        run = dict(check=True, capture_output=True, text=True)
        subprocess.run([tool("cc"), "-g", "-O2", "-Wl,--build-id", "-o", self.full, source], **run)
        subprocess.run([tool("objcopy"), "--only-keep-debug", self.full, self.debug_dir / "prog.debug"], **run)
        subprocess.run([tool("strip"), "-o", self.stripped, self.full], **run)
        notes = subprocess.run([tool("readelf"), "-n", self.full], **run).stdout
        self.build_id = re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)
        names = subprocess.run([tool("nm"), self.full], **run).stdout
        self.address = "0x" + re.search(r"^([0-9a-f]+) t hidden$", names, re.M).group(1)


@pytest.fixture
def program(tmp_path, tool):
    return Program(tmp_path, tool)


@pytest.fixture
def env(tmp_path):
    """An empty cache of its own, and no server but those that the test names."""
    cache = tmp_path / "cache"
    return {"DEBUGINFOD_CACHE_PATH": str(cache), "DEBUGINFOD_URLS": "", "XDG_CACHE_HOME": str(tmp_path / "xdg")}


@pytest.fixture
def real_server(program, tmp_path, tool):
    """A debuginfod that has the program's debug file."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    daemon = subprocess.Popen(
        [tool("debuginfod"), "-F", "-d", tmp_path / "db", "-p", str(port), program.debug_dir],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "DEBUGINFOD_URLS": ""},
    )
    url = f"http://127.0.0.1:{port}/"

    def is_there():
        try:
            return urllib.request.urlopen(f"{url}buildid/{program.build_id}/debuginfo", timeout=TIMEOUT).status == 200
        except (urllib.error.URLError, ConnectionError):
            return False

    try:
        wait_until(is_there, "debuginfod has read the file")
        yield url
    finally:
        daemon.terminate()
        daemon.wait(TIMEOUT)


def frames(stakeout, program, env, *options):
    result = stakeout("symbolize", "--json", "--no-cache", *options, "-e", program.stripped, program.address, env=env)
    assert result.code in (0, 1), result
    return result.doc["frames"], result.doc["problem"], result


def assert_named(found, problem, result):
    assert [f["symbol"] for f in found] == ["hidden"], result
    assert found[0]["source"]["file"].endswith("prog.c") and found[0]["source"]["line"] == 2, result
    assert problem is None


def assert_unnamed(found, problem, why):
    assert not any(f["symbol"] for f in found)
    assert re.search(why, problem), problem


def test_real_server(stakeout, program, env, real_server):
    assert_named(*frames(stakeout, program, env, f"--debuginfod={real_server}"))


def test_by_environment(stakeout, program, env, real_server):
    assert_named(*frames(stakeout, program, {**env, "DEBUGINFOD_URLS": real_server}))
    # From its cache, whoever is asked.
    assert_named(*frames(stakeout, program, {**env, "DEBUGINFOD_URLS": "http://127.0.0.1:1/"}))


def test_not_asked_unless_told_to(stakeout, program, env, serve):
    server = serve(not_found)
    found, problem, _ = frames(stakeout, program, env)
    assert not any(f["symbol"] for f in found) and problem
    assert not server.requests


def test_no_server_known(stakeout, program, env):
    result = frames(stakeout, program, env, "--debuginfod")[2]
    assert "no debuginfod server is known" in result.err and "https://debuginfod.elfutils.org/" in result.err


def test_server_does_not_have_it(stakeout, program, env, serve):
    server = serve(not_found)
    found, problem, _ = frames(stakeout, program, env, f"--debuginfod={server.url}")
    assert_unnamed(found, problem, "does not have it")
    assert f"/buildid/{program.build_id}/debuginfo" in server.requests


def test_garbage(stakeout, program, env, serve):
    found, problem, _ = frames(stakeout, program, env, f"--debuginfod={serve(garbage).url}")
    assert_unnamed(found, problem, "cannot be used")


@pytest.mark.parametrize("answer", [stall, stall_half_way])
def test_timeout(stakeout, program, env, serve, answer):
    server = serve(answer)
    found, problem, _ = frames(stakeout, program, env, f"--debuginfod={server.url}", "--debuginfod-timeout=1")
    assert_unnamed(found, problem, "sent nothing for 1 s")
    assert len(server.requests) == 1
    # That is not taken for the server's word that it has nothing.
    found, problem, _ = frames(stakeout, program, env, f"--debuginfod={serve(not_found).url}")
    assert_unnamed(found, problem, "does not have it")


def start(program, env, url, stderr=subprocess.PIPE):
    return subprocess.Popen(
        command("symbolize", "--json", "--no-cache", f"--debuginfod={url}", "-e", program.stripped, program.address),
        env={**os.environ, **SANITIZER_ENV, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )


def test_interrupt_goes_on_without(program, env, serve):
    server = serve(stall)
    proc = start(program, env, server.url)
    try:
        assert server.asked.wait(TIMEOUT)
        proc.send_signal(signal.SIGINT)
        out, err = proc.communicate(timeout=TIMEOUT)
    finally:
        proc.kill()
        proc.wait()
    assert proc.returncode in (0, 1), (proc.returncode, err)
    assert '"problem":' in out and "cancelled" in out, (out, err)


def priorities(pid):
    """Policy and nice value of each thread."""
    found = {}
    for tid in tids(pid):
        try:
            found[tid] = os.sched_getscheduler(tid), os.getpriority(os.PRIO_PROCESS, tid)
        except ProcessLookupError:
            pass  # it has ended just now
    return found


def test_the_target_comes_first(env, serve, tmp_path, tool):
    """Once it is captured, what looks up names gives way; only the thread that waits for that keeps its priority."""
    stripped = tmp_path / "plain"
    subprocess.run([tool("strip"), "-o", stripped, built("plain")], check=True)
    server = serve(stall)
    t = Target([stripped])
    proc = subprocess.Popen(
        command("--no-cache", f"--debuginfod={server.url}", t.pid),
        env={**os.environ, **SANITIZER_ENV, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        assert server.asked.wait(TIMEOUT)
        threads = priorities(child_of(proc.pid, "stakeout-parser"))
    finally:
        proc.kill()
        proc.wait()
        t.end()
    usual = priorities(os.getpid())[os.getpid()]
    assert threads.pop(min(threads)) == usual and threads
    assert all(policy != os.SCHED_OTHER and nice >= min(usual[1] + 10, 19) for policy, nice in threads.values()), threads


def test_progress_on_a_terminal(program, env, serve):
    server = serve(stall_half_way)
    ours, theirs = pty.openpty()
    proc = start(program, env, server.url, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while b"10.0 of 20.0 MB" not in shown:
            shown += os.read(ours, 4096)
        proc.send_signal(signal.SIGINT)
        out, _ = proc.communicate(timeout=TIMEOUT)
        try:
            while more := os.read(ours, 4096):
                shown += more
        except OSError:
            pass  # the other side is closed
    finally:
        proc.kill()
        proc.wait()
        os.close(ours)
    assert b"downloading debug info of stripped" in shown
    assert b"\x1b[K" in shown[shown.rindex(b"MB") :], "the line is erased"
    assert "cancelled" in out
