# SPDX-License-Identifier: MIT
"""100 Python threads of 30 frames: the whole command, and how long a running thread is held, beside what else can show them."""

import json
import os
import shutil
import signal
import statistics
import subprocess
import time

from harness import STAKEOUT
from measure import Sample, compare_gaps, figure, left_out, median
from pythons import command, start

LATEST = "3.15"  # has a tool of its own: profiling.sampling dump


def threads(version, count, depth, *more):
    target = start(version, "many.py", str(count), str(depth), *more, stderr=subprocess.DEVNULL)
    return target if more else target.settle()


def compare(name, rounds, argvs):
    """Runs of each kind in turn; medians of wall time and peak memory."""
    samples = {what: [] for what in argvs}
    for _ in range(rounds):
        for what, argv in argvs.items():
            samples[what].append(Sample(argv))
    print(f"\n{name}")
    for what, taken in samples.items():
        print(f"  {what:32} {median(taken):8.1f} ms  {median(taken, 'peak'):6.1f} MiB")
    return {what: median(taken) for what, taken in samples.items()}


def tools(version, pid):
    """What shows Python's frames of a process, by name."""
    argvs = {"stakeout": [STAKEOUT, pid], "stakeout --no-runtime": [STAKEOUT, "--no-runtime", pid]}
    if shutil.which("py-spy"):
        argvs["py-spy dump"] = ["py-spy", "dump", "--pid", pid]
    else:
        left_out("py-spy is not installed")
    if version == LATEST:
        argvs["profiling.sampling dump"] = [*command(version), "-m", "profiling.sampling", "dump", pid]
    return argvs


def dump_by_itself(target, rounds):
    """Of faulthandler, which the target has to have set up: from the signal until its main thread, which writes, goes on; in ms."""
    taken, gaps = [], []
    for _ in range(rounds):
        target.ask("gap")
        begun = time.perf_counter()
        os.kill(target.pid, signal.SIGUSR1)
        gaps.append(int(target.ask("gap")) / 1000)
        taken.append((time.perf_counter() - begun) * 1000)
    return statistics.median(taken), gaps


def bench_whole(version, rounds):
    target = threads(version, 100, 26)
    try:
        taken = compare(f"100 threads of 30 frames, Python {version}", rounds, tools(version, target.pid))
        own, _ = dump_by_itself(target, rounds)
    finally:
        target.end()
    print(f"  {'faulthandler, by a signal':32} {own:8.1f} ms")
    figure(f"whole command below 50 ms: {taken['stakeout']:.1f} ms", taken["stakeout"] < 50)


def bench_gap(version, rounds):
    """What each of them does to a thread that runs beside those that wait."""
    target = threads(version, 100, 26, "spin")
    try:
        compare_gaps(f"100 threads of 30 frames and one that runs, Python {version}", target, rounds, tools(version, target.pid))
        _, gaps = dump_by_itself(target, rounds)
    finally:
        target.end()
    print(f"  {'faulthandler, by a signal':32} {statistics.median(gaps):10.0f} {max(gaps):10.0f}")


def pauses(target, rounds, *options):
    held = []
    for _ in range(rounds):
        done = subprocess.run([STAKEOUT, "--json", "--no-kernel", *options, str(target.pid)], stdout=subprocess.PIPE, check=False)
        held += [t["pause_us"] for t in json.loads(done.stdout)["threads"] if t["capture"] == "held"]
    return held


def bench_pause(version, rounds):
    """What reading the frames adds to the time for which a running thread is held."""
    target = start(version, "many.py", "0", "28")
    try:
        held, native = [], []
        for _ in range(rounds):
            held += pauses(target, 10)
            native += pauses(target, 10, "--no-runtime")
    finally:
        target.end()
    if min(len(held), len(native)) < 5:
        left_out(f"the thread was hardly ever on a CPU when it was looked at: {len(held)} and {len(native)} times held")
        return
    more = statistics.quantiles(held, n=4)[0] - statistics.quantiles(native, n=4)[0]
    print(f"\na running thread of 30 frames, Python {version}: held {len(held)} and {len(native)} times")
    figure(f"reading its frames adds at most 50 µs to the pause (lower quartiles): {more:.1f} µs", more <= 50)


def main(quick):
    rounds = 4 if quick else 10
    for version in ("host", LATEST):
        bench_whole(version, rounds)
        bench_gap(version, rounds)
        bench_pause(version, rounds)
