# SPDX-License-Identifier: MIT
"""Recordings of waits beside libbpf-tools' offcputime and bpftrace: what they cost, and how much of it is true."""

import json
import os
import pty
import random
import re
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from bpf_map import bpf_maps, resident_maps
from measure import figure, left_out
from servers import find, postgres, redis
from harness import Target, built, command, wait_until

ALONE, AGAIN, DEFAULT, EVERY = "(no tool)", "(no tool, again)", "stakeout offcpu -a", "stakeout offcpu -a --min 0"
PIPE_LOOPS = 200000
BPF_STATS = Path("/proc/sys/kernel/bpf_stats_enabled")
OUTERMOST = ("_start", "__libc_start_main")

# Sums by both stacks, as the peer's own examples do; the line is what the measurement waits for.
BPFTRACE = """
tracepoint:sched:sched_switch {
    if (args->prev_pid) {
        @start[args->prev_pid] = nsecs; @kernel[args->prev_pid] = kstack; @user[args->prev_pid] = ustack;
    }
    $start = @start[args->next_pid];
    if ($start) {
        @total[@kernel[args->next_pid], @user[args->next_pid], args->next_comm] = sum(nsecs - $start);
        delete(@start[args->next_pid]); delete(@kernel[args->next_pid]); delete(@user[args->next_pid]);
    }
}
interval:ms:500 { printf("recording\\n"); }
"""

# Sums by thread of what took at least 1 ms, in ns.
BPFTRACE_THREADS = """
tracepoint:sched:sched_switch {
    @start[args->prev_pid] = nsecs;
    $start = @start[args->next_pid];
    if ($start && nsecs - $start >= 1000000) {
        @total[args->next_pid] = sum(nsecs - $start);
    }
    delete(@start[args->next_pid]);
}
interval:ms:500 { printf("recording\\n"); }
"""


def is_elf(path):
    with open(path, "rb") as f:
        return f.read(4) == b"\x7fELF"


def offcputime(*args):
    return [find("offcputime"), "--stack-storage-size=65536", *map(str, args)]


def bpftrace(program=BPFTRACE):
    """It needs tracefs, which is not mounted everywhere: then in a mount namespace of its own."""
    argv = [find("bpftrace"), "-e", program]
    if Path("/sys/kernel/tracing/events").exists() or Path("/sys/kernel/debug/tracing/events").exists():
        return argv
    mount = 'mount -t tracefs tracefs /sys/kernel/tracing && exec "$@"'
    return ["unshare", "-m", "sh", "-c", mount, "sh", *argv]


def works(argv):
    """None, or why a peer cannot record here."""
    try:
        with recording(argv):
            pass
    except (AssertionError, OSError) as e:
        return str(e)
    return None


def peers():
    """The peers that can record everything here: name and command line."""
    found = {}
    path = find("offcputime")
    if not path or not is_elf(path):
        left_out("offcputime of libbpf-tools: not installed")
    else:
        found["libbpf-tools offcputime"] = offcputime()
    if not find("bpftrace"):
        left_out("bpftrace: not installed")
    else:
        found["bpftrace"] = bpftrace()
    for name, argv in list(found.items()):
        why = works(argv)
        if why:
            left_out(f"{name}: {why}")
            del found[name]
    return found


def ours(*args):
    return command("offcpu", *args)


