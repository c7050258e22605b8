# SPDX-License-Identifier: MIT
"""What the tests are written with: targets, runs of the program under test, and what to expect of a document."""

import fcntl
import json
import os
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAKEOUT = Path(os.environ.get("STAKEOUT", ROOT / "build/stakeout")).resolve()
TARGETS = Path(os.environ.get("STAKEOUT_TARGETS", ROOT / "build/tests/targets")).resolve()
NOBODY = 65534  # a user who owns nothing
SLOW = float(os.environ.get("STAKEOUT_SLOW", "1"))
TIMEOUT = 30 * SLOW

CRASHED = "the program under test has crashed"

# A sanitizer's report must not pass for one of the program's own exit codes.
SANITIZER_EXIT = 99
SANITIZER_ENV = {
    "ASAN_OPTIONS": f"exitcode={SANITIZER_EXIT}:" + os.environ.get("ASAN_OPTIONS", ""),
    "UBSAN_OPTIONS": f"print_stacktrace=1:exitcode={SANITIZER_EXIT}:" + os.environ.get("UBSAN_OPTIONS", ""),
}


# Script for sh that has a target as a child, to which it leaves its input.
BEHIND_A_SHELL = 'exec 3<&0; "$0" "$@" <&3 & wait'

# Threads that have ended and kernel threads have no user stack that could be incomplete.
HAVE_NO_STACK = ("zombie", "exited", "kernel_thread")


def native(*values):
    """For parametrize: a variant of an `arch` test that would tell nothing more on the emulated machine."""
    return pytest.param(*values, marks=pytest.mark.native)


def rounds(count):
    """How often to repeat what may go wrong by chance: less where everything is slow."""
    return range(max(2, int(count / SLOW)))


def wait_until(condition, what):
    """Polls until the condition holds and returns its value."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"timed out waiting until {what}"
        time.sleep(0.001)


def until(take, condition):
    """Snapshots until one of them is as wanted: on a busy machine a thread that runs may just be preempted."""
    docs = []

    def again():
        docs.append(take())
        return condition(docs[-1])

    wait_until(again, "a snapshot is as wanted")
    return docs[-1]


def gather(look, wanted):
    """
    Looks again and again until all that is wanted was seen, as chance may keep something from being seen at once.
    look(PATIENCE) returns a set of what it has seen, and asserts what holds each time; the patience doubles.
    """
    found, patience, deadline = set(), 1, time.monotonic() + TIMEOUT
    while True:
        found |= look(patience)
        if wanted <= found:
            return
        assert time.monotonic() < deadline, f"never seen: {wanted - found}; seen: {found}"
        patience *= 2


def tids(pid):
    return [int(name) for name in os.listdir(f"/proc/{pid}/task")]


def state(pid, tid=None):
    """The state letter of /proc/PID/task/TID/stat; None when the thread has gone."""
    try:
        stat = Path(f"/proc/{pid}/task/{tid or pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return chr(stat[stat.rindex(b")") + 2])


def name_of(pid, tid):
    try:
        return Path(f"/proc/{pid}/task/{tid}/comm").read_text(errors="replace").rstrip("\n")
    except (FileNotFoundError, ProcessLookupError):
        return None


def child_of(pid, name):
    """A process that this one has started, by the name that it has given itself."""

    def find():
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return next((int(child) for child in children if name_of(child, child) == name[:15]), None)

    return wait_until(find, f"{pid} has a child named {name}")


def states(pid):
    return {state(pid, tid) for tid in tids(pid)} - {None}


def let_wait(tids, times=2):
    """Until each thread, or the main thread of each process, has waited so often."""

    def waits(tid):
        status = Path(f"/proc/{tid}/status").read_text(errors="replace")
        return int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])

    enough = {tid: waits(tid) + times for tid in tids}
    wait_until(lambda: all(waits(tid) >= count for tid, count in enough.items()), "all have waited")


def preemptions(pid, tid):
    """How often it has lost its CPU and would have gone on."""
    return int(Path(f"/proc/{pid}/task/{tid}/status").read_text().split("nonvoluntary_ctxt_switches:")[1])


def wait_for_zombie(pid):
    """Until the process has ended: its main thread is often the first of its threads to do so."""
    wait_until(lambda: tids(pid) == [pid] and state(pid) == "Z", f"{pid} has ended, and nobody waits for it")


def stop(pid):
    """SIGSTOP, and wait until every thread has followed it."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: states(pid) <= {"T", "Z"}, f"{pid} has stopped")


def kernel_stack(pid, tid):
    """As /proc tells it; of a thread that has ended there is none."""
    try:
        return Path(f"/proc/{pid}/task/{tid}/stack").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def gone():
    """The number of a process that has ended."""
    proc = subprocess.Popen(["true"])
    proc.wait()
    return proc.pid


def built(name):
    """The path of a program of tests/targets."""
    path = TARGETS / name
    if not path.exists() and "musl" in name:
        pytest.skip("no musl-gcc at build time")
    assert path.exists(), f"{path} is not there: run make first"
    return path


