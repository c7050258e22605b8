# SPDX-License-Identifier: MIT
"""
Memory and files that take for ever to read: the report comes with what is known all the same, says what did not answer,
and the target is not held meanwhile. Every run has a bound here, which is no statement on how fast it has to be.
"""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from deadfs import BOUND, DeadFs, Run, Scene, assert_runs_freely, need_fuse, need_userfaultfd
from harness import SLOW, assert_calls, built, native, symbols, thread, wait_until
from offcpu_recording import assert_whole, names, rows_of
from test_namespaces import libraries

pytestmark = [pytest.mark.usefixtures("root"), pytest.mark.patient("most wait until the patience of the program is over")]

HELD_AT_MOST = 0.5 * 1e9 * SLOW  # ns, while the patience is 2 s


class Hangs:
    """What a test starts, and what has to be in order after it."""

    def __init__(self, target):
        self._target, self._file_systems, self._runs, self._targets = target, [], [], []

    def mount(self, shown, mount, *options):
        need_fuse()
        self._file_systems.append(DeadFs(shown, mount, *options))
        return self._file_systems[-1]

    def target(self, *args, **how):
        self._targets.append(self._target(*args, **how))
        return self._targets[-1]

    def run(self, *args, **how):
        self._runs.append(Run(args, **how))
        return self._runs[-1]

    def over(self):
        """Everybody gets an answer; then nothing of the program may be left, and the targets run as before."""
        for fs in self._file_systems:
            fs.go()
        ended = all(run.ended() for run in self._runs)
        if ended:  # else the test has failed already
            for run in self._runs:
                run.assert_nothing_left()
            for t in self._targets:
                if t.proc.poll() is None:
                    assert_runs_freely(t.pid)

    def end(self):
        for fs in self._file_systems:
            fs.end()
        for run in self._runs:
            run.end()
        for t in self._targets:
            t.end()
        for fs in self._file_systems:
            fs.assert_unmounted()


@pytest.fixture
def hangs(target):
    started = Hangs(target)
    try:
        yield started
        started.over()
    finally:
        started.end()


@pytest.fixture
def place(tmp_path):
    """A directory whose files the file system shows, and the one where it is mounted."""
    shown, mount = tmp_path / "shown", tmp_path / "mount"
    shown.mkdir()
    mount.mkdir()
    return shown, mount


# Memory


@pytest.fixture
def odd_stack(hangs, place):
    """odd_stack(KIND, sleep or spin, OPTION of deadfs…): a thread whose stack goes on where there is no answer."""
    shown, mount = place

    def start(kind, how="sleep", *options):
        if kind.startswith("uffd"):
            need_userfaultfd()
            return Scene(hangs.target("oddstack", kind, how).settle("spinner", "odd" if how == "spin" else ""))
        (shown / "stack").write_bytes(bytes(1 << 20))
        fs = hangs.mount(shown, mount, *options)
        t = hangs.target("oddstack", kind, how, mount / "stack").settle("spinner", "odd" if how == "spin" else "")
        return Scene(t, fs, mount / "stack")

    return start


@pytest.fixture(params=["file", "uffd", native("uffd-shared"), native("uffd-elsewhere")])
def asleep(request, odd_stack):
    return odd_stack(request.param)


def assert_rest_is_known(doc, scene):
    """All but the part of one stack that cannot be read."""
    odd, sleeper = thread(doc, "odd"), thread(doc, "sleeper")
    for th in (odd, sleeper):
        assert th["state"] == "S", th
        assert th["kernel_stack"] or th["kernel_stack_error"], th
    assert odd["syscall"]["name"] == "ppoll"
    assert symbols(odd)[:1] == ["odd_sleep"]
    assert odd["user_stack_end"] != "complete" and odd["user_stack_error"], odd
    assert sleeper["syscall"]["name"] in ("pause", "ppoll")
    assert_calls(sleeper, "target_block", "sleep_here", "target_thread_main")
    assert_calls(thread(doc, "spinner"), "spin_here", "target_thread_main")
    assert_calls(thread(doc, scene.pid), "target_serve", "main")


def test_memory_that_answers(hangs, odd_stack):
    """The same stack while nothing hangs: the other tests are about the right thing."""
    scene = odd_stack("file")
    result = hangs.run("--json", scene.pid).result()
    assert result.code == 0, result
    assert symbols(thread(result.doc, "odd")) == ["odd_sleep", "odd_caller"]
    assert_calls(thread(result.doc, "sleeper"), "sleep_here")


