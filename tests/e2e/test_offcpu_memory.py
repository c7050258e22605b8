# SPDX-License-Identifier: MIT
"""stakeout offcpu and many processes, many mappings, much unwind information: that works, and what memory it takes."""

import signal
import struct
from pathlib import Path

import pytest
from bpf_map import BpfMap, bpf_maps, fields, resident_maps
from harness import TIMEOUT, bare, built, let_wait, name_of, state, wait_until
from offcpu_recording import Recording, added, assert_whole, let_run, names, over, rows_of

MIB = 1 << 20

pytestmark = pytest.mark.usefixtures("root")


def kib(text):
    return int(text.split()[0]) * 1024


class Measured(Recording):
    """A recording whose memory is looked at."""

    def bpf_maps(self):
        return bpf_maps(self.proc.pid)

    def wait_for_mappings(self, pids):
        """Until BPF has all code that the processes have mapped."""
        (number,) = (m.number for m in self.bpf_maps() if m.name == "processes")
        with BpfMap(number) as processes:
            for pid in pids:
                counts = code_mappings(pid)

                def has_all():
                    entry = processes.lookup(pid)
                    return entry and struct.unpack("III", entry)[1] in counts

                wait_until(has_all, f"the mappings of {pid} are known")

    def peak(self):
        """The most bytes that were resident, without the ring, which is one of the BPF maps and counted there."""
        recorder = self.proc.pid
        children = Path(f"/proc/{recorder}/task/{recorder}/children").read_text().split()
        (parser,) = (pid for pid in children if name_of(pid, pid) == "stakeout-parser")
        peaks = [kib(fields(f"/proc/{pid}/status")["VmHWM"]) - resident_maps(pid) for pid in (recorder, parser)]
        # The parser has all that there was when it was made, and that counts once.
        own = kib(fields(f"/proc/{recorder}/smaps_rollup")["Private_Dirty"])
        print(f"{peaks[0] / MIB:.1f} MiB while it records, {peaks[1] / MIB:.1f} MiB to find names, beside {own / MIB:.1f} MiB")
        return max(peaks[0], peaks[1] + own)

    def finish_measured(self):
        """The document, how many stacks were taken, and all memory: the peak until everything is named, and the BPF maps."""
        bpf = sum(m.memory() for m in self.bpf_maps())
        (stacks,) = (m.count() for m in self.bpf_maps() if m.name == "known_stacks")
        self.proc.send_signal(signal.SIGINT)
        assert self._until(self._out, b"{")  # and it waits for somebody to read the rest
        peak = self.peak()
        doc = self.finish(None)
        print(f"{peak / MIB:.1f} MiB resident, {bpf / MIB:.1f} MiB in BPF maps, {stacks} stacks")
        return doc, stacks, peak + bpf


@pytest.fixture
def record():
    """record(ARG…): a recording that has begun."""
    started = []

    def start(*args):
        started.append(Measured(args))
        return started[-1].begun()

    yield start
    for recording in started:
        recording.close()


def code_mappings(pid):
    """How many there are, without [vsyscall] of x86_64, and with it: /proc has it, but for BPF it is none of the process."""
    code = [line for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if line.split()[1][2] == "x"]
    return len([line for line in code if not line.endswith("[vsyscall]")]), len(code)


class Fleet:
    """Processes with many mappings: see waits_fleet.c."""

    def __init__(self, target, directory, processes, images, maps, how):
        for i in range(images):
            (directory / str(i)).mkdir()
            for k in range(maps):
                (directory / str(i) / str(k)).write_bytes(built("plugin").read_bytes())
        self.last = [str(directory / str(i % images) / str(maps - 1)) for i in range(processes)]
        self.target = target("waits_fleet", built("plugin"), directory, processes, images, maps, how)

    def go(self):
        self.pids = [int(pid) for pid in self.target.ask("go", 4 * TIMEOUT).split()]
        assert len(self.pids) == len(self.last)

    def end(self):
        self.target.ask("end", 4 * TIMEOUT)
        assert not any(Path(f"/proc/{pid}").exists() for pid in self.pids)

    def assert_named(self, doc):
        """Each process was seen to wait below the file that it called last, and that has names."""
        found = {pid: set() for pid in self.pids}
        for row in rows_of(doc, site="fleet_wait", state="S"):
            files = {f["module"] for f in row["user_stack"] if bare(f["symbol"]) == "plugin_enter"}
            if row["user_stack_error"] is None and files:
                assert_whole(row)
                found[row["pid"]] |= files
        assert found == {pid: {last} for pid, last in zip(self.pids, self.last)}


