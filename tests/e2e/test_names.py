# SPDX-License-Identifier: MIT
"""Processes by name, in all commands."""

import os
import shutil
import signal
import subprocess
import uuid

import pytest
from harness import STAKEOUT, TIMEOUT, built, on_a_terminal


@pytest.fixture
def unique():
    """unique(): a name of at most 15 letters that nobody else has."""
    return lambda: "t" + uuid.uuid4().hex[:12]


@pytest.fixture
def program(tmp_path, unique):
    """A copy of a target under a name of its own."""

    def copy(name="plain", suffix=""):
        path = tmp_path / (unique() + suffix)
        shutil.copy(built(name), path)
        return path

    return copy


@pytest.fixture
def python_script(tmp_path, unique):
    """python_script(TEXT): a script that Python runs until the end of the test; its process, and its path."""
    started = []

    def start(text="print(flush=True); input()", *args):
        path = tmp_path / (unique() + ".py")
        path.write_text(text)
        proc = subprocess.Popen(["/usr/bin/python3", *args, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(proc)
        proc.stdout.readline()
        return proc, path

    yield start
    for proc in started:
        proc.kill()
        proc.communicate(timeout=TIMEOUT)


def pids(result):
    return [doc["pid"] for doc in result.docs]


@pytest.mark.parametrize("option", [[], ["-p"], ["--pid"]], ids=["bare", "-p", "--pid"])
def test_name_of_a_program(target, stakeout, program, option):
    path = program()
    t = target(path).settle()
    result = stakeout("--json", *option, path.name)
    assert result.code == 0 and pids(result) == [t.pid], result


def test_name_that_is_longer_than_the_kernel_keeps(target, stakeout, program):
    path = program(suffix="-which-is-a-long-name")
    t = target(path).settle()
    assert pids(stakeout("--json", path.name)) == [t.pid]
    assert pids(stakeout("--json", path.name[:15])) == [t.pid], "as the kernel keeps it"


def test_only_whole_names(target, stakeout, program):
    path = program()
    target(path).settle()
    result = stakeout(path.name[:-1])
    assert result.code == 1 and result.out == ""
    assert f"there is no process named '{path.name[:-1]}'; did you mean '{path.name}'?" in result.err


@pytest.mark.asan
def test_script_of_an_interpreter(stakeout, python_script):
    proc, path = python_script()
    assert pids(stakeout("--json", path.name)) == [proc.pid]
    other, path = python_script("print(flush=True); input()", "-X", "utf8", "-u")
    assert pids(stakeout("--json", path.name)) == [other.pid]


@pytest.mark.asan
def test_several_of_one_name(target, stakeout, program):
    path = program()
    both = [target(path).settle(), target(path).settle()]
    result = stakeout(path.name)
    assert result.code == 1 and result.out == "", result
    lines = result.err.splitlines()
    assert lines[0].split() == ["PID", "USER", "AGE", "THREADS", "COMMAND"]
    assert [int(line.split()[0]) for line in lines[1:-1]] == sorted(t.pid for t in both)
    assert all(line.endswith(str(path)) and " 2  " in line for line in lines[1:-1])
    assert f"2 processes are named '{path.name}'" in lines[-1] and "--all" in lines[-1]
    for all_of_them in ("-a", "--all"):
        assert pids(stakeout("--json", all_of_them, path.name)) == sorted(t.pid for t in both)


def test_list_fits_the_terminal(target, program):
    path = program()
    both = [target(path, "ä" * 100).settle(), target(path).settle()]
    code, said = on_a_terminal(path.name, columns=60, stream="stderr")
    *lines, last = said.splitlines()
    assert code == 1 and "--all" in last
    assert len(lines) == 1 + len(both) and all(len(line) <= 60 and line.endswith("…") for line in lines[1:]), said


def test_lists(target, stakeout, program):
    path, other = program(), program("signals")
    a, b = target(path).settle(), target(other).settle()
    assert pids(stakeout("--json", f"{other.name},{a.pid}")) == [b.pid, a.pid]
    assert pids(stakeout("--json", path.name, "-p", f"{a.pid},{b.pid}")) == [a.pid, b.pid], "each once"
    result = stakeout("--json", f"{a.pid},no-such-{path.name}")
    assert result.code == 3 and pids(result) == [a.pid] and "there is no process named" in result.err


def test_neither_itself_nor_its_parents(stakeout, tmp_path, unique):
    """Whoever runs it under a name is not what is looked for: `sudo stakeout nginx`."""
    script = tmp_path / unique()
    script.write_text('#!/bin/sh\n"$@"\n')
    script.chmod(0o755)
    result = stakeout(script.name, wrap=[script])
    assert result.code == 1 and f"there is no process named '{script.name}'" in result.err, result
    own = tmp_path / unique()
    shutil.copy(STAKEOUT, own)
    done = subprocess.run([own, own.name], capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 1 and "there is no process named" in done.stderr


def test_zombie_has_no_name(target, stakeout, program):
    path = program()
    proc = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        proc.stdout.readline()
        os.kill(proc.pid, signal.SIGKILL)
        os.waitid(os.P_PID, proc.pid, os.WEXITED | os.WNOWAIT)
        assert "there is no process named" in stakeout(path.name).err
    finally:
        proc.communicate(timeout=TIMEOUT)


def test_children(target, stakeout, program, python_script):
    """A name that parent and children share is that of the parent then."""
    path = program()
    text = f"""
import subprocess
child = subprocess.Popen(["{path}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(child.stdout.readline().decode(), child.pid, flush=True)
input()
"""
    proc, script = python_script(text)
    child = int(proc.stdout.readline())
    assert pids(stakeout("--json", "--children", script.name)) == [proc.pid, child]
    assert pids(stakeout("--json", "--children", proc.pid)) == [proc.pid, child]
    assert pids(stakeout("--json", script.name)) == [proc.pid]


def test_name_of_a_family(stakeout, python_script):
    text = """
import os, signal
here, there = os.pipe()
if os.fork():
    os.read(here, 1)
    print(flush=True)
else:
    os.write(there, b"x")
    signal.pause()
input()
"""
    proc, script = python_script(text)
    family = subprocess.run(["/usr/bin/pgrep", "-P", str(proc.pid)], capture_output=True, text=True)
    child = int(family.stdout)
    try:
        assert stakeout(script.name).code == 1, "two have it"
        assert pids(stakeout("--json", "--children", script.name)) == [proc.pid, child]
    finally:
        os.kill(child, signal.SIGKILL)


def test_thread_alone(target, stakeout):
    a, b = target("signals").settle(), target("plain").settle()
    result = stakeout("--json", "-t", a.tids["leaf"])
    assert result.code == 0 and pids(result) == [a.pid]
    assert [th["tid"] for th in result.doc["threads"]] == [a.tids["leaf"]]
    result = stakeout("--json", "-t", f"{a.tids['leaf']},{b.tids['worker']}")
    assert result.code == 0 and pids(result) == [a.pid, b.pid]
    assert [[th["tid"] for th in doc["threads"]] for doc in result.docs] == [[a.tids["leaf"]], [b.tids["worker"]]]


def test_thread_that_nobody_has(target, stakeout):
    t = target("plain").settle()
    gone = 2**31 - 1
    result = stakeout("-t", gone)
    assert result.code == 1 and f"there is no thread {gone}" in result.err
    assert stakeout("-t", f"{gone},{t.tids['worker']}").code == 3


@pytest.mark.parametrize("args", [["--all", "1"], ["--children", "-t", "1"], ["-t", "x"], ["-p", "1,"]], ids=" ".join)
def test_wrong(stakeout, args):
    result = stakeout(*args)
    assert result.code == 2 and result.out == "", result


def test_command_that_is_mistyped(stakeout):
    result = stakeout("ofcpu")
    assert result.code == 1 and "did you mean 'stakeout offcpu'?" in result.err


def test_recording_by_name(target, stakeout, program):
    path = program()
    a, b = target(path).settle(), target(path).settle()
    several = stakeout("offcpu", "-d", "0.1", "-p", path.name)
    assert several.code == 1 and f"2 processes are named '{path.name}'" in several.err and "--all" in several.err
    result = stakeout("offcpu", "-d", "0.1", "--json", "--all", "-p", path.name)
    assert {int(name.split(":")[0]) for name in result.doc["thread_stats"]} == {a.pid, b.pid}
    b.end()
    result = stakeout("offcpu", "-d", "0.1", "--json", "-p", path.name)
    assert {int(name.split(":")[0]) for name in result.doc["thread_stats"]} == {a.pid}
    missing = stakeout("offcpu", "-d", "0.1", "-p", f"{path.name},no-such-{path.name}")
    assert missing.code == 3 and f"there is no process named 'no-such-{path.name}'" in missing.out


def test_addresses_by_name(target, stakeout, snap, program):
    path = program()
    t = target(path).settle()
    address = snap(t)["threads"][0]["user_stack"][0]["address"]
    by_name = stakeout("symbolize", "-p", path.name, "-f", address)
    assert by_name.out == stakeout("symbolize", "-p", t.pid, "-f", address).out != "", by_name
    target(path).settle()
    several = stakeout("symbolize", "-p", path.name, "0")
    assert several.code == 1 and "2 processes are named" in several.err and "--all" not in several.err
