# SPDX-License-Identifier: MIT
"""Snapshots of programs that run: how long their CPUs are taken, whether all is of one instant, and what busy servers notice."""

import json
import re
import shutil
import statistics
import subprocess
import tempfile
import threading
from pathlib import Path

from harness import command
from measure import compiled, figure, left_out
from servers import mariadb, postgres, redis
from snapshot import TBSTACK, gdb

PGBENCH_CLIENTS = 32
BUSY = 10  # processes beside, for the runs on a busy machine
LOAD = "while :; do :; done"


def documents(text):
    decoder, docs, rest = json.JSONDecoder(), [], text.strip()
    while rest:
        doc, end = decoder.raw_decode(rest)
        docs.append(doc)
        rest = rest[end:].strip()
    return docs


def look(*args):
    return documents(subprocess.run(command("--json", *args), stdout=subprocess.PIPE, text=True).stdout)


class Tally:
    """Many looks: how many were of one instant, and what they cost."""

    def __init__(self, rounds, *args):
        self.windows, self.stopped, self.good, self.rounds, self.pauses = [], 0, 0, rounds, []
        for _ in range(rounds):
            captures = [doc["capture"] for doc in look(*args)]
            self.windows.append(max(c["window_us"] for c in captures))
            self.pauses.append(max(c["max_pause_us"] for c in captures))
            self.stopped += sum(c["stopped_threads"] for c in captures)
            self.good += bool(captures) and all(c["consistent"] for c in captures) and len({c["instant"] for c in captures}) == 1

    def tell(self, what, wanted_us=None):
        mid, most = statistics.median(self.windows), max(self.windows)
        print(f"  {what}: CPUs taken for {mid:.0f} µs (median), {most:.0f} (longest); {self.stopped} threads stopped")
        if wanted_us:
            figure(f"{what}: at most {wanted_us} µs: {mid:.0f} µs (median)", mid <= wanted_us)
        figure(f"{what}: of one instant, 99 of 100: {self.good} of {self.rounds}", self.good >= 0.99 * self.rounds)


def bench_programs(rounds):
    print(f"\nprograms that run, {rounds} looks each")
    for what, numbers, wanted in (
        ("1 thread that spins, 1000 asleep", (1, 0, 1000), 60),
        ("16 threads that spin", (16, 0, 0), None),
        ("64 threads that spin", (64, 0, 0), 150),
        ("30 threads that compute and nap", (0, 30, 0), None),
        ("200 threads that compute and nap", (0, 200, 0), None),
    ):
        target = subprocess.Popen([compiled("deep", "-pthread"), *map(str, numbers)], stdout=subprocess.PIPE)
        try:
            target.stdout.readline()
            Tally(rounds, target.pid).tell(what, wanted)
        finally:
            target.kill()
            target.wait()
            target.stdout.close()


def percentile_of_redis(load, seconds):
    """The 99.9th, in ms."""
    argv = [str(a) for a in load(seconds * 60000) if a != "--csv"]
    text = subprocess.run([*argv, "--precision", "3"], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = [(float(p), float(ms)) for p, ms in re.findall(r"([\d.]+)% <= ([\d.]+) milliseconds \(cumulative", text)]
    return min(ms for percent, ms in found if percent >= 99.9)


def percentile_of_pgbench(load, seconds):
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        argv = [str(a) for a in load(seconds, PGBENCH_CLIENTS)]
        subprocess.run([*argv, "-l"], cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        waits = sorted(int(line.split()[2]) for log in Path(directory).iterdir() for line in log.read_text().splitlines())
    return waits[int(len(waits) * 0.999)] / 1000


def each_second(argvs, over):
    while not over.wait(1):
        for argv in argvs():
            subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def children(pid):
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def tools(pid):
    """What is run once a second, by name."""
    found = {
        "(no tool)": lambda: [],
        "stakeout": lambda: [command("--children", pid)],
        "stakeout --stop=hold": lambda: [command("--children", "--stop=hold", pid)],
        "eu-stack": lambda: [["eu-stack", "-p", str(p)] for p in children(pid)],
        "tbstack": lambda: [[TBSTACK, str(p)] for p in children(pid)],
        "gdb": lambda: [gdb(p) for p in children(pid)],
    }
    return {name: argvs for name, argvs in found.items() if name[0] in "(s" or shutil.which(TBSTACK if name == "tbstack" else name)}


def waits_beside(argvs, load, percentile, seconds):
    over = threading.Event()
    looks = threading.Thread(target=each_second, args=(argvs, over))
    looks.start()
    try:
        return percentile(load, seconds)
    finally:
        over.set()
        looks.join()


def latencies(pid, load, percentile, rounds, seconds):
    """In turns, as the machine is not the same from one minute to the next."""
    print(f"  99.9th percentile of its clients' waits, one look a second, {rounds} times {seconds} s of each in turn:")
    found = {name: [] for name in tools(pid)}
    for i in range(rounds):
        turn = list(tools(pid).items())
        for name, argvs in turn[i % len(turn) :] + turn[: i % len(turn)]:
            found[name].append(waits_beside(argvs, load, percentile, seconds))
    for name, waits in found.items():
        print(f"    {name:24} {statistics.median(waits):8.2f} ms (median), {min(waits):.2f} to {max(waits):.2f}", flush=True)


def consistency(name, pid, load, rounds, amount):
    """Under its own load, and then with much else to do for the machine."""
    for beside in (0, BUSY):
        others = [subprocess.Popen(["sh", "-c", LOAD]) for _ in range(beside)]
        clients = subprocess.Popen([str(a) for a in load(*amount)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            Tally(rounds, "--children", pid).tell(f"{name}{f', beside {beside} others' if beside else ''}")
        finally:
            for proc in (clients, *others):
                proc.kill()
                proc.wait()


def bench_servers(rounds, turns):
    for name, server, percentile, amount in (
        ("redis-server", redis, percentile_of_redis, (100000000,)),
        ("postgres", postgres, percentile_of_pgbench, (3600, PGBENCH_CLIENTS)),
        ("mariadbd", mariadb, None, (100000000,)),  # its tool knows no percentiles
    ):
        print(f"\n{name} under load, {rounds} looks")
        try:
            with tempfile.TemporaryDirectory(dir="/tmp") as directory, server(Path(directory)) as (pid, load):
                consistency(name, pid, load, rounds, amount)
                if percentile:
                    latencies(pid, load, percentile, turns, 5)
        except (AssertionError, KeyError, PermissionError) as e:
            left_out(f"{name}: {e}")


def main(quick):
    bench_programs(20 if quick else 100)
    bench_servers(20 if quick else 100, 5 if quick else 15)
