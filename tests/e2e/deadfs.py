# SPDX-License-Identifier: MIT
"""What does not answer: file systems, memory, and runs of the program that may never come to an end."""

import json
import os
import re
import signal
import subprocess
import tempfile
import time
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness import SANITIZER_ENV, SLOW, STAKEOUT, TIMEOUT, Result, Target, built, command, states, wait_until

SANITIZED = b"__asan_init" in STAKEOUT.read_bytes()
# Seconds: far above the patience of 2, for machines that are slow, and far below for ever.
BOUND = 10 * SLOW * (3 if SANITIZED else 1)
CANNOT = 77


def _need(*argv):
    tried = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT)
    if tried.returncode == CANNOT:
        pytest.skip(tried.stderr.strip())
    assert tried.returncode == 0, tried


def need_fuse():
    """Skips the test where there are no FUSE file systems."""
    with tempfile.TemporaryDirectory() as shown, tempfile.TemporaryDirectory() as mount:
        _need(built("deadfs"), shown, mount)


def need_userfaultfd():
    _need(built("oddstack"), "uffd", "sleep")


class DeadFs(Target):
    """
    A file system that shows a directory, until it is told to stop answering: see deadfs.c. With "-l" who waits for it
    can be killed; without, not even that.
    """

    def __init__(self, shown, mount, *options):
        self.mount = Path(mount)
        super().__init__([built("deadfs"), *options, shown, mount])

    def stop(self):
        assert self.ask("stop") == "stopped"

    def go(self):
        assert self.ask("go") == "going"

    def drop(self):
        assert self.ask("drop") == "dropped"

    def waiting(self):
        """How many requests wait for an answer."""
        return int(self.ask("waiting"))

    @contextmanager
    def dead(self):
        self.stop()
        try:
            yield self
        finally:
            self.go()

    def end(self):
        if not self.proc.stdin.closed:
            self.proc.stdin.close()  # it unmounts; if it is killed, its guard does
            try:
                self.proc.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                self.proc.kill()
                self.proc.wait(TIMEOUT)
            self.proc.stdout.close()

    def assert_unmounted(self):
        mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        assert str(self.mount) not in mounts


