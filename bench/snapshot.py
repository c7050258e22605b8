# SPDX-License-Identifier: MIT
"""Snapshots beside eu-stack, tbstack and gdb: what the target notices of them, how long they take."""

import os
import shutil
import statistics
from pathlib import Path

from measure import Run, Sample, compiled, disturbed, figure, left_out, median, undisturbed
from stints import Stints
from harness import Target, built, command, wait_until, state, tids


def gdb(pid):
    batch = ["gdb", "-nx", "-batch", "-p", pid, "-ex", "set debuginfod enabled off"]
    return [str(a) for a in (*batch, "-ex", "thread apply all bt")]


TBSTACK = os.environ.get("TBSTACK", "tbstack")
TOOLS = {
    "stakeout": lambda pid: command(pid),
    "stakeout --no-cache": lambda pid: command(pid, "--no-cache"),
    "stakeout --json": lambda pid: command(pid, "--json"),
    "stakeout --source=proc": lambda pid: command(pid, "--source=proc"),
    "stakeout --stop=all": lambda pid: command(pid, "--json", "--stop=all"),
    "eu-stack": lambda pid: ["eu-stack", "-p", str(pid)],
    "tbstack": lambda pid: [TBSTACK, str(pid)],
    "gdb": gdb,
}
START_TOOLS = {
    "stakeout": TOOLS["stakeout"],
    "stakeout --source=libbpf": lambda pid: command(pid, "--source=libbpf"),
    **{tool: TOOLS[tool] for tool in ("stakeout --source=proc", "eu-stack", "tbstack", "gdb")},
}


def available(tool):
    return tool.startswith("stakeout") or shutil.which(TBSTACK if tool == "tbstack" else tool)


def settle(target, running=0):
    wait_until(
        lambda: sum(state(target.pid, t) == "R" for t in tids(target.pid)) <= running, "the target's threads are asleep"
    )


def measure_gaps(target, rounds_of):
    """For each tool: the largest gap that the spinning thread saw in each run, the wall times, and the runs."""
    rows = {}
    for tool, argv in TOOLS.items():
        if not available(tool):
            print(f"  {tool}: not installed, left out")
            continue
        gaps, runs = [], []
        for _ in range(rounds_of(tool)):
            settle(target, running=1)
            gap, run = disturbed(target, argv(target.pid))
            gaps.append(gap)
            runs.append(run)
        rows[tool] = (gaps, [run.wall for run in runs], runs)
    return rows


def bench_threads(rounds, count=1000):
    print(f"\n{count} threads asleep 20 frames deep, one that spins: largest gap it saw, in µs, and wall time, in ms")
    target = Target([built("sleepers"), "-n", count, "-d", 20, "-s", 1])
    try:
        noise = undisturbed(target, rounds)
        rows = measure_gaps(target, lambda tool: 2 if tool == "gdb" else rounds)
    finally:
        target.end()
    print(f"  {'':24} {'gap median':>10} {'gap worst':>10} {'wall median':>12}")
    print(f"  {'(no tool)':24} {statistics.median(noise):10.0f} {max(noise):10.0f}")
    for tool, (gaps, walls, run) in rows.items():
        print(f"  {tool:24} {statistics.median(gaps):10.0f} {max(gaps):10.0f} {statistics.median(walls):12.1f}")
    gaps, walls, _ = rows["stakeout"]
    under = sum(g <= 100 for g in gaps)
    figure(f"gap at most 100 µs in 9 of 10 snapshots: {under} of {len(gaps)}", under >= 0.9 * len(gaps))
    under = sum(g < 4000 for g in rows["stakeout --no-cache"][0])
    figure(f"without a cache below a tick of the scheduler, 4 ms, in 9 of 10: {under} of {rounds}", under >= 0.9 * rounds)
    if "eu-stack" in rows:
        their_gaps, their_walls, _ = rows["eu-stack"]
        ratio = statistics.median(their_gaps) / statistics.median(gaps)
        figure(f"gap 50 times smaller than under eu-stack: {ratio:.0f} times (medians)", ratio >= 50)
        ratio = statistics.median(their_walls) / statistics.median(walls)
        figure(f"whole command 10 times faster than eu-stack: {ratio:.1f} times (medians)", ratio >= 10)
    pause = statistics.median(run.capture["max_pause_us"] for run in rows["stakeout --json"][2])
    print(f"          (by its own account the longest pause was {pause:.0f} µs, median)")
    held = [run.capture for run in rows["stakeout --stop=all"][2]]
    per_thread = statistics.median(c["max_pause_us"] / c["threads"] for c in held)
    figure(f"--stop=all: at most 15 µs of stop a thread: {per_thread:.1f} µs (median)", per_thread <= 15)
    peak = max(run.peak for run in rows["stakeout --json"][2])
    figure(f"peak memory under 64 MiB plus the copied stacks: {peak:.1f} MiB with them", peak < 64)


def spinner_of(target):
    comm = {tid: Path(f"/proc/{target.pid}/task/{tid}/comm").read_text().strip() for tid in tids(target.pid)}
    return next(tid for tid, name in comm.items() if name == "spinner")


