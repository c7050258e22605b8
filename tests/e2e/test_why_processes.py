# SPDX-License-Identifier: MIT
"""What threads wait for that other processes have: locks in shared memory."""

import os
import re
import sys

import pytest
from harness import child_of, is_known, native, rounds, run, until, wait_of, wait_until

LOOKS = int(os.environ.get("STAKEOUT_TEST_LOOKS", "60"))  # at programs with many locks
KINDS = {"mutex": "mutex", "robust": "mutex", "pi": "mutex", "rwlock": "write_lock"}


def look(*args):
    r = run("why", "--json", *args)
    assert r.code in (0, 3, 4), r
    return r.doc


def blocked(tids, *args):
    """The document, once all of these wait for a lock that somebody is known to have."""

    def holders(doc):
        return [(wait_of(doc, tid) or {"holder": None})["holder"] for tid in tids]

    return until(lambda: look(*args), lambda doc: all(holder in ("thread", "ended") for holder in holders(doc)))


def all_maps_are_seen():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            open(f"/proc/{pid}/maps").read()
        except PermissionError:
            return False
        except (FileNotFoundError, ProcessLookupError):
            pass
    return True


@pytest.fixture
def pair(target, tmp_path):
    """pair(KIND, ROLE, ROLE): two processes that share locks."""

    def start(kind, one, other, **how):
        return [target("locks_shared", tmp_path / "memory", kind, role, **how) for role in (one, other)]

    return start


@pytest.mark.arch
@pytest.mark.parametrize("kind", [kind if kind == "robust" else native(kind) for kind in KINDS])
def test_owner_in_another_process(pair, source, kind):
    holder, waiter = pair(kind, "holder", "waiter")
    doc = until(
        lambda: blocked([waiter.tids["waiter"]], source, holder.pid, waiter.pid),
        lambda doc: wait_of(doc, waiter.tids["waiter"])["certain"],
    )
    found = wait_of(doc, waiter.tids["waiter"])
    assert (found["kind"], found["holder"], found["shared"]) == (KINDS[kind], "thread", True)
    assert (found["owner_tid"], found["owner_pid"]) == (holder.tids["holder"], holder.pid)
    text = run("why", source, waiter.pid, holder.pid).out
    assert re.search(rf"waits for .*, held by tid {holder.tids['holder']} holder of pid {holder.pid} \(locks_shared\), which (is in p(ause|poll)\(|waits for a signal)", text), text


@pytest.mark.parametrize("kind", ["mutex", "robust", "rwlock"])
def test_deadlock_between_processes(pair, source, kind):
    both = pair(kind, "first", "second")
    tids = [both[0].tids["first"], both[1].tids["second"]]
    doc = until(lambda: blocked(tids, source, *(t.pid for t in both)), lambda doc: doc["deadlocks"])
    assert sorted((m["pid"], m["tid"]) for m in doc["deadlocks"][0]) == sorted(zip((t.pid for t in both), tids))
    r = run("why", source, *(t.pid for t in both))
    assert r.code == 4
    assert "DEADLOCK: 2 threads of 2 processes wait for each other\n" in r.out


def test_only_one_of_them(pair):
    """The owner is named all the same, and that it should be given, too."""
    first, second = pair("mutex", "first", "second")
    doc = blocked([second.tids["second"]], second.pid)
    found = wait_of(doc, second.tids["second"])
    assert (found["owner_tid"], found["owner_pid"], found["certain"]) == (first.tids["first"], first.pid, False)
    assert doc["deadlocks"] == [] and not doc["maybe_more_deadlocks"]
    words = rf"held by tid {first.tids['first']} of pid {first.pid} \(locks_shared\), which is not looked at: give it, too"
    assert re.search(words, run("why", second.pid).out)
    assert re.search(words, run(second.pid).out)


def test_other_pid_namespace(pair, target, unshare, tmp_path):
    """Numbers of one namespace mean nothing in another: nobody is named, nor is anything certain."""
    holder = target("locks_shared", tmp_path / "memory", "mutex", "holder")
    there = target(
        "locks_shared", tmp_path / "memory", "mutex", "waiter", wrap=[unshare, "--pid", "--fork", "--mount-proc", "--kill-child"]
    )
    pid = child_of(there.pid, "locks_shared")

    def locks(doc):
        return [th["waits_for"] for th in doc["threads"] if th["pid"] == pid and th["waits_for"] and th["waits_for"]["kind"] == "mutex"]

    (found,) = locks(until(lambda: look(pid, holder.pid), locks))
    assert (found["kind"], found["owner_pid"], found["certain"]) == ("mutex", None, False)
    assert found["owner_tid"] == holder.tids["holder"]  # as memory has it
    assert "of another process, which is not known" in run("why", pid).out


