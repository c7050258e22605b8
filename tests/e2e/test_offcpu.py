# SPDX-License-Identifier: MIT
"""stakeout offcpu: what it says of waits beside what the threads that waited have measured themselves."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import tempfile
import time
from collections import defaultdict
from datetime import datetime, timezone
from pathlib import Path

import pytest
from harness import BEHIND_A_SHELL, ROOT, SANITIZER_ENV, SANITIZER_EXIT, SLOW, STAKEOUT, TIMEOUT, Result
from harness import bare, built, command, everywhere_alike, gather, run, state, stop, thread, tids, until, wait_until

MS = 1000000

# A thread is charged for its way into the kernel and back, and for what else ran on its CPU: more of that where every
# instruction is emulated.
TOLERANCE = 0.02 if SLOW == 1 else 0.2

RUNGS = ("sched_exit", "kprobe", "switch")


pytestmark = pytest.mark.usefixtures("root")


class Recording:
    """
    A run of stakeout offcpu that has begun to record. With -- COMMAND: `say` and `hear` talk to the command. Its
    standard error is a terminal: the live line tells that it records.
    """

    def __init__(self, args, wrap=(), env=None):
        self.args = [str(a) for a in ("offcpu", *args)]
        self._terminal, theirs = pty.openpty()
        self.proc = subprocess.Popen(
            [*wrap, *command(*self.args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=theirs,
            bufsize=0,
            env={**os.environ, **SANITIZER_ENV, **(env or {})},
        )
        os.close(theirs)
        self._out = self.proc.stdout.fileno()
        self._said = {self._out: b"", self._terminal: b""}
        self._open = set(self._said)

    def _read(self, fd):
        try:
            data = os.read(fd, 1 << 16)
        except OSError:  # how the end of a terminal reads
            data = b""
        self._said[fd] += data
        if not data:
            self._open.discard(fd)

    def _until_enough(self, fd, is_enough, what):
        """Reads until what has come from there is enough; False: it has ended before."""
        deadline = time.monotonic() + TIMEOUT * 2
        while not is_enough(self._said[fd]):
            if fd not in self._open:
                return False
            ready, _, _ = select.select(list(self._open), [], [], max(deadline - time.monotonic(), 0))
            assert ready, f"no {what} from stakeout {' '.join(self.args)}: {self._said}"
            for one in ready:
                self._read(one)
        return True

    def _until(self, fd, text):
        return self._until_enough(fd, lambda said: text in said, text)

    def begun(self):
        if not self._until(self._terminal, b" waits, "):
            pytest.fail(f"it has not begun: {self.end()}")
        return self

    def until_seen(self, count):
        """Returns when the live line tells of so many waits."""

        def is_enough(said):
            return any(int(seen) >= count for seen in re.findall(rb"(\d+) waits, ", said))

        assert self._until_enough(self._terminal, is_enough, f"{count} waits"), self._said

    def hear(self):
        """The next line on standard output."""
        assert self._until(self._out, b"\n"), self._said
        line, _, self._said[self._out] = self._said[self._out].partition(b"\n")
        return line.decode()

    def say(self, line):
        self.proc.stdin.write(line.encode() + b"\n")

    def ask(self, question):
        self.say(question)
        return self.hear()

    def end(self, sig=signal.SIGINT):
        """Ends it (None: waits until it ends) and returns the result."""
        if sig and self.proc.poll() is None:
            self.proc.send_signal(sig)
        self._until(self._out, b"\0")  # all of it
        self._until(self._terminal, b"\0")
        self.proc.wait(TIMEOUT)
        self.close()
        out, err = self._said[self._out].decode(), self._said[self._terminal].decode()
        result = Result(self.args, self.proc.returncode, out, err.replace("\r\n", "\n"))
        assert result.code >= 0 and result.code != SANITIZER_EXIT and "Sanitizer" not in result.err, result
        return result

    def close(self):
        if self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()
        if self._terminal >= 0:
            os.close(self._terminal)
            self.proc.stdin.close()
            self.proc.stdout.close()
            said, self._terminal = self._said.pop(self._terminal), -1
            self._said[-1] = said

    def finish(self, sig=signal.SIGINT):
        """The document, after a check that the exit code agrees with it."""
        result = self.end(sig)
        assert result.code in (0, 3), result
        doc = json.loads(result.out)
        assert_exit_code(result, doc)
        return doc


def assert_exit_code(result, doc):
    """3: something was lost, is an estimate, or is not complete."""
    whose = [who for row in doc["stacks"] for who in (row, row["waker"]) if who]
    errors = [who["user_stack_error"] or who["kernel_stack_error"] for who in whose]
    whole = not any(doc["lost"].values()) and not any(errors) and not doc["estimate"]
    assert result.code == (0 if whole else 3) or doc["idle"]["hidden"], (result.code, doc["lost"], set(errors))
    for what in ("user_stack", "kernel_stack"):
        lacking = added([row for row in doc["stacks"] if row[f"{what}_error"]])
        wakers = added([row for row in doc["stacks"] if row["waker"] and row["waker"][f"{what}_error"]])
        for kind, waits in ((what, lacking), (f"waker_{what}", wakers)):
            told = added([reason for reason in doc["incomplete"] if reason["what"] == kind], "waits")
            assert told == waits or doc["idle"]["hidden"], (kind, doc["incomplete"])


@pytest.fixture
def record():
    """record(ARG…): a recording that has begun."""
    started = []

    def start(*args, **how):
        started.append(Recording(args, **how))
        return started[-1].begun()

    yield start
    for recording in started:
        recording.close()


def let_run(t, count=20):
    """Returns when the target has waited `count` times more."""
    enough = int(t.ask()) + count
    wait_until(lambda: int(t.ask()) >= enough, "the target has waited often enough")


def names(frames):
    return [bare(frame["symbol"]) or "?" for frame in frames]


def rows_of(doc, tid=None, site=None, state="SDR"):
    return [
        row
        for row in doc["stacks"]
        if tid in (None, row["tid"]) and row["state"] in state and (not site or site in names(row["user_stack"]))
    ]


def added(rows, what="count"):
    return sum(row[what] for row in rows)


OUTERMOST = ("_start", "__clone3", "clone3", "__clone", "clone", "thread_start")


def assert_whole(row):
    """A C library without symbols leaves its own part of a thread's start without a name."""
    found, last = names(row["user_stack"]), row["user_stack"][-1]
    assert row["user_stack_error"] is None, (row["user_stack_error"], found)
    assert found[-1] in OUTERMOST or (found[-1] == "?" and "libc" in last["module"]), (found, last)


def assert_nothing_lost(doc):
    assert doc["lost"], "every counter by name"
    assert not any(doc["lost"].values()), doc["lost"]


def assert_adds_up(doc):
    """What is said several times is the same."""
    rows, stats = doc["stacks"], doc["thread_stats"]
    assert added(rows) == doc["total_events"] == sum(s["count"] for s in stats.values())
    assert added(rows, "total_ns") == doc["total_time_ns"] == sum(s["total_time_ns"] for s in stats.values())
    if rows:
        assert max(row["max_ns"] for row in rows) == doc["max_time_ns"]
        assert min(s["min_time_ns"] for s in stats.values()) == doc["min_time_ns"]
        assert abs(doc["avg_time_ns"] - doc["total_time_ns"] / doc["total_events"]) <= 1
    for key, s in stats.items():
        mine = [row for row in rows if row["thread"] == key]
        assert (added(mine), added(mine, "total_ns")) == (s["count"], s["total_time_ns"]) or not mine, key
        assert s["min_time_ns"] <= s["avg_time_ns"] <= s["max_time_ns"]
    top = doc["top_blocking_threads"]
    assert [t["time_ms"] for t in top] == sorted((t["time_ms"] for t in top), reverse=True)
    for t in top:
        assert abs(t["time_ms"] - stats[t["thread"]]["total_time_ns"] / MS) < 0.01
    assert sum(t["percentage"] for t in top) <= 100.1


TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")


def stolen():
    """Ticks that this virtual machine's CPUs were not run though they had work: on no thread's account."""
    return int(Path("/proc/stat").read_text().split(maxsplit=9)[8])


def measured(t):
    """Lets the target, or the command of a recording, wait; what it has measured itself."""
    before = stolen()
    truth = json.loads(t.ask("go"))
    truth["stolen"] = stolen() - before
    return truth


def most_stolen_ns(truth):
    """What was stolen at most: the last tick, which was not full yet, is not among those that are told."""
    return (truth["stolen"] + 1) * TICK_NS if stolen() else 0


def assert_stolen(lacking, limit):
    """What the threads have measured and was not recorded, by place, is no more than a virtual machine explains."""
    lacking = {where: amount for where, amount in lacking.items() if amount > 0}
    assert sum(lacking.values()) <= limit, lacking


def assert_counts(lacking):
    """Likewise: of a tick that was not told one call may be long that has hardly waited, or a wait be short."""
    assert_stolen(lacking, 1 if stolen() else 0)


def limits(site, truth):
    """
    How many waits over the threshold a call site has, at least and at most. A call that slept twice, or for hardly longer
    than the threshold, or within which another program pushed the thread off its CPU, is not one wait: the count is that
    uncertain then, and no more. Where the CPU itself was taken away, a call may be long that has hardly waited.
    """
    less = site["near"] + min(truth["stolen"], 1)
    return max(site["count"] - less, 0), site["count"] + site["again"]