def bench_naming(rounds, count=100):
    """
    The same program giving way and not, in turn. The gap has whatever else the machine did; the scheduler's events tell
    what the program's own threads took.
    """
    print(f"\n{count} threads asleep, one that spins: names looked up without a cache, {rounds} runs each; in ms")
    if not Stints.available():
        return left_out("it takes root and tracefs to see who gets a CPU")
    kinds = {"giving way": None, "as it is": {**os.environ, "LD_PRELOAD": str(compiled("eager", "-shared", "-fPIC"))}}
    rows = {kind: [] for kind in kinds}
    target = Target([built("sleepers"), "-n", count, "-d", 20, "-s", 1])
    try:
        spinner = spinner_of(target)
        for _ in range(rounds):
            for kind, env in kinds.items():
                settle(target, running=1)
                with Stints(spinner) as stints:
                    target.ask("gap")
                    run = Run(command(target.pid, "--no-cache"), env)
                    gap = int(target.ask("gap")) / 1e6
                    stints.read()
                taken = stints.of("stakeout")
                rows[kind].append((gap, max(taken, default=0), sum(taken), run.wall))
    finally:
        target.end()
    print(f"  {'':17} {'gap':>13} {'longest stint':>15} {'all stints':>13} {'wall':>15}   (median and worst)")
    for kind, of in rows.items():
        columns = [f"{statistics.median(c):7.2f} {max(c):5.1f}" for c in zip(*of)]
        print(f"  {kind:17} {columns[0]} {columns[1]:>15} {columns[2]:>13} {columns[3]:>15}")
    lowered, usual = (statistics.median(row[2] for row in of) for of in rows.values())
    figure(f"takes less of the spinning thread's CPU than without: {lowered:.2f} ms, {usual:.2f} ms", lowered < usual)


def bench_start(rounds, count=10):
    """All tools in turn, so that whatever else the machine does meets all of them."""
    print(f"\n{count} threads: wall and processor time of the whole command, in ms")
    tools = {tool: argv for tool, argv in START_TOOLS.items() if available(tool)}
    samples = {tool: [] for tool in tools}
    target = Target([built("sleepers"), "-n", count, "-d", 20])
    try:
        settle(target)
        for i in range(rounds):
            for tool, argv in tools.items():
                if tool != "gdb" or i < 3:
                    samples[tool].append(Sample(argv(target.pid)))
        stages = Run(command(target.pid, "--json")).doc["timings_ms"]
    finally:
        target.end()
    print(f"  {'':24} {'median':>8} {'fastest':>8} {'processor':>10}")
    for tool, of in samples.items():
        print(f"  {tool:24} {median(of):8.1f} {min(s.wall for s in of):8.1f} {median(of, 'cpu'):10.1f}")
    for tool in START_TOOLS.keys() - tools.keys():
        print(f"  {tool}: not installed, left out")
    print("          (by its own account, once: " + ", ".join(f"{name} {ms:.1f}" for name, ms in stages.items()) + ")")
    ours = median(samples["stakeout"])
    figure(f"at most 8 ms: {ours:.1f} ms (median)", ours <= 8)


def bench_without_debug_files(rounds, count=1000):
    """Unpacking debug files is most of the time where there are any: here target and tools see none."""
    if os.geteuid() != 0 or not available("eu-stack"):
        return
    hide = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /usr/lib/debug && exec "$@"', "sh"]
    target = Target([*hide, built("sleepers"), "-n", count, "-d", 20, "-s", 1])
    try:
        settle(target, running=1)
        enter = ["nsenter", "-m", "-t", str(target.pid)]
        ours, theirs = (
            statistics.median(Run([*enter, *argv]).wall for _ in range(rounds))
            for argv in (command(target.pid), ["eu-stack", "-p", str(target.pid)])
        )
    finally:
        target.end()
    ratio = theirs / ours
    figure(f"the same where no debug files are installed: {ratio:.1f} times ({ours:.0f} and {theirs:.0f} ms)", ratio >= 10)


def bench_eintr():
    print("\nthreads blocked in epoll_wait, semtimedop, sigtimedwait and recv with SO_RCVTIMEO: EINTR seen by all")
    for tool, argv in TOOLS.items():
        if not available(tool):
            continue
        target = Target([built("eintr")])
        try:
            target.settle()
            for _ in range(3):
                Run(argv(target.pid))
            counts = [int(w.split("=")[-1]) for w in target.ask().split() if w.split("=")[-1].isdigit()]
        finally:
            target.end()
        print(f"  {tool:24} {sum(counts):4} in 3 runs")
        if tool in ("stakeout", "stakeout --source=proc"):
            figure(f"{tool}: 0 EINTR", sum(counts) == 0)


def bench_many(count=10000):
    print(f"\n{count} threads")
    try:
        target = Target([built("sleepers"), "-n", count, "-d", 20, "-s", 1])
    except AssertionError as e:
        print(f"  left out: {e}")
        return
    try:
        settle(target, running=1)
        run = Run(command(target.pid, "--json"))
    finally:
        target.end()
    capture = run.capture
    print(
        f"  {run.wall:.0f} ms, {capture['threads']} threads, {capture['stopped_threads']} stopped, "
        f"consistent: {capture['consistent']}, peak {run.peak:.0f} MiB"
    )
    figure(f"{count} threads work: exit {run.code}", run.code in (0, 3) and capture["threads"] >= count)


def main(quick):
    rounds = 4 if quick else 10
    bench_start(rounds * 3)
    bench_threads(rounds)
    bench_naming(rounds * 5)
    bench_without_debug_files(rounds)
    bench_eintr()
    bench_many()