class Recorder:
    """A tool that records. Memory in MiB: its own at its peak, and that of its BPF maps at the end."""

    def __init__(self, argv, out, err):
        self.out_file, self.err_file = out, err
        terminal, theirs = pty.openpty()  # where stakeout's live line tells that it records
        self.proc = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=theirs, env={**os.environ, "TERM": "xterm"}
        )
        os.close(theirs)
        self._reader = threading.Thread(target=self._read, args=(terminal,), daemon=True)
        self._reader.start()
        self.peak = self.maps = self._counted_twice = 0
        self._watch = threading.Thread(target=self._watch_memory, daemon=True)
        self._watch.start()

    def _read(self, terminal):
        try:
            while data := os.read(terminal, 4096):
                self.err_file.write(data)
                self.err_file.flush()
        except OSError:  # how the end of a terminal reads
            pass
        os.close(terminal)

    def _watch_memory(self):
        while self.proc.returncode is None:
            try:
                status = Path(f"/proc/{self.proc.pid}/status").read_text()
                if "VmHWM:" in status:
                    self.peak = max(self.peak, int(status.split("VmHWM:")[1].split()[0]) / 1024)
            except OSError:
                pass
            time.sleep(0.1)

    def _measure_maps(self):
        """Also those in others. A system call for each place in them is too much while something is measured."""
        try:
            self.maps = sum(m.memory() for m in bpf_maps(self.proc.pid)) / 2**20
            self._counted_twice = resident_maps(self.proc.pid) / 2**20
        except OSError:  # it has just ended
            pass

    def has_begun(self):
        assert self.proc.poll() is None, f"it ended with {self.proc.returncode}: {self.said()[-300:].strip()}"
        if b"recording" in Path(self.out_file.name).read_bytes() + Path(self.err_file.name).read_bytes():
            return True
        return "offcputime" in self.proc.args[0] and self._has_link()

    def _has_link(self):
        """How it is seen that offcputime records: it says so only when the buffer of its output is full."""
        fds = f"/proc/{self.proc.pid}/fd"
        try:
            return any("bpf_link" in os.readlink(f"{fds}/{fd}") for fd in os.listdir(fds))
        except OSError:  # one was closed meanwhile
            return False

    def said(self):
        return Path(self.err_file.name).read_text(errors="replace") + self.out

    @property
    def out(self):
        return Path(self.out_file.name).read_text(errors="replace")

    @property
    def doc(self):
        return json.loads(self.out)

    def end(self):
        if self.proc.poll() is None:
            self._measure_maps()
            self.proc.send_signal(signal.SIGINT)
        try:
            self.proc.wait(120)
        finally:
            self.proc.kill()
            self.proc.wait()
            self._watch.join()
            self._reader.join()
            self.peak -= self._counted_twice


@contextmanager
def recording(argv):
    """A recorder that has begun; it has ended after the block, and its output can be read."""
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
        recorder = Recorder(argv, out, err)
        try:
            wait_until(recorder.has_begun, "it records")
            yield recorder
        finally:
            recorder.end()
        recorder.text = recorder.out


@contextmanager
def maybe(argv):
    if argv:
        with recording(argv) as recorder:
            yield recorder
    else:
        yield None


def all_tools(peer):
    """What is compared. That without a tool is measured twice: the difference is what this machine's figures are worth."""
    tools = {ALONE: None, AGAIN: None}
    if is_ours():
        tools[DEFAULT] = ours("-a")
        tools[EVERY] = ours("-a", "--min", "0")
    return {**tools, **peer}


def interleaved(tools, rounds, measure):
    """
    {tool: [value…]}: each tool once in every round, so that what else the machine does hits all of them, and in an order
    of its own each time, so that what one leaves behind does.
    """
    values = {name: [] for name in tools}
    rng = random.Random(1)
    for _ in range(rounds):
        for name in rng.sample(list(tools), len(tools)):
            with maybe(tools[name]):
                values[name].append(measure())
    return values


def beside_none(values):
    """{tool: how much more its median is than that of all runs without a tool}"""
    alone = statistics.median(values[ALONE] + values[AGAIN])
    return {name: statistics.median(v) / alone - 1 for name, v in values.items()}


def pipe_seconds(loops=PIPE_LOOPS, cpu=None):
    pin = ["taskset", "-c", str(cpu)] if cpu is not None else []
    done = subprocess.run(
        [*pin, "perf", "bench", "sched", "pipe", "-l", str(loops)], capture_output=True, text=True, check=True
    )
    return float(re.search(r"Total time:\s*([\d.]+)", done.stdout)[1])