def test_same_pid_namespace(target, unshare, tmp_path):
    """In a namespace of their own numbers are small, but mean the same for both."""
    script = '"$0" "$1" mutex first <&3 3<&- & "$0" "$1" mutex second <&3 3<&- & wait'
    there = target(
        "locks_shared",
        tmp_path / "memory",
        wrap=[unshare, "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", f"exec 3<&0; {script}"],
    )
    shell = child_of(there.pid, "sh")

    def processes():
        with open(f"/proc/{shell}/task/{shell}/children") as f:
            return [int(pid) for pid in f.read().split()]

    doc = until(lambda: look(*processes()), lambda doc: doc["deadlocks"] or doc["maybe_more_deadlocks"])
    if all_maps_are_seen():
        assert sorted(m["pid"] for m in doc["deadlocks"][0]) == sorted(processes())
    else:  # somebody else may share the memory
        assert doc["deadlocks"] == []


RING_IN_SHARED_MEMORY = """
import ctypes, mmap, os, sys, threading
libc = ctypes.CDLL(None)
with open(sys.argv[1], "w+b") as file:
    file.truncate(4096)
    memory = mmap.mmap(file.fileno(), 4096)
attributes = ctypes.create_string_buffer(64)
libc.pthread_mutexattr_init(attributes)
libc.pthread_mutexattr_setpshared(attributes, 1)
mutexes = [ctypes.byref(ctypes.c_char.from_buffer(memory, at)) for at in (0, 64)]
for mutex in mutexes:
    libc.pthread_mutex_init(mutex, attributes)
both = threading.Barrier(2)

def take(first, second):
    libc.pthread_mutex_lock(first)
    both.wait()
    libc.pthread_mutex_lock(second)

for order in mutexes, mutexes[::-1]:
    threading.Thread(target=take, args=order, daemon=True).start()
print(f"ready {os.getpid()} main={os.getpid()}", flush=True)
threading.Event().wait()
"""


@pytest.mark.parametrize("else_has_it", [False, True])
def test_one_process_of_a_pid_namespace(target, pid_namespace, tmp_path, else_has_it):
    """Its numbers for its own threads mean those, unless the memory is shared with a process that has others."""
    memory = tmp_path / "memory"
    there = target(sys.executable, "-c", RING_IN_SHARED_MEMORY, memory, wrap=pid_namespace)
    pid = child_of(there.pid, os.path.basename(sys.executable))
    if else_has_it:
        target("locks_shared", memory, "mutex", "healthy")

    def mutexes(doc):
        return [th["waits_for"] for th in doc["threads"] if th["waits_for"] and th["waits_for"]["kind"] == "mutex"]

    doc = until(lambda: look(pid), lambda doc: len(mutexes(doc)) == 2 and (doc["deadlocks"] or doc["maybe_more_deadlocks"]))
    assert all(wait["shared"] and wait["holder"] == "thread" and wait["owner_pid"] == pid for wait in mutexes(doc))
    if else_has_it or not all_maps_are_seen():
        assert doc["deadlocks"] == []
    else:
        doc = until(lambda: look(pid), lambda doc: doc["deadlocks"])
        assert [len(members) for members in doc["deadlocks"]] == [2]


def test_somebody_else_may_have_it(pair, target, unshare, tmp_path):
    """Where a process of another namespace shares the memory, a number may be its own."""
    both = pair("mutex", "first", "second")
    target("locks_shared", tmp_path / "memory", "mutex", "waiter", wrap=[unshare, "--pid", "--fork", "--mount-proc", "--kill-child"])
    tids = [both[0].tids["first"], both[1].tids["second"]]
    doc = blocked(tids, *(t.pid for t in both))
    assert doc["deadlocks"] == [] and doc["maybe_more_deadlocks"]
    assert not any(wait_of(doc, tid)["certain"] for tid in tids)


def test_doubts_are_saved(target, unshare, tmp_path):
    """Where a process of another namespace shares the memory, not even an owner of the same process is certain, nor is it on replay."""
    t = target("locks_shared", tmp_path / "memory", "mutex", "both")

    def certain(*args):
        r = run(*args, "--json")
        assert r.code in (0, 3, 4), r
        found = wait_of(r.doc, t.tids["waiter"])
        return found and found["kind"] == "mutex" and found["holder"] == "thread" and found["certain"]

    if all_maps_are_seen():
        wait_until(lambda: certain(t.pid), "it is certain as long as there is nobody else")
    target("locks_shared", tmp_path / "memory", "mutex", "waiter", wrap=[unshare, "--pid", "--fork", "--mount-proc", "--kill-child"])
    wait_until(lambda: certain("--save", tmp_path / "saved", t.pid) is False, "it waits")
    assert certain("replay", tmp_path / "saved") is False


def test_memory_that_is_not_shared(target, tmp_path):
    """After a fork the child has a copy of the lock, and nobody opens that."""
    t = target("locks_shared", tmp_path / "memory", "mutex", "private")
    child = child_of(t.pid, "child")
    doc = until(lambda: look(child, t.pid), lambda doc: wait_of(doc, child))
    found = wait_of(doc, child)
    assert (found["kind"], found["holder"], found["owner_pid"], found["certain"]) == ("mutex", "ended", None, False)
    said = run("why", child).out
    assert f"held by tid {found['owner_tid']}, which is no thread of the process\n" in said  # but one of its parent, which lives