def test_memory_in_the_text(hangs, asleep):
    result = hangs.run(asleep.die().pid).result()
    assert result.code == 3, result
    asleep.assert_named(result.out)
    for name in ("odd_sleep", "sleep_here", "spin_here", "main", "ppoll("):
        assert name in result.out, result


@pytest.mark.arch
@pytest.mark.asan("file---stop=auto", "file---source=proc", "uffd---proc-mem")
@pytest.mark.parametrize(
    "option", ["--stop=auto", native("--stop=all"), "--ptrace", native("--source=proc"), "--proc-mem"]
)
def test_memory(hangs, asleep, option):
    result = hangs.run("--json", option, asleep.die().pid).result()
    assert result.code == 3, result
    assert_rest_is_known(result.doc, asleep)
    if asleep.fs or option != "--proc-mem":  # in that way the memory of a userfaultfd is refused at once
        asleep.assert_named(result.out)


def test_memory_that_can_be_given_up(hangs, odd_stack):
    """As with NFS: who waits can be killed. It makes no difference."""
    scene = odd_stack("file", "sleep", "-l").die()
    result = hangs.run("--json", scene.pid).result()
    assert result.code == 3, result
    assert_rest_is_known(result.doc, scene)
    scene.assert_named(result.out)


@pytest.fixture
def alone():
    """alone(TID): a thread that has a processor of its own; what the test starts from now on gets the others."""
    before = os.sched_getaffinity(0)

    def separate(t, tid):
        if len(before) < 2:
            return
        cpu = max(before)
        for other in os.listdir(f"/proc/{t.pid}/task"):
            os.sched_setaffinity(int(other), {cpu} if int(other) == tid else before - {cpu})
        os.sched_setaffinity(0, before - {cpu})

    yield separate
    os.sched_setaffinity(0, before)


HELD = [("spin", "--stop=auto"), ("spin", "--source=proc")]  # without more it is only a thread that runs that is held
HELD += [(how, option) for how in ("sleep", "spin") for option in ("--stop=all", "--ptrace")]


@pytest.mark.parametrize("kind", ["file", "uffd", "uffd-elsewhere"])
@pytest.mark.parametrize("how, option", HELD)
def test_nobody_is_held_meanwhile(hangs, odd_stack, alone, kind, how, option):
    """The target looks at itself: no thread of it stands still for anything like the time that is waited."""
    scene = odd_stack(kind, how)
    if how == "spin":
        alone(scene.t, scene.tids["odd"])
    scene.die()
    scene.t.ask("gap")
    result = hangs.run("--json", option, scene.pid).result()
    gap = int(scene.t.ask("gap"))
    assert gap < HELD_AT_MOST, f"it stood still for {gap / 1e6} ms"
    assert result.code == 3, result
    assert_calls(thread(result.doc, "sleeper"), "sleep_here")
    assert_calls(thread(result.doc, "spinner"), "spin_here")
    assert thread(result.doc, "odd")["user_stack_end"] != "complete"
    assert how == "sleep" or symbols(thread(result.doc, "odd"))[:1] in (["odd_spin"], [])


def test_memory_and_other_processes(hangs, asleep):
    """The next process is reported as if nothing were wrong."""
    other = hangs.target("plain").settle()
    result = hangs.run("--json", asleep.die().pid, other.pid).result()
    assert result.code == 3, result
    first, second = result.docs
    assert_rest_is_known(first, asleep)
    assert_calls(thread(second, "worker"), "inner", "middle", "outer")


def test_memory_over_time(hangs, asleep):
    result = hangs.run("offcpu", "--json", "-d", 1, "-p", asleep.die().pid).result(1 + BOUND)
    assert result.code == 3, result
    rows = rows_of(result.doc, asleep.tids["odd"])
    assert rows and all(row["user_stack_error"] for row in rows), result
    assert all(row["kernel_stack"] or row["kernel_stack_error"] for row in rows), result
    for tid, site in ((asleep.tids["sleeper"], "sleep_here"), (asleep.pid, "target_serve")):
        (row,) = rows_of(result.doc, tid, site)
        assert_whole(row)
    asleep.assert_named(result.out)


# Files