def bench_pipe(peer, rounds):
    """On one CPU the switches themselves are measured; on two, also how long an idle CPU takes to wake up."""
    if not find("perf"):
        left_out("perf: not installed")
        return
    bench_pipe_on(None, peer, rounds)
    bench_pipe_on(max(os.sched_getaffinity(0)), peer, rounds)


def bench_pipe_on(cpu, peer, rounds):
    where = "" if cpu is None else ", both processes on one CPU"
    print(f"\nperf bench sched pipe -l {PIPE_LOOPS}{where}: median of {rounds} interleaved runs")
    values = interleaved(all_tools(peer), rounds, lambda: pipe_seconds(cpu=cpu))
    slower = beside_none(values)
    for name, v in values.items():
        times = f"{statistics.median(v):8.3f} s  {slower[name] * 100:+7.1f} %   ({min(v):.3f} to {max(v):.3f})"
        print(f"  {name:28} {times}")
    if not is_ours():
        return
    default, every = slower[DEFAULT], slower[EVERY]
    figure(f"at most 10 % slower with default options: {default * 100:.1f} %", default <= 0.10)
    if "libbpf-tools offcputime" in slower:
        theirs = slower["libbpf-tools offcputime"]
        figure(f"--min 0 costs less than offcputime: {every * 100:.0f} % and {theirs * 100:.0f} %", every < theirs)


def totals_of_offcputime(text):
    """{tid: ns}: stacks, each followed by the thread and its time in µs."""
    totals = {}
    for tid, us in re.findall(r"^ +- +.* \((\d+)\)\n +(\d+)$", text, re.MULTILINE):
        totals[int(tid)] = totals.get(int(tid), 0) + int(us) * 1000
    return totals


def totals_of_bpftrace(text):
    """{tid: ns}"""
    return {int(tid): int(ns) for tid, ns in re.findall(r"^@total\[(\d+)\]: (\d+)$", text, re.MULTILINE)}


def bench_exactness(peer, rounds):
    """Call sites are compared where a call was one wait; threads with all that they waited for over 1 ms."""
    print(f"\nwaits that threads measured themselves, {rounds} of each kind, over 1 ms: how far the tools are off")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as disk:
        target = Target([built("waits_exact"), 1000, rounds, disk])
        try:
            if is_ours():
                exactness_of_sites(target)
            if "libbpf-tools offcputime" in peer:
                argv = offcputime("-m", 1000, "-p", target.pid)
                exactness_of_peer("libbpf-tools offcputime", argv, totals_of_offcputime, target)
            if "bpftrace" in peer:
                exactness_of_peer("bpftrace", bpftrace(BPFTRACE_THREADS), totals_of_bpftrace, target)
        finally:
            target.end()


def rows_below(doc, tid, function):
    """The sleeps of a thread in what a function calls."""
    return [
        row
        for row in doc["stacks"]
        if row["tid"] == tid and row["state"] in "SD" and function in [frame["symbol"] for frame in row["user_stack"]]
    ]


def can_be_judged(waited_ns, calls, disturbed):
    return waited_ns > 10e6 and disturbed * 2 <= calls


def figure_of_totals(what, off):
    """`off`: by how much each that was judged is off. Where all were disturbed nothing is known, which is no success."""
    worst = max(off, default=0)
    figure(f"totals of {what} within 2 %: the worst of {len(off)} is {worst * 100:.2f} % off", bool(off) and worst <= 0.02)


