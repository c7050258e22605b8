# SPDX-License-Identifier: MIT
"""What threads that are blocked on descriptors and files wait for, and who has the other end."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from harness import NOBODY, ROOT, STAKEOUT, TIMEOUT, built, is_known, kernel_stack, rounds, run, stop, symbols, thread, until, wait_until

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

    return until(take, lambda wait: is_known(wait) or (wait and not settled))


def words(t, *args, who="waiter"):
    """The line of `why` about a thread."""
    out = run("why", *args, t.pid).out
    return next(line for line in out.splitlines() if line.startswith(f"tid {t.tids[who]} "))


def peers(wait):
    return [(p["pid"], p["comm"]) for p in wait["peers"]]


READS_FROM_A_CHILD = """
import os, subprocess
child = subprocess.Popen(["cat"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # until the test is over
print(f"ready {os.getpid()} waiter={os.getpid()} child={child.pid}", flush=True)
child.communicate()
"""


def test_pipes_of_a_child(target, source):
    """As most programs of Python call others: who writes to each of several pipes."""
    t = target(sys.executable, "-c", READS_FROM_A_CHILD)
    found = look(t, source)
    assert (found["kind"], found["set"]["total"], found["peers"]) == ("events", 2, [])
    assert [peers(member) for member in found["set"]["descriptors"]] == [[(t.tids["child"], "cat")]] * 2
    one = rf"read fd \d+: pipe \d+, written by pid {t.tids['child']} cat"
    assert re.search(rf"^tid {t.pid} \S+ waits to {one}, or to {one}$", run("why", source, t.pid).out, re.M)


@pytest.mark.asan
@pytest.mark.arch("bpf-read-empty", "proc-write-full")
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


def test_partner_without_a_main_thread(target, source):
    """Its other threads have the pipe."""
    t = target("descriptors", "pipe-headless").settle()
    assert peers(look(t, source)) == [(t.tids["child"], "partner")]


def test_thread_with_descriptors_of_its_own(target, bpf_files):
    """/proc would have to be read for each thread of the machine."""
    t = target("descriptors", "pipe-apart").settle()
    found = look(t)
    assert peers(found) == [(t.pid, "descriptors")] and found["peers_known"]


def kinds_in(wait):
    return {kind: n for kind, n in wait["set"]["kinds"].items() if n}


@pytest.mark.arch
def test_thread_waits_for_descriptors_of_its_own(target, source):
    """The same number is something else in the table of the process, which another thread waits for."""
    t = target("descriptors", "own-read").settle()
    found, other = look(t, source), look(t, source, who="other")
    assert found["descriptor"]["fd"] == other["descriptor"]["fd"]
    for wait, who in ((found, "waiter"), (other, "other")):
        assert wait["descriptor"]["name"] == os.readlink(f"/proc/{t.pid}/task/{t.tids[who]}/fd/{wait['descriptor']['fd']}")
    assert found["descriptor"]["name"] != other["descriptor"]["name"]
    assert peers(found) == [(t.tids["child"], "partner")]
    assert sorted(peers(other)) == sorted([(t.pid, "descriptors"), (t.tids["child"], "partner")])
    assert f"pipe {re.search('[0-9]+', found['descriptor']['name'])[0]}, which is empty, written by pid {t.tids['child']} partner" in words(t, source)


@pytest.mark.parametrize("what, own, others", [("epoll", {"timerfd": 1}, {"eventfd": 1}), ("poll", {"eventfd": 200}, {"pipe": 200})])
def test_thread_waits_for_events_of_its_own(target, source, what, own, others):
    """More than are looked at one by one, too."""
    t = target("descriptors", f"own-{what}").settle()
    assert (kinds_in(look(t, source)), kinds_in(look(t, source, who="other"))) == (own, others)


def test_thread_waits_for_a_lock_on_a_file_of_its_own(target, source, tmp_path):
    path = tmp_path / "locked"
    t = target("descriptors", "own-lock", path).settle()
    found = look(t, source)
    assert (found["kind"], found["descriptor"]["name"]) == ("file_lock", str(path))
    assert peers(found) == [(t.pid, "descriptors")]


@pytest.fixture
def bpf_files(bpf_missing, root):
    """Descriptors are looked at by BPF."""
    if bpf_missing or os.stat("/proc/self/ns/pid").st_ino != 0xEFFFFFFC:
        pytest.skip(bpf_missing or "not in the first pid namespace")
    if sum(name.isdigit() for name in os.listdir("/proc")) <= 32:
        pytest.skip("there are few processes")


def sees_the_first():
    """Not so where that one is protected even from root."""
    try:
        return all(os.readlink(link) for link in Path("/proc/1/fd").iterdir())
    except PermissionError:
        return False


def test_everybody_was_seen(target, unshare, source, root):
    """What the first process of a pid namespace has may be shared with others outside, who are not seen."""
    t = target("descriptors", "pipe-read").settle()
    if sees_the_first() or source == "--source=proc":  # BPF sees it all the same
        assert look(t, source)["peers_known"] == sees_the_first()
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


@pytest.mark.parametrize("what, offset", [("file-later", 10), ("file-pread-later", 20), ("file-preadv2-later", 10)])
def test_file(target, source, dead_fs, what, offset):
    path = dead_fs.mount / "file"
    t = target("descriptors", what, path)
    with dead_fs.dead():
        t.ask("go")
        found = until(lambda: look(t, source), lambda wait: wait["kind"] == "read")  # it may still sleep
        assert (found["kind"], found["descriptor"]["kind"], found["descriptor"]["name"]) == ("read", "file", str(path))
        assert found["descriptor"]["offset"] == offset and found["peers"] == []
        assert f": {path}, at byte {offset}" in words(t, source)


def socket(wait):
    return wait["descriptor"]["socket"]


@pytest.mark.asan
@pytest.mark.arch("bpf-tcp4to6-read-127.0.0.1", "proc-tcp-read-127.0.0.1")
@pytest.mark.parametrize("what, host", [("tcp-read", "127.0.0.1"), ("tcp6-read", "[::1]"), ("tcp4to6-read", "127.0.0.1"), ("tcp6to4-read", "127.0.0.1")])
def test_tcp(target, source, what, host):
    t = target("descriptors", what).settle()
    found = look(t, source)
    assert (found["kind"], socket(found)["protocol"], socket(found)["state"]) == ("read", "tcp", "established")
    local, remote = ends_of(t, found["descriptor"]["fd"])
    assert (socket(found)["local"], socket(found)["remote"]) == (f"{host}:{local}", f"{host}:{remote}")
    assert peers(found) == [(t.tids["child"], "partner")] and not socket(found)["listening"]
    assert words(t, source) == (
        f"tid {t.tids['waiter']} waiter reads fd {found['descriptor']['fd']}: tcp {host}:{local} → {host}:{remote} (established), "
        f"at the other end pid {t.tids['child']} partner"
    )


def ends_of(t, fd):
    """The ports of a TCP socket, by the kernel's table."""
    inode = os.readlink(f"/proc/{t.pid}/fd/{fd}")[len("socket:[") : -1]
    for file in ("tcp", "tcp6"):
        for line in Path(f"/proc/{t.pid}/net/{file}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] == inode:
                return [int(end.split(":")[1], 16) for end in fields[1:3]]
    raise AssertionError(f"no socket {inode}")


@pytest.mark.parametrize("what, protocol", [("tcp-write", "tcp"), ("pair-write", "unix")])
def test_full_socket(target, source, what, protocol):
    t = target("descriptors", what).settle()
    found = look(t, source)
    assert (found["kind"], socket(found)["protocol"]) == ("write", protocol)
    assert socket(found)["unsent"] > 0 and peers(found) == [(t.tids["child"], "partner")]
    assert re.search(", which is full: [0-9]+ bytes are not sent, at the other end pid ", words(t, source))


def test_udp(target, source):
    t = target("descriptors", "udp-read").settle()
    found = socket(look(t, source))
    assert found["protocol"] == "udp" and re.fullmatch(r"127\.0\.0\.1:\d+", found["local"]) and found["remote"] is None
    assert words(t, source).endswith(f": udp {found['local']}")


@pytest.mark.arch("bpf")
def test_unix(target, source, short_path):
    t = target("descriptors", "unix-read", short_path).settle()
    found = look(t, source)
    assert socket(found) == {
        "protocol": "unix", "state": "established", "local": None, "remote": str(short_path), "listening": False, "unread": 0, "unsent": 0,
    }
    assert peers(found) == [(t.tids["child"], "partner")]
    assert f": unix → {short_path} (established), at the other end pid {t.tids['child']} partner" in words(t)


def test_pair(target):
    t = target("descriptors", "pair-read").settle()
    assert words(t).endswith(f": unix (established), at the other end pid {t.tids['child']} partner")


@pytest.fixture
def short_path():
    """For a socket, whose path is short."""
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory) / "socket"


def test_netlink(target):
    t = target("descriptors", "netlink-read").settle()
    assert socket(look(t))["protocol"] == "netlink" and words(t).endswith(": netlink")


@pytest.mark.parametrize("what", ["tcp", "unix"])
def test_accept(target, source, what, short_path):
    t = target("descriptors", f"accept-{what}", short_path).settle()
    found = look(t, source)
    assert found["kind"] == "accept" and socket(found)["listening"] and socket(found)["state"] == "listening"
    assert re.fullmatch(str(short_path) if what == "unix" else r"127\.0\.0\.1:\d+", socket(found)["local"])
    fd = found["descriptor"]["fd"]
    assert words(t).endswith(f"waits for connections on fd {fd}: {what} {socket(found)['local']} (listening)")


@pytest.mark.parametrize("what", ["tcp", "unix"])
def test_connect(target, source, what, short_path):
    t = target("descriptors", f"connect-{what}", short_path).settle()
    found = look(t, source)
    assert found["kind"] == "connect" and not found["timed"]
    assert re.fullmatch(str(short_path) if what == "unix" else r"127\.0\.0\.1:\d+", found["remote_address"])
    if what == "tcp":
        assert socket(found)["state"] == "connecting" and f"→ {found['remote_address']} (connecting)" in words(t)
    else:
        assert words(t).endswith(f": unix to {short_path}, which is of this process itself")
    assert peers(found) == [(t.pid, "descriptors")]  # who listens there


OTHERS = {
    "eventfd": ("eventfd", "eventfd, whose count is 0"),
    "timerfd": ("timerfd", r"timer, which expires in 59 min \d+ s"),
    "timerfd-unset": ("timerfd", "timer, which is not set"),
    "signalfd": ("signalfd", "signalfd"),
    "inotify": ("inotify", "inotify"),
    "terminal": ("terminal", r"terminal /dev/pts/\d+"),
    "terminal-master": ("terminal", "terminal /dev/(pts/)?ptmx"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_descriptors(target, what):
    kind, word = OTHERS[what]
    t = target("descriptors", what).settle()
    found = look(t)
    assert (found["kind"], found["descriptor"]["kind"], found["peers"]) == ("read", kind, [])
    assert (found["descriptor"]["left_ms"] is not None) == (what == "timerfd")
    assert re.search(rf" waiter reads fd {found['descriptor']['fd']}: {word}$", words(t))


def test_ring(target):
    t = target("descriptors", "io_uring")
    if "cannot" in t.tids:
        pytest.skip("io_uring is not there")
    found = look(t.settle())
    assert (found["kind"], found["descriptor"]["kind"]) == ("events", "io_uring")
    assert words(t).endswith(f"waits for completions of fd {found['descriptor']['fd']}: io_uring")


@pytest.mark.asan
@pytest.mark.arch("bpf")
def test_poll_one(target, source):
    """As a program reads that has a time limit for it."""
    t = target("descriptors", "poll-tcp").settle()
    found = look(t, source)
    assert (found["kind"], found["timed"], found["descriptor"]) == ("events", False, None)
    (only,) = found["set"]["descriptors"]
    assert (only["kind"], only["events"], only["socket"]["protocol"]) == ("socket", 1, "tcp")
    assert peers(found) == [(t.tids["child"], "partner")]
    assert f" waits to read fd {only['fd']}: tcp 127.0.0.1:" in words(t)


def test_pidfd(target):
    t = target("descriptors", "poll-pidfd").settle()
    (only,) = look(t)["set"]["descriptors"]
    assert (only["kind"], only["pid"]) == ("pidfd", t.tids["child"])
    assert words(t).endswith(f": pidfd of pid {t.tids['child']}")


@pytest.mark.asan
@pytest.mark.arch("bpf-poll", "proc-select")
@pytest.mark.parametrize("call", ["poll", "select"])
def test_two(target, source, call):
    t = target("descriptors", f"{call}-two").settle()
    found = look(t, source)
    assert found["timed"] == (call == "poll")
    assert found["set"]["kinds"] == {"eventfd": 1, "pipe": 1} and found["set"]["total"] == 2
    assert {(d["kind"], d["events"]) for d in found["set"]["descriptors"]} == {("eventfd", 1), ("pipe", 4)}
    line = words(t)
    assert re.search(r"write fd \d+: pipe \d+", line) and re.search(r"read fd \d+: eventfd, whose count is 0", line)
    assert bool(re.search(", for another .* at most", line)) == (call == "poll")


@pytest.mark.arch
def test_restarted(target):
    """A call that was interrupted, and goes on, is told as before; on some processors it is another one to the kernel."""
    t = target("descriptors", "poll-two").settle()
    before = look(t)
    stop(t.pid)
    os.kill(t.pid, signal.SIGCONT)
    again = look(t.settle())
    assert {d["fd"]: d["kind"] for d in again["set"]["descriptors"]} == {d["fd"]: d["kind"] for d in before["set"]["descriptors"]}
    assert again["timed"]


def test_same_path_elsewhere(target, unshare, tmp_path, root):
    """A fifo of the same path in another mount namespace is another one."""
    apart = [unshare, "-m", "sh", "-c", f'mount -t tmpfs none {tmp_path} && exec "$@"', "sh"]
    t = target("descriptors", "fifo", tmp_path / "fifo").settle()
    other = target("descriptors", "fifo", tmp_path / "fifo", wrap=apart).settle()
    for one in (t, other):
        assert peers(look(one)) == [(one.tids["child"], "partner")]


def test_same_inode_elsewhere(target, unshare, source, tmp_path, root):
    """Fifos of two file systems with the same inode, and the same path, are two, also if both are waited for."""
    path = tmp_path / "fifo"
    apart = [unshare, "-m", "sh", "-c", f'mount -t tmpfs none {tmp_path} && exec "$@"', "sh"]
    both = [target("descriptors", "fifo", path, wrap=apart).settle() for _ in range(2)]
    inodes = {os.stat(f"/proc/{t.pid}/root{path}").st_ino for t in both}
    if len(inodes) > 1:
        pytest.skip("this kernel gives no two files in memory the same inode")

    def take():
        doc = run("why", "--json", source, *(t.pid for t in both)).doc
        return [thread(doc, t.tids["waiter"])["waits_for"] for t in both]

    found = until(take, lambda waits: all(is_known(wait) for wait in waits))
    assert [peers(wait) for wait in found] == [[(t.tids["child"], "partner")] for t in both]


def test_fifo_of_several_paths(target, unshare, source, tmp_path, root):
    """A hard link, and a mount of its directory in another namespace: who writes there is found."""
    path, linked, mounted = tmp_path / "fifo", tmp_path / "linked", tmp_path / "mounted"
    mounted.mkdir()
    t = target("descriptors", "fifo", path).settle()
    os.link(path, linked)
    script = f"mount --bind {tmp_path} {mounted} && exec 3>{mounted}/fifo && echo ready && read -r line"
    other = subprocess.Popen([unshare, "-m", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    writer = os.open(linked, os.O_WRONLY)
    try:
        assert other.stdout.readline() == b"ready\n"
        assert {pid for pid, _ in peers(look(t, source))} == {t.tids["child"], other.pid, os.getpid()}
    finally:
        os.close(writer)
        other.kill()
        other.communicate(timeout=TIMEOUT)


@pytest.mark.asan
@pytest.mark.arch("bpf")
def test_epoll(target, source):
    t = target("descriptors", "epoll").settle()
    found = look(t, source)
    assert (found["kind"], found["descriptor"]["kind"]) == ("events", "epoll")
    assert found["set"]["kinds"] == {"pipe": 1, "socket": 2, "eventfd": 1, "timerfd": 1} and found["set"]["listening"] == 1
    assert sorted(d["socket"]["protocol"] for d in found["set"]["descriptors"] if d["socket"]) == ["tcp", "unix"]
    line = f" waits for events of epoll fd {found['descriptor']['fd']}: 1 pipe, 2 sockets (1 listening), 1 eventfd, 1 timer"
    assert words(t, source).endswith(line)
    each = run("why", "-v", source, t.pid).out
    assert re.search(r"^    accept on fd \d+: tcp 127\.0\.0\.1:\d+ \(listening\)$", each, re.M)
    assert re.search(r"^    read fd \d+: timer, which is not set$", each, re.M)
    assert re.search(r"^    read fd \d+: timer, which is not set$", run("-v", source, t.pid).out, re.M)


def test_many(target):
    """Ten thousand sockets are counted, and some are told one by one."""
    t = target("descriptors", "epoll-many")
    if "cannot" in t.tids:
        pytest.skip("so many descriptors are not allowed")
    found = look(t.settle())
    assert found["set"]["kinds"] == {"socket": 10001, "eventfd": 1} and found["set"]["listening"] == 1
    assert found["set"]["total"] == 10002 and len(found["set"]["descriptors"]) == 1024
    out = run("why", t.pid).out
    assert re.search(r"^2 threads wait for events of epoll fd \d+: 10001 sockets \(1 listening\), 1 eventfd each$", out, re.M), out


def test_epoll_that_does_not_answer(target, root):
    """Whoever has it locked waits for memory: the kernel does not tell what it watches, as long as that takes."""
    t = target("descriptors", "epoll-stuck")
    if "cannot" in t.tids:
        pytest.skip("no userfaultfd for this user")
    wait_until(lambda: "userfault" in kernel_stack(t.pid, t.tids["waiter"]), "the thread waits for memory")
    r = run("why", "--json", "--patience", "300ms", t.pid)
    assert r.code == 3 and any("has one of them locked" in note for note in r.doc["notes"]), r
    assert thread(r.doc, t.tids["waiter"])["waits_for"]["kind"] == "userfault"


def waits_of_all(t, source):
    """What each thread waits for, when all of it is certain; and what was tried for that."""

    def take():
        r = run("--json", "--debug", source, t.pid)
        assert r.code in (0, 3), r
        return {th["tid"] if th["name"] != "poller" else "poller": th["waits_for"] for th in r.doc["threads"]}, r.err

    return until(take, lambda seen: all(is_known(wait) for wait in seen[0].values()))


def without_doubt(wait):
    on = wait["descriptor"]
    return {**wait, "peers_known": None, "descriptor": on and {**on, "peers_known": None}}


def assert_same(by_bpf, by_proc):
    if sees_the_first():
        assert by_bpf == by_proc
    else:  # so that /proc cannot tell whether somebody else has it
        assert without_doubt(by_bpf) == without_doubt(by_proc)


def rested(t):
    """What all threads wait for, when they have slept for so long that it is gathered between the two passes over them."""
    gathered = re.compile(r"gathered between the two passes over them$", re.M)
    return until(lambda: waits_of_all(t, "--source=bpf"), lambda seen: gathered.search(seen[1]))[0]


@pytest.mark.arch
def test_sources_tell_the_same(target, bpf_files, tmp_path):
    """Many descriptors are looked at by BPF, in one read, and their other ends in another; /proc tells the same."""
    t = target("descriptors", "crowd", tmp_path / "fifo")
    by_bpf, tried = waits_of_all(t, "--source=bpf")
    shown = [int(n) for n in re.findall(r"over open files shows (\d+) descriptors", tried)]
    assert len(shown) >= 2 and min(shown) >= 120, tried  # all once more if somebody was started meanwhile
    assert rested(t) == by_bpf
    by_proc, tried = waits_of_all(t, "--source=proc")
    assert "over open files" not in tried
    assert by_bpf.keys() == by_proc.keys() and len(by_bpf) == 142
    polled = by_bpf.pop("poller")
    assert polled == by_proc.pop("poller")
    assert polled["set"]["kinds"] == {"file": 1, "pipe": 20, "fifo": 20, "socket": 80, "eventfd": 20}
    kinds = [wait["descriptor"]["kind"] for wait in by_bpf.values()]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {"pipe": 21, "fifo": 20, "socket": 80, "eventfd": 20}
    for tid, wait in by_bpf.items():
        assert_same(wait, by_proc[tid])
        if wait["descriptor"]["kind"] != "eventfd" and tid != t.pid:
            assert (t.tids["child"], "partner") in peers(wait)


@pytest.mark.arch
@pytest.mark.parametrize("count, servers", [("few", 3), ("many", 140)])
def test_sockets_tell_the_same(target, bpf_files, count, servers):
    """Where there are thousands of sockets BPF tells what those of TCP are, as the kernel's list of them does."""
    t = target("descriptors", f"serve-{count}").settle()
    if "cannot" in t.tids:
        pytest.skip("so many descriptors are not allowed")
    by_bpf, tried = waits_of_all(t, "--source=bpf")
    assert "over open files shows" in tried and "sockets of TCP" in tried
    assert rested(t) == by_bpf
    by_proc, _ = waits_of_all(t, "--source=proc")
    assert by_bpf.keys() == by_proc.keys() and len(by_bpf) == servers + 4
    for tid, wait in by_bpf.items():
        assert_same(wait, by_proc[tid])
    in_set = {d["socket"]["state"]: d["socket"] for d in by_bpf["poller"]["set"]["descriptors"] if d["socket"]["protocol"] == "tcp"}
    assert in_set.keys() == {"established", "listening"} and in_set["established"]["unread"] == 7
    assert socket(by_bpf[t.tids["acceptor"]])["state"] == "listening"
    assert socket(by_bpf[t.tids["waiter"]])["state"] == "connecting" and peers(by_bpf[t.tids["waiter"]]) == [(t.pid, "descriptors")]
    texts = [re.sub(r"stakeout: .*", "", run("why", source, t.pid).out) for source in ("--source=bpf", "--source=proc")]
    assert all(re.search(rf"^{servers} threads read tcp sockets of clients of \[::1\]:\d+: ", text, re.M) for text in texts), texts


RESTED = {
    "descriptors": ("pipe-read", "own-read", "pipe-apart", "tcp-read", "pair-read", "epoll", "poll-tcp", "poll-pidfd", "splice-pipes-full", "servers", "chain"),
    "states": ("children", "group", "pidfd", "semaphore", "message", "room", "posix-message", "posix-room"),
}


@pytest.mark.parametrize("program", RESTED)
def test_rested(target, bpf_files, program):
    """What is gathered between the two passes is what is gathered after them, as always where two processes are looked at."""
    targets = [target(program, what).settle() for what in RESTED[program]]
    beside = target("sleepers")
    for what, t in zip(RESTED[program], targets, strict=True):

        def look_at_two(t=t):
            (doc,) = (doc for doc in run("--json", "--source=bpf", t.pid, beside.pid).docs if doc["pid"] == t.pid)
            return {th["tid"]: th["waits_for"] for th in doc["threads"]}

        waits = until(look_at_two, lambda waits: all(is_known(wait) for wait in waits.values()))
        assert rested(t) == waits, what


def test_sockets_of_another_network(target, bpf_files):
    """Nobody is asked for these in the wrong namespace: who listens is not known then, but who is at the other end is."""
    t = target("descriptors", "serve-elsewhere").settle()
    if "cannot" in t.tids:
        pytest.skip("no descriptors or no namespace for this user")
    waits, _ = waits_of_all(t, "--source=bpf")
    served = [wait for wait in waits.values() if wait["descriptor"] and (wait["descriptor"]["socket"] or {}).get("state") == "established"]
    assert len(served) == 3 and all(peers(wait) == [(t.pid, "descriptors")] for wait in served), waits
    connects = waits[t.tids["waiter"]]
    assert socket(connects)["state"] == "connecting" and not peers(connects)
    assert "of clients of" not in run("why", "--source=bpf", t.pid).out


def test_servers(target):
    """Those that serve clients of one address are one group."""
    t = target("descriptors", "servers").settle()
    doc = until(lambda: run("why", "--json", t.pid).doc, lambda doc: all(is_known(th["waits_for"]) for th in doc["threads"]))
    ends = [socket(th["waits_for"]) for th in doc["threads"] if th["name"] == "server"]
    assert len(ends) == 40 and len({end["remote"] for end in ends}) == 40
    (local,) = {end["local"] for end in ends}
    out = run("why", t.pid).out
    assert re.search(rf"^40 threads read tcp sockets of clients of {local}: (127\.0\.0\.1:\d+, ){{3}}…, at the other end this process itself$", out, re.M), out
    assert len(out.splitlines()) < 12


def test_chain(target, source):
    t = target("descriptors", "chain").settle()
    out = run("why", source, t.pid).out
    fd = look(t, source, who="worker-3")["descriptor"]["fd"]
    chain = rf"^31 threads wait for mutex cache_lock 0x[0-9a-f]+ \(descriptors\+0x[0-9a-f]+\), held by tid {t.tids['worker-3']} worker-3, "
    assert re.search(chain + rf"which reads fd {fd}: tcp 127\.0\.0\.1:\d+ → 127\.0\.0\.1:\d+ \(established\), at the other end pid {t.tids['child']} partner$", out, re.M), out


@pytest.mark.parametrize("what", ["open-fifo", "open-fifo-at"])
def test_open(target, source, tmp_path, what):
    path = tmp_path / "fifo"
    t = target("descriptors", what, path).settle()
    found = look(t, source)
    assert (found["kind"], found["path"], found["descriptor"]) == ("open", str(path), None)
    assert words(t, source).endswith(f" waiter opens {path}")


def test_relative_path(target, tmp_path):
    t = target("descriptors", "open-fifo", "fifo", cwd=tmp_path).settle()
    assert look(t)["path"] == str(tmp_path / "fifo")


def test_runs_all_the_while(target):
    """What is said of a thread that goes on all the time is certain only if it fits what the thread was seen in."""
    t = target("descriptors", "ping-pong")
    seen = set()
    for _ in rounds(60):
        r = run("why", "--json", t.pid)
        assert r.code in (0, 3), r
        for th in r.doc["threads"]:
            wait = th["waits_for"]
            seen.add(bool(wait and wait["certain"]))
            if wait and th["name"] in ("ping", "pong") and wait["kind"] != "cpu":
                assert wait["kind"] in ("read", "write") and wait["descriptor"]["kind"] == "pipe"
                assert th["state"] != "R" and peers(wait) == [(t.pid, "descriptors")]
    assert True in seen, seen  # of the main thread, which does nothing


def test_number_that_changes(target, source):
    """What is certain fits the stack, which is of the instant of the snapshot, even if the descriptor is soon another one."""
    t = target("descriptors", "changing")

    def take():
        r = run("--json", source, t.pid)
        assert r.code in (0, 3), r
        found = thread(r.doc, "waiter")
        wait = found["waits_for"]
        if not wait or wait["kind"] != "read" or not wait["certain"]:
            return False
        kind = {"wait_for_pipe": "pipe", "wait_for_socket": "socket"}[next(n for n in symbols(found) if n and n.startswith("wait_for_"))]
        assert wait["descriptor"]["kind"] == kind and wait["descriptor"]["fd"] == 100, found
        return True

    for _ in rounds(80):
        take()
    t.ask("go")  # it changes no more
    wait_until(take, "it is certain what it waits for")


@pytest.mark.parametrize("what", ["tcp-read", "unix-read"])
def test_other_network(target, unshare, source, short_path, what, root):
    """The tables of another network namespace are read there."""
    up = [unshare, "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    t = target("descriptors", what, short_path, wrap=up).settle()
    assert os.readlink(f"/proc/{t.pid}/ns/net") != os.readlink("/proc/self/ns/net")
    found = look(t, source)
    assert (socket(found)["protocol"], socket(found)["state"]) == (what[:-5], "established")
    assert peers(found) == [(t.tids["child"], "partner")]


@pytest.mark.parametrize("what", ["tcp-read", "unix-read", "udp-read", "accept-tcp"])
def test_other_network_without_rights(target, short_path, what, root):
    """Who may not enter it reads the tables that /proc has of it."""
    os.chmod(short_path.parent, 0o777)
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    apart = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if subprocess.run([*apart, "true"], capture_output=True, **user).returncode:
        pytest.skip("users may not make namespaces")
    t = target("descriptors", what, short_path, wrap=apart, **user).settle()
    found = until(lambda: thread(run("why", "--json", t.pid, **user).doc, t.tids["waiter"])["waits_for"], is_known)
    assert socket(found)["protocol"] in what
    if what == "tcp-read":
        assert socket(found)["state"] == "established" and peers(found) == [(t.tids["child"], "partner")]
        assert [int(socket(found)[end].split(":")[1]) for end in ("local", "remote")] == ends_of(t, found["descriptor"]["fd"])
    elif what == "accept-tcp":
        assert socket(found)["listening"]


def test_ordinary_user(target):
    """For processes of one's own it takes no rights; what others have is not seen, and then it is not said that all was."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    t = target("descriptors", "tcp-read", user=NOBODY, group=NOBODY, extra_groups=[]).settle()

    def take():
        doc = run("why", "--json", t.pid, user=NOBODY, group=NOBODY, extra_groups=[]).doc
        assert sum("not ours to look at" in note for note in doc["notes"]) == 1, doc["notes"]
        return thread(doc, t.tids["waiter"])["waits_for"]

    found = until(take, is_known)
    assert socket(found)["state"] == "established" and not found["peers_known"]
    assert peers(found) == [(t.tids["child"], "partner")]


def test_no_waits(target):
    """Nothing is said, and nothing was looked at."""
    t = target("descriptors", "chain").settle()
    doc = run("--json", "--no-waits", t.pid).doc
    assert all(th["waits_for"] is None for th in doc["threads"])
    assert "waits for" not in run("--no-waits", t.pid).out and "reads fd" not in run("--no-waits", t.pid).out
    seen = run("--no-waits", t.pid, wrap=["strace", "-f", "-e", "trace=readlinkat,openat,socket", "-o", "/dev/fd/2"]) if shutil.which("strace") else None
    assert seen is None or "fdinfo" not in seen.err


SAVED = ["pipe-read", "pipe-write", "fifo", "tcp-read", "epoll", "poll-two", "open-fifo", "connect-tcp", "timerfd", "eventfd", "pair-write",
         "terminal", "netlink-read", "accept-tcp", "poll-pidfd", "tee-full", "splice-pipes-full"]


def told(text):
    """All but the first line, which has the times of the run itself, and the notes on what could be looked at."""
    return [line for line in text.splitlines()[1:] if not line.startswith("note:")]


@pytest.mark.parametrize("what", SAVED)
def test_replay(target, tmp_path, what):
    """A saved snapshot tells the same, in JSON and in words, on any machine."""
    t = target("descriptors", what, tmp_path / "fifo").settle()
    file = tmp_path / "snap"
    live = run("--save", file, "--json", t.pid).doc
    again = run("replay", "--json", file).doc
    assert thread(again, "waiter")["waits_for"] == thread(live, "waiter")["waits_for"] is not None
    live = run("--save", file, t.pid).out
    assert told(run("replay", file).out) == told(live) and "waiter" in live


def test_snapshot_says_it_too(target):
    t = target("descriptors", "pipe-read").settle()
    assert re.search(rf"^  reads fd \d+: pipe \d+, which is empty, written by pid {t.tids['child']} partner$", run(t.pid).out, re.M)


@pytest.mark.parametrize("what", ["pipe-read", "tcp-read", "epoll", "open-fifo", "connect-tcp"])
def test_schema(target, tmp_path, what):
    jsonschema = pytest.importorskip("jsonschema")
    t = target("descriptors", what, tmp_path / "fifo").settle()
    for command, schema in (("why", "why"), ("snapshot", "snapshot")):
        doc = run(command, "--json", t.pid).doc
        jsonschema.validate(doc, json.loads((ROOT / f"docs/schema/{schema}.schema.json").read_text()))
