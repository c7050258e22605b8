# SPDX-License-Identifier: MIT
"""Names of addresses beside llvm-symbolizer, addr2line and eu-addr2line: the same files, addresses and answers.

Every tool gets the addresses on standard input and is asked for functions, inlined calls and demangled names.
"""

import os
import re
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

import bigcxx
from agreement import debug_file, random_addresses, readelf
from harness import Target, built, command
from measure import BUILD, ENV, Sample, figure, launcher, left_out, median
from snapshot import Run, settle

ADDRESSES = 5000
SEED = 1
LIMIT = 60  # seconds that a run may take
SLOW = 15  # seconds from which one run must do


def llvm_symbolizers():
    """Each version once, whatever names it has."""
    names = ["llvm-symbolizer", *(f"llvm-symbolizer-{n}" for n in range(10, 40))]
    found = {os.path.realpath(path): name for name in names if (path := shutil.which(name))}
    return list(found.values())


def peers(path):
    """What to run, by name. Says which are missing."""
    tools = {name: [name, f"--obj={path}", "--functions", "--inlines", "--demangle"] for name in llvm_symbolizers()}
    if not tools:
        left_out("llvm-symbolizer: not installed")
    for name in ("addr2line", "eu-addr2line"):
        if shutil.which(name):
            tools[name] = [name, "-e", path, "-f", "-i", "-C"]
        else:
            left_out(f"{name}: not installed")
    return tools


def ours(path, *options):
    return command("symbolize", *options, "-e", path, "-f", "-i", "-C")


def no_cache():
    text = subprocess.run(command("symbolize", "--help"), capture_output=True, text=True).stdout
    return ["--no-cache"] if "--no-cache" in text else []


def libc():
    return next(line.split()[-1] for line in open("/proc/self/maps") if re.search(r"/libc[.-]\S*so", line))


def debug_info_mb(path):
    """Unpacked, where it is compressed."""
    pattern = r"\] \.debug_info\n\s+PROGBITS\s+\S+ \S+ ([0-9a-f]+) .*\n\s+\[.*\n(?:\s+Z\w+, ([0-9a-f]+))?"
    for file in filter(None, (path, debug_file(path))):
        found = re.search(pattern, readelf("-t", file))
        if found:
            return int(found.group(2) or found.group(1), 16) / 1e6
    return 0


def subjects():
    """(what it is, path) of the files to look into; those that are not there are said."""
    python = "/usr/bin/python3.11d"
    if os.path.exists(python):
        yield "python3.11d", python
    else:
        left_out(f"{python}: package python3.11-dbg")
    if debug_file(libc()):
        yield "libc", libc()
    else:
        left_out("libc: its debug file, of package libc6-dbg, is not installed")
    if shutil.which(os.environ.get("CXX", "g++")):
        yield "large C++", str(bigcxx.make(BUILD))
    else:
        left_out("large C++ program: no C++ compiler")


def run_all(tools, stdin, rounds, env):
    """Samples by tool. Rounds are interleaved, so that what the machine does meanwhile hits all of them."""
    samples = {name: [] for name in tools}
    slow = set()
    for i in range(rounds):
        for name, argv in tools.items():
            if name in slow:
                continue
            sample = Sample(argv, stdin, LIMIT, env[name] if name in env else None)
            samples[name].append(sample)
            if sample.code not in (0, 3):
                slow.add(name)
                print(f"  {name}: {'ended after %d s' % LIMIT if sample.late else 'exit %d' % sample.code}", flush=True)
            elif sample.wall > SLOW * 1000:
                slow.add(name)
    return samples


def address_file(directory, name, addresses):
    path = directory / name
    path.write_text("".join(f"{a:#x}\n" for a in addresses))
    return str(path)


def fastest(samples, names):
    done = [name for name in names if samples[name] and all(s.code == 0 for s in samples[name])]
    return min(done, key=lambda name: median(samples[name])) if done else None


def print_table(many, one):
    print(f"  {'':24} {'wall ms':>9} {'CPU ms':>9} {'peak MiB':>9} {'one address: ms':>17} {'MiB':>6}")
    for name, samples in many.items():
        mark = ">" if any(s.late for s in samples) else ""
        single = f"{median(one[name]):17.1f} {median(one[name], 'peak'):6.1f}" if one.get(name) else ""
        print(
            f"  {name:24} {mark + format(median(samples), '.1f'):>9} {median(samples, 'cpu'):9.1f} "
            f"{max(s.peak for s in samples):9.1f} {single}",
            flush=True,
        )