def exactness_of_sites(target):
    """Each round of the target adds to what it has measured before: the difference is what was recorded."""
    before = json.loads(target.ask("go"))
    with recording(ours("--json", "-p", str(target.pid))) as recorder:
        after = json.loads(target.ask("go"))
    doc, off_sites, off_threads, wrong, waits, sure = json.loads(recorder.text), [], [], 0, 0, 0
    for old, new in zip(before["threads"], after["threads"]):
        waited = calls = disturbed = 0
        for name, site in new["sites"].items():
            truth = {key: site[key] - old["sites"][name][key] for key in site if key != "max_ns"}
            rows = rows_below(doc, new["tid"], name)
            count, total = sum(r["count"] for r in rows), sum(r["total_ns"] for r in rows)
            waited, calls, disturbed = waited + truth["waited_ns"], calls + truth["count"], disturbed + truth["near"]
            off = abs(total - truth["waited_ns"]) / truth["waited_ns"] if truth["waited_ns"] else 0
            # a call that another program disturbed, or that lasted hardly longer than the threshold, may be no wait or two
            less, more = truth["near"], truth["again"]
            if count or truth["count"]:
                print(
                    f"  {new['name']:15} {name:12} {truth['count']:5} calls {truth['waited_ns'] / 1e6:9.2f} ms   "
                    f"recorded {count:5} waits {total / 1e6:9.2f} ms  {off * 100:5.2f} % off"
                    f"{f'   ({less} calls were disturbed)' if less else ''}"
                )
            wrong += max(truth["count"] - less - count, count - truth["count"] - more, 0)
            waits, sure = waits + truth["count"], sure + truth["count"] - less
            if can_be_judged(truth["waited_ns"], truth["count"], less):
                off_sites.append(off)
        # the function of its rounds has the thread's name; outside of it the thread waits for the next question
        total = sum(row["total_ns"] for row in rows_below(doc, new["tid"], new["name"]))
        if can_be_judged(waited, calls, disturbed):
            off_threads.append(abs(total - waited) / waited)
    print("  (totals of less than 10 ms, or of calls most of which were disturbed, are not judged)")
    figure_of_totals("call sites", off_sites)
    figure_of_totals("threads", off_threads)
    figure(f"counts exact: {wrong} of {waits} waits wrong, {sure} were not disturbed", wrong == 0 and sure > 0)


def exactness_of_peer(name, argv, totals_of, target):
    before = json.loads(target.ask("go"))
    with recording(argv) as recorder:
        after = json.loads(target.ask("go"))
    totals, worst = totals_of(recorder.text), 0
    for old, new in zip(before["threads"], after["threads"]):
        truth = sum(s["total_ns"] - old["sites"][n]["total_ns"] for n, s in new["sites"].items())
        if truth > 10e6:
            worst = max(worst, abs(totals.get(new["tid"], 0) - truth) / truth)
    print(f"  {name}: totals of threads up to {worst * 100:.2f} % off (no counts, no call sites)")


def redis_rate(load, count):
    """Requests a second."""
    done = subprocess.run([str(a) for a in load(count)], capture_output=True, text=True, check=True)
    return float(re.findall(r'^"GET","([\d.]+)"', done.stdout, re.MULTILINE)[0])


def pgbench_rate(load, seconds):
    """Transactions a second."""
    done = subprocess.run([str(a) for a in load(seconds)], capture_output=True, text=True, check=True)
    return float(re.search(r"tps = ([\d.]+)", done.stdout)[1])


def whole_by_offcputime(text, main):
    """
    Share of the time in main threads' user stacks that end where a process begins. Where a thread begins has no name in
    a stripped libc: it would be taken for another function.
    """
    whole = total = 0
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        if len(lines) < 3 or not re.match(rf" +- +{main}", lines[-2]) or not lines[-1].strip().isdigit():
            continue
        total += int(lines[-1])
        # a stripped program's own _start has no name; what it calls has
        whole += int(lines[-1]) * any(line.strip() in OUTERMOST for line in lines[-4:-2])
    return whole / total if total else None


def whole_by_bpftrace(text, comm):
    """Likewise, of @total[ kernel frames, user frames, comm]: ns, each frame on a line of its own."""
    whole = total = 0
    for block in text.split("@total[")[1:]:
        key, _, ns = block.partition("]: ")
        lines = key.splitlines()
        if not key.endswith(f", {comm}") or not ns.split():
            continue
        ends = [i for i, line in enumerate(lines) if line.startswith(",")]
        user = [line.strip().split("+")[0] for line in lines[ends[0] + 1 : ends[-1]]]
        total += int(ns.split()[0])
        whole += int(ns.split()[0]) * any(name in OUTERMOST for name in user[-2:])
    return whole / total if total else None