class Target:
    """A program of tests/targets: see target.h there for what it says and hears."""

    def __init__(self, argv, **popen):
        self.proc = subprocess.Popen(
            [str(a) for a in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, **popen
        )
        self.pid = self.proc.pid
        self._buffer = b""
        self._extra_pids = []
        try:
            words = self.readline().split()
            assert words and words[0] == "ready", f"{argv[0]} said {words}, not ready"
            self.tids = {name: int(tid) for name, tid in (word.split("=") for word in words[2:])}
            if "child" in self.tids:
                self._extra_pids.append(self.tids["child"])
        except BaseException:
            self.end()
            raise

    def readline(self, limit=TIMEOUT):
        deadline = time.monotonic() + limit
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            readable, _, _ = select.select([self.proc.stdout], [], [], max(left, 0))
            assert readable, f"{self.proc.args[0]} said nothing within {limit} s"
            data = os.read(self.proc.stdout.fileno(), 65536)
            if not data:
                break
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace")

    def ask(self, question="?", limit=TIMEOUT):
        self.proc.stdin.write(question.encode() + b"\n")
        return self.readline(limit)

    def assert_progress(self):
        """The target runs on: the number that it counts rises."""
        before = int(self.ask("progress"))
        wait_until(lambda: int(self.ask("progress")) > before, "the target makes progress")

    def settle(self, *running):
        """Waits until every thread but those of these names is asleep: not in state D, which is on the way to there."""
        wait_until(
            lambda: all(
                state(self.pid, t) in ("S", "Z", None) or name_of(self.pid, t) in running for t in tids(self.pid)
            ),
            "the target's threads are asleep",
        )
        return self

    def end(self):
        for pid in self._extra_pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.proc.kill()
        self.proc.wait(TIMEOUT)
        self.proc.stdin.close()
        self.proc.stdout.close()


class Result:
    def __init__(self, args, code, out, err):
        self.args, self.code, self.out, self.err = args, code, out, err

    @property
    def docs(self):
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def doc(self):
        (only,) = self.docs
        return only

    def sound(self):
        """Itself, if the program has come to an end of its own."""
        assert self.code >= 0 and self.code != SANITIZER_EXIT and "Sanitizer" not in self.err, f"{CRASHED}: {self}"
        return self

    def __repr__(self):
        return f"stakeout {' '.join(self.args)}: exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


# How a thread that sleeps may be captured: in a window if that may be for less than a pass takes, which on a busy machine is long.
UNSTOPPED = ("asleep", "quiet")


def command(*args):
    return [str(STAKEOUT), *(str(a) for a in args)]


def refusing(how):
    """The environment of a kernel that refuses some BPF programs: tests/targets/refuse_bpf.c."""
    return {"LD_PRELOAD": str(built("refuse_bpf")), "ASAN_OPTIONS": f"verify_asan_link_order=0:{SANITIZER_ENV['ASAN_OPTIONS']}", **how}


def without_btf(unshare):
    """For `wrap`: a mount namespace without the kernel's BTF, and without the places in which libbpf looks for it besides."""
    places = "/sys/kernel/btf /boot /lib/modules /usr/lib/debug"
    hide = f"for d in {places}; do [ ! -d $d ] || mount -t tmpfs none $d || exit; done"
    return [unshare, "-m", "sh", "-c", f'{hide}; exec "$@"', "sh"]


def run(*args, wrap=(), env=None, **popen):
    """Runs the program to its end; a crash or a sanitizer's report fails the test."""
    full_env = {**os.environ, **SANITIZER_ENV, **(env or {})}
    done = subprocess.run(
        [*wrap, *command(*args)],
        capture_output=True,
        timeout=TIMEOUT * 2,
        env=full_env,
        stdin=subprocess.DEVNULL,
        **popen,
    )
    result = Result([str(a) for a in args], done.returncode, done.stdout.decode(), done.stderr.decode())
    return result.sound()


def on_a_terminal(*args, columns=80, rows=1000, env=None, stream="stdout"):
    """Runs the program with a terminal of that size for a stream: its exit code, and what it writes there."""
    ours, its = os.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    with open(ours, "rb", buffering=0) as terminal:
        streams = {"stdout": subprocess.DEVNULL, "stderr": None, stream: its}
        proc = subprocess.Popen(command(*args), env={**os.environ, "TERM": "xterm", **(env or {})}, **streams)
        os.close(its)
        said = b""
        try:
            while data := terminal.read(4096):
                said += data
        except OSError:  # EIO: the other end is closed
            pass
        return proc.wait(TIMEOUT), said.decode().replace("\r\n", "\n")


def wait_of(doc, tid):
    """What a thread waits for, as `why` and a snapshot say it."""
    return next(th["waits_for"] for th in doc["threads"] if th["tid"] == tid)


def is_known(wait):
    """What is waited for is certain, and not just a processor: a thread may still be on its way to what blocks it."""
    return bool(wait) and wait["certain"] and wait["kind"] != "cpu"


def thread(doc, name):
    """The thread of that name, or of that tid."""
    found = [t for t in doc["threads"] if name in (t["name"], t["tid"])]
    assert len(found) == 1, f"{name}: {len(found)} of {[(t['tid'], t['name']) for t in doc['threads']]}"
    return found[0]


def symbols(t):
    """Function names of a thread's user stack, innermost first, without parameter lists."""
    return [bare(frame["symbol"]) for frame in t["user_stack"]]


def bare(name):
    """A demangled name without parameters, symbol version and compiler suffix."""
    if name is None:
        return None
    name = name.split("@")[0].split(" [clone")[0]
    depth = 0
    for i, c in enumerate(name):
        if c in "<{[":
            depth += 1
        elif c in ">}]" and not name.endswith("operator", 0, i) and depth:
            depth -= 1
        elif c == "(" and depth == 0 and not name.startswith("(anonymous namespace)", i):
            return name[:i] if not name[:i].endswith("operator") else name[: i + 2]
    return name


def assert_calls(t, *names):
    """The functions are in the stack, in this order (innermost first), and the stack is whole."""
    assert t["user_stack_end"] == "complete", (t["user_stack_end"], t["user_stack_error"], symbols(t))
    left = iter(symbols(t))
    missing = [name for name in names if name not in left]
    assert not missing, f"{missing} not found, in order, in {symbols(t)}"