def switches(truth, site):
    """How often the thread slept at this call site, by the kernel's count: a nap that was over in time needs no sleep."""
    (found,) = (th["sites"][site] for th in truth["threads"] if site in th["sites"])
    return found["switches"]


def assert_exact(doc, truth):
    """
    Counts are exact and totals within the tolerance, for each thread and call site. A wait cannot be longer than the
    call that waited. Returns whether most counts are certain.
    """
    sure, lacking, lacking_ns = 0, {}, {}
    for th in truth["threads"]:
        for name, site in th["sites"].items():
            rows = rows_of(doc, th["tid"], name, "SD")
            count, total = added(rows), added(rows, "total_ns")
            least, most = limits(site, truth)
            where = f"{th['name']} {name}: {count} waits, {total} ns; the thread itself: {site}"
            lacking[where] = least - count
            assert count <= most, where
            assert total <= site["total_ns"], where
            assert max((row["max_ns"] for row in rows), default=0) <= site["max_ns"], where
            pushed = added(rows_of(doc, th["tid"], name, "R"), "total_ns")
            uncertain = (site["count"] - least) * site["max_ns"]
            lacking_ns[where] = site["waited_ns"] * (1 - TOLERANCE) - 100000 * SLOW - uncertain - total - pushed
            sure += 0 if site["near"] else site["count"]
    assert_counts(lacking)
    assert_stolen(lacking_ns, most_stolen_ns(truth))
    # on a slow machine somebody is preempted at nearly every site
    return SLOW > 1 or sure > sum(s["count"] for th in truth["threads"] for s in th["sites"].values()) / 2


def skip_unless(certain):
    """To be said last, when all else has been checked."""
    if not certain:
        pytest.skip("too busy a machine: most waits were disturbed, and what they were could not be told exactly")


SITES = {  # call site: the thread's name, and the function that calls it
    "sleep_long": "sleeper",
    "hold_sleep": "holder",
    "lock_wait": "locker",
    "pipe_wait": "pipe_reader",
    "cond_wait": "cond_waiter",
    "vfork_wait": "forker",
}


def test_exact(target, record):
    t = target("waits_exact", 1000, 50)
    recording = record("--json", "-p", t.pid)
    truth = measured(t)
    doc = recording.finish()
    assert doc["schema"] == "stakeout.offcpu/1"
    certain = assert_exact(doc, truth)
    assert_nothing_lost(doc)
    assert_adds_up(doc)
    for site, thread_name in SITES.items():
        rows = rows_of(doc, t.tids[thread_name], site)
        assert rows, site
        for row in rows:
            assert (row["pid"], row["thread_name"]) == (t.pid, thread_name[:15])
            assert_whole(row)
            assert thread_name in names(row["user_stack"])
    skip_unless(certain)


@pytest.fixture
def on_disk(tmp_path):
    """A directory to write to, on a disk where there is one."""
    if os.major(tmp_path.stat().st_dev) or not os.major(STAKEOUT.stat().st_dev):
        yield tmp_path
    else:
        with tempfile.TemporaryDirectory(dir=STAKEOUT.parent) as there:
            yield Path(there)


def test_every_switch(target, record, on_disk):
    """With --min 0 the kernel's own count of voluntary switches is the number of waits; a disk's are among them."""
    t = target("waits_exact", 1000, 40, on_disk)
    recording = record("--json", "--min", 0, "-p", t.pid)
    truth = measured(t)
    doc = recording.finish()
    assert_nothing_lost(doc)
    lacking_ns = {}
    for th in truth["threads"]:
        for name, site in th["sites"].items():
            rows = rows_of(doc, th["tid"], name, "SD")
            where = f"{th['name']} {name}: {added(rows)} waits; the thread itself: {site}"
            assert added(rows) == site["switches"], where
            assert added(rows, "total_ns") <= site["all_ns"], where
            asleep, pushed = (added(rows_of(doc, th["tid"], name, states), "total_ns") for states in ("SD", "R"))
            # The clock of a thread's processor time stops a little before or after the wait begins, and starts likewise:
            # stacks are taken in between, by whoever records. And what the machine under a virtual one takes for itself
            # is on no clock of a thread: no wait, but not processor time.
            slack = TOLERANCE * site["off_ns"] + 50000 * SLOW * (site["switches"] + site["preempted"] + site["calls"])
            where += f"; {asleep} ns asleep, {pushed} ns pushed off its CPU"
            assert asleep - slack <= site["off_ns"], where
            lacking_ns[where] = site["off_ns"] - asleep - pushed - slack
    assert_stolen(lacking_ns, most_stolen_ns(truth))
    if not switches(truth, "disk_write"):
        pytest.skip(f"the file system of {on_disk} does not wait for a disk")
    assert {row["state"] for row in rows_of(doc, t.tids["disk_writer"], "disk_write", "SD")} == {"D"}


@pytest.fixture(params=RUNGS)
def rung(request):
    """Each place at which stacks can be taken; what this kernel lacks it has to say."""
    probe = run("offcpu", f"--source={request.param}", "-d", "0.01", "-p", os.getpid())
    if probe.code == 1 and request.param != "switch":
        assert probe.out == "" and {"sched_exit": "sched_exit_tp", "kprobe": "finish_task_switch"}[request.param] in probe.err
        pytest.skip(probe.err.strip())
    return request.param


def test_each_rung(target, record, rung):
    """They all give the same result."""
    t = target("waits_exact", 1000, 20)
    recording = record("--json", f"--source={rung}", "-p", t.pid)
    truth = measured(t)
    doc = recording.finish()
    assert doc["method"] == rung
    certain = assert_exact(doc, truth)
    for site, thread_name in SITES.items():
        for row in rows_of(doc, t.tids[thread_name], site):
            assert_whole(row)
    skip_unless(certain)


def without_stack(rows, rung):
    """Where stacks are taken before the wait, there is none of one that had begun before the recording."""
    return [row for row in rows if rung == "switch" and not row["user_stack"] and row["user_stack_error"]]


@pytest.mark.parametrize("minimum", ["1ms", "0"])
def test_right_thread(target, record, rung, minimum):
    """Two processes that switch to each other on one CPU: neither has the other one's stack, state or name."""
    t = target("waits_pair")
    other = t.tids["child"]
    recording = record("--json", "--min", minimum, f"--source={rung}", "-p", t.pid, "-p", other)
    let_run(t, 60)
    doc = recording.finish()
    for pid, tid, mine, foreign in (
        (t.pid, t.tids["ping"], "ping", "pong"),
        (other, other, "pong", "ping"),
    ):
        slept = rows_of(doc, tid, state="SD")
        assert added(slept) >= 20
        early = without_stack(slept, rung)
        assert added(early) <= 1
        for row in slept:
            assert (row["pid"], row["thread_name"], row["state"]) == (pid, mine, "S")
            if row in early:
                continue
            assert f"{mine}_wait" in names(row["user_stack"]) and mine in names(row["user_stack"])
            assert_whole(row)
            assert any("pipe_read" in (name or "") for name in names(row["kernel_stack"])), names(row["kernel_stack"])
        for row in rows_of(doc, tid):
            assert not {foreign, f"{foreign}_wait"} & set(names(row["user_stack"])), row["state"]
            assert row["thread_name"] == mine


def wake(t):
    """Ends all its threads' waits, which none of them notices: each waits on for the same."""
    stop(t.pid)
    os.kill(t.pid, signal.SIGCONT)
    t.settle()


def addresses(frames):
    return [frame["address"] for frame in frames if not frame["inlined"]]


BLOCKED = """plain plain_nopie plain_static plain_static_pie plain_no_hdr plain_debug_frame plain_frame_pointer signals vla
    noreturn cxx deadlock""".split()


def test_stacks_are_those_of_a_snapshot(target, record, stakeout, rung):
    """Of every kind of code that a snapshot is tested with, frame by frame."""
    targets = [*(target(name).settle() for name in BLOCKED), target("recursion", 100).settle()]
    recording = record("--json", "--min", 0, f"--source={rung}", *(a for t in targets for a in ("-p", t.pid)))
    for t in targets * 2:  # what had begun before the recording, and what has begun within it
        wake(t)
    doc = recording.finish()
    for snapped in stakeout("--json", *(t.pid for t in targets)).docs:
        for th in snapped["threads"]:
            rows = rows_of(doc, th["tid"], state="S")
            early = without_stack(rows, rung)
            assert added(rows) > 1 and added(early) <= 1, (th["name"], early)
            for row in rows:
                if row in early:
                    continue
                assert addresses(row["user_stack"]) == addresses(th["user_stack"]), (names(row["user_stack"]), th)
                assert (row["user_stack_error"] is None) == (th["user_stack_end"] == "complete"), row


@pytest.mark.parametrize("name", ["plain_musl", "plain_musl_static"])
def test_thread_of_musl(target, record, name):
    """Its clone() has no unwind information, and the frame pointer leads on to the thread that made this one."""
    if os.uname().machine != "aarch64":
        pytest.skip("musl's system calls have neither unwind information nor frame pointers here")
    t = target(name).settle()
    recording = record("--json", "--min", 0, "-p", t.pid)
    wake(t)
    wake(t)
    rows = rows_of(recording.finish(), t.tids["worker"], state="S")
    assert added(rows)
    for row in rows:
        found = names(row["user_stack"])
        assert row["user_stack_error"] is None
        assert found[found.index("inner") :][:5] == ["inner", "middle", "outer", "worker", "target_thread_main"]
        assert len(found[found.index("target_thread_main") :]) == 3, found  # and what has called it, in the library