class Run:
    """
    A run of the program in a session of its own, as a shell starts it on a terminal. It may hang so that it cannot even
    be killed: whoever made it hang has to let it go before `end`.
    """

    def __init__(self, args, wrap=(), stdin=subprocess.DEVNULL):
        self.args = [str(a) for a in args]
        self._mark = f"STAKEOUT_TEST_RUN={uuid.uuid4()}"
        name, _, value = self._mark.partition("=")
        self.began = time.monotonic()
        self.proc = subprocess.Popen(
            [*(str(w) for w in wrap), *command(*args)],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, **SANITIZER_ENV, name: value},
        )
        self.pid = self.proc.pid

    def result(self, bound=BOUND):
        """The result, which has to come within the bound, counted from now; so has the end of its output."""
        try:
            out, err = self.proc.communicate(timeout=bound)
        except subprocess.TimeoutExpired as e:
            # "Timeout" at the start: conftest.py does not run such a test again.
            said = b"".join(data or b"" for data in (e.stdout, e.stderr)).decode(errors="replace")[-2000:]
            hang = f"Timeout: stakeout {' '.join(self.args)} has not ended in {bound} s: {self._where()}\n{said}"
        else:
            hang = None
        if hang:
            pytest.fail(hang)
        self.took = time.monotonic() - self.began
        return Result(self.args, self.proc.returncode, out.decode(), err.decode()).sound()

    def _where(self):
        """What its processes are waiting in, and what CPU time they had, for the message of a test that fails."""
        found = []
        for pid in self.processes():
            for task in Path(f"/proc/{pid}/task").glob("*"):
                try:
                    name, _, rest = (task / "stat").read_text().partition(" (")[2].rpartition(") ")
                    ticks = sum(int(ticks) for ticks in rest.split()[11:13])
                    wchan = (task / "wchan").read_text()
                    found.append(f"{task.name} {name} {rest[0]} {wchan} {ticks / os.sysconf('SC_CLK_TCK')} s")
                except OSError:
                    pass
        return "; ".join(found)

    def interrupt(self, whole_group=True):
        """Ctrl-C; on a terminal it goes to all processes of the job."""
        try:
            (os.killpg if whole_group else os.kill)(self.pid, signal.SIGINT)
        except ProcessLookupError:
            pass

    def ended(self):
        return self.proc.poll() is not None

    def processes(self):
        """Those that are left of it: of its session, or with its environment; not zombies."""
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                stat = Path(f"/proc/{entry}/stat").read_text(errors="replace")
                fields = stat[stat.rindex(")") + 2 :].split()
                if fields[0] in "ZX":
                    # The first of its threads may have ended while others have not.
                    left = len(os.listdir(f"/proc/{entry}/task")) > 1
                    if left and int(fields[3]) == self.pid:
                        found.append(int(entry))
                elif int(fields[3]) == self.pid:
                    found.append(int(entry))
                # Only what is ours is looked at closely: the environment of a process may take for ever to read.
                elif os.readlink(f"/proc/{entry}/exe") == str(STAKEOUT):
                    if self._mark.encode() in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                        found.append(int(entry))
            except (OSError, ValueError):
                pass
        return found

    def assert_nothing_left(self):
        wait_until(lambda: not self.processes(), f"no process of stakeout {' '.join(self.args)} is left")

    def end(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.proc.poll() is None:
            self.proc.kill()
        self.proc.wait(TIMEOUT)
        self.proc.stdout.close()
        self.proc.stderr.close()


class Scene:
    """A target, what it has that does not answer, and how that is called."""

    def __init__(self, t, fs=None, path=None, address=None, program=None):
        self.t, self.fs, self.path, self.address, self.program = t, fs, path, address, program
        self.pid, self.tids = t.pid, t.tids

    def die(self):
        """From now on there are no answers. (The memory of a userfaultfd never had any.)"""
        if self.fs:
            self.fs.stop()
        return self

    def waited_for(self):
        """Somebody is waiting for an answer."""
        return self.fs.waiting() > 0 if self.fs else self.t.ask("waiting") == "1"

    def assert_named(self, *texts):
        """It is said that there was no answer, and from where: the file, the file system or the mapping."""
        said = [sentence for text in texts for sentence in sentences(text)]
        if self.fs:
            # What the test is called is part of the path, and no statement.
            places = (str(self.path), str(self.fs.mount))
            found = [s.replace(place, "") for s in said for place in places if place in s]
        else:
            start, end = (int(word, 16) for word in self.t.ask("mapping").split())
            places = (f"{start:x}-{end:x}",)
            found = [s for s in said if any(start <= address <= end for address in addresses(s))]
        assert any(map(NO_ANSWER.search, found)), f"nobody says that {' or '.join(places)} did not answer: {texts}"


NO_ANSWER = re.compile(r"answer|in time|patience|waited|g[ia]ven? up")


def addresses(text):
    return [int(number, 16) for number in re.findall(r"\b(?:0x)?([0-9a-f]{8,16})\b", text)]


def sentences(text):
    """The lines of a text; of JSON what is said in each of its objects."""
    for line in text.splitlines():
        if line.startswith("{"):
            yield from _sentences_of(json.loads(line))
        else:
            yield line


def _sentences_of(value):
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    if isinstance(value, dict):
        yield " ".join(child for child in children if isinstance(child, str))
    for child in children:
        if isinstance(child, str) and isinstance(value, list):
            yield child
        yield from _sentences_of(child)


def assert_runs_freely(pid):
    """Nothing of a stop is left behind."""
    wait_until(lambda: not states(pid) & {"T", "t"}, f"no thread of {pid} is stopped")
    assert "\nTracerPid:\t0\n" in Path(f"/proc/{pid}/status").read_text()