@pytest.fixture
def binutils(tool):
    return Binutils(tool)


class Binutils:
    def __init__(self, tool):
        self._tool = tool

    def _run(self, name, *args):
        return subprocess.run([self._tool(name), *args], capture_output=True, text=True, check=True).stdout

    def build_id(self, path):
        return re.search(r"Build ID: ([0-9a-f]+)", self._run("readelf", "-n", path)).group(1)

    def address(self, pid, mapped, function, path=None):
        """Where the process has a function of a file that it has mapped; `path`: where the same file can be read."""
        listing = self._run("nm", path or mapped).splitlines()
        value = int(next(line.split()[0] for line in listing if line.split()[-1] == function), 16)
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            if line.endswith(f" {mapped}"):
                return hex(int(line.split("-")[0], 16) + value + 1)
        pytest.fail(f"{mapped} is not mapped")

    def split_debug(self, program, debug):
        """Moves the debug info of a program into another file; its symbols stay where they are."""
        self._run("objcopy", "--only-keep-debug", program, debug)
        self._run("objcopy", "--strip-debug", f"--add-gnu-debuglink={debug}", program)


@pytest.fixture
def on_dead_fs(hangs, place, tmp_path, tool, binutils):
    """on_dead_fs(WHAT): a target of which one file is on a file system that is about to die."""
    shown, mount = place

    def program():
        shutil.copy2(built("plain"), shown / "plain")
        fs = hangs.mount(shown, mount)
        t = hangs.target(mount / "plain").settle()
        address = binutils.address(t.pid, mount / "plain", "inner", built("plain"))
        return Scene(t, fs, mount / "plain", address, mount / "plain")

    def library():
        shutil.copy2(built("plugin"), shown / "plugin")
        fs = hangs.mount(shown, mount)
        t = hangs.target("dlopen", mount / "plugin").settle()
        address = binutils.address(t.pid, mount / "plugin", "plugin_inner", built("plugin"))
        return Scene(t, fs, mount / "plugin", address, mount / "plugin")

    def debug_link():
        """Found beside the program."""
        at = tmp_path / "plain"
        shutil.copy2(built("plain"), at)
        binutils.split_debug(at, shown / "plain.debug")
        (tmp_path / ".debug").mkdir()
        fs = hangs.mount(shown, tmp_path / ".debug")
        t = hangs.target(at).settle()
        return Scene(t, fs, fs.mount / "plain.debug", binutils.address(t.pid, at, "inner"), at)

    def debug_by_id():
        """Found below the root directory of the target."""
        jail = tmp_path / "jail"
        jail.mkdir()
        for library in libraries(built("plain")):
            to = jail / library.lstrip("/")
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(library, to)
        at = jail / "plain"
        shutil.copy2(built("plain"), at)
        build_id = binutils.build_id(at)
        (shown / build_id[:2]).mkdir()
        binutils.split_debug(at, shown / build_id[:2] / f"{build_id[2:]}.debug")
        ids = jail / "usr/lib/debug/.build-id"
        ids.mkdir(parents=True)
        fs = hangs.mount(shown, ids)
        t = hangs.target(Path("/plain"), wrap=[tool("chroot"), jail]).settle()
        path = Path("/usr/lib/debug/.build-id")  # which root it is below can be told in several ways
        mapped = Path(os.readlink(f"/proc/{t.pid}/exe"))
        return Scene(t, fs, path, binutils.address(t.pid, mapped, "inner", at), at)

    def start(what):
        return {f.__name__: f for f in (program, library, debug_link, debug_by_id)}[what]()

    return start


FILES = ["program", "library", "debug_link", "debug_by_id"]


@pytest.fixture(params=FILES)
def dead_file(request, on_dead_fs):
    scene = on_dead_fs(request.param)
    scene.what = request.param
    return scene


def assert_as_much_as_possible(doc, scene):
    """Without the file of a program its code has no names, and maybe no unwind information; the rest is known."""
    worker, main = thread(doc, "worker"), thread(doc, scene.pid)
    for th, syscall in ((worker, ("pause", "ppoll")), (main, ("read",))):
        assert th["state"] == "S", th
        assert th["kernel_stack"] or th["kernel_stack_error"], th
        assert th["syscall"]["name"] in syscall
        assert th["user_stack"], th
        assert th["user_stack_end"] == "complete" or th["user_stack_error"], th
    if scene.what == "library":
        assert_calls(main, "target_serve", "main")
    elif scene.what != "program":
        assert_calls(main, "target_serve", "main")
        assert_calls(worker, "inner", "middle", "outer")