def test_deep_stack(target, record):
    t = target("waits_deep", 240)
    recording = record("--json", "-p", t.pid)
    let_run(t)
    rows = rows_of(recording.finish(), t.tids["worker"], "bottom_wait", "S")
    assert added(rows) >= 15
    for row in rows:
        found = names(row["user_stack"])
        assert [name for name in found if name.startswith("descend")] == ["descend_odd", "descend_even"] * 120
        assert_whole(row)
        assert {f["found_by"] for f in row["user_stack"] if not f["inlined"]} <= {None, "cfi"}


def test_stack_that_is_too_deep(target, record):
    """At least 256 frames are there, and it says that there are more."""
    t = target("waits_deep", 2000)
    recording = record("--json", "-p", t.pid)
    let_run(t)
    rows = rows_of(recording.finish(), t.tids["worker"], "bottom_wait", "S")
    assert added(rows) >= 15
    for row in rows:
        assert len([f for f in row["user_stack"] if not f["inlined"]]) >= 256
        assert row["user_stack_error"] and re.search("[a-z] [a-z]", row["user_stack_error"]), "words"


def test_code_without_unwind_information(target, record):
    t = target("waits_deep_frame_pointer", 50)
    recording = record("--json", "-p", t.pid)
    let_run(t)
    rows = rows_of(recording.finish(), t.tids["worker"], "bottom_wait", "S")
    assert added(rows) >= 15
    for row in rows:
        assert names(row["user_stack"]).count("descend_even") == 25
        callers = [f for f in row["user_stack"] if (f["symbol"] or "").startswith("descend")]
        assert {f["found_by"] for f in callers[1:]} == {"frame_pointer"}


def test_many_mappings(target, record):
    t = target("waits_maps", 1000)
    assert len(Path(f"/proc/{t.pid}/maps").read_text().splitlines()) > 2000
    recording = record("--json", "-p", t.pid)
    let_run(t)
    rows = rows_of(recording.finish(), t.tids["worker"], "crowded_wait", "S")
    assert added(rows) >= 15
    for row in rows:
        assert_whole(row)