def bench_whole(peer, seconds):
    print(f"\nbusy servers of the distribution, {seconds} s: user stacks that are whole")
    for name, server, rate in (("redis-server", redis, redis_rate), ("postgres", postgres, pgbench_rate)):
        try:
            with tempfile.TemporaryDirectory(dir="/tmp") as directory, server(Path(directory)) as (pid, load):
                whole_of(name, pid, load, peer, seconds)
        except (AssertionError, KeyError, PermissionError) as e:
            left_out(f"{name}: {e}")


def whole_of(name, pid, load, peer, seconds):
    # redis-benchmark takes a number of requests; this many take about as long
    amount = seconds if name == "postgres" else seconds * 60000
    run_load = lambda: subprocess.run([str(a) for a in load(amount)], capture_output=True, check=True)
    if is_ours():
        with recording(ours("--json", "--min", "0", "--children", "-p", str(pid))) as recorder:
            run_load()
        doc = json.loads(recorder.text)
        all_rows = [row for row in doc["stacks"] if row["user_stack"] or row["user_stack_error"]]
        waits = sum(row["count"] for row in all_rows)
        whole = sum(row["count"] for row in all_rows if row["user_stack_error"] is None)
        share = whole / waits if waits else 0
        errors = {}
        for row in all_rows:
            errors[row["user_stack_error"]] = errors.get(row["user_stack_error"], 0) + row["count"]
        figure(f"{name}: 99 % of user stacks whole: {share * 100:.2f} % of {waits}", share >= 0.99)
        for error, count in sorted(errors.items(), key=lambda item: -item[1]):
            if error:
                print(f"          {count:8} {error}")
    if "libbpf-tools offcputime" in peer:
        # of all threads: it cannot follow the processes that postgres starts
        only, main = (("-p", pid), rf".* \({pid}\)") if name != "postgres" else ((), r"postgres \(")
        with recording(offcputime(*only)) as recorder:
            run_load()
        tell_whole("libbpf-tools offcputime", name, whole_by_offcputime(recorder.text, main))
    if "bpftrace" in peer:
        with recording(bpftrace()) as recorder:
            run_load()
        tell_whole("bpftrace", name, whole_by_bpftrace(recorder.text, name))


def tell_whole(tool, server, share):
    said = f"{(share or 0) * 100:.1f} % of main threads' time in stacks that reach the start"
    print(f"  {tool}, {server}: {'no stacks' if share is None else said}")


def switches():
    return int(Path("/proc/stat").read_text().split("\nctxt ")[1].split()[0])


def bench_load(peer, seconds):
    print(f"\nat least 100,000 switches a second for {seconds} s: losses and memory")
    if not find("perf"):
        left_out("perf: not installed")
        return
    tools = dict(peer)
    if is_ours():
        tools = {DEFAULT: ours("--json", "-a"), EVERY: ours("--json", "-a", "--min", "0"), **peer}
    for name, argv in tools.items():
        with recording(argv) as recorder:
            start, before = time.monotonic(), switches()
            while time.monotonic() - start < seconds:
                pipe_seconds(100000)
            rate = (switches() - before) / (time.monotonic() - start)
        memory = f"{recorder.peak:.0f} MiB and {recorder.maps:.0f} MiB of maps"
        if not name.startswith("stakeout"):
            print(f"  {name}: {rate:.0f} switches a second, {memory}")
            continue
        doc = json.loads(recorder.text)
        print(f"  {name}: {rate:.0f} switches a second, {doc['total_events']} waits, {memory}, lost: {doc['lost']}")
        if name == DEFAULT:
            figure(f"nothing lost at {rate:.0f} switches a second", not any(doc["lost"].values()) and rate >= 100000)
            total = recorder.peak + recorder.maps
            figure(f"memory under 150 MiB, with that of its maps: {total:.0f} MiB", total < 150)