def judge(what, large, many, one, others, no_cache_name):
    best = fastest(many, others)
    if not best:
        left_out("no peer to compare with")
        return
    ratio = median(many[best]) / median(many[no_cache_name])
    figure(f"{what}, no cache: 1.5 times faster than the fastest peer: {ratio:.2f} times ({best})", ratio >= 1.5)
    if "warm cache" in many:
        ratio = median(many[best]) / median(many["warm cache"])
        figure(f"{what}, warm cache: 10 times faster than the fastest peer: {ratio:.1f} times ({best})", ratio >= 10)
    llvm = fastest(one, [name for name in others if name.startswith("llvm")])
    if llvm:
        ratio = median(one[llvm]) / median(one[no_cache_name])
        figure(f"{what}, one address: 3 times faster than {llvm}: {ratio:.1f} times", ratio >= 3)
    smallest = min(others, key=lambda name: max(s.peak for s in many[name]))
    theirs, mine = (max(s.peak for s in many[name]) for name in (smallest, no_cache_name))
    text = f"{what}, peak memory: {mine / theirs:.2f} of the smallest peer's ({smallest})"
    if large:
        figure(text, mine < theirs)
    else:
        print(f"          {text}")


def bench_file(what, path, rounds):
    print(f"\n{what}: {path}, {debug_info_mb(path):.0f} MB of .debug_info; {ADDRESSES} addresses", flush=True)
    others = peers(path)
    with tempfile.TemporaryDirectory() as scratch:
        addresses = random_addresses(path, ADDRESSES, SEED)
        stdin = address_file(Path(scratch), "many", addresses)
        single = address_file(Path(scratch), "one", addresses[:1])
        warm = {"XDG_CACHE_HOME": f"{scratch}/cache"}
        option = no_cache()
        name = "no cache" if option else "stakeout (has no cache)"
        tools = {name: ours(path, *option)}
        if option:
            tools["warm cache"] = ours(path)
            Sample(ours(path), stdin, LIMIT, warm)
        tools.update(others)
        many = run_all(tools, stdin, rounds, {"warm cache": warm})
        one = run_all(tools, single, rounds, {"warm cache": warm})
    print_table(many, one)
    judge(what, what.startswith("large"), many, one, list(others), name)


def snapshot_timings(target, rounds, env):
    """Medians of the stages, in ms. `env()` gives each run its environment."""
    taken = []
    for _ in range(rounds):
        settle(target)
        run = Run(command(target.pid, "--json"), {**ENV, **env()})
        taken.append(run.doc["timings_ms"])
    return {stage: statistics.median(t[stage] for t in taken) for stage in taken[0]}


def bench_snapshot(rounds, count=1000):
    print(f"\nsnapshot of {count} threads asleep 20 frames deep: where its time goes, in ms", flush=True)
    target = Target([built("sleepers"), "-n", count, "-d", 20])
    try:
        with tempfile.TemporaryDirectory() as scratch:
            numbers = iter(range(1000))
            cold = snapshot_timings(target, rounds, lambda: {"XDG_CACHE_HOME": f"{scratch}/cold{next(numbers)}"})
            warm = {"XDG_CACHE_HOME": f"{scratch}/warm"}
            Run(command(target.pid, "--json"), {**ENV, **warm})
            rows = {"no cache yet": cold, "warm cache": snapshot_timings(target, rounds, lambda: warm)}
    finally:
        target.end()
    for name, t in rows.items():
        print(f"  {name:24} " + "  ".join(f"{stage} {ms:.1f}" for stage, ms in t.items()))
    for name, t in rows.items():
        rest = t["total"] - t["symbolize"]
        text = f"{name}: less time in symbolization than in the rest: {t['symbolize']:.1f} and {rest:.1f} ms"
        figure(text, t["symbolize"] < rest)


def main(quick):
    rounds = 3 if quick else 7
    launcher()
    for what, path in subjects():
        bench_file(what, path, rounds)
    bench_snapshot(rounds)
