# SPDX-License-Identifier: MIT
"""200 Java threads of 60 frames: the whole command, and what a running thread notices of it, beside jstack."""

import re
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from harness import ROOT, STAKEOUT, Target
from measure import compare_gaps, figure, left_out

THREADS, DEPTH = 200, 60


def compile_target(folder):
    subprocess.run(["javac", "-g", "-d", folder, ROOT / "tests/targets/JavaMany.java"], check=True)


def safepoints(log):
    """Of all operations for which the virtual machine has stopped its threads: names, and for how long, in µs."""
    found = re.findall(r'Safepoint "(\w+)".*Total: +(\d+) ns', log.read_text())
    return [(name, int(total) / 1000) for name, total in found]


def bench_threads(rounds, folder):
    log = folder / "safepoints"
    options = [f"-Xlog:safepoint:file={log}:uptime"] if shutil.which("jstack") else []
    target = Target(["java", *options, "-cp", folder, "JavaMany", THREADS, DEPTH])
    argvs = {"stakeout": [STAKEOUT, target.pid], "stakeout --json": [STAKEOUT, "--json", target.pid],
             "stakeout --no-runtime": [STAKEOUT, "--no-runtime", target.pid]}  # fmt: skip
    if shutil.which("jstack"):
        argvs["jstack"] = ["jstack", target.pid]
    else:
        left_out("jstack is not installed")
    try:
        found = compare_gaps(f"{THREADS} Java threads of {DEPTH} frames", target, rounds, argvs)
        stopped = safepoints(log) if options else []
    finally:
        target.end()
    _, gap, wall = found["stakeout"]
    figure(f"whole command below 50 ms: {wall:.1f} ms", wall < 50)
    pause = statistics.median(run.capture["max_pause_us"] for run in found["stakeout --json"][0])
    print(f"          (by its own account the longest pause was {pause:.0f} µs, median)")
    dumps = [total for name, total in stopped if name == "PrintThreads"]
    if not dumps:
        return
    theirs = statistics.median(dumps)
    print(f"          (by the virtual machine's account jstack stopped all threads for {theirs:.0f} µs, median of {len(dumps)})")
    ratio = theirs / max(pause, 1)
    figure(f"pause at most a tenth of jstack's: {pause:.0f} and {theirs:.0f} µs, {ratio:.0f} times shorter", ratio >= 10)
    _, their_gap, their_wall = found["jstack"]
    print(f"          (as the running thread saw them: {gap:.0f} and {their_gap:.0f} µs; jstack took {their_wall / wall:.1f} times as long)")


def main(quick):
    if not shutil.which("javac"):
        left_out("Java: javac is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        compile_target(folder)
        bench_threads(4 if quick else 15, Path(folder))
