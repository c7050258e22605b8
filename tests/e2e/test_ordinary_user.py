# SPDX-License-Identifier: MIT
"""A user without any right, and so without BPF, on processes of their own; with each setting of yama."""

import os
import subprocess
from pathlib import Path

import pytest
from harness import NOBODY, SANITIZER_ENV, STAKEOUT, TIMEOUT, assert_calls, built, child_of, symbols, thread

pytestmark = pytest.mark.usefixtures("root")

SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
SCOPES = ["none", 0, 1, 2]


@pytest.fixture(params=SCOPES)
def scope(request):
    """How far yama lets processes be traced; it is the whole machine's."""
    wanted = request.param
    if (wanted == "none") != (not SCOPE.exists()):
        pytest.skip("this kernel has no yama" if wanted != "none" else "this kernel has yama")
    before = SCOPE.read_text() if SCOPE.exists() else None
    if before and int(before) == 3:
        pytest.skip("kernel.yama.ptrace_scope is 3, and stays so")
    if before:
        SCOPE.write_text(str(wanted))
    yield 0 if wanted == "none" else wanted
    if before:
        SCOPE.write_text(before)


@pytest.fixture
def own(target, as_nobody):
    return target("spinners", "loop", wrap=as_nobody).settle("loop")


alone = pytest.mark.alone("it changes a setting of the kernel that all other tests depend on")


@alone
@pytest.mark.parametrize("stop", ["auto", "all"])
def test_snapshot(scope, own, stakeout, as_nobody, stop):
    """Whole stacks, of running threads too; or what is in the way, and what helps."""
    result = stakeout("--json", f"--stop={stop}", own.pid, wrap=as_nobody)
    if scope:
        assert result.code == 3 and result.err == "", result  # what the threads are called, and what they do
        for th in result.doc["threads"]:
            assert (th["status"], th["user_stack"]) == ("not_permitted", []), th
            assert f"sudo sysctl kernel.yama.ptrace_scope=0 (it is {scope})" in th["status_reason"], th
            runs = th["name"] == "loop" and stop == "auto"
            assert th["status_reason"].startswith("it runs, and ptrace was refused") == runs, th
    else:
        assert result.code == 0 and result.doc["capture"]["method"] != "bpf", result
        assert symbols(thread(result.doc, "loop"))[0] == "spin_loop"
        assert_calls(thread(result.doc, own.pid), "target_serve", "main")
    own.assert_progress()


@alone
def test_root_is_not_concerned(scope, own, stakeout):
    assert stakeout(own.pid).code == 0


@alone
def test_doctor(scope, own, stakeout, as_nobody):
    """It says of the process what the commands will do."""
    doc = stakeout("doctor", "--json", own.pid, wrap=as_nobody).doc
    found = {finding["name"]: finding for finding in doc["findings"]}
    assert found["bpf"]["state"] == "fails"
    assert (found["process_vm_readv"]["state"] == "works") == (scope == 0), found["process_vm_readv"]
    if scope:
        assert "kernel.yama.ptrace_scope=0" in found["process_vm_readv"]["remedy"]


@alone
def test_waits_over_time(scope, own, stakeout, as_nobody):
    """By looking at /proc again and again, which yama has no say in but for user stacks."""
    result = stakeout("offcpu", "--json", "-d", "0.3", "-p", own.pid, wrap=as_nobody)
    assert result.code == 3 and result.doc["estimate"], result


def test_names(own, stakeout, as_nobody):
    doc = stakeout("--json", own.pid, wrap=as_nobody).doc
    pc = thread(doc, "loop")["user_stack"][0]["address"]
    result = stakeout("symbolize", "-f", "-p", own.pid, pc, wrap=as_nobody)
    assert result.code == 0 and "spin_loop" in result.out, result


def test_parser(as_nobody):
    """There is nothing to give up but ways to do harm."""
    proc = subprocess.Popen(
        [*as_nobody, STAKEOUT, "symbolize", "-e", built("plain")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **SANITIZER_ENV},
    )
    try:
        status = Path(f"/proc/{child_of(proc.pid, 'stakeout-parser')}/status")
        proc.stdin.write(b"0\n")
        proc.stdin.flush()
        assert proc.stdout.readline()
        text = status.read_text()
    finally:
        proc.kill()
        proc.communicate(timeout=TIMEOUT)
    for line in ("NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000", f"Uid:\t{NOBODY}\t"):
        assert line in text, text