def bench_throughput(peer, rounds):
    print(f"\nwhat servers lose while everything is recorded: median of {rounds} interleaved runs")
    tools = all_tools(peer)
    for name, server, rate, amount in (
        ("redis-benchmark", redis, redis_rate, 150000),
        ("pgbench", postgres, pgbench_rate, 2),
    ):
        try:
            with tempfile.TemporaryDirectory(dir="/tmp") as directory, server(Path(directory)) as (_, load):
                rate(load, amount)  # so that all is warm
                values = interleaved(tools, rounds, lambda: rate(load, amount))
                tell_cost(name, tools, lambda: rate(load, amount))
        except (AssertionError, KeyError, PermissionError) as e:
            left_out(f"{name}: {e}")
            continue
        lost = {tool: -more for tool, more in beside_none(values).items()}
        for tool, v in values.items():
            low, middle, high = statistics.quantiles(v)
            half = f"(half of the runs: {low:.0f} to {high:.0f})"
            print(f"  {name:16} {tool:28} {middle:10.0f} a second  {-lost[tool] * 100:+6.1f} %   {half}")
        if is_ours():
            loss = lost[DEFAULT]
            figure(f"{name}: less than 5 % of throughput lost: {loss * 100:.1f} %", loss < 0.05)


@contextmanager
def programs_are_timed():
    """The kernel adds up the time of each BPF program meanwhile, which costs some itself."""
    before = BPF_STATS.read_text()
    BPF_STATS.write_text("1")
    try:
        yield
    finally:
        BPF_STATS.write_text(before)


def program_ns():
    """Time of each BPF program by its number, in ns."""
    done = subprocess.run([find("bpftool"), "prog", "show", "-j"], capture_output=True, text=True, check=True)
    return {p["id"]: p.get("run_time_ns", 0) for p in json.loads(done.stdout)}


def cpu_ns(pid):
    """What all threads of the process have run for."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, after_name[11:13])) * 10**9 // os.sysconf("SC_CLK_TCK")


def cost_of(argv, work):
    """
    While the tool records some work: its BPF programs' time and its own, each as a share of what all CPUs had, and the
    former for each switch, in ns. How long the work takes does not matter, and so not what else the machine does.
    """
    others = program_ns()
    with recording(argv) as recorder:
        start, switched, ran = time.monotonic_ns(), switches(), cpu_ns(recorder.proc.pid)
        timed = program_ns()
        work()
        in_programs = sum(ns - timed.get(i, 0) for i, ns in program_ns().items() if i not in others)
        own = cpu_ns(recorder.proc.pid) - ran
        switched = switches() - switched
        there = (time.monotonic_ns() - start) * os.cpu_count()
    return in_programs / there, own / there, in_programs / switched


def tell_cost(name, tools, work):
    if not find("bpftool") or not os.access(BPF_STATS, os.W_OK):
        left_out(f"what programs take by the kernel's account: no bpftool, or {BPF_STATS} cannot be written")
        return
    with programs_are_timed():
        for tool, argv in tools.items():
            if not argv:
                continue
            programs, own, each = cost_of(argv, work)
            shares = f"{programs * 100:.1f} % of the CPUs' time in BPF, {own * 100:.1f} % in the tool"
            print(f"  {name:16} {tool:28} {shares}, {each:.0f} ns of BPF for each switch")


def is_ours():
    """Whether this build records with BPF: the figures are about that."""
    done = subprocess.run(ours("--help"), capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.returncode == 0 and "--wakers" in done.stdout


def main(quick):
    print("\nstakeout offcpu beside its peers")
    if os.geteuid() != 0:
        left_out("recording waits: needs root")
        return
    if not is_ours():
        left_out("stakeout offcpu: not in this build; the peers alone")
    peer = peers()
    bench_pipe(peer, 3 if quick else 7)
    bench_exactness(peer, 50 if quick else 200)
    bench_whole(peer, 3 if quick else 10)
    bench_load(peer, 10 if quick else 30)
    bench_throughput(peer, 5 if quick else 21)