def test_files_that_answer(hangs, dead_file):
    """The same while nothing hangs."""
    result = hangs.run("--json", dead_file.pid).result()
    assert result.code == 0, result
    assert_calls(thread(result.doc, "worker"), "plugin_inner" if dead_file.what == "library" else "inner")
    inner = next(f for f in thread(result.doc, "worker")["user_stack"] if f["symbol"] in ("inner", "plugin_inner"))
    assert inner["source"]["file"], "with debug info"


@pytest.mark.asan("program---stop=auto", "library---source=proc", "debug_link---stop=all")
@pytest.mark.parametrize("option", ["--stop=auto", "--stop=all", "--source=proc"])
def test_file(hangs, dead_file, option):
    result = hangs.run("--json", option, dead_file.die().pid).result()
    assert result.code == 3, result
    dead_file.assert_named(result.out)
    assert_as_much_as_possible(result.doc, dead_file)


def test_program_of_which_nothing_is_in_memory(hangs, on_dead_fs):
    """Not even by way of the memory of the process can its file be read."""
    scene = on_dead_fs("program")
    scene.what = "program"
    scene.fs.drop()
    result = hangs.run("--json", scene.die().pid).result()
    assert result.code == 3, result
    scene.assert_named(result.out)
    assert_as_much_as_possible(result.doc, scene)


def test_file_in_the_text(hangs, dead_file):
    result = hangs.run(dead_file.die().pid).result()
    assert result.code == 3, result
    dead_file.assert_named(result.out)
    assert "pause(" in result.out or "ppoll(" in result.out, result
    assert "read(" in result.out, result


def test_file_that_can_be_given_up(hangs, place):
    """As with NFS: who waits can be killed. It makes no difference."""
    shown, mount = place
    shutil.copy2(built("plugin"), shown / "plugin")
    fs = hangs.mount(shown, mount, "-l")
    scene = Scene(hangs.target("dlopen", mount / "plugin").settle(), fs, mount / "plugin").die()
    result = hangs.run("--json", scene.pid).result()
    assert result.code == 3, result
    scene.assert_named(result.out)
    assert_calls(thread(result.doc, scene.pid), "target_serve", "main")


def test_cache(hangs, place):
    """A home on a dead network mount: names are found without the cache."""
    shown, mount = place
    fs = hangs.mount(shown, mount)
    t = hangs.target("plain").settle()
    with fs.dead():
        result = hangs.run("--json", t.pid, wrap=("env", f"XDG_CACHE_HOME={mount}")).result()
    assert result.code == 3, result
    assert any(str(mount) in note and "did not answer" in note for note in result.doc["notes"]), result
    assert_calls(thread(result.doc, "worker"), "target_thread_main")


def test_file_in_another_mount_namespace(hangs, place, tool, unshare):
    """Only the target sees the file system at all."""
    shown, mount = place
    shutil.copy2(built("plugin"), shown / "plugin")
    fs = hangs.mount(shown, mount, "-n")
    t = hangs.target(built("dlopen"), mount / "plugin", wrap=[tool("nsenter"), "-m", "-t", fs.pid]).settle()
    scene = Scene(t, fs, mount / "plugin").die()
    result = hangs.run("--json", scene.pid).result()
    assert result.code == 3, result
    scene.assert_named(result.out)
    assert_calls(thread(result.doc, scene.pid), "target_serve", "main")


def test_address_in_a_process(hangs, dead_file):
    dead_file.die()
    result = hangs.run("symbolize", "-f", "-p", dead_file.pid, dead_file.address).result()
    assert result.code == 3, result
    dead_file.assert_named(result.out, result.err)
    if "debug" in dead_file.what:
        assert result.out.splitlines()[0] == "inner", result


def test_address_elsewhere_in_the_process(hangs, on_dead_fs, binutils):
    """What has nothing to do with the dead file is answered in full, before or after."""
    scene = on_dead_fs("library")
    address = binutils.address(scene.pid, built("dlopen"), "callback")
    scene.die()
    result = hangs.run("symbolize", "-f", "-p", scene.pid, address, scene.address, address).result()
    assert result.code == 3, result
    lines = result.out.splitlines()
    assert lines[0] == lines[-2] == "callback" and "dlopen.c:" in lines[1] and "dlopen.c:" in lines[-1], result


