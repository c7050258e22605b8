# SPDX-License-Identifier: MIT
"""What threads wait for that is neither a lock nor a descriptor: children, time, signals, and states that others put them into."""

import json
import os
import re
import signal
import subprocess
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness import (
    NOBODY,
    ROOT,
    TIMEOUT,
    Target,
    built,
    child_of,
    is_known,
    native,
    run,
    state,
    stop,
    thread,
    until,
    wait_for_zombie,
    wait_until,
)

HOUR = 3600 * 10**9
CANNOT = 77
CGROUPS = Path("/sys/fs/cgroup")


@pytest.fixture
def states(target):
    """states(WHAT): a target that waits for that; the test is skipped where it cannot."""

    def start(what):
        tried = subprocess.Popen([built("states"), what], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        said = tried.stdout.readline()
        tried.kill()
        _, complaint = tried.communicate(timeout=TIMEOUT)
        if not said:
            pytest.skip(f"{what}: {complaint.decode().strip()}")
        return target("states", what)

    return start


def look(pid, tid, *args, wanted=is_known):
    """What a thread waits for, by `why`, once that is as wanted."""

    def take():
        r = run("why", "--json", *args, pid)
        assert r.code in (0, 3), r
        return thread(r.doc, tid)["waits_for"]

    return until(take, lambda wait: wait and wanted(wait))


def words(pid, tid, *args):
    """What `why` says of a thread."""
    out = run("why", *args, pid).out
    return next(re.sub(r"^tid \d+ \S+ ", "", line) for line in out.splitlines() if line.startswith(f"tid {tid} "))


SLEEPS = ("sleep", "sleep-heap", "sleep-monotonic", "sleep-realtime", "sleep-boottime", "select", "poll")


@pytest.mark.arch
@pytest.mark.parametrize("what", [what if what == "sleep" else native(what) for what in SLEEPS])
def test_time(states, source, what):
    t = states(what).settle()
    found = look(t.pid, t.tids["waiter"], source)
    assert (found["kind"], found["timed"], found["address"], found["peers"]) == ("time", True, None, [])
    assert 0 < found["left_ns"] <= HOUR
    absolute = what in ("sleep-monotonic", "sleep-realtime", "sleep-boottime")
    assert found["left"] == ("exact" if absolute or source == "--source=bpf" else "at_most")
    assert re.fullmatch(r"sleeps, (at most )?(59 min \d\d s|1 h 00 min) left", words(t.pid, t.tids["waiter"], source))


@pytest.mark.parametrize("what", ["sleep-monotonic", "sleep-boottime"])
def test_time_of_another_namespace(source, unshare, tmp_path, what):
    """Its clocks are ahead of ours, or behind: what is left is told by them, and by what was saved, too."""
    apart = [unshare, "--time", "--monotonic", "100000", "--boottime", "200000", "--fork", "--kill-child"]
    tried = subprocess.run([*apart, "true"], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(tried.stderr.strip())
    outer = Target([*apart, built("states"), what])
    try:
        pid, waiter = child_of(outer.pid, "states"), outer.tids["waiter"]
        wait_until(lambda: state(pid, waiter) == "S", "it sleeps")
        found = look(pid, waiter, source)
        assert (found["kind"], found["left"]) == ("time", "exact") and 0 < found["left_ns"] <= HOUR
        assert re.fullmatch(r"sleeps, (59 min \d\d s|1 h 00 min) left", words(pid, waiter, source))
        saved = tmp_path / "saved"
        shown = run(source, "--save", saved, pid).out
        assert re.search(r"(59 min \d\d s|1 h 00 min) from now", shown)
        left = thread(run("replay", "--json", saved).doc, waiter)["waits_for"]["left_ns"]
        assert 0 < left <= found["left_ns"]
    finally:
        outer.end()


def test_time_goes_by(states, bpf_missing):
    """What is left gets less; the kernel's own timer tells it, so that a sleep that was interrupted does not begin anew."""
    if bpf_missing:
        pytest.skip(bpf_missing)
    t = states("sleep").settle()
    waiter = t.tids["waiter"]
    first = look(t.pid, waiter)["left_ns"]
    stop(t.pid)
    os.kill(t.pid, signal.SIGCONT)
    wait_until(lambda: state(t.pid, waiter) == "S", "it sleeps again")
    found = look(t.pid, waiter)
    assert (found["kind"], found["left"]) == ("time", "exact")
    assert found["left_ns"] < first


def test_without_the_timer(states, bpf_missing):
    """Older kernels tell when the thread left its CPU, and memory for how long it wants to sleep."""
    if bpf_missing:
        pytest.skip(bpf_missing)
    t = states("sleep").settle()
    found = look(t.pid, t.tids["waiter"], "--source=libbpf")
    assert found["left"] == "about" and 0 < found["left_ns"] < HOUR
    assert " left" in words(t.pid, t.tids["waiter"], "--source=libbpf")


def test_time_limit_of_others(states, source):
    """A wait for something else that ends by itself."""
    t = states("futex").settle()
    found = look(t.pid, t.tids["waiter"], source, wanted=lambda wait: True)
    assert (found["kind"], found["timed"]) == ("futex", True)
    assert 0 < found["left_ns"] <= HOUR
    assert re.search(r", for another (59 min \d\d s|1 h 00 min) at most", words(t.pid, t.tids["waiter"], source))


@pytest.mark.parametrize(
    "what, signals, said",
    [
        ("pause", [], "waits for a signal"),
        ("sigsuspend", [], "waits for a signal"),
        ("sigwait", [signal.SIGUSR1, signal.SIGTERM], "waits for SIGUSR1 or SIGTERM"),
        ("sigtimedwait", [signal.SIGHUP], r"waits for SIGHUP, for another (59 min \d\d s|1 h 00 min) at most"),
    ],
)
def test_signals(states, source, what, signals, said):
    t = states(what).settle()
    found = look(t.pid, t.tids["waiter"], source)
    assert (found["kind"], found["signals"], found["timed"]) == ("signal", signals, what == "sigtimedwait")
    assert re.fullmatch(said, words(t.pid, t.tids["waiter"], source))


@pytest.mark.parametrize("what", ["child", "pidfd", "group"])
def test_child(states, source, what):
    t = states(what).settle()
    partner = t.tids["partner"]
    wait_until(lambda: state(partner) == "S", "the child sleeps")
    found = look(t.pid, t.tids["waiter"], source)
    assert (found["kind"], found["children"], found["peers_known"]) == ("child", 1, what != "group")  # others may join that
    assert found["peers"] == [{"pid": partner, "comm": "partner", "state": "S"}]
    which = "only child in a process group," if what == "group" else "child"
    assert words(t.pid, t.tids["waiter"], source) == f"waits for its {which} {partner} partner, which sleeps"
    stop(partner)
    # The kernel wakes it to tell it of that, and it waits again.
    assert until(lambda: words(t.pid, t.tids["waiter"], source), lambda said: said.endswith(", which is stopped"))


def test_children(states, source):
    t = states("children").settle()
    found = look(t.pid, t.tids["waiter"], source)
    assert (found["kind"], found["children"], found["peers_known"]) == ("child", 3, True)
    pids = [peer["pid"] for peer in found["peers"]]
    assert pids[0] == t.tids["partner"] and len(pids) == 3
    for pid in pids:
        wait_until(lambda: state(pid) == "S", "the child sleeps")
    listed = ", ".join(f"{pid} partner" for pid in pids)
    assert words(t.pid, t.tids["waiter"], source) == f"waits for any of its 3 children: {listed}"


def test_what_the_child_does(states):
    """If it is looked at, too."""
    t = states("child").settle()
    partner = t.tids["partner"]
    wait_until(lambda: state(partner) == "S", "the child sleeps")
    line = f"tid {t.tids['waiter']} waiter of pid {t.pid} (states) waits for its child {partner} partner, which waits for a signal\n"
    assert line in run("why", t.pid, partner).out


def test_child_in_another_namespace(states, unshare):
    """The number that it waits for is one of its own namespace."""
    states("child")  # or it is skipped
    outer = Target([unshare, "--pid", "--fork", "--mount-proc", "--kill-child", built("states"), "child"])
    try:
        pid = child_of(outer.pid, "states")
        inner = child_of(pid, "partner")
        waiter = next(int(tid) for tid in os.listdir(f"/proc/{pid}/task") if int(tid) != pid)
        found = look(pid, waiter)
        assert [peer["pid"] for peer in found["peers"]] == [inner] != [outer.tids["partner"]]
    finally:
        outer.end()


@pytest.mark.arch
def test_vfork(target, source):
    t = target("vfork_parent")
    wait_until(lambda: state(t.pid) == "D", "it waits for its child")
    found = look(t.pid, t.pid, source)
    assert found["kind"] == "vfork" and [peer["pid"] for peer in found["peers"]] == [t.tids["child"]]
    said = f"waits for its child {t.tids['child']} vfork_parent to execute a program or end (vfork), which sleeps"
    assert words(t.pid, t.pid, source) == said


def test_vfork_and_a_child_that_was_left_to_it(target, source):
    """A thread that ends leaves its children to another one, in whose list they are the last."""
    t = target("vfork_parent", "heir")
    child, other = t.tids["child"], t.tids["other"]
    assert [int(pid) for pid in Path(f"/proc/{t.pid}/task/{t.pid}/children").read_text().split()] == [child, other]
    wait_until(lambda: state(t.pid) == "D", "it waits for its child")
    found = look(t.pid, t.pid, source)
    assert found["kind"] == "vfork" and [peer["pid"] for peer in found["peers"]] == [child]


def test_stopped(states, source):
    t = states("pause").settle()
    stop(t.pid)
    found = look(t.pid, t.tids["waiter"], source)
    assert found["kind"] == "stopped" and found.get("stop_signal") == (signal.SIGSTOP if source == "--source=bpf" else None)
    by = " by SIGSTOP" if source == "--source=bpf" else ""
    assert f"2 threads are stopped{by}\n" in run("why", source, t.pid).out


def test_traced(target, states, source):
    t = states("pause").settle()
    tracer = target("tracer", "hold", t.pid)
    found = look(t.pid, t.tids["waiter"], source)
    assert (found["kind"], [(peer["pid"], peer["comm"]) for peer in found["peers"]]) == ("traced", [(tracer.pid, "tracer")])
    assert f"2 threads are stopped by their tracer, pid {tracer.pid} tracer\n" in run("why", source, t.pid).out


def test_ended(source):
    child = subprocess.Popen(["true"])
    try:
        wait_for_zombie(child.pid)
        found = look(child.pid, child.pid, source)
        assert found["kind"] == "reaper" and [peer["pid"] for peer in found["peers"]] == [os.getpid()]
        assert re.fullmatch(rf"has ended; its parent, pid {os.getpid()} .*, has not asked how", words(child.pid, child.pid, source))
    finally:
        child.wait(TIMEOUT)


def test_main_thread_has_ended(target, source):
    t = target("zombie_main")
    wait_until(lambda: state(t.pid) == "Z", "the main thread has ended")
    assert words(t.pid, t.pid, source) == "has ended; other threads of the process go on"


@contextmanager
def control_group(*places):
    """A new one at the first of these that can be written to."""
    for place in places:
        path = CGROUPS / place / f"stakeout-{uuid.uuid4().hex[:8]}"
        try:
            if (CGROUPS / place / "cgroup.procs").exists():
                path.mkdir()
                break
        except OSError:
            continue
    else:
        pytest.skip(f"no control group can be made below {' or '.join(str(CGROUPS / place) for place in places)}")
    try:
        yield path
    finally:
        procs = path / "cgroup.procs"
        for pid in procs.read_text().split():
            (path.parent / "cgroup.procs").write_text(pid)
        wait_until(lambda: not procs.read_text(), "the control group is empty")
        path.rmdir()


@contextmanager
def frozen(pid, version):
    if version == 2:
        places, file, words, thawed = ("", "unified"), "cgroup.freeze", "1", "0"
    else:
        places, file, words, thawed = ("freezer",), "freezer.state", "FROZEN", "THAWED"
    with control_group(*places) as path:
        if not (path / file).exists():
            pytest.skip(f"{path} has no {file}")
        (path / "cgroup.procs").write_text(str(pid))
        (path / file).write_text(words)
        told = path / ("cgroup.events" if version == 2 else file)
        wait_until(lambda: ("frozen 1" if version == 2 else "FROZEN") in told.read_text(), "it is frozen")
        try:
            yield f"/{path.name}"
        finally:
            (path / file).write_text(thawed)


@pytest.mark.parametrize("version", [1, 2])
def test_frozen(states, source, version):
    t = states("sleep").settle()
    with frozen(t.pid, version) as group:
        found = look(t.pid, t.tids["waiter"], source)
        assert found["kind"] == "frozen" and found["cgroup"].endswith(group) and found["left_ns"] is None
        assert f"2 threads are frozen with control group {found['cgroup']}\n" in run("why", source, t.pid).out
    assert look(t.pid, t.tids["waiter"], source)["kind"] == "time"


def test_throttled(target, bpf_missing):
    if bpf_missing:
        pytest.skip(bpf_missing)
    t = target("spinners", "spinner")
    with control_group("cpu", "cpu,cpuacct", "") as path:
        try:
            if (path / "cpu.max").exists():
                (path / "cpu.max").write_text("1000 1000000")
            else:
                (path / "cpu.cfs_period_us").write_text("1000000")
                (path / "cpu.cfs_quota_us").write_text("1000")
        except OSError as error:
            pytest.skip(f"{path} takes no quota: {error}")
        (path / "cgroup.procs").write_text(str(t.pid))
        spinner = t.tids["spinner"]
        assert look(t.pid, spinner, wanted=lambda wait: wait["kind"] == "throttled")["peers"] == []
        said = until(lambda: words(t.pid, spinner), lambda said: "quota" in said)
        assert re.fullmatch(r"is ready to run, but its control group, or one above it, has used up its CPU quota", said)


def test_running(target, source):
    """Two share a CPU, and the other one has most of it; what else the machine does may have it as well."""
    cpu = max(os.sched_getaffinity(0))
    t, other = target("spinners", "first"), target("spinners", "second")
    spinner = t.tids["first"]
    for tid in spinner, other.tids["second"]:
        os.sched_setaffinity(tid, {cpu})
    os.setpriority(os.PRIO_PROCESS, spinner, 19)

    def take():
        return thread(run("why", "--json", source, t.pid).doc, spinner)

    doc = until(take, lambda th: th["cpu"] == cpu)
    assert doc["state"] == "R"
    if source == "--source=proc":  # which does not tell one that runs from one that is ready
        assert re.match(rf"runs, or is ready to, on CPU {cpu}$", words(t.pid, spinner, source))
        return
    wait = look(t.pid, spinner, source, wanted=lambda wait: wait["peers"])
    assert wait["kind"] == "cpu" and wait["certain"]
    (peer,) = wait["peers"]
    assert peer["pid"] != t.pid and (peer["comm"] in ("second", "spinners") or peer["pid"] != other.pid)
    said = until(lambda: words(t.pid, spinner, source), lambda said: "behind" in said)
    assert re.fullmatch(rf"is ready to run on CPU {cpu}, behind (pid \d+ )?.+", said)


def test_three_on_a_cpu(target, bpf_missing):
    """One has it, and nobody is behind one that has none either."""
    if bpf_missing:
        pytest.skip(bpf_missing)
    cpu = max(os.sched_getaffinity(0))
    pids = []
    for name in "first", "second", "third":
        t = target("spinners", name)
        os.sched_setaffinity(t.tids[name], {cpu})
        pids.append(t.pid)
    named = []

    def look_again():
        threads = [th for th in run("why", "--json", *pids).doc["threads"] if th["state"] == "R" and th["cpu"] == cpu]
        running = [th["pid"] for th in threads if not th["waits_for"]]
        behind = [peer["pid"] for th in threads if th["waits_for"] for peer in th["waits_for"]["peers"]]
        assert not [pid for pid in behind if pid in pids and pid not in running], threads
        named.extend(pid for pid in behind if pid in pids)
        return named

    for _ in range(20):
        look_again()
    wait_until(look_again, "one is behind another")


def test_several_run(target, bpf_missing):
    if bpf_missing:
        pytest.skip(bpf_missing)
    t = target("spinners", "a", "b", "c", "d")
    out = until(lambda: run("why", t.pid).out, lambda out: re.search(r"^4 threads (run, or are ready to|are ready to run)", out, re.M))
    assert re.search(r"^4 threads (run, or are ready to|are ready to run)(: .*)?$", out, re.M), out


@pytest.mark.parametrize("what", ["semaphore", "message", "room"])
def test_system_v(states, source, what):
    t = states(what).settle()
    found = look(t.pid, t.tids["waiter"], source)
    assert (found["kind"], found["key"]) == (f"sysv_{what}", hex(t.tids["key"]))
    said = words(t.pid, t.tids["waiter"], source)
    if what == "semaphore":
        assert found["index"] == 1 and [peer["pid"] for peer in found["peers"]] == [t.tids["partner"]]
        last = f", last changed by pid {t.tids['partner']} partner"
        assert said == f"waits for System V semaphore 1 of set {found['id']} (key {found['key']}){last}"
    else:
        name = "a message" if what == "message" else "room"
        assert said.startswith(f"waits for {name} in System V queue {found['id']} (key {found['key']})")


@pytest.mark.parametrize("kind, name", [("message", "a message"), ("room", "room")])
def test_posix_queue(states, source, kind, name):
    t = states(f"posix-{kind}").settle()
    found = look(t.pid, t.tids["waiter"], source)
    assert found["kind"] == kind and found["file"].startswith("/stakeout-states")
    assert words(t.pid, t.tids["waiter"], source) == f"waits for {name} in queue {found['file']}"


def test_supervisor(states, source):
    t = states("seccomp").settle()
    assert look(t.pid, t.tids["waiter"], source)["kind"] == "seccomp"
    assert words(t.pid, t.tids["waiter"], source) == "waits for a supervisor to decide on getppid() (seccomp)"


def test_page_of_another(states, source):
    t = states("userfault").settle()
    assert look(t.pid, t.tids["waiter"], source)["kind"] == "userfault"
    said = "waits for a page of memory that a userfaultfd handler has to deliver"
    assert words(t.pid, t.tids["waiter"], source) == said


def test_fuse(target, source, dead_fs):
    t = target("descriptors", "file-later", dead_fs.mount / "file")
    with dead_fs.dead():
        t.ask("go")
        found = look(t.pid, t.tids["waiter"], source, wanted=lambda wait: wait.get("medium"))
        assert (found["kind"], found["medium"]) == ("read", "fuse") and found["filesystem"].startswith("fuse")
        assert ", waiting for the server of a FUSE file system (fuse" in words(t.pid, t.tids["waiter"], source)


@pytest.mark.asan
@pytest.mark.parametrize("what", ["sleep", "sigwait", "children", "semaphore", "userfault"])
def test_replay(states, tmp_path, what):
    """A saved snapshot says the same, of a process that is not there any more."""
    t = states(what).settle()
    look(t.pid, t.tids["waiter"])
    file = tmp_path / "snap"
    live = run("--save", file, "--json", t.pid).doc
    t.end()
    doc = run("replay", "--json", file).doc
    assert thread(doc, "waiter")["waits_for"] == thread(live, "waiter")["waits_for"]
    assert thread(doc, "waiter")["waits_for"]["kind"]


def test_schema(states):
    jsonschema = pytest.importorskip("jsonschema")
    for name in ("why", "snapshot"):
        schema = json.loads((ROOT / f"docs/schema/{name}.schema.json").read_text())
        for what in ("sleep", "sigwait", "children", "semaphore", "posix-message"):
            t = states(what).settle()
            jsonschema.validate(run(*(("why",) if name == "why" else ()), "--json", t.pid).doc, schema)


def test_under_each_thread(states):
    t = states("child").settle()
    wait_until(lambda: state(t.tids["partner"]) == "S", "the child sleeps")
    assert f"\n  waits for its child {t.tids['partner']} partner, which sleeps\n" in run(t.pid).out


def test_ordinary_user(states):
    """Without any rights, of a process of one's own."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    argv = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    t = Target([*argv, built("states"), "child"])
    try:
        t.settle()
        wait_until(lambda: state(t.tids["partner"]) == "S", "the child sleeps")
        r = run("why", t.pid, wrap=argv)
        assert f"waiter waits for its child {t.tids['partner']} partner, which sleeps\n" in r.out, r
    finally:
        t.end()
