# SPDX-License-Identifier: MIT
"""What threads that are blocked on descriptors and files wait for, and who has the other end."""

import json
import os
import re
import subprocess
import sys

import pytest
from deadfs import DeadFs, need_fuse
from harness import ROOT, STAKEOUT, TIMEOUT, built, run, thread, until

# Looks at a target from the pid namespace that it is in.
INSIDE = """
import subprocess, sys
program, target = sys.argv[1:]
started = subprocess.Popen([target, "pipe-read"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
pid = started.stdout.readline().split()[1].decode()
sys.stdout.buffer.write(subprocess.run([program, "why", "--json", pid], capture_output=True).stdout)
started.kill()
started.wait()
"""


def look(t, *args, who="waiter", settled=True):
    """The wait of a thread, by `why`; certain, unless the test says that it may not be."""

    def take():
        r = run("why", "--json", *args, t.pid)
        assert r.code in (0, 3), r
        return thread(r.doc, t.tids[who])["waits_for"]

    return until(take, lambda wait: wait and (wait["certain"] or not settled))


def words(t, *args, who="waiter"):
    """The line of `why` about a thread."""
    out = run("why", *args, t.pid).out
    return next(line for line in out.splitlines() if line.startswith(f"tid {t.tids[who]} "))


def peers(wait):
    return [(p["pid"], p["comm"]) for p in wait["peers"]]


@pytest.mark.asan
@pytest.mark.arch
@pytest.mark.parametrize("kind, state", [("read", "empty"), ("write", "full")])
def test_pipe(target, source, kind, state):
    t = target("descriptors", f"pipe-{kind}").settle()
    found = look(t, source)
    assert (found["kind"], found["timed"], found["address"], found["holder"]) == (kind, False, None, "not_recorded")
    assert found["descriptor"]["kind"] == "pipe"
    assert peers(found) == [(t.tids["child"], "partner")]
    inode = re.fullmatch(r"pipe:\[(\d+)\]", found["descriptor"]["name"])[1]
    by = {"read": "written", "write": "read"}[kind]
    assert words(t, source) == (
        f"tid {t.tids['waiter']} waiter {kind}s fd {found['descriptor']['fd']}: pipe {inode}, which is {state}, {by} by pid {t.tids['child']} partner"
    )


def test_own_pipe(target, root):
    """Nobody else can ever write to it."""
    t = target("descriptors", "pipe-own").settle()
    found = look(t)
    assert peers(found) == [(t.pid, "descriptors")]
    assert words(t).endswith(", written by this process itself")


def test_everybody_was_seen(target, unshare, root):
    """What the first process of a pid namespace has may be shared with others outside, who are not seen."""
    t = target("descriptors", "pipe-read").settle()
    assert look(t)["peers_known"]
    inner = [unshare, "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "-c", INSIDE, STAKEOUT, built("descriptors")]
    doc = json.loads(subprocess.run(inner, capture_output=True, check=True, timeout=TIMEOUT).stdout)
    waits = {th["name"]: th["waits_for"] for th in doc["threads"]}
    assert [p["comm"] for p in waits["waiter"]["peers"]] == ["partner"] and waits["waiter"]["peers_known"]
    assert [p["pid"] for p in waits["descriptors"]["peers"]] == [1] and not waits["descriptors"]["peers_known"]


def test_fifo(target, source, tmp_path):
    path = tmp_path / "a fifo"
    t = target("descriptors", "fifo", path).settle()
    found = look(t, source)
    assert (found["descriptor"]["kind"], found["descriptor"]["name"]) == ("fifo", str(path))
    assert peers(found) == [(t.tids["child"], "partner")] and not found["peers_known"]
    assert f": fifo {path}, which is empty, written by pid {t.tids['child']} partner" in words(t)


@pytest.fixture
def dead_file(tmp_path):
    """A file that can be opened, but not read."""
    need_fuse()
    shown, mount = tmp_path / "shown", tmp_path / "mount"
    shown.mkdir()
    mount.mkdir()
    (shown / "file").write_bytes(b"x" * 100)
    fs = DeadFs(shown, mount)
    yield fs
    fs.end()


def test_file(target, source, dead_file):
    path = dead_file.mount / "file"
    t = target("descriptors", "file-later", path)
    with dead_file.dead():
        t.ask("go")
        found = look(t, source)
        assert (found["kind"], found["descriptor"]["kind"], found["descriptor"]["name"]) == ("read", "file", str(path))
        assert found["descriptor"]["offset"] == 10 and found["peers"] == []
        assert words(t, source).endswith(f": {path}, at byte 10")


@pytest.mark.parametrize("what", ["pipe-read", "pipe-write", "fifo"])
def test_replay(target, tmp_path, what):
    """A saved snapshot tells the same, on any machine."""
    t = target("descriptors", what, tmp_path / "fifo").settle()
    file = tmp_path / "snap"
    live = run("--save", file, "--json", t.pid).doc
    again = run("replay", "--json", file).doc
    assert thread(again, "waiter")["waits_for"] == thread(live, "waiter")["waits_for"] is not None


def test_snapshot_says_it_too(target):
    t = target("descriptors", "pipe-read").settle()
    assert re.search(rf"^  reads fd \d+: pipe \d+, which is empty, written by pid {t.tids['child']} partner$", run(t.pid).out, re.M)


@pytest.mark.parametrize("what", ["pipe-read"])
def test_schema(target, what):
    jsonschema = pytest.importorskip("jsonschema")
    t = target("descriptors", what).settle()
    for command, schema in (("why", "why"), ("snapshot", "snapshot")):
        doc = run(command, "--json", t.pid).doc
        jsonschema.validate(doc, json.loads((ROOT / f"docs/schema/{schema}.schema.json").read_text()))