@pytest.mark.novm
def test_big_binary(record, tool):
    """clang waits for its input, deep in libraries of more than a hundred MB."""
    proc = subprocess.Popen([tool("clang"), "-E", "-x", "c", "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:

        def is_reading():
            read = Path(f"/proc/{proc.pid}/syscall").read_text().startswith(("0 0x0 ", "63 0x0 "))
            return read and state(proc.pid) == "S"

        wait_until(is_reading, "clang reads its input")
        recording = record("--json", "-p", proc.pid)
        for _ in range(3):
            proc.stdin.write(b"int x;\n")
            proc.stdin.flush()
            wait_until(is_reading, "clang reads on")
            time.sleep(0.01)  # not to wait for something: for clang's wait to be longer than the threshold
        proc.stdin.close()
        proc.wait(TIMEOUT)
        doc = recording.finish()
    finally:
        proc.kill()
        proc.wait()
    (row,) = [r for r in rows_of(doc, state="S") if names(r["user_stack"])[-1] == "_start"][:1]
    assert any("libLLVM" in (f["module"] or "") for f in row["user_stack"]), names(row["user_stack"])
    assert_whole(row)


def test_states(target, record):
    """A sleep is S, the wait for a vforked child D, and what a CPU is shared for R."""
    t = target("waits_exact", 1000, 30)
    recording = record("--json", "-p", t.pid)
    t.ask("go")
    doc = recording.finish()
    for site, thread_name in SITES.items():
        rows = rows_of(doc, t.tids[thread_name], site, "SD")
        assert {row["state"] for row in rows} == {"D" if site == "vfork_wait" else "S"}, site


def test_waiting_for_a_cpu(target, record):
    """Threads that share a CPU lose it anywhere: in a leaf, in the vDSO, in a stub."""
    both = [target("spinners", "loop", "plt"), target("spinners", "vdso")]
    spinners = {tid: (t.pid, name) for t in both for name, tid in t.tids.items()}
    for tid in spinners:
        os.sched_setaffinity(tid, {max(os.sched_getaffinity(0))})
    recording = record("--json", "--state", "R", *(a for t in both for a in ("-p", t.pid)))

    def preemptions():
        status = [Path(f"/proc/{pid}/task/{tid}/status").read_text() for tid, (pid, _) in spinners.items()]
        return min(int(text.split("nonvoluntary_ctxt_switches:")[1]) for text in status)

    enough = preemptions() + 20
    wait_until(lambda: preemptions() >= enough, "each was preempted")
    doc = recording.finish()
    assert {row["state"] for row in doc["stacks"]} == {"R"}
    for tid, (_, name) in spinners.items():
        rows = rows_of(doc, tid)
        assert added(rows) >= 2
        for row in rows:
            assert f"spin_{name}" in names(row["user_stack"])
            assert_whole(row)


@everywhere_alike
@pytest.mark.parametrize("letter", ["S", "D"])
def test_state_option(target, record, letter):
    t = target("waits_exact", 1000, 20)
    recording = record("--json", "--min", 0, "--state", letter, "-p", t.pid)
    truth = measured(t)
    doc = recording.finish()
    assert {row["state"] for row in doc["stacks"]} == {letter}
    for site, its_state in (("sleep_long", "S"), ("vfork_wait", "D")):
        assert switches(truth, site) > 0
        assert added(rows_of(doc, site=site)) == (switches(truth, site) if letter == its_state else 0), site


@everywhere_alike
def test_thresholds(target, record):
    """
    A wait is in one of two recordings that divide them at 2 ms; two clocks may see it on different sides of that. Of a nap
    of 4 ms is left less than that when the thread lost its CPU on the way to its sleep.
    """
    t = target("waits_exact", 1000, 20)
    recordings = {
        limits: record("--json", *limits, "-p", t.pid)
        for limits in (("--min", "2ms"), ("--min", "1us", "--max", "2ms"), ("--min", "100s"))
    }
    truth = measured(t)
    long, short, none = (recording.finish() for recording in recordings.values())
    assert long["min_time_ns"] >= 2 * MS
    assert 1000 <= short["min_time_ns"] and short["max_time_ns"] <= 2 * MS
    (sleeper,) = (th for th in truth["threads"] if th["name"] == "sleeper")
    cut_short = {}
    for name, site in sleeper["sites"].items():
        naps = {limit: added(rows_of(doc, site=name, state="S")) for limit, doc in (("long", long), ("short", short))}
        assert abs(sum(naps.values()) - site["switches"]) <= 2, (name, naps, site)
        most = site["preempted"] + truth["stolen"] if name == "sleep_long" else site["switches"]
        cut_short[f"{name} {naps} {site}"] = naps["short"] - most
    assert_counts(cut_short)
    assert none["total_events"] == 0 and none["stacks"] == [] and none["thread_stats"] == {}


WAKERS = {  # call site: the thread that ends the wait, and the function that does it
    "lock_wait": ("holder", "hold_release"),
    "pipe_wait": ("pipe_writer", "pipe_send"),
    "cond_wait": ("cond_signaller", "cond_give"),
}


def waker_name(waker):
    return waker.get("thread_name", waker.get("name"))


def test_wakers(target, record):
    t = target("waits_exact", 1000, 30)
    recording = record("--json", "--wakers", "-p", t.pid)
    t.ask("go")
    doc = recording.finish()
    for site, (waker, function) in WAKERS.items():
        woken = rows_of(doc, t.tids[SITES[site]], site, "S")
        by = [row for row in woken if row["waker"] and row["waker"]["tid"] == t.tids[waker]]
        told = [(row["count"], row["waker"] and (row["waker"]["tid"], waker_name(row["waker"]))) for row in woken]
        assert woken and added(by) >= 0.8 * added(woken), (site, told, t.tids)
        for row in by:
            assert row["waker"]["pid"] == t.pid
            assert waker_name(row["waker"]) == waker[:15]
            assert function in names(row["waker"]["user_stack"]), names(row["waker"]["user_stack"])
    for row in rows_of(doc, t.tids["sleeper"], "sleep_long", "S"):
        assert not row["waker"] or row["waker"]["pid"] != t.pid or row["waker"]["tid"] != t.tids["sleeper"]


def woken(doc, t):
    """The rows of waits_woken's reader that its writer ended; an interrupt within the write may wake as well."""
    return [row for row in rows_of(doc, t.tids["reader"]) if row["waker"] and row["waker"]["tid"] == t.tids["writer"]]


@everywhere_alike
def test_waker_that_is_too_deep(target, record):
    """What is missing of a waker's stack is said, and the exit code knows of it."""
    t = target("waits_woken", 400)
    recording = record("--json", "--wakers", "-p", t.pid)
    let_run(t)
    result = recording.end()
    rows = woken(result.doc, t)
    assert result.code == 3 and added(rows) >= 15, result
    for row in rows:
        assert row["user_stack_error"] is None
        assert len(row["waker"]["user_stack"]) >= 256
        assert row["waker"]["user_stack_error"] == "more frames than are walked"
        assert row["waker"]["kernel_stack"] and row["waker"]["kernel_stack_error"] is None


@everywhere_alike
@pytest.mark.parametrize("option, have", (("--user-only", "user"), ("--kernel-only", "kernel")))
def test_wakers_with_one_kind_of_stack(target, record, option, have):
    t = target("waits_woken")
    recording = record("--json", "--wakers", option, "-p", t.pid)
    let_run(t)
    doc = recording.finish()
    rows = woken(doc, t)
    assert added(rows) >= 15
    assert all(row["waker"][f"{have}_stack"] and not row["waker"][f"{have}_stack_error"] for row in rows)
    others = [who for row in doc["stacks"] for who in (row, row["waker"]) if who]
    other = "kernel" if have == "user" else "user"
    assert not any(who[f"{other}_stack"] or who[f"{other}_stack_error"] for who in others)
    if have == "user":  # a timer's interrupt is still told from the thread that it hit
        wakers = [row["waker"] for row in rows_of(doc, t.tids["writer"], "bottom_wake", "S") if row["waker"]]
        assert any(waker["tid"] == 0 for waker in wakers), wakers
        assert not any(waker["user_stack"] for waker in wakers), wakers


@everywhere_alike
def test_without_wakers(target, record):
    t = target("waits_exact", 1000, 5)
    recording = record("--json", "-p", t.pid)
    t.ask("go")
    assert not any(row["waker"] for row in recording.finish()["stacks"])


# Of waits_churn. Tables are made in a fraction of the time that the first ones take; when who makes them hardly gets a CPU,
# or has those of a compiler to make that somebody else has started, in that of the last ones.
NAPS_US = [us if SLOW == 1 else us * 3 for us in (10000, 40000, 160000)]
CHURN = ("forked", "executed", "grandchild", "loader")


def churned(t):
    """Lets waits_churn run; kind: (pid, waits at least, waits at most, function)."""
    before = stolen()
    parts = (word.partition("=")[::2] for word in t.ask("go").split())
    taken = min(stolen() - before, 1)
    said = {kind: value.split(":") for kind, value in parts}
    return {kind: (int(pid), int(least) - taken, int(most), where) for kind, (pid, least, most, where) in said.items()}


def rows_of_churn(doc, kind, pid, least, most, function):
    """Those with whole stacks, of waits over the threshold, all of which are counted from the first one on."""
    mine = [row for row in doc["stacks"] if (row["pid"], row["thread_name"], row["state"]) == (pid, kind, "S")]
    assert added(mine) >= least, kind
    rows = [row for row in mine if function in names(row["user_stack"])]
    assert added(rows) <= most, kind
    whole = [row for row in rows if row["user_stack_error"] is None]
    for row in whole:
        assert_whole(row)
    return whole


def recorded_churn(record_one, kinds=CHURN):
    """
    The document of a recording in which most stacks are whole: tables for what is new are made while it runs, and stacks
    are whole from then on. How soon that is depends on what else runs, and so the naps may become longer.
    record_one(NAP_US) returns the document, and what `churned` does.
    """
    for nap in NAPS_US:
        doc, said = record_one(nap)
        whole = {kind: rows_of_churn(doc, kind, *said[kind]) for kind in kinds}
        late = {kind: added(rows) for kind, rows in whole.items() if added(rows) < said[kind][2] / 2}
        if not late:
            return doc
    pytest.fail(f"too few whole stacks: {late} of {said}")


@pytest.fixture
def record_churn(target, record):
    """record_churn(ARG…)(NAP_US): a recording of waits_churn, which is named unless pid=False, for recorded_churn."""

    def prepare(*args, pid=True):
        def record_one(nap):
            t = target("waits_churn", built("plugin"), nap)
            recording = record("--json", *args, *(("-p", t.pid) if pid else ()))
            said = churned(t)
            doc = recording.finish()
            t.end()  # else its files are known to the next recording of everything
            return doc, said

        return record_one

    return prepare


def test_children(record_churn):
    doc = recorded_churn(record_churn("--children"))
    assert_nothing_lost(doc)


@everywhere_alike
def test_children_that_are_there_already(target, record):
    """And their children, as far as there are any."""
    nest = "sh -c 'sh -c \"sleep 1000 & wait\" & wait'"
    t = subprocess.Popen(["sh", "-c", nest + " & wait"], start_new_session=True)
    try:
        wait_until(lambda: [state(pid) for pid in family(t.pid)] == ["S"] * 4, "all are there, and asleep")
        pids = family(t.pid)
        doc = record("--json", "--min", 0, "--children", "-p", t.pid).finish()
        assert {row["pid"] for row in doc["stacks"]} == pids
        assert {row["unfinished"] for row in doc["stacks"]} == {1}
    finally:
        os.killpg(t.pid, signal.SIGKILL)
        t.wait()


def test_children_of_who_records(stakeout):
    """It is a child of the process too, and does not record itself."""
    script = f"{' '.join(command('offcpu', '--json', '--min', '0', '-d', '0.2', '--children', '-p'))} $$; :"
    result = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=TIMEOUT,
                            env={**os.environ, **SANITIZER_ENV})
    doc = json.loads(result.stdout)
    assert [row["thread_name"] for row in doc["stacks"]] == ["sh"], result


def family(pid):
    """The process and all that descend from it."""
    found = {pid}
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            found |= family(int(child))
    return found


def test_without_children(record_churn):
    doc = recorded_churn(record_churn(), ("loader",))
    assert len({row["pid"] for row in doc["stacks"]}) == 1
    whole = [row for row in rows_of(doc, site="late_wait", state="S") if row["user_stack_error"] is None]
    assert all("plugin_enter" in names(row["user_stack"]) for row in whole), "the object that was loaded later"


def test_all_processes(record_churn):
    recorded_churn(record_churn("-a", pid=False))


def test_process_that_ends_before_the_report(target, record):
    t = target("waits_exact", 1000, 20)
    recording = record("--json", "-p", t.pid)
    truth = measured(t)
    t.proc.kill()
    t.proc.wait(TIMEOUT)
    doc = recording.finish()
    certain = assert_exact(doc, truth)
    for site, thread_name in SITES.items():
        for row in rows_of(doc, t.tids[thread_name], site):
            assert_whole(row)
            frame = next(f for f in row["user_stack"] if f["symbol"] == site)
            assert frame["source"], "debug info of a file whose process has gone"
    skip_unless(certain)


@everywhere_alike
def test_no_threads(target, record):
    """Rows of a process, not of its threads."""
    t = target("waits_exact", 1000, 20)
    every = ("--json", "--min", "0", "-p", t.pid)
    each, one = record(*every), record("--no-threads", *every)
    t.ask("go")
    each, one = each.finish(), one.finish()
    assert {row["tid"] for row in one["stacks"]} == {None}
    assert None not in {row["tid"] for row in each["stacks"]}
    assert {row["pid"] for row in one["stacks"]} == {t.pid}
    for site in SITES:
        assert added(rows_of(one, site=site, state="SD")) == added(rows_of(each, site=site, state="SD")), site


def test_threads_with_the_same_stack(target, record):
    """Ten threads sleep in the same function: one row a thread, or one a process."""
    t = target("sleepers", "-n", 10, "-d", 5).settle()
    every = ("--json", "--min", 0, "-p", t.pid)
    each, one = record(*every), record("--no-threads", *every)
    wake(t)
    wake(t)
    each, one = each.finish(), one.finish()
    by_thread, by_process = (rows_of(doc, site="descend", state="S") for doc in (each, one))
    tids = {row["tid"] for row in by_thread}
    assert len(tids) == 10 and {row["tid"] for row in by_process} == {None}
    assert all(2 <= added(rows_of(each, tid, state="S")) <= 3 for tid in tids)
    assert added(by_thread) == added(by_process)
    for doc in (each, one):
        stacks = [
            (row["tid"], row["state"], row["user_stack_error"], *addresses(row["user_stack"] + row["kernel_stack"]))
            for row in doc["stacks"]
        ]
        assert len(stacks) == len(set(stacks)), "one row for one stack"


@everywhere_alike
def test_sides(target, record):
    t = target("waits_exact", 1000, 10)
    kernel = record("--json", "--min", 0, "--kernel-only", "-p", t.pid)
    user = record("--json", "--min", 0, "--user-only", "-p", t.pid)
    truth = measured(t)
    kernel, user = kernel.finish(), user.finish()
    assert all(row["user_stack"] == [] and row["kernel_stack"] for row in kernel["stacks"])
    assert all(row["kernel_stack"] == [] for row in user["stacks"])
    slept = switches(truth, "sleep_long")
    assert added(rows_of(user, site="sleep_long", state="S")) == slept > 0
    in_nanosleep = [
        row
        for row in rows_of(kernel, t.tids["sleeper"], state="S")
        if any("nanosleep" in name for name in names(row["kernel_stack"]))
    ]
    assert added(in_nanosleep) == slept + switches(truth, "sleep_short")


def test_kernel_stacks(target, record):
    """Not the tracer's own frames on top, and named down to the system call."""
    t = target("waits_exact", 1000, 10)
    recording = record("--json", "-p", t.pid)
    t.ask("go")
    doc = recording.finish()
    for site, function in (("sleep_long", "nanosleep"), ("pipe_wait", "pipe_read"), ("lock_wait", "futex")):
        rows = rows_of(doc, t.tids[SITES[site]], site, "S")
        assert rows, site
        for row in rows:
            found = names(row["kernel_stack"])
            assert row["kernel_stack_error"] is None and "?" not in found
            assert any(function in name for name in found), found
            assert not any(name.startswith("bpf_") for name in found), found
            assert all(f["kind"] == "kernel" for f in row["kernel_stack"])


@everywhere_alike
def test_frames_are_those_of_a_snapshot(target, record, snap):
    t = target("waits_deep", 3)
    recording = record("--json", "-p", t.pid)
    let_run(t)
    row = max(rows_of(recording.finish(), t.tids["worker"], "bottom_wait", "S"), key=lambda row: row["count"])
    fields = {frozenset(f) for f in row["user_stack"] + row["kernel_stack"]}

    def worker(doc):
        return thread(doc, "worker")

    snapped = worker(until(lambda: snap(t), lambda doc: (worker(doc)["capture"], worker(doc)["state"]) == ("asleep", "S")))
    assert fields == {frozenset(f) for f in snapped["user_stack"] + snapped["kernel_stack"]}
    ours = [(f["symbol"], f["module"], f["build_id"]) for f in row["user_stack"][-3:]]
    assert ours == [(f["symbol"], f["module"], f["build_id"]) for f in snapped["user_stack"][-3:]]


def validator(name):
    """Of documents that a published schema describes; skips where there is none."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / f"docs/schema/{name}.schema.json").read_text())
    cls = jsonschema.validators.validator_for(schema)
    cls.check_schema(schema)
    return cls(schema)


@everywhere_alike
def test_schema(target, record):
    schema = validator("offcpu")
    t = target("waits_exact", 1000, 5)
    kinds = [(), ("--wakers",), ("--source=proc",), ("--no-threads",), ("--kernel-only",), ("--min", "100s")]
    recordings = [record("--json", *options, "-p", t.pid) for options in (kinds if SLOW == 1 else kinds[:3])]
    t.ask("go")
    docs = [recording.finish() for recording in recordings]
    for doc in docs:
        schema.validate(doc)
    for damage in (
        lambda d: d.pop("lost"),
        lambda d: d.update(lost={}),
        lambda d: d.update(lost=docs[2]["lost"]),  # without BPF other things are lost
        lambda d: d["lost"].update(nonsense=1),
        lambda d: d["lost"].update(waits_ring_full=-1),
        lambda d: d.update(unknown=1),
        lambda d: d["top_blocking_threads"][0].update(percentage=4000),
        lambda d: d["stacks"][0].update(state="sleeping"),
        lambda d: d["stacks"][0].pop("user_stack_error"),
        lambda d: d["stacks"][0].update(user_stack_error="-14"),
        lambda d: d["stacks"][0].update(kernel_stack_error="14"),
        lambda d: d["stacks"][0]["user_stack"][0].pop("symbol"),
    ):
        broken = json.loads(json.dumps(docs[0]))
        damage(broken)
        assert not schema.is_valid(broken)


FOR_A_CPU = "[waiting for a CPU]_[k]"


@everywhere_alike
def test_folded(target, record):
    """root;…;leaf N, in µs, kernel frames marked; the thread first."""
    t = target("waits_exact", 1000, 20)
    recording, doc = record("--folded", "--min", 0, "-p", t.pid), record("--json", "--min", 0, "-p", t.pid)
    truth = measured(t)
    result, doc = recording.end(), doc.finish()
    assert result.code in (0, 3), result
    ns, lines = defaultdict(int), defaultdict(int)
    for line in result.out.splitlines():
        stack, _, weight = line.rpartition(" ")
        frames = stack.split(";")
        assert int(weight) >= 1 and all(frames), line
        marked = [frame.endswith("_[k]") for frame in frames]
        assert marked == sorted(marked), "kernel frames are the leaves"
        assert FOR_A_CPU not in frames[:-1], line
        for site in set(SITES) & set(frames):
            assert frames.index(SITES[site][:15]) < frames.index(site)
            assert marked[-1]
            kind = site, "R" if frames[-1] == FOR_A_CPU else "SD"
            ns[kind] += int(weight) * 1000
            lines[kind] += 1
    for th in truth["threads"]:
        for site in set(SITES) & set(th["sites"]):
            for states in ("SD", "R"):
                rows = rows_of(doc, site=site, state=states)
                slack = TOLERANCE * added(rows, "total_ns") + 10000 * added(rows) + 1000 * lines[site, states]
                slack += most_stolen_ns(truth)  # between the two who record
                assert abs(ns[site, states] - added(rows, "total_ns")) <= slack, (site, states, ns, rows)
            least, most = th["sites"][site]["off_ns"] - most_stolen_ns(truth), th["sites"][site]["all_ns"]
            assert least / 2 <= ns[site, "SD"] + ns[site, "R"] <= most * 2, (site, ns, least, most)


@everywhere_alike
def test_events(target, record):
    t = target("waits_exact", 1000, 20)
    before = time.time()
    recording = record("--events", "--wakers", "-p", t.pid)
    truth = measured(t)
    result = recording.end()
    after = time.time()
    assert result.code in (0, 3), result
    begin, *waits, end = (json.loads(line) for line in result.out.splitlines())
    assert (begin["type"], begin["schema"], end["type"]) == ("begin", "stakeout.offcpu-events/1", "end")
    assert (begin["min_ns"], begin["max_ns"], begin["states"]) == (MS, None, ["S", "D", "R"])
    assert {e["type"] for e in waits} == {"wait"}
    assert (end["total_events"], end["total_time_ns"]) == (len(waits), sum(e["duration_ns"] for e in waits))
    lacking = {}
    for th in truth["threads"]:
        for name, site in th["sites"].items():
            mine = [e for e in waits if e["tid"] == th["tid"] and name in names(e["user_stack"]) and e["state"] in "SD"]
            least, most = limits(site, truth)
            lacking[f"{name}: {len(mine)} of {site}"] = least - len(mine)
            assert len(mine) <= most, (name, len(mine), site)
            assert all(MS <= e["duration_ns"] <= site["max_ns"] for e in mine)
    assert_counts(lacking)
    for e in waits:
        assert e["pid"] == t.pid and e["thread_name"]
        moment = datetime.strptime(e["time"][:26] + "Z", "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
        assert before <= moment.timestamp() <= after
    for site, (waker, function) in WAKERS.items():
        by = [e["waker"] for e in waits if e["tid"] == t.tids[SITES[site]] and site in names(e["user_stack"])]
        right = [w for w in by if w and (w["pid"], w["tid"]) == (t.pid, t.tids[waker])]
        assert right and all(function in names(w["user_stack"]) for w in right), (site, by)
    validate = validator("offcpu-events").validate
    for line in (begin, *waits, end):
        validate(line)


@everywhere_alike
def test_events_beside_the_report(target, record, tmp_path):
    """With a file for the events there are both, and they tell of the same waits."""
    t = target("waits_exact", 1000, 10)
    recording = record(f"--events={tmp_path / 'events'}", "--json", "-p", t.pid)
    t.ask("go")
    doc = recording.finish()
    begin, *waits, end = (json.loads(line) for line in (tmp_path / "events").read_text().splitlines())
    assert_adds_up(doc)
    for name in ("duration_ns", "lost", "notes", "total_time_ns", "total_events", "max_time_ns", "min_time_ns"):
        assert end[name] == doc[name], name
    assert begin["method"] == doc["method"]
    by_thread = defaultdict(list)
    for e in waits:
        by_thread[f"{e['pid']}:{e['tid']}"].append(e["duration_ns"])
    told = {who: (len(durations), sum(durations)) for who, durations in by_thread.items()}
    assert told == {who: (s["count"], s["total_time_ns"]) for who, s in doc["thread_stats"].items()}
    for site, thread_name in SITES.items():
        mine = [e for e in waits if e["tid"] == t.tids[thread_name] and site in names(e["user_stack"])]
        assert mine and len(mine) == added(rows_of(doc, t.tids[thread_name], site)), site
    assert not any(e["waker"] for e in waits)
    validate = validator("offcpu-events").validate
    for line in (begin, *waits, end):
        validate(line)


@everywhere_alike
def test_events_are_streamed(target, record):
    """A line comes when the wait is over, not at the end of the recording."""
    t = target("waits_deep", 3)
    recording = record("--events", "-p", t.pid)
    recording.hear()
    wait_until(lambda: "bottom_wait" in recording.hear(), "a wait is told of")
    assert recording.proc.poll() is None
    assert recording.end().code in (0, 3)


@pytest.fixture
def stalled(target):
    """stalled(ARG…): a recording into a pipe of one page, which is full and which nobody reads, once it has ended."""
    started = []

    def start(*args):
        t = target("waits_deep", 100)
        ours, theirs = os.pipe()
        fcntl.fcntl(ours, fcntl.F_SETPIPE_SZ, select.PIPE_BUF)  # refused when there is more in it already
        proc = subprocess.Popen(
            command("offcpu", "--events", "-p", t.pid, *args),
            stdout=theirs,
            stderr=subprocess.PIPE,
            env={**os.environ, **SANITIZER_ENV},
        )
        os.close(theirs)
        proc.stdout = open(ours, "rb")
        started.append(proc)
        wait_until(lambda: waits_to_write(proc.pid), "the pipe is full")
        if "-d" not in args:
            proc.send_signal(signal.SIGINT)
        wait_until(lambda: len(os.listdir(f"/proc/{proc.pid}/task")) == 2, "only the writer is left, beside the first")
        return proc

    yield start
    for proc in started:
        if proc.poll() is None:
            proc.kill()
        proc.communicate()


def kernel_stack(pid, tid):
    """As /proc tells it; of a thread that has ended there is none."""
    try:
        return Path(f"/proc/{pid}/task/{tid}/stack").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def waits_to_write(pid):
    return any("pipe_write" in kernel_stack(pid, tid) for tid in tids(pid))


@pytest.mark.parametrize("how", [(), ("-d", "0.5")])
def test_events_into_a_reader_that_stalls(stalled, how):
    """The recording ends in time, and all that was recorded can still be read."""
    begin = time.monotonic_ns()
    proc = stalled(*how)
    end = time.monotonic_ns()
    out, err = proc.communicate(timeout=TIMEOUT)
    assert proc.returncode in (0, 3), err
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["type"] for line in (lines[0], lines[1], lines[-1])] == ["begin", "wait", "end"]
    assert lines[-1]["duration_ns"] < end - begin
    assert lines[-1]["total_events"] == len(lines) - 2


def test_second_interrupt_gives_up(stalled):
    proc = stalled()
    proc.send_signal(signal.SIGINT)
    assert proc.wait(TIMEOUT) == -signal.SIGINT


def test_events_that_nobody_reads(target, tmp_path):
    """As other tools do it goes without words, but not without the command that it has started."""
    gone = tmp_path / "gone"
    script = f"echo $$ > {gone}; while :; do sleep 0.01; done"
    proc = subprocess.Popen(command("offcpu", "--events", "--", "sh", "-c", script), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env={**os.environ, **SANITIZER_ENV})
    assert b"begin" in proc.stdout.readline()
    wait_until(lambda: gone.exists() and gone.read_text().endswith("\n"), "the command has told its number")
    proc.stdout.close()
    assert proc.wait(TIMEOUT) == -signal.SIGPIPE
    command_pid = int(gone.read_text())
    left = state(command_pid)
    if left:  # it has our end of standard error, which would not end
        os.kill(command_pid, signal.SIGKILL)
    with proc.stderr:
        assert proc.stderr.read() == b""
    assert not left


def test_events_on_a_full_disk(target, stakeout):
    t = target("waits_deep", 3)
    result = stakeout("offcpu", "--events", "-o", "/dev/full", "-d", "20", "-p", t.pid)
    assert result.code == 1 and "No space left on device" in result.err, result


@pytest.mark.parametrize("waited", [True, False], ids=["reaped", "zombie"])
@pytest.mark.parametrize("source", ["auto", "proc"])
def test_ends_with_the_last_process(record, source, waited):
    """Nobody has to end it, however long it was to last, nor to wait for the processes."""
    sleepers = [subprocess.Popen(["sleep", "1000"]) for _ in range(2)]
    pids = ",".join(str(sleeper.pid) for sleeper in sleepers)
    recording = record("--json", "--source", source, "--min", 0, "-d", "1h", "-p", pids)
    for sleeper in sleepers:
        assert recording.proc.poll() is None
        sleeper.kill()
        if waited:
            sleeper.wait()
    doc = recording.finish(None)
    for sleeper in sleepers:
        sleeper.wait()
    if source == "auto":  # /proc may have been looked at only once
        assert {row["pid"] for row in doc["stacks"]} == {sleeper.pid for sleeper in sleepers}


def test_ends_with_the_last_child(target, record):
    """A child that outlives its parent is still recorded."""
    t = subprocess.Popen(["sh", "-c", "sleep 1000 & echo $!; read line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child = int(t.stdout.readline())
    recording = record("--json", "--min", 0, "--children", "-p", t.pid)
    t.stdin.close()
    t.wait()
    recording.until_seen(1)
    assert recording.proc.poll() is None
    os.kill(child, signal.SIGKILL)
    assert child in {row["pid"] for row in recording.finish(None)["stacks"]}
    t.stdout.close()


def gone():
    """The number of a process that has ended."""
    proc = subprocess.Popen(["true"])
    proc.wait()
    return proc.pid


def test_process_that_is_gone(target, record, stakeout):
    """Lists from pgrep are soon out of date: the others are recorded."""
    t, dead = target("waits_deep", 3), gone()
    recording = record("--json", "-p", f"{dead},{t.pid}")
    recording.until_seen(3)
    result = recording.end()
    doc = json.loads(result.out)
    assert result.code == 3 and {row["pid"] for row in doc["stacks"]} == {t.pid}
    assert any(f"no process {dead}" in note for note in doc["notes"])
    result = stakeout("offcpu", "-p", dead)
    assert result.code == 1 and f"no process {dead}" in result.err


def test_process_that_is_not_waited_for(target, stakeout):
    t = target("plain")
    t.proc.stdin.close()
    wait_until(lambda: state(t.pid) == "Z", "it is a zombie")
    result = stakeout("offcpu", "-p", t.pid)
    assert result.code == 1 and "has ended: it is only not yet waited for" in result.err, result


def test_main_thread_has_ended(target, stakeout):
    """The process lives on in its other threads, also as somebody's child."""
    t = target("zombie_main").settle()
    wait_until(lambda: state(t.pid) == "Z", "the main thread is a zombie")
    doc = stakeout("offcpu", "--json", "-d", "0.3", "-p", t.pid).doc
    assert {row["tid"] for row in doc["stacks"]} == {t.tids["worker"]}
    t = target("zombie_main", wrap=["sh", "-c", BEHIND_A_SHELL])
    (child,) = family(t.pid) - {t.pid}
    wait_until(lambda: state(child) == "Z", "the main thread is a zombie")
    doc = stakeout("offcpu", "--json", "-d", "0.3", "--children", "-p", t.pid).doc
    assert {row["tid"] for row in doc["stacks"]} == {t.pid, t.tids["worker"]}


def test_kernel_thread(stakeout):
    if Path("/proc/2/comm").read_text() != "kthreadd\n":
        pytest.skip("threads of the kernel cannot be seen here")
    result = stakeout("offcpu", "-p", 2)
    assert result.code == 1 and "kthreadd" in result.err and "thread of the kernel" in result.err


def test_process_that_is_stopped(record):
    t = subprocess.Popen(["sleep", "1000"])
    try:
        t.send_signal(signal.SIGSTOP)
        wait_until(lambda: state(t.pid) == "T", "it is stopped")
        doc = record("--json", "-p", t.pid).finish()
        assert doc["total_events"] == 0
        assert any(f"process {t.pid}" in note and "was stopped by a signal" in note for note in doc["notes"])
    finally:
        t.kill()
        t.wait()


def test_name_that_would_write_to_the_terminal(record):
    """A program chooses its name; what is said of it is text."""
    t = subprocess.Popen(["sh", "-c", "printf '\\033[31mRED' > /proc/self/comm; kill -STOP $$"])
    try:
        wait_until(lambda: state(t.pid) == "T", "it is stopped")
        result = record("--folded", "-p", t.pid).end()
        assert "\\x1b[31mRED" in result.err and "\033[31m" not in result.err, result
    finally:
        t.kill()
        t.wait()


def test_command_when_children_are_ignored(tmp_path):
    """Somebody has left SIGCHLD ignored: the end of the command is seen all the same."""
    proc = subprocess.run(command("offcpu", "--json", "--", "sleep", "0.1"), capture_output=True, text=True,
                          timeout=TIMEOUT, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
                          env={**os.environ, **SANITIZER_ENV})
    assert json.loads(proc.stdout)["total_events"] >= 1 and "SIGTERM" not in proc.stderr, proc


def test_terminal_that_is_closed(record, tmp_path):
    """What was recorded is written, and the command ended."""
    script = f"echo $$ > {tmp_path}/pid; while :; do sleep 0.01; done"
    pid = tmp_path / "pid"
    recording = record("--json", "-o", tmp_path / "out", "--", "sh", "-c", script)
    wait_until(lambda: pid.exists() and pid.read_text().endswith("\n"), "the command has told its number")
    recording.until_seen(3)
    assert recording.end(signal.SIGHUP).code in (0, 3)
    assert json.loads((tmp_path / "out").read_text())["total_events"] >= 3
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()


def test_command_that_has_to_put_things_away(record, tmp_path):
    """It has all the time that it needs, while the report can be read already."""
    done, go = tmp_path / "done", tmp_path / "go"
    script = f"trap 'while ! [ -e {go} ]; do sleep 0.01; done; echo > {done}; exit' TERM; echo; while :; do sleep 0.01; done"
    recording = record("--json", "-o", tmp_path / "out", "--", "sh", "-c", script)
    recording.hear()
    recording.proc.send_signal(signal.SIGTERM)
    wait_until(lambda: (tmp_path / "out").stat().st_size, "the report is written")
    assert recording._until(recording._terminal, b"waiting for its end")
    go.write_text("")
    assert recording.end(None).code in (0, 3)
    assert done.exists()


@pytest.mark.parametrize("args", [("--events=F", "-o", "F"), ("--events=-",)])
def test_events_and_report_in_one_file(stakeout, args):
    result = stakeout("offcpu", "-a", *args)
    assert result.code == 2 and "both" in result.err


@everywhere_alike
def test_output_file(target, record, tmp_path):
    t = target("waits_exact", 1000, 5)
    for option, name in (("--json", "a.json"), ("--folded", "b.folded"), (None, "c.txt")):
        recording = record(*([option] if option else []), "-o", tmp_path / name, "-p", t.pid)
        t.ask("go")
        result = recording.end()
        assert result.code in (0, 3) and result.out == "", result
        assert "sleep_long" in (tmp_path / name).read_text()
    assert json.loads((tmp_path / "a.json").read_text())["schema"] == "stakeout.offcpu/1"


def test_output_file_that_cannot_be_written(target, stakeout, tmp_path):
    """It is known before the recording, not after it."""
    t = target("plain")
    result = stakeout("offcpu", "-d", "1h", "-o", tmp_path / "none/file", "-p", t.pid)
    assert result.code == 1 and str(tmp_path / "none/file") in result.err, result


@everywhere_alike
def test_text(target, record):
    t = target("waits_exact", 1000, 30)
    recording = record("-p", t.pid)
    t.ask("go")
    result = recording.end()
    assert result.code in (0, 3), result
    for site, thread_name in SITES.items():
        assert site in result.out and thread_name[:15] in result.out
    for word in ("total", "average", "longest", "blocked", "uninterruptible", "waiting for a CPU"):
        assert word in result.out, word
    assert "lost" not in result.out
    lines = result.out.splitlines()
    at = next(i for i, line in enumerate(lines) if re.search(r"\bpipe_wait\b", line))
    above = [i for i, line in enumerate(lines) if "pipe_read" in line and "pipe_reader" not in line and i < at]
    assert above, "kernel over user"
    assert "\033[" not in result.out


@everywhere_alike
def test_losses_in_the_text(target, record):
    """What is looked at through /proc now and then has waits in between of which nobody knows how long they were."""
    t = target("waits_deep", 3)
    recording = record("--source=proc", "-p", t.pid)
    assert recording._until_enough(recording._terminal, re.compile(rb" [1-9]\d* lost").search, "loss")
    result = recording.end()
    assert result.code == 3 and re.search(r"^lost: [1-9]\d* waits_seen_once$", result.out, re.MULTILINE), result


def assert_thread_counts(doc, truth):
    """By thread, whether or not its stacks could be walked yet: tables for a new program are made while it runs."""
    lacking = {}
    for th in truth["threads"]:
        least = sum(limits(site, truth)[0] for site in th["sites"].values())
        lacking[str(th)] = least - added(rows_of(doc, th["tid"], state="SD"))
        for name, site in th["sites"].items():
            _, most = limits(site, truth)
            assert added(rows_of(doc, th["tid"], name, "SD")) <= most, (th["name"], name, site)
    assert_counts(lacking)


def test_command(record, tmp_path):
    """It is recorded from its first instruction to its end, which is the end of the recording."""
    report = tmp_path / "report"

    def look(patience):
        recording = record("--json", "-o", report, "--", built("waits_exact"), 1000, 40 * patience)
        assert recording.hear().startswith("ready ")
        truth = measured(recording)
        recording.proc.stdin.close()
        result = recording.end(None)
        doc = json.loads(report.read_text())
        assert_exit_code(result, doc)
        assert_thread_counts(doc, truth)
        assert_adds_up(doc)
        return {site for site in SITES if rows_of(doc, site=site, state="SD")}

    gather(look, set(SITES))


@everywhere_alike
def test_commands_children_are_followed(record, tmp_path):
    report = tmp_path / "report"

    def record_one(nap):
        recording = record("--json", "-o", report, "--", built("waits_churn"), built("plugin"), nap)
        recording.hear()
        said = churned(recording)
        recording.proc.stdin.close()
        assert recording.end(None).code in (0, 3)
        return json.loads(report.read_text()), said

    recorded_churn(record_one)


def test_return_to_nowhere(target, record):
    """The kernel says at once that no code is there, unless it is just changing the map; and it is no frame."""
    t = target("waits_astray")
    recording = record("--json", "-p", t.pid)
    let_run(t, 50)
    doc = recording.finish()
    rows = rows_of(doc, t.tids["worker"], "astray", "S")
    known = [row for row in rows if "return address is not in executable memory" in row["user_stack_error"]]
    assert {names(row["user_stack"])[-1] for row in known} == {"astray"}
    assert added(known) > added(rows) / 2


REUSE = """
import os, pathlib, sys, time
last = pathlib.Path("/proc/sys/kernel/ns_last_pid")
def child(name, *then, number=None):
    if number:
        last.write_text(str(number - 1))
    pid = os.fork()
    if not pid:
        pathlib.Path("/proc/self/comm").write_text(name)
        time.sleep(float(sys.argv[1]))
        if then:
            os.execvp(then[0], then)
        os._exit(0)
    os.waitpid(pid, 0)
    return pid
first = child("first")
for attempt in range(100):
    if child("second", "sleep", sys.argv[1], number=first) == first:
        sys.exit()
"""


@everywhere_alike
@pytest.mark.parametrize("source, nap", [("auto", 0.02), ("proc", 0.5)])
def test_reused_number(unshare, record, source, nap):
    """A process that has the number of one that has ended is another; one that executes something is the same."""
    private = [unshare, "--pid", "--fork", "--mount-proc"]
    choice = [*private, "sh", "-c", "echo 99 >/proc/sys/kernel/ns_last_pid"]
    tried = subprocess.run(choice, capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"no number can be chosen: {tried.stderr.strip()}")

    def look(patience):
        args = f"--source={source}", "--", "/usr/bin/python3", "-c", REUSE, nap * patience
        doc = record("--json", *args, wrap=private).finish(None)
        assert_adds_up(doc)
        called = defaultdict(set)
        for row in doc["stacks"]:
            called[row["thread"]].add(row["thread_name"])
        assert not any("first" in names and names & {"second", "sleep"} for names in called.values()), called
        found = {(name, "again" if key.endswith("#2") else "") for key, names in called.items() for name in names}
        assert ("first", "again") not in found, called
        return found

    gather(look, {("first", ""), ("second", "again"), ("sleep", "again")})


@everywhere_alike
def test_commands_exit_code(stakeout, tmp_path):
    """However the command ends, it is the end of the recording; the exit code is about that."""
    for script in ("sleep 0.01", "sleep 0.01; exit 7", "kill -TERM $$"):
        report = tmp_path / "report"
        result = stakeout("offcpu", "--json", "-o", report, "--", "sh", "-c", script)
        assert result.code in (0, 3), result
        doc = json.loads(report.read_text())
        assert_exit_code(result, doc)
        assert doc["total_events"] or "sleep" not in script


@everywhere_alike
def test_command_that_is_not_there(stakeout, tmp_path):
    result = stakeout("offcpu", "--", tmp_path / "no-such-program")
    assert result.code == 1 and "no-such-program" in result.err and result.out == "", result


@everywhere_alike
@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_the_recording(target, record, sig):
    t = target("waits_exact", 1000, 5)
    recording = record("--json", "--min", 0, "-p", t.pid)
    truth = measured(t)
    doc = recording.finish(sig)
    assert added(rows_of(doc, site="sleep_long", state="S")) == switches(truth, "sleep_long") > 0
    assert t.ask("go"), "the target runs on"


@everywhere_alike
def test_signal_while_a_command_runs(record, tmp_path):
    """Ctrl-C reaches the command too; when it reaches only the recorder the report comes all the same."""
    report = tmp_path / "report"
    recording = record("--json", "-o", report, "--", built("waits_exact"), 1000, 5)
    recording.hear()
    truth = measured(recording)
    recording.end()
    doc = json.loads(report.read_text())
    assert_thread_counts(doc, truth)
    wait_until(lambda: not Path(f"/proc/{truth['pid']}").exists(), "the command has ended with it")


@everywhere_alike
def test_duration(target, stakeout):
    t = target("waits_deep", 3)
    doc = json.loads(stakeout("offcpu", "--json", "-d", "0.3", "-p", t.pid).out)
    assert doc["duration_ns"] >= 300 * MS
    assert all(s["total_time_ns"] <= doc["duration_ns"] for s in doc["thread_stats"].values()), "of each thread"
    naps = added(rows_of(doc, t.tids["worker"], "bottom_wait", "S"))
    assert 0 < (naps - 2) * 4 * MS <= doc["duration_ns"], "all but what is cut off at the beginning and the end"


@everywhere_alike
def test_live_line(target):
    """On a terminal one line is kept up to date; it does not get into the report."""
    t = target("waits_deep", 3)
    ours, theirs = pty.openpty()
    proc = subprocess.Popen(
        command("offcpu", "--json", "-d", "2.5", "-p", t.pid), stdout=subprocess.PIPE, stderr=theirs, stdin=theirs
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            data = os.read(ours, 4096)
        except OSError:  # how the end of a terminal reads
            break
        if not data:
            break
        said += data
    out, _ = proc.communicate(timeout=TIMEOUT)
    os.close(ours)
    assert proc.returncode in (0, 3) and json.loads(out)["total_events"]
    updates = [line.decode() for line in said.split(b"\r") if b"lost" in line]
    assert len(updates) >= 2, said
    seen = [int(re.search(r"([\d,]+) waits", line)[1].replace(",", "")) for line in updates]
    assert seen == sorted(seen) and seen[-1] > seen[0], updates
    left = [int(re.match(r"\033\[K(\d+) s left, ", line)[1]) for line in updates]
    assert left == sorted(left, reverse=True) and 3 >= left[0] > left[-1], updates


@everywhere_alike
def test_idle_threads(target, record):
    t = target("waits_idle")
    shown, hidden = record("--json", "-p", t.pid), record("--json", "--hide-idle", "-p", t.pid)
    let_run(t, 60)
    shown, hidden = shown.finish(), hidden.finish()
    for site in ("events_wait", "pool_wait", "worker_wait"):
        rows = rows_of(shown, site=site, state="S")
        assert rows and {row["idle"] for row in rows} == {site != "worker_wait"}, site
        stats = shown["thread_stats"][f"{t.pid}:{rows[0]['tid']}"]
        assert stats["idle_time_ns"] == added([row for row in rows if row["idle"]], "total_ns"), site
    for site in ("events_wait", "pool_wait"):
        assert not rows_of(hidden, site=site, state="S"), site  # what waits for a CPU there is not idle
    assert added(rows_of(hidden, site="worker_wait", state="S")) >= 45
    only_idle = {key for key, s in hidden["thread_stats"].items() if s["idle_time_ns"] == s["total_time_ns"]}
    for doc in (shown, hidden):
        top = {f"{th['pid']}:{th['tid']}" for th in doc["top_blocking_threads"]}
        assert top == doc["thread_stats"].keys() - (only_idle if doc is hidden else set())


@everywhere_alike
def test_idle_threads_in_the_text(target, record):
    """However many idle, who does not comes first; they are one line of the table, and one stack."""
    t = target("waits_idle", 60).settle("events", "pool", "worker")
    recording = record("-p", t.pid)
    recording.until_seen(200)  # whoever asks the target keeps its first thread from being idle
    head, table, *stacks = recording.end().out.split("\n\n")
    assert "--hide-idle" in head
    assert table.splitlines()[1].endswith(f"tid {t.tids['worker']} worker")
    assert re.search(r"  60 threads: tid .*sleeper", table) and table.count("sleeper") < 20
    (sleepers,) = [stack for stack in stacks if "sleeper_wait" in stack and " S sleeping" in stack]
    (worker,) = [stack for stack in stacks if "worker_wait" in stack and " S sleeping" in stack]
    assert stacks.index(worker) < stacks.index(sleepers)
    assert "60 threads  S sleeping  [idle]" in sleepers and "60 waits, 60 not over" in sleepers


@everywhere_alike
def test_filter_is_told(target, record):
    t = target("waits_idle")
    wanted = ("--min", "1.5ms", "--max", "100s", "--state", "D,S", "-p", t.pid)
    recordings = record("--json", *wanted), record(*wanted), record("--state", "D", "--min", "90s", "-p", t.pid)
    let_run(t)
    doc, text, nothing = recordings[0].finish(), recordings[1].end().out, recordings[2].end()
    assert (doc["min_ns"], doc["max_ns"], doc["states"]) == (1_500_000, 100_000_000_000, ["S", "D"])
    assert ", waits of 1.5 ms to 100 s in state S or D; method" in text.splitlines()[0]
    assert nothing.out.splitlines()[1] == "no waits of at least 90 s in state D: see --min, --state"


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("-p",),
        ("-p", "0"),
        ("-p", "one"),
        ("-p", "-1"),
        ("-a", "-p", "1"),
        ("-a", "--", "true"),
        ("-p", "1", "--", "true"),
        ("--",),
        ("-a", "--no-such-option"),
        ("-a", "-d", "soon"),
        ("-a", "-d", "-1"),
        ("-a", "--min", "long"),
        ("-a", "--min", "-1"),
        ("-a", "--min", "5ms", "--max", "1ms"),
        ("-a", "--max", "1parsec"),
        ("-a", "--state", "Q"),
        ("-a", "--state", ""),
        ("-a", "--kernel-only", "--user-only"),
        ("-a", "--json", "--folded"),
        ("-a", "--source=other"),
        ("-a", "stray"),
    ],
    ids=lambda args: " ".join(args) or "nothing",
)
def test_wrong_usage(stakeout, args):
    result = stakeout("offcpu", *args)
    assert result.code == 2, result
    assert result.out == "" and result.err