@pytest.mark.parametrize("what", ["program", "debug_link"])
def test_address_in_a_file(hangs, on_dead_fs, what):
    """Nothing at all can be said of the one, and less of the other."""
    scene = on_dead_fs(what).die()
    result = hangs.run("symbolize", "-f", "-e", scene.program, "0x1234").result()
    assert result.code in ((1, 3) if what == "program" else (3,)), result
    scene.assert_named(result.out, result.err)


def test_file_over_time(hangs, dead_file):
    result = hangs.run("offcpu", "--json", "-d", 1, "-p", dead_file.die().pid).result(1 + BOUND)
    if dead_file.what != "debug_by_id" or dead_file.waited_for():  # that one does not have to be looked for
        assert result.code == 3, result
        dead_file.assert_named(result.out, result.err)
    rows = rows_of(result.doc, dead_file.tids["worker"])
    assert rows and all(row["kernel_stack"] or row["kernel_stack_error"] for row in rows), result
    if "debug" in dead_file.what:
        assert "middle" in names(rows[0]["user_stack"]), rows


@pytest.mark.alone("dead files of other tests would be met among all processes, too")
def test_file_over_time_among_all_processes(hangs, on_dead_fs):
    """One process has a dead file; nobody else's stacks have less for it."""
    scene = on_dead_fs("library")
    other = hangs.target("plain").settle()
    scene.die()
    run = hangs.run("offcpu", "--json", "-a", "-d", 1)
    result = run.result(1 + 3 * BOUND)  # who knows what else runs on the machine, and with how many threads
    assert result.code == 3, result
    scene.assert_named(result.out, result.err)
    assert rows_of(result.doc, scene.tids["worker"]), result
    (row,) = rows_of(result.doc, other.tids["worker"], "middle")
    assert_whole(row)
    (row,) = rows_of(result.doc, scene.pid, "target_serve")
    assert_whole(row)


@pytest.mark.alone("dead files of other tests would be met among all processes, too")
def test_own_helpers_are_not_among_all_processes(hangs, on_dead_fs, rung):
    """Who waits for the dead file in the program's stead is part of the program, which is not watched."""
    scene = on_dead_fs("library").die()
    run = hangs.run("offcpu", "--json", "-a", "-d", 1, "--min", 0, f"--source={rung}")
    wait_until(lambda: scene.waited_for() or run.ended(), "it waits for an answer")
    helpers = set(run.processes()) - {run.pid}
    assert helpers
    threads = run.result(1 + 3 * BOUND).doc["thread_stats"]
    assert f"{scene.pid}:{scene.pid}" in threads
    assert not helpers & {int(key.split(":")[0]) for key in threads}


# Ctrl-C


@pytest.fixture(params=["snapshot of memory", "snapshot", "symbolize", "offcpu of memory", "offcpu"])
def waits_long(request, hangs, odd_stack, on_dead_fs):
    """waits_long(): a run with much patience that is waiting for an answer."""
    of_memory = "memory" in request.param

    def start():
        scene = odd_stack("file") if of_memory else on_dead_fs("library")
        arguments = {
            "snapshot": ["--json", scene.pid],
            "symbolize": ["symbolize", "-f", "-p", scene.pid, scene.address],
            "offcpu": ["offcpu", "--json", "-d", "0.5", "-p", scene.pid],
        }[request.param.split()[0]]
        scene.die()
        run = hangs.run(*arguments, "--patience", "60s")
        wait_until(lambda: scene.waited_for() or run.ended(), "it waits for an answer")
        return run, scene

    start.doc = not request.param.startswith("symbolize")
    start.ordinary = ("sleeper", "sleep_here") if of_memory else (None, "target_serve")
    start.offcpu = request.param.startswith("offcpu")
    return start


@pytest.mark.parametrize("to", ["the job", "the process"])
def test_interrupt_gives_what_there_is(waits_long, to):
    run, scene = waits_long()
    run.interrupt(to == "the job")
    result = run.result()
    assert result.code == 3, result
    scene.assert_named(result.out, result.err)
    if not waits_long.doc:
        return
    name, site = waits_long.ordinary
    tid = scene.tids[name] if name else scene.pid
    if waits_long.offcpu:
        assert rows_of(result.doc, tid), result
    else:
        assert_calls(thread(result.doc, tid), site)


