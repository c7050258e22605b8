# SPDX-License-Identifier: MIT
"""Locks on files, and processes that can only be helped by each other."""

import re
import subprocess
import sys

import pytest
from harness import child_of, run, until

HOWS = ("flock", "fcntl", "ofd")


def look(*args, **how):
    r = run("why", "--json", *args, **how)
    assert r.code in (0, 3, 4), r
    return r.doc


def wait_of(doc, tid):
    return next(th["waits_for"] for th in doc["threads"] if th["tid"] == tid)


def waiting(tids, *args, **how):
    """The document, once all of these are known to wait for a lock on a file."""

    def certain(wait):
        return wait and wait["kind"] == "file_lock" and wait["certain"]

    return until(lambda: look(*args, **how), lambda doc: all(certain(wait_of(doc, tid)) for tid in tids))


@pytest.mark.parametrize("how", HOWS)
def test_who_has_the_lock(target, tmp_path, source, how):
    holder = target("file_locks", tmp_path, how, "holder")
    waiter = target("file_locks", tmp_path, how, "waiter")
    found = wait_of(waiting([waiter.pid], source, waiter.pid), waiter.pid)
    assert found["descriptor"]["name"] == str(tmp_path / "a")
    assert found["peers"] == [{"pid": holder.pid, "comm": "file_locks", "state": None}]
    start, end = (0, None) if how == "flock" else (10, 19)
    assert found["file_lock"] == {"kind": how, "writes": True, "start": start, "end": end}
    where = "" if how == "flock" else r"bytes 10 to 19 of "
    words = rf"waits for a write lock \({how if how == 'flock' else 'fcntl'}.*\) on {where}fd \d+: {tmp_path}/a, held by pid {holder.pid} \(file_locks\), which "
    assert re.search(words + "is not looked at: give it, too", run("why", source, waiter.pid).out)
    assert re.search(words + r"(is in p(ause|poll)\(|waits for a signal)", run("why", source, waiter.pid, holder.pid).out)


def test_all_holders(target, tmp_path, root):
    """Who has the same open file can let go of the lock, too, though it was another one that took it."""
    holder = target("file_locks", tmp_path, "flock", "parent")
    waiter = target("file_locks", tmp_path, "flock", "waiter")
    found = wait_of(waiting([waiter.pid], waiter.pid), waiter.pid)
    assert {peer["pid"] for peer in found["peers"]} == {holder.pid, holder.tids["child"]}


def test_saved_wait(target, tmp_path):
    holder = target("file_locks", tmp_path, "ofd", "holder")
    waiter = target("file_locks", tmp_path, "ofd", "waiter")
    waiting([waiter.pid], waiter.pid)
    file = tmp_path / "snap"
    assert run("--save", file, waiter.pid).code == 0
    (th,) = run("replay", "--json", file).doc["threads"]
    assert th["waits_for"]["file_lock"] == {"kind": "ofd", "writes": True, "start": 10, "end": 19}
    assert [peer["pid"] for peer in th["waits_for"]["peers"]] == [holder.pid]


@pytest.fixture
def apart(unshare, tool):
    """
    A command that runs another one in a pid namespace of its own, where all processes can be seen: elsewhere the descriptors of some may be
    nobody's to see, and nothing is known for sure.
    """
    nsenter = tool("nsenter")
    first = subprocess.Popen([unshare, "--pid", "--fork", "--mount-proc", "--kill-child", "sleep", "infinity"])
    yield [nsenter, "--target", str(child_of(first.pid, "sleep")), "--pid", "--mount"]
    first.kill()
    first.wait()


@pytest.fixture
def pair(target, tmp_path, apart):
    """pair(HOW, BESIDE…): two processes, each of which wants what the other has."""

    def start(how, *beside):
        both = [target("file_locks", tmp_path, how, role, *beside, wrap=apart) for role in ("first", "second")]
        for t in both:
            t.proc.stdin.write(b"\n")
        return both

    return start