def test_no_such_process(stakeout):
    gone = subprocess.Popen(["true"])
    gone.wait()
    result = stakeout("offcpu", "-d", "1", "-p", gone.pid)
    assert result.code == 1 and result.out == "" and str(gone.pid) in result.err, result


def test_help(stakeout):
    result = stakeout("offcpu", "--help")
    assert result.code == 0 and result.err == ""
    options = """-p -a -d --duration --min --max --state --children --threads --no-threads --wakers --kernel-only
        --user-only --json --folded -o --events --hide-idle""".split()
    assert [option for option in options if option not in result.out] == []


# What is left when permissions are missing.


@pytest.fixture
def as_tracer(setpriv):
    """Another user with the capabilities that BPF programs need, and no more."""
    caps = "+cap_38,+cap_39"  # perfmon and bpf: names that older versions do not know
    wrap = [*setpriv, f"--inh-caps={caps}", f"--ambient-caps={caps}"]
    if subprocess.run([*wrap, "true"], capture_output=True).returncode:
        pytest.skip("CAP_BPF and CAP_PERFMON cannot be given here")
    return wrap


def test_hanging_threads_of_another_user(target, as_tracer):
    """Their stacks are read from outside, which is refused: that is what is said, not where the walk got stuck."""
    t = target("deadlock").settle()
    doc = run("offcpu", "--json", "-d", "0.3", "-p", t.pid, wrap=as_tracer).doc
    rows = [row for row in doc["stacks"] if row["tid"] in t.tids.values()]
    assert rows and all("CAP_SYS_PTRACE" in row["user_stack_error"] for row in rows), rows


