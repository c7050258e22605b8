# SPDX-License-Identifier: MIT
"""Calls of which it is not plain what they wait for: with two descriptors, of devices, of several messages, and of a child that is begun."""

import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest
from harness import NOBODY, is_known, run, state, thread, until, wait_until
from test_why_descriptors import look, socket, words

EITHER = {
    "splice-empty": ("read", "pipe"),
    "splice-full": ("write", "pipe"),
    "splice-pipes-empty": ("read", "pipe"),
    "splice-pipes-full": ("write", "pipe"),
    "tee-empty": ("read", "pipe"),
    "tee-full": ("write", "pipe"),
    "sendfile-full": ("write", "socket"),
}


@pytest.mark.parametrize("what", EITHER)
def test_either(target, source, tmp_path, what, root):
    """Calls with two descriptors: which of them it is tell functions of the kernel."""
    t = target("descriptors", what, tmp_path / "file").settle()
    found = look(t, source)
    assert (found["kind"], found["descriptor"]["kind"], found["guessed"]) == (*EITHER[what], False)
    full = {"read": "reads fd .*, which is empty", "write": "writes fd .*, which is full"}[found["kind"]]
    assert re.search(f" waiter {full}", words(t, source)) and "other descriptor" not in words(t, source)


def test_either_is_guessed(target, root):
    """Who may not see functions of the kernel does not know it, and says so."""
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    t = target("descriptors", "splice-pipes-full", **user).settle()
    found = until(lambda: thread(run("why", "--json", t.pid, **user).doc, t.tids["waiter"])["waits_for"], is_known)
    assert (found["descriptor"]["kind"], found["guessed"], found["peers_known"]) == ("pipe", True, False)
    out = run("why", t.pid, **user).out
    assert re.search(r" waiter reads fd \d+: pipe \d+, .*or waits for the other descriptor of the call", out), out


def test_device(target, source, root):
    """Of a device nothing is read but its name: its driver might not answer."""
    t = target("descriptors", "device", "/dev/kmsg")
    if "cannot" in t.tids:
        pytest.skip("/dev/kmsg cannot be read")
    found = look(t.settle(), source)
    assert (found["kind"], found["descriptor"]["name"], found["descriptor"]["offset"]) == ("read", "/dev/kmsg", None)
    fd = found["descriptor"]["fd"]
    assert words(t, source).endswith(f" waiter reads fd {fd}: /dev/kmsg")
    if shutil.which("strace"):
        seen = run("why", source, t.pid, wrap=["strace", "-f", "-e", "trace=openat,openat2", "-o", "/dev/fd/2"])
        assert f'"{fd}", O_' not in seen.err.replace("O_PATH", ""), seen.err


def test_several_messages(target, source):
    """recvmmsg(), whose time limit does not end the wait for the first one."""
    t = target("descriptors", "udp-several").settle()
    found = look(t, source)
    assert (found["kind"], socket(found)["protocol"], found["timed"]) == ("read", "udp", False)
    assert words(t, source).endswith(f": udp {socket(found)['local']}")


def test_child_that_is_about_to_execute(target, source, tmp_path):
    """posix_spawn() in a thread: its child has to open a fifo first."""
    path = tmp_path / "fifo"
    t = target("descriptors", "spawn", path)
    try:
        wait_until(lambda: state(t.pid, t.tids["waiter"]) == "D", "the thread waits for its child")
        found = look(t, source)
        (child,) = found["peers"]
        assert found["kind"] == "vfork" and child["comm"] == "waiter"
        said = f"waits for its child {child['pid']} waiter to execute a program or end (vfork), which sleeps"
        assert until(lambda: words(t, source), lambda line: line.endswith(said))
        r = run("why", "--json", source, child["pid"])
        assert thread(r.doc, child["pid"])["waits_for"]["path"] == str(path), r
    finally:
        os.close(wait_until(lambda: opened(path), "the child goes on"))


def opened(path):
    """For writing; None: nobody reads there yet."""
    try:
        return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


def test_replay_of_a_guess(target, tmp_path, root):
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    t = target("descriptors", "splice-pipes-full", **user).settle()
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        file = Path(directory) / "snap"
        live = run("--save", file, "--json", t.pid, **user).doc
        found = thread(run("replay", "--json", file).doc, "waiter")["waits_for"]
        assert found == thread(live, "waiter")["waits_for"] and found["guessed"]
        assert "or waits for the other descriptor of the call" in run("replay", file).out