@pytest.mark.parametrize("how", ["flock", "ofd"])  # of the others the kernel knows: EDEADLK
@pytest.mark.parametrize("beside", [(), ("mutex",), ("idle",)])
def test_locks_of_each_other(pair, apart, how, beside):
    pids = [t.tids["main"] for t in pair(how, *beside)]
    doc = waiting(pids, *pids, wrap=apart)
    if beside == ("idle",):  # a thread that may close the file any time
        assert doc["deadlocks"] == [] and not doc["maybe_more_deadlocks"]
        return
    doc = until(lambda: look(*pids, wrap=apart), lambda doc: doc["deadlocks"])
    (deadlock,) = doc["deadlocks"]
    assert {m["pid"] for m in deadlock} == set(pids)
    assert len(deadlock) == (4 if beside else 2)
    r = run("why", *pids, wrap=apart)
    assert r.code == 4
    assert f"DEADLOCK: {len(deadlock)} threads of 2 processes wait for each other\n" in r.out
    if beside:  # a node for each process, which leads on to its threads
        drawn = until(lambda: run("why", "--dot", *pids, wrap=apart), lambda r: r.code == 4).out
        assert drawn.count("any thread of it") == 2 and drawn.count("arrowhead=none") == 4, drawn
    alone = look(pids[0], wrap=apart)
    assert alone["deadlocks"] == []


@pytest.mark.parametrize("how", ["flock", "ofd"])
def test_lock_of_ones_own(target, tmp_path, apart, how):
    """By another descriptor of the same file."""
    pid = target("file_locks", tmp_path, how, "twice", wrap=apart).tids["main"]
    doc = until(lambda: look(pid, wrap=apart), lambda doc: doc["deadlocks"])
    assert [[m["tid"] for m in d] for d in doc["deadlocks"]] == [[pid]]
    assert "held by this process itself" in run("why", pid, wrap=apart).out


@pytest.mark.arch
@pytest.mark.parametrize("how", ["pipe", "socket", "poll"])
def test_ends_of_each_other(target, tmp_path, apart, how):
    """Both read what the other one is to write; but a socket may have a time limit that nobody sees."""
    pids = list(target("file_locks", tmp_path, how, "reader", wrap=apart).tids.values())
    doc = until(lambda: look(*pids, wrap=apart), lambda doc: doc["deadlocks"] or (how == "socket" and doc["maybe_more_deadlocks"]))
    assert [{m["tid"] for m in d} for d in doc["deadlocks"]] == ([] if how == "socket" else [set(pids)])
    assert look(pids[0], wrap=apart)["deadlocks"] == []


READY = "print(f'ready {os.getpid()} main={os.getpid()}', flush=True); p.poll()"
READER = "r, w = os.pipe(); child = subprocess.Popen(['sleep', '3600'], pass_fds=[r]); os.close(r)"
ENDED_BY_OTHERS = {
    "hang-up": f"{READER}; p.register(w, 0)",  # whoever reads may go away
    "closed": f"{READER}; p.register(w, select.POLLIN)",  # how event loops wait for that
    "datagram": "s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0)); s.connect(('127.0.0.1', 9)); p.register(s, select.POLLIN)",
}


@pytest.mark.parametrize("what", ENDED_BY_OTHERS)
def test_others_can_end_it(target, apart, what):
    """Though it has the end itself that others write to by what they wait for."""
    code = f"import os, select, socket, subprocess; p = select.poll(); {ENDED_BY_OTHERS[what]}; {READY}"
    pid = target(sys.executable, "-c", code, wrap=apart).tids["main"]
    doc = until(lambda: look(pid, wrap=apart), lambda doc: (wait_of(doc, pid) or {}).get("kind") == "events" and wait_of(doc, pid)["certain"])
    assert doc["deadlocks"] == []
    assert [peer["comm"] for peer in wait_of(doc, pid)["peers"]] == ([] if what == "datagram" else ["sleep"])
    if what == "closed":
        assert re.search(r"waits to see the end of fd \d+: pipe \d+, read by pid \d+ sleep", run("why", pid, wrap=apart).out)