@pytest.mark.parametrize("to", ["the job", "the process"])
def test_second_interrupt_ends_it(waits_long, to):
    """Whatever it is doing, and with whatever result."""
    run, scene = waits_long()
    assert not run.ended() or run.result().code == 3
    run.interrupt(to == "the job")
    time.sleep(0.3)  # not to wait for something: a user presses it again when nothing seems to happen
    run.interrupt(to == "the job")
    try:
        run.result()
    except AssertionError:  # it may well end by the signal, which is no crash
        assert run.proc.returncode == -2, run.proc.returncode


def test_interrupt_of_memory_that_is_held(hangs, odd_stack):
    """The target runs on throughout."""
    scene = odd_stack("file").die()
    scene.t.ask("gap")
    run = hangs.run("--json", "--stop=all", "--patience", "60s", scene.pid)
    wait_until(lambda: scene.waited_for() or run.ended(), "it waits for an answer")
    scene.t.assert_progress()
    run.interrupt()
    result = run.result()
    assert result.code == 3, result
    assert_rest_is_known(result.doc, scene)
    assert int(scene.t.ask("gap")) < HELD_AT_MOST


# Patience


@pytest.mark.parametrize("what", ["memory", "library"])
def test_slow_is_not_dead(hangs, odd_stack, on_dead_fs, what):
    """An answer that comes in time is as good as any other."""
    scene = (odd_stack("file") if what == "memory" else on_dead_fs("library")).die()
    run = hangs.run("--json", "--patience", "60s", scene.pid)
    wait_until(lambda: scene.waited_for() or run.ended(), "it waits for an answer")
    scene.fs.go()
    result = run.result()
    assert result.code == 0, result
    if what == "memory":
        assert symbols(thread(result.doc, "odd")) == ["odd_sleep", "odd_caller"]
    else:
        assert_calls(thread(result.doc, "worker"), "callback", "plugin_inner", "plugin_enter", "worker")


def test_little_patience(hangs, asleep):
    run = hangs.run("--json", "--patience", "300ms", asleep.die().pid)
    result = run.result()
    assert result.code == 3, result
    assert run.took < 5, "as if it had been told 5s"
    assert_rest_is_known(result.doc, asleep)


def test_much_patience(hangs, odd_stack):
    run = hangs.run("--json", "--patience", "4s", odd_stack("file").die().pid)
    result = run.result(4 + BOUND)
    assert result.code == 3, result
    assert run.took >= 4


PATIENT = {
    "snapshot": lambda pid: [pid],
    "symbolize": lambda pid: ["symbolize", "-p", pid, "0x1234"],
    "offcpu": lambda pid: ["offcpu", "-d", "0.1", "-p", pid],
}


@pytest.mark.parametrize("what", PATIENT)
def test_patience_that_makes_no_sense(hangs, stakeout, what):
    t = hangs.target("plain").settle()
    assert stakeout(*PATIENT[what](t.pid), "--patience", "3s").code == 0
    for value in ("", "x", "-1s", "5parsecs", "s"):
        result = stakeout(*PATIENT[what](t.pid), "--patience", value)
        assert result.code == 2 and "--patience" in result.err and result.out == "", result


# What takes long without any hang


@pytest.mark.alone("it has a bound, and makes the machine as busy as it is to be")
def test_recording_ends_on_a_busy_machine(hangs):
    """Everything that runs beside it wants the processors as much as it does."""
    hangs.target("sleepers", "-n", 0, "-s", 4 * os.cpu_count())
    t = hangs.target("plain").settle()
    result = hangs.run("offcpu", "--json", "-d", 3, "-p", t.pid).result(3 + BOUND)
    assert result.code == 0, result
    (row,) = rows_of(result.doc, t.tids["worker"], "middle")
    assert_whole(row)


def test_recording_of_very_many_threads_ends(hangs):
    t = hangs.target("sleepers", "-n", 10000).settle()
    result = hangs.run("offcpu", "--json", "-d", 2, "-p", t.pid).result(2 + BOUND)
    assert result.code in (0, 3), result.err
    doc = json.loads(result.out)
    assert len(doc["thread_stats"]) >= 10000
