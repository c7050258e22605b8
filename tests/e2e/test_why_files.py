# SPDX-License-Identifier: MIT
"""Locks on files, and processes that can only be helped by each other."""

import ctypes
import os
import pathlib
import re
import sys

import pytest
from harness import is_known, run, until, wait_of

HOWS = ("flock", "fcntl", "ofd")


def look(*args, **how):
    r = run("why", "--json", *args, **how)
    assert r.code in (0, 3, 4), r
    return r.doc


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
def apart(pid_namespace):
    return pid_namespace


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


@pytest.mark.arch("pipe", "poll")
@pytest.mark.parametrize("how", ["pipe", "socket", "poll"])
def test_ends_of_each_other(target, tmp_path, apart, how):
    """Both read what the other one is to write."""
    pids = list(target("file_locks", tmp_path, how, "reader", wrap=apart).tids.values())
    doc = until(lambda: look(*pids, wrap=apart), lambda doc: doc["deadlocks"])
    assert [{m["tid"] for m in d} for d in doc["deadlocks"]] == [set(pids)]
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


CONNECTING = """
import os, select, socket
listener = socket.create_server(("127.0.0.1", 0), backlog=0)
sockets = []
while not sockets or select.select([], sockets[-1:], [], 0.3)[1]:  # until nobody more is let in
    sockets.append(socket.socket())
    sockets[-1].setblocking(False)
    sockets[-1].connect_ex(listener.getsockname())
print(f"ready {os.getpid()} main={os.getpid()}", flush=True)
poll = select.poll()
poll.register(sockets[-1], select.POLLOUT)
poll.poll()
"""


def test_connection_that_is_being_made(target, apart):
    """The process itself listens there; but the kernel gives up after some time."""
    pid = target(sys.executable, "-c", CONNECTING, wrap=apart).tids["main"]
    doc = until(lambda: look(pid, wrap=apart), lambda doc: (wait_of(doc, pid) or {}).get("kind") == "events" and wait_of(doc, pid)["certain"])
    (member,) = wait_of(doc, pid)["set"]["descriptors"]
    assert member["socket"]["state"] == "connecting" and wait_of(doc, pid)["peers"] == []
    assert doc["deadlocks"] == [] and not doc["maybe_more_deadlocks"]


READ_FROM_EACH_OTHER = """
import os
ours, theirs = os.pipe(), os.pipe()
child = os.fork()
for fd in (theirs[0], ours[1]) if child else (ours[0], theirs[1]):
    os.close(fd)
if child:
    print(f"ready {os.getpid()} main={os.getpid()} child={child}", flush=True)
os.read(ours[0] if child else theirs[0], 1)
"""


def test_strangers(target, root, as_nobody):
    """An ordinary user does not see who else may have the other ends, such as process 1."""
    scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
    if scope.exists() and scope.read_text() != "0\n":
        pytest.skip("ordinary users may not look at what has not asked for it")
    pids = list(target(sys.executable, "-c", READ_FROM_EACH_OTHER, wrap=as_nobody).tids.values())

    def is_read(doc, pid):
        wait = wait_of(doc, pid) or {}
        return wait.get("kind") == "read" and len(wait["peers"]) == 1

    doc = until(lambda: look(*pids, wrap=as_nobody), lambda doc: all(is_read(doc, pid) for pid in pids) and doc["maybe_more_deadlocks"])
    assert doc["deadlocks"] == doc["likely_deadlocks"] == []
    assert any(note.endswith("but not all processes could be looked at.") for note in doc["notes"]), doc["notes"]
    r = until(lambda: run("why", *pids, wrap=as_nobody), lambda r: "nobody is known" in r.out)
    assert r.code == 3 and "\nSome threads wait for each other, and nobody is known who could end that; but not all processes" in r.out, r
    assert "No deadlock" not in r.out


SOCKETS = {  # a pair of processes that read from each other, by a socket that has a time limit or may have one
    "limit": "a, b = socket.socketpair(); a.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack('ll', 3600, 0))",
    "tcp": "l = socket.create_server(('127.0.0.1', 0)); a = socket.create_connection(l.getsockname()); b, _ = l.accept(); l.close()",
}


@pytest.mark.parametrize("how", SOCKETS)
def test_sockets_that_may_have_a_limit(target, how):
    code = f"""
import os, socket, struct
{SOCKETS[how]}
child = os.fork()
(b if child else a).close()
if child:
    print(f"ready {{os.getpid()}} main={{os.getpid()}} child={{child}}", flush=True)
os.read((a if child else b).fileno(), 1)
"""
    pids = list(target(sys.executable, "-c", code).tids.values())
    doc = until(lambda: look(*pids), lambda doc: doc["maybe_more_deadlocks"] and all(is_known(wait_of(doc, pid)) for pid in pids))
    assert doc["deadlocks"] == []
    r = until(lambda: run("why", *pids), lambda r: "look again" not in r.out)
    assert r.code == 3 and "on sockets that may have a time limit of their own (SO_RCVTIMEO, SO_SNDTIMEO).\n" in r.out


