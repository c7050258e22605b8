# SPDX-License-Identifier: MIT
"""What it costs to tell what threads wait for: a snapshot as it is, and with --no-waits."""

import os
import signal
import subprocess
import time
from contextlib import contextmanager
from statistics import median

from harness import command
from measure import Sample, compiled, figure

CROWD = 300  # processes beside, with 51 descriptors each
CASES = (
    ("lock", 1000, "1,000 that wait for one mutex"),
    ("sleep", 1000, "1,000 that sleep"),
    ("eventfd", 1000, "1,000 that read one eventfd"),
    ("pipe", 1, "1 that reads a pipe"),
    ("eventfds", 1000, "1,000 that each read an eventfd"),
    ("pipes", 1000, "1,000 that each read a pipe"),
    ("tcp", 1000, "1,000 that each receive from a TCP connection within the machine"),
    ("pipes", 1000, "1,000 that each read a pipe, beside one that naps", "naps"),
)


@contextmanager
def waiting(kind, count, *naps):
    """The pid of a process whose threads wait."""
    program = compiled("waits", "-pthread")
    with subprocess.Popen([program, kind, str(count), *naps], stdout=subprocess.PIPE, start_new_session=True) as target:
        try:
            target.stdout.readline()
            time.sleep(1.5)  # until all have slept for long where they wait
            yield target.pid
        finally:
            os.killpg(target.pid, signal.SIGKILL)


def more(pid, rounds):
    """What is more than without, by processor time of all processes and by wall time: the median of pairs, one right after the other."""
    pairs = [[Sample(command("--json", *how, pid)) for how in ((), ("--no-waits",))] for _ in range(rounds)]
    cpu, wall = (median(getattr(whole, what) - getattr(without, what) for whole, without in pairs) for what in ("cpu", "wall"))
    return cpu, wall, median(without.wall for _, without in pairs)


def bench(rounds, title):
    print(f"\n{title}: ms more than with --no-waits, by processor and by wall; all of the latter by wall")
    for kind, count, words, *naps in CASES:
        with waiting(kind, count, *naps) as pid:
            cpu, wall, base = more(pid, rounds)
        print(f"  {cpu:6.2f} {wall:6.2f} {base:7.1f}   {words}")
        if count == 1000:
            figure(f"under 2 ms for 1,000 blocked threads: {words}: {wall:.2f} ms", wall < 2)


def main(quick):
    rounds = 10 if quick else 60
    bench(rounds, "what threads wait for")
    with waiting("crowd", CROWD):
        bench(rounds, f"the same beside {CROWD} processes with 51 descriptors each")
