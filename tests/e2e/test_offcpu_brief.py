# SPDX-License-Identifier: MIT
"""Processes that have ended before anybody could read what they had mapped."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from deadfs import DeadFs, need_fuse
from harness import built, wait_until
from offcpu_recording import assert_exit_code, names, over, why_not

pytestmark = [pytest.mark.usefixtures("root")]

COUNT = 5
UNKNOWN = "its maps were not known yet when the stack was taken"


class Blind:
    """A recording of waits_brief whose loader is stopped while the processes live: only BPF sees them."""

    def __init__(self, record, tmp_path, *args):
        self.report = tmp_path / "report"
        self.recording = record("--json", "-o", self.report, *args, "--", built("waits_brief"))
        assert self.recording.hear().startswith("ready ")

    def run(self, *command):
        """The pids of COUNT processes that came and went."""
        self.recording.proc.send_signal(signal.SIGSTOP)
        os.waitpid(self.recording.proc.pid, os.WUNTRACED)
        said = self.recording.ask(" ".join(str(word) for word in (COUNT, *command)))
        self.recording.proc.send_signal(signal.SIGCONT)
        return [int(pid) for pid in said.split()]

    def show(self, program):
        """Lets the loader see a process that has this program, until it has opened the file."""
        self.recording.say(f"1 {program} stay")
        maps = Path(f"/proc/{self.recording.proc.pid}/maps")
        wait_until(lambda: str(program) in maps.read_text(), f"the loader knows {program}")
        self.recording.ask("")

    def end(self):
        self.recording.proc.stdin.close()
        result = self.recording.end(None)
        doc = json.loads(self.report.read_text())
        assert_exit_code(result, doc)
        return doc


def sleeps_of(doc, pids):
    """The rows of all of them, asleep for as long as a nap takes."""
    rows = [row for row in over(doc["stacks"]) if row["pid"] in pids and row["state"] == "S" and row["max_ns"] > 2000000]
    assert {row["pid"] for row in rows} == set(pids), [(row["pid"], row["state"], names(row["user_stack"])) for row in rows]
    return rows


def assert_naps(doc, pids):
    for row in sleeps_of(doc, pids):
        assert not row["user_stack_error"], row
        frames = names(row["user_stack"])
        assert frames[frames.index("brief_nap") + 1] == "main" and frames[-1] == "_start", frames


@pytest.fixture
def finding():
    """Skips where BPF cannot look at what a process has mapped while the process is back on a CPU."""
    if why_not("sched_exit"):
        pytest.skip(why_not("sched_exit"))


@pytest.mark.parametrize("minimum", (0, "1ms"))
def test_stacks_of_who_was_never_read(record, tmp_path, finding, minimum):
    blind = Blind(record, tmp_path, "--min", minimum)
    pids = blind.run(built("waits_brief"), "nap")
    assert_naps(blind.end(), pids)


def test_old_way(record, tmp_path):
    """Where BPF cannot look, the stacks of such processes are cut, and say so."""
    blind = Blind(record, tmp_path, "--read-maps")
    pids = blind.run(built("waits_brief"), "nap")
    rows = sleeps_of(blind.end(), pids)
    assert {row["user_stack_error"] for row in rows} == {UNKNOWN}
    assert not any("brief_nap" in names(row["user_stack"]) for row in rows)


def test_other_program(record, tmp_path, finding):
    """Who executes another program at once is not walked by the tables of the one that it came from."""
    blind = Blind(record, tmp_path)
    pids = blind.run(shutil.which("sleep"), "0.003")
    doc = blind.end()
    for row in sleeps_of(doc, pids):
        assert not {"brief_nap", "run", "answer"} & set(names(row["user_stack"])), row


def test_replaced_program(record, tmp_path, finding):
    """Another file has the name of one that is known: its code is not taken for that one's."""
    program, other = tmp_path / "program", tmp_path / "other"
    shutil.copy(built("waits_brief"), program)
    shutil.copy(built("waits_brief"), other)
    blind = Blind(record, tmp_path)
    known = blind.run(built("waits_brief"), "nap")
    os.replace(other, program)
    unknown = blind.run(program, "nap")
    doc = blind.end()
    assert not any(row["user_stack_error"] for row in sleeps_of(doc, known))
    for row in sleeps_of(doc, unknown):
        assert row["user_stack_error"] == UNKNOWN and "brief_nap" not in names(row["user_stack"]), row


@pytest.mark.arch
@pytest.mark.parametrize("minimum", (pytest.param(0, marks=pytest.mark.asan), "1ms"))
def test_program_that_is_known_too_late(record, tmp_path, finding, minimum):
    """Nobody knew the file when stacks led there, nor could any table be made: they are walked when all is over."""
    program = tmp_path / "program"
    shutil.copy(built("waits_brief"), program)
    blind = Blind(record, tmp_path, "--min", minimum)
    pids = blind.run(program, "nap")
    blind.show(program)
    assert_naps(blind.end(), pids)


def test_events_are_told_at_once(record, tmp_path, finding):
    """With the stack that there is, in the report as well."""
    program = tmp_path / "program"
    shutil.copy(built("waits_brief"), program)
    blind = Blind(record, tmp_path, "--events=/dev/null")
    pids = blind.run(program, "nap")
    blind.show(program)
    assert {row["user_stack_error"] for row in sleeps_of(blind.end(), pids)} == {UNKNOWN}


@pytest.fixture
def far_away(tmp_path):
    """waits_brief on a file system where each page has to be waited for, whenever the program is executed."""
    need_fuse()
    shown, mount = tmp_path / "shown", tmp_path / "mount"
    shown.mkdir()
    mount.mkdir()
    shutil.copy(built("waits_brief"), shown / "program")
    fs = DeadFs(shown, mount)
    yield mount / "program"
    fs.end()


@pytest.mark.arch
@pytest.mark.parametrize("minimum", (0, "1us"))
def test_wait_between_two_programs(record, far_away, minimum):
    """
    Who executes a program has given up the memory of the old one, and still has the registers of that, when the page with
    the end of the new one's data is waited for.
    """
    recording = record("--json", "--min", minimum, "--", built("waits_brief"))
    assert recording.hear().startswith("ready ")
    pids = {int(pid) for pid in recording.ask(f"{COUNT} {far_away} nap").split()}
    recording.proc.stdin.close()
    rows = [row for row in recording.finish(None)["stacks"] if row["pid"] in pids]
    between = [row for row in rows if {"load_elf_binary", "handle_mm_fault"} <= set(names(row["kernel_stack"]))]
    assert between, [names(row["kernel_stack"]) for row in rows]
    for row in between:
        assert row["user_stack"] == [] and row["user_stack_error"] is None, row