def test_first_process_of_a_container(target, unshare, tmp_path):
    """Its number is 1, and it lives, as its child says that waits for a lock of before the fork."""
    there = target(
        "locks_shared", tmp_path / "memory", "mutex", "private", wrap=[unshare, "--pid", "--fork", "--mount-proc", "--kill-child"]
    )
    child = child_of(child_of(there.pid, "locks_shared"), "child")
    until(lambda: look(child), lambda doc: (wait_of(doc, child) or {"kind": None})["kind"] == "mutex")
    assert "held by tid 1, which is no thread of the process\n" in run("why", child).out


@pytest.mark.arch
def test_lock_of_the_parent_after_vfork(target, source, tmp_path):
    """The child of a vfork() has the memory of its parent, and waits for a mutex that this one has."""
    t = target("vfork_parent", "lock")
    child, saved = t.tids["child"], tmp_path / "saved"
    doc = until(lambda: look(source, child), lambda doc: wait_of(doc, child) and wait_of(doc, child)["kind"] == "mutex")
    found = wait_of(doc, child)
    assert (found["holder"], found["owner_tid"], found["owner_pid"]) == ("thread", t.pid, t.pid)
    parent = f"pid {t.pid} (vfork_parent)"
    assert f", held by tid {t.pid} of {parent}, which is not looked at" in run("why", source, child).out
    assert f", held by tid {t.pid} vfork_parent of {parent}" in run("why", source, child, t.pid).out
    run(source, "--save", saved, child)
    assert f", held by tid {t.pid} of {parent}" in run("replay", saved).out


@pytest.mark.arch
def test_deadlock_after_vfork(target, source):
    """The child waits for a mutex of its parent, which waits for the child."""
    t = target("vfork_parent", "lock")
    doc = until(lambda: look(source, t.pid, t.tids["child"]), lambda doc: doc["deadlocks"])
    assert sorted((m["pid"], m["tid"]) for m in doc["deadlocks"][0]) == sorted((pid, pid) for pid in (t.pid, t.tids["child"]))
    found = wait_of(doc, t.tids["child"])
    assert (found["holder"], found["owner_tid"], found["owner_pid"], found["certain"]) == ("thread", t.pid, t.pid, True)
    r = run("why", source, t.pid, t.tids["child"])
    assert r.code == 4 and "DEADLOCK: 2 threads of 2 processes wait for each other\n" in r.out


HELD_WHILE_READING = """
import ctypes, mmap, os, signal
libc, memory, (r, w) = ctypes.CDLL(None), mmap.mmap(-1, 4096), os.pipe()
attributes, mutex = ctypes.create_string_buffer(64), ctypes.byref(ctypes.c_char.from_buffer(memory))
libc.pthread_mutexattr_init(attributes)
libc.pthread_mutexattr_setpshared(attributes, 1)
libc.pthread_mutex_init(mutex, attributes)
libc.pthread_mutex_lock(mutex)
child = os.fork()
if child:
    os.close(w)
    print(f"ready {os.getpid()} main={os.getpid()} child={child}", flush=True)
    os.read(r, 1)
os.close(r)
HANDLER
libc.pthread_mutex_lock(mutex)
"""
BESIDE_A_LOCK = {  # what the child has that waits for the parent's mutex, and whether it can then not write
    "nothing": ("pass", True),
    "Ctrl-C": ("signal.signal(signal.SIGINT, print)", True),
    "timer": ("signal.signal(signal.SIGALRM, lambda *_: os.write(w, b'x')); signal.alarm(3600)", False),
}


@pytest.mark.parametrize("what", BESIDE_A_LOCK)
def test_handler_in_a_thread_that_waits_for_a_lock(target, pid_namespace, what):
    """The parent has the mutex, and reads what only the child could write, be it in a handler."""
    handler, forever = BESIDE_A_LOCK[what]
    pids = list(target(sys.executable, "-c", HELD_WHILE_READING.replace("HANDLER", handler), wrap=pid_namespace).tids.values())

    def look_there():
        r = run("why", "--json", *pids, wrap=pid_namespace)
        assert r.code in (0, 3, 4), r
        return r.doc

    doc = until(look_there, lambda doc: all(is_known(wait_of(doc, pid)) for pid in pids))
    assert [{m["tid"] for m in d} for d in doc["deadlocks"]] == ([set(pids)] if forever else [])
    assert doc["maybe_more_deadlocks"] == (not forever)


def test_healthy_processes(pair):
    """Always somebody waits for somebody, also of the other process, but never all round."""
    both = pair("mutex", "healthy", "healthy-too")
    pids = {t.pid for t in both}
    seen = set()

    def look_again():
        r = run("why", "--json", *pids)
        assert r.code in (0, 3), r
        assert r.doc["deadlocks"] == []
        seen.update(
            (th["pid"] == th["waits_for"]["owner_pid"], th["waits_for"]["certain"])
            for th in r.doc["threads"]
            if th["waits_for"] and th["waits_for"]["owner_pid"] in pids
        )
        return {(True, True), (False, True)} <= seen

    for _ in rounds(LOOKS):
        look_again()
    wait_until(look_again, "both kinds of waits were seen")