@pytest.mark.alone("a thousand processes keep all processors busy")
@pytest.mark.parametrize(
    "images, how, end",
    [
        pytest.param(1, "alike", "ended", id="workers"),  # of one server, forked
        pytest.param(40, "apart", "ended", id="containers"),  # each of which has files of its own
        pytest.param(40, "apart", "alive", id="containers-alive"),
    ],
)
def test_thousand_processes(target, record, tmp_path, images, how, end):
    """With a hundred mappings of code each. They are symbolized, also if they have ended, and it takes little memory."""
    fleet = Fleet(target, tmp_path, 1000, images, 100, how)
    recording = record("--json", "--children", "-p", fleet.target.pid)
    fleet.go()
    recording.wait_for_mappings(fleet.pids)
    let_wait(fleet.pids)
    if end == "ended":
        fleet.end()
    doc, stacks, memory = recording.finish_measured()
    fleet.assert_named(doc)
    assert not any(doc["lost"].values()), doc["lost"]
    # The slower the machine, the more stacks are taken before all files are known. On x86_64 it was 86 MiB and 3.3 KiB for each.
    assert memory < 100 * MIB + 4096 * stacks


@pytest.mark.asan
def test_fork_without_mappings(target, record, tmp_path):
    """A child with what its parent had mapped, whose only wait is not over at the end."""
    fleet = Fleet(target, tmp_path, 1, 1, 0, "alike")
    recording = record("--json", "--min", 0, "--children", "-p", fleet.target.pid)
    fleet.go()
    wait_until(lambda: state(fleet.pids[0]) == "S", "it waits")
    (row,) = rows_of(recording.finish(), fleet.pids[0], "fleet_wait", "S")
    assert_whole(row)
    assert "plugin_enter" in names(row["user_stack"])


@pytest.mark.asan
def test_thousand_files(target, record, tmp_path):
    """In one process."""
    fleet = Fleet(target, tmp_path, 1, 1, 1000, "alike")
    recording = record("--json", "--children", "-p", fleet.target.pid)
    fleet.go()
    assert max(code_mappings(fleet.pids[0])) > 1000
    recording.wait_for_mappings(fleet.pids)
    let_wait(fleet.pids)
    doc = recording.finish()
    fleet.assert_named(doc)
    assert doc["lost"]["mappings_over_limit"] == doc["lost"]["files_over_limit"] == 0


@pytest.mark.asan
def test_more_mappings_than_fit(target, record):
    """What is over the limit of one process is counted, and stacks that lead there say that they end."""
    t = target("waits_maps", 5000)
    recording = record("--json", "-p", t.pid)
    let_run(t)
    doc = recording.finish()
    assert doc["lost"]["mappings_over_limit"] == max(code_mappings(t.pid)) - 4096
    rows = over(rows_of(doc, t.tids["worker"], state="S"))
    assert added(rows) >= 15
    assert all(row["user_stack_error"] for row in rows)


def test_million_rows(target, record):
    """A program with so much unwind information is walked by it."""
    t = target("waits_rows")
    recording = record("--json", "-p", t.pid)
    (objects,) = ([table.max_entries for table in m.inner()] for m in recording.bpf_maps() if m.name == "objects")
    assert max(objects) > 1000000
    let_run(t)
    doc = recording.finish()
    rows = rows_of(doc, t.tids["worker"], "wait_below", "S")
    assert added(rows) >= 15
    for row in rows:
        assert_whole(row)
        callers = [f for f in row["user_stack"] if bare(f["symbol"]) in ("last_of_many", "worker")]
        assert len(callers) == 2 and {f["found_by"] for f in callers} == {"cfi"}
    assert not any(doc["lost"].values()), doc["lost"]


@pytest.mark.asan
def test_32bit_program(narrow, record):
    """BPF does not walk it, and says so."""
    t = narrow()
    recording = record("--json", "-p", t.pid)
    let_wait([t.pid], 20)
    rows = over(rows_of(recording.finish(), t.pid, "narrow_wait", "S"))
    assert added(rows) >= 15
    for row in rows:
        assert names(row["user_stack"]) == ["narrow_wait"]
        assert "32-bit" in row["user_stack_error"]