OWN_PIPE = "r, w = os.pipe(); print(f'ready {os.getpid()} main={os.getpid()}', flush=True); os.read(r, 1)"
RING = "libc.syscall(425, 1, (ctypes.c_char * 120)())"  # io_uring_setup
CALLED_AWAY = {  # what may end a wait, and whether that is known to be nothing
    "nothing": ("pass", True),
    "handler": ("signal.signal(signal.SIGUSR1, print)", False),
    "Ctrl-C": ("signal.signal(signal.SIGINT, print)", False),
    "timer": ("signal.signal(signal.SIGALRM, print); signal.alarm(3600)", False),
    "ring": (f"ring = {RING}; assert ring >= 0; area = mmap.mmap(ring, 4096)", False),
    "fault": ("import faulthandler; faulthandler.enable()", True),
}


@pytest.mark.arch("nothing", "timer", "ring")
@pytest.mark.parametrize("what", CALLED_AWAY)
def test_pipe_of_ones_own(target, apart, what):
    """It waits for ever, unless a handler writes to the pipe, as event loops do; or the kernel does."""
    setting, forever = CALLED_AWAY[what]
    code = f"import ctypes, mmap, os, signal; libc = ctypes.CDLL(None); signal.signal(signal.SIGINT, signal.SIG_DFL); {setting}; {OWN_PIPE}"
    if what == "ring" and not has_rings():
        pytest.skip("no io_uring here")
    pid = target(sys.executable, "-c", code, wrap=apart).tids["main"]
    doc = until(lambda: look(pid, wrap=apart), lambda doc: (wait_of(doc, pid) or {}).get("kind") == "read" and wait_of(doc, pid)["certain"])
    assert [[m["tid"] for m in d] for d in doc["deadlocks"]] == ([[pid]] if forever else [])
    assert not doc["maybe_more_deadlocks"]
    assert "written by this process itself" in run("why", pid, wrap=apart).out


def has_rings():
    ring = ctypes.CDLL(None).syscall(425, 1, ctypes.create_string_buffer(120))
    if ring >= 0:
        os.close(ring)
    return ring >= 0


CHILDREN = {  # how a parent waits for a child that reads from it, and whether nobody else can end that
    "one": ("os.waitpid(child.pid, 0)", True),
    "any": ("os.wait()", False),  # it may trace others
    "handler": ("signal.signal(signal.SIGTERM, print); os.waitpid(child.pid, 0)", False),
}


@pytest.mark.parametrize("how", CHILDREN)
def test_child_that_reads_from_its_parent(target, apart, how):
    waiting, forever = CHILDREN[how]
    ready = "print(f'ready {os.getpid()} main={os.getpid()} child={child.pid}', flush=True)"
    code = f"import os, signal, subprocess; child = subprocess.Popen(['cat'], stdin=subprocess.PIPE); {ready}; {waiting}"
    pids = list(target(sys.executable, "-c", code, wrap=apart).tids.values())
    doc = until(lambda: look(*pids, wrap=apart), lambda doc: all(is_known(wait_of(doc, pid)) for pid in pids))
    assert [{m["tid"] for m in d} for d in doc["deadlocks"]] == ([set(pids)] if forever else [])
    assert doc["maybe_more_deadlocks"] == (how == "handler")
    if how == "handler":
        r = run("why", *pids, wrap=apart)
        assert r.code == 3 and "\nSome threads wait for each other, unless a signal handler of one of their processes, or an io_uring, ends that.\n" in r.out


IDLE = """
import os, select, signal, socket
signal.signal(signal.SIGTERM, print)
ours, theirs = socket.socketpair()
child = os.fork()
(theirs if child else ours).close()
if child:
    print(f"ready {os.getpid()} main={os.getpid()} child={child}", flush=True)
poll = select.poll()
poll.register(ours if child else theirs, select.POLLIN)
poll.poll()
"""


def test_idle_loops_of_events(target, apart):
    """Two that wait to hear from each other, or for a signal: as they are all day."""
    pids = list(target(sys.executable, "-c", IDLE, wrap=apart).tids.values())
    doc = until(lambda: look(*pids, wrap=apart), lambda doc: all(is_known(wait_of(doc, pid)) for pid in pids))
    assert [peer["pid"] for pid in pids for peer in wait_of(doc, pid)["peers"]] == pids[::-1]
    assert doc["deadlocks"] == [] and not doc["maybe_more_deadlocks"]


def test_vmsplice_takes_from_a_pipe(target, apart):
    """It goes by the end of the pipe that it is given."""
    splice = "libc.vmsplice(r, (ctypes.c_void_p * 2)(ctypes.addressof(room), 16), ctypes.c_ulong(1), 0)"
    code = f"""
import ctypes, os, time
libc, room = ctypes.CDLL(None), ctypes.create_string_buffer(16)
r, w = os.pipe()
child = os.fork()
if child:
    print(f"ready {{os.getpid()}} main={{os.getpid()}} child={{child}}", flush=True)
    time.sleep(3600)
os.close(w)
{splice}
"""
    tids = target(sys.executable, "-c", code, wrap=apart).tids
    doc = until(lambda: look(tids["child"], wrap=apart), lambda doc: is_known(wait_of(doc, tids["child"])))
    found = wait_of(doc, tids["child"])
    assert found["kind"] == "read" and [peer["pid"] for peer in found["peers"]] == [tids["main"]]
    assert doc["deadlocks"] == []
