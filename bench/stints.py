# SPDX-License-Identifier: MIT
"""Who had the CPU that a thread of the target was waiting for: the scheduler's own events, by tracefs."""

import os
import re
from pathlib import Path

TRACEFS = Path("/sys/kernel/tracing")
SWITCH = re.compile(
    r"\[(\d+)\] \S+ +([\d.]+): sched_switch: prev_comm=(.*) prev_pid=(\d+) prev_prio=\d+ prev_state=(\S+) ==> "
    r"next_comm=.* next_pid=(\d+) next_prio"
)


class Stints:
    """Records while it is entered; `of()` then has the stints of a program, in ms."""

    def __init__(self, tid):
        self.tid = tid
        self.folder = TRACEFS / f"instances/stakeout-bench-{os.getpid()}"

    @staticmethod
    def available():
        return os.geteuid() == 0 and (TRACEFS / "instances").is_dir()

    def _write(self, name, text):
        (self.folder / name).write_text(text)

    def __enter__(self):
        self.folder.mkdir()
        self._write("buffer_size_kb", "4096")
        self._write("trace_clock", "mono")
        self._write("events/sched/sched_switch/enable", "1")
        return self

    def __exit__(self, *_):
        self._write("events/sched/sched_switch/enable", "0")
        self.folder.rmdir()
        if not self._lines:
            raise RuntimeError("tracefs has shown no switch of threads")

    def read(self):
        self._lines = (self.folder / "trace").read_text(errors="replace").splitlines()

    def of(self, comm):
        """How long each thread of that name had the thread's CPU while that was ready to run."""
        left, place, since, stints = None, None, {}, []
        for line in self._lines:
            if not (match := SWITCH.search(line)):
                continue
            cpu, at, name, before, state, after = match.groups()
            at, before, after = float(at) * 1000, int(before), int(after)
            if left is not None and cpu == place and name == comm and cpu in since:
                stints.append(at - max(since[cpu], left))
            if before == self.tid:
                left, place = (at, cpu) if state.startswith("R") else (None, None)
            if after == self.tid:
                left = None
            since[cpu] = at
        return stints