def test_without_bpf_it_is_an_estimate(target, record, as_nobody, tmp_path):
    """Sampled from /proc: rough, but the stacks are right, and it says what is missing."""
    t = target("waits_deep", 3, 100000, wrap=as_nobody)
    recording = record("--json", "-p", t.pid, wrap=as_nobody)
    recording.until_seen(3)
    result = recording.end()
    assert result.code == 3, result
    doc = json.loads(result.out)
    assert doc["estimate"] is True and doc["method"] == "proc"
    for way in ("root", "CAP_BPF"):
        assert way in " ".join(doc["notes"]), doc["notes"]
    rows = rows_of(doc, t.tids["worker"], "bottom_wait")
    assert rows and added(rows, "total_ns") <= doc["duration_ns"] * 1.1
    assert "descend_even" in names(rows[0]["user_stack"])


@everywhere_alike
def test_estimate_in_the_text(target, record, as_nobody):
    t = target("waits_deep", 3, 100000, wrap=as_nobody)
    recording = record("-p", t.pid, wrap=as_nobody)
    let_run(t, 5)
    result = recording.end()
    said = result.out + result.err
    assert result.code == 3 and "estimate" in said and "CAP_BPF" in said, result


def test_forced_estimate(target, record):
    """The same rung as root, forced: it is near the truth for waits that are long beside the interval."""
    t = target("waits_deep", 3, 100000)
    recording = record("--json", "--source=proc", "-p", t.pid)
    recording.until_seen(3)  # the first look at a process takes long, and so a pause comes after it
    doc = recording.finish()
    assert doc["estimate"] is True
    assert rows_of(doc, t.tids["worker"], "bottom_wait")


