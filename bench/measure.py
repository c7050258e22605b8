# SPDX-License-Identifier: MIT
"""What the measurements share. Everything is compared within one run: absolute times depend on the machine."""

import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BUILD = Path(os.environ.get("STAKEOUT", ROOT / "build/stakeout")).resolve().parent / "bench"

# No tool asks servers for debug files while it is measured.
ENV = {name: value for name, value in os.environ.items() if name != "DEBUGINFOD_URLS"}


def figure(text, met):
    print(f"  {'met   ' if met else 'MISSED'}  {text}", flush=True)


def left_out(text):
    print(f"  left out: {text}", flush=True)


def compiled(name, *flags):
    """bench/NAME.c, compiled."""
    program, source = BUILD / name, HERE / f"{name}.c"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        BUILD.mkdir(parents=True, exist_ok=True)
        subprocess.run([shutil.which("cc") or "gcc", "-O2", *flags, "-o", program, source], check=True)
    return program


def launcher():
    """A process forked by Python would be charged with Python's own memory."""
    return compiled("launch")


class Sample:
    """One run of a command: wall and processor time in ms, peak memory in MiB. `late`: it was ended at the limit."""

    def __init__(self, argv, stdin="/dev/null", limit=120, env=None, stdout="/dev/null"):
        done = subprocess.run(
            [launcher(), str(limit), stdin, stdout, *map(str, argv)],
            stdout=subprocess.PIPE,
            check=True,
            env={**ENV, **(env or {})},
        )
        wall, cpu, peak, status = map(int, done.stdout.split())
        self.wall, self.cpu, self.peak = wall / 1e6, cpu / 1e3, peak / 1024
        self.late = status == -1
        self.code = status


def median(samples, what="wall"):
    return statistics.median(getattr(sample, what) for sample in samples)


class Run(Sample):
    """With what it wrote, which goes to a file: nobody else wakes while it runs."""

    def __init__(self, argv, env=None):
        with tempfile.NamedTemporaryFile() as out:
            super().__init__(argv, env=env, stdout=out.name)
            self.out = out.read()

    @property
    def doc(self):
        return json.loads(self.out)

    @property
    def capture(self):
        return self.doc["capture"]


# Targets that have a thread that spins say how long it was kept from running, at most, since they were last asked.


def disturbed(target, argv):
    """What a command did to the spinning thread, in µs, and the run of it."""
    target.ask("gap")
    run = Run([str(a) for a in argv])
    return int(target.ask("gap")) / 1000, run


def undisturbed(target, rounds):
    """What the machine itself does to the spinning thread in the time that a snapshot takes."""
    gaps = []
    for _ in range(rounds):
        target.ask("gap")
        time.sleep(0.1)
        gaps.append(int(target.ask("gap")) / 1000)
    return gaps


def compare_gaps(title, target, rounds, argvs):
    """
    All tools in turn, so that whatever else the machine does meets all of them. Prints a table, and returns the runs and
    the medians of gap (µs) and wall time (ms) of each.
    """
    print(f"\n{title}: largest gap that a running thread saw, in µs, wall and processor time, in ms")
    rows = {tool: [] for tool in argvs}
    noise = undisturbed(target, rounds)
    for _ in range(rounds):
        for tool, argv in argvs.items():
            rows[tool].append(disturbed(target, argv))
    print(f"  {'':32} {'gap median':>10} {'gap worst':>10} {'wall median':>12} {'processor':>10}")
    print(f"  {'(no tool)':32} {statistics.median(noise):10.0f} {max(noise):10.0f}")
    found = {}
    for tool, taken in rows.items():
        gaps, runs = zip(*taken)
        gap, wall, cpu = statistics.median(gaps), median(runs), median(runs, "cpu")
        print(f"  {tool:32} {gap:10.0f} {max(gaps):10.0f} {wall:12.1f} {cpu:10.1f}")
        found[tool] = runs, gap, wall
    return found
