# SPDX-License-Identifier: MIT
"""What the measurements share. Everything is compared within one run: absolute times depend on the machine."""

import os
import shutil
import statistics
import subprocess
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

    def __init__(self, argv, stdin="/dev/null", limit=120, env=None):
        done = subprocess.run(
            [launcher(), str(limit), stdin, *map(str, argv)],
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