@everywhere_alike
def test_exact_is_no_estimate(target, record):
    t = target("waits_deep", 3)
    recording = record("--json", "-p", t.pid)
    let_run(t)
    doc = recording.finish()
    assert doc["estimate"] is False and doc["method"] in RUNGS


def test_capabilities_are_enough(target, record, as_tracer, as_nobody):
    t = target("waits_deep", 3, wrap=as_nobody)
    recording = record("--json", "-p", t.pid, wrap=as_tracer)
    let_run(t)
    doc = recording.finish()
    assert doc["method"] in RUNGS
    rows = rows_of(doc, t.tids["worker"])
    assert added(rows) >= 15
    assert any("bottom_wait" in names(row["user_stack"]) for row in rows)


def test_foreign_process_with_capabilities(target, record, as_tracer):
    """Whether its maps can be read depends on the kernel; where not, the waits are there, and a reason."""
    t = target("waits_deep", 3)
    readable = subprocess.run([*as_tracer, "cat", f"/proc/{t.pid}/maps"], capture_output=True).returncode == 0
    recording = record("--json", "-p", t.pid, wrap=as_tracer)
    let_run(t)
    doc = recording.finish()
    rows = rows_of(doc, t.tids["worker"], state="S")
    assert added(rows) >= 15
    for row in rows:
        assert row["kernel_stack"] or row["kernel_stack_error"]
        assert (row["user_stack_error"] is None) == readable == ("bottom_wait" in names(row["user_stack"]))
    reasons = [*doc["notes"], *(row["user_stack_error"] or "" for row in rows)]
    assert readable or any("CAP_SYS_PTRACE" in reason for reason in reasons), reasons


def test_another_users_process(target, stakeout, as_nobody):
    t = target("waits_deep", 3)
    result = stakeout("offcpu", "-d", "0.2", "-p", t.pid, wrap=as_nobody)
    said = result.out + result.err
    assert "root" in said and ("CAP_BPF" in said or "CAP_SYS_PTRACE" in said), result
    assert "bottom_wait" not in result.out


def test_forced_bpf_without_privileges(target, stakeout, as_nobody):
    t = target("waits_deep", 3, wrap=as_nobody)
    result = stakeout("offcpu", "--source=switch", "-d", "0.2", "-p", t.pid, wrap=as_nobody)
    assert result.code == 1 and result.out == "" and "CAP_BPF" in result.err, result
