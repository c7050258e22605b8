# SPDX-License-Identifier: MIT
"""What the tests of stakeout offcpu have in common: a recording that has begun, and what to expect of its document."""

import functools
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest
from harness import ROOT, SANITIZER_ENV, TIMEOUT, Result, bare, command, run, stop, wait_until

MS = 1000000

RUNGS = ("sched_exit", "kprobe", "switch")


@functools.lru_cache(maxsize=None)
def why_not(rung):
    """What this kernel lacks for that rung; None: it has it. It is asked once, as the answer takes a while."""
    probe = run("offcpu", "--json", f"--source={rung}", "-d", "0.01", "-p", os.getpid())
    if probe.code in (0, 3):
        return None
    assert probe.code == 1 and probe.out == "" and rung != "switch", probe
    assert {"sched_exit": "sched_exit_tp", "kprobe": "finish_task_switch"}[rung] in probe.err, probe
    return probe.err.strip()


class Events:
    """What --events wrote: its first and last line, and the waits, with their stacks in them as in the report."""

    def __init__(self, text):
        self.lines = [json.loads(line) for line in text.splitlines()]
        self.begin, *between, self.end = self.lines
        self.waits, self.stacks = [], {}
        for line in between:
            if line["type"] == "stack":
                assert line["stack"] not in self.stacks, line
                self.stacks[line["stack"]] = {k: v for k, v in line.items() if "_stack" in k}
            else:
                self.waits.append(self._whole(line))
        used = {w["stack"] for wait in self.waits for w in (wait, wait["waker"]) if w}
        assert used == self.stacks.keys()

    def _whole(self, wait):
        waker = wait["waker"] and {**wait["waker"], **self.stacks[wait["waker"]["stack"]]}
        return {**wait, **self.stacks[wait["stack"]], "waker": waker}

    def validate(self):
        validate = validator("offcpu-events").validate
        for line in self.lines:
            validate(line)


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
        self._said = {self._out: bytearray(), self._terminal: bytearray()}
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

    def _until_end(self, fd):
        self._until_enough(fd, lambda said: False, "end")

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
        self._until_end(self._out)
        self._until_end(self._terminal)
        self.proc.wait(TIMEOUT)
        self.close()
        out, err = self._said[self._out].decode(), self._said[self._terminal].decode()
        return Result(self.args, self.proc.returncode, out, err.replace("\r\n", "\n")).sound()

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


def wake(t):
    """Ends all its threads' waits, which none of them notices: each waits on for the same."""
    stop(t.pid)
    os.kill(t.pid, signal.SIGCONT)
    t.settle()


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


def over(rows):
    """Those with waits that have ended: one that has not is walked from outside, as in a snapshot, and not by BPF."""
    return [row for row in rows if row["unfinished"] < row["count"]]


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


def validator(name):
    """Of documents that a published schema describes; skips where there is none."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / f"docs/schema/{name}.schema.json").read_text())
    cls = jsonschema.validators.validator_for(schema)
    cls.check_schema(schema)
    return cls(schema)


FOR_A_CPU = "[waiting for a CPU]_[k]"
