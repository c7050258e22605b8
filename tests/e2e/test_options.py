# SPDX-License-Identifier: MIT
"""The command line: every option, and the exit codes."""

import json
import os
import re
import signal
import subprocess

import pytest
from harness import TIMEOUT, assert_calls, command, native, on_a_terminal, stop, symbols, thread, tids, until

ESCAPE = "\033["


def test_help_of_snapshots(stakeout):
    result = stakeout("snapshot", "--help")
    assert result.code == 0
    assert result.err == ""
    options = """--registers --show-rsp --stop --ptrace --proc-mem --stack-size --stop-timeout --ignore-deleted --tid
        --kernel --no-kernel --depth --save --json --color --verbose --help --version --no-group""".split()
    assert [option for option in options if option not in result.out] == []
    assert "--source" not in result.out, "a hidden switch"
    assert stakeout("help", "snapshot").out == stakeout("1", "--help").out == result.out


def test_overview_names_every_command(stakeout):
    result = stakeout("--help")
    assert (result.code, result.err) == (0, "")
    assert stakeout("help").out == stakeout("-h").out == stakeout("help", "--help").out == result.out
    names = re.findall(r"^  ([a-z]+)  +[a-z]", result.out.split("Commands:")[1].split("\n\n")[0], re.M)
    assert names == ["snapshot", "why", "watch", "offcpu", "replay", "symbolize", "doctor", "setup", "cache", "help", "version"]
    for name in names:
        asked = stakeout("help", name)
        assert asked.code == 0 and asked.out.startswith("Usage: stakeout"), asked
        assert asked.out == stakeout(name, "--help").out
        assert [line for line in asked.out.splitlines() if len(line) > 100] == []


@pytest.mark.parametrize("word, meant", [("ofcpu", "offcpu"), ("replya", "replay"), ("symb", "symbolize"), ("xyzzy", None)])
def test_help_of_a_command_that_is_not_there(stakeout, word, meant):
    result = stakeout("help", word)
    assert result.code == 2 and result.out == ""
    assert f"there is no command '{word}'" in result.err
    assert ("did you mean" in result.err) == (meant is not None)
    assert meant is None or f"did you mean '{meant}'?" in result.err


COMMANDS = [(), ("replay",), ("cache",), ("symbolize",), ("offcpu",)]


@pytest.mark.parametrize("name", COMMANDS, ids=lambda name: name[0] if name else "snapshot")
@pytest.mark.parametrize("wrong", ["--no-such-option", "--debuginfod-timeout", "--help=1"])
def test_wrong_option_is_told_once(stakeout, name, wrong):
    """By getopt, in the name of the command; then where help is, and no more."""
    if name == ("cache",) and wrong == "--debuginfod-timeout":
        wrong = "-x"
    result = stakeout(*name, wrong)
    called = " ".join(["stakeout", *name])
    first, second = result.err.splitlines()
    assert first.startswith(f"{called}: ") and wrong.split("=")[0].lstrip("-") in first, result
    assert second == f"Try '{called} --help'."
    assert result.code == 2 and result.out == ""


@pytest.mark.parametrize("args", [*((*name, "--help") for name in COMMANDS), ("--version",), ("version",), ("help",), ("cache",)], ids=" ".join)
def test_full_disk(args):
    with open("/dev/full", "w") as full:
        done = subprocess.run(command(*args), stdout=full, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT)
    assert done.returncode == 1, done
    assert done.stderr == "stakeout: the output could not be written: No space left on device\n"


def test_version(stakeout):
    result = stakeout("--version")
    assert result.code == 0
    assert re.match(r"stakeout \d+\.\d+\.\d+", result.out)
    assert "bpf" in result.out.lower(), "the features built in"
    assert stakeout("version").out == result.out
    assert stakeout("version", "1").code == 2


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("--no-such-option", "1"),
        ("0",),
        ("-5",),
        ("99999999999999999999",),
        ("1,",),
        ("--stop=some", "1"),
        ("--depth", "none", "1"),
        ("--depth", "-1", "1"),
        ("--stack-size", "12q", "1"),
        ("--stack-size", "", "1"),
        ("--stop-timeout", "soon", "1"),
        ("--color=maybe", "1"),
        ("--tid", "zero", "1"),
        ("--source=other", "1"),
        ("--state", "Q", "1"),
        ("--grep", "(", "1"),
        ("replay",),
    ],
    ids=" ".join,
)
def test_wrong_usage(stakeout, args):
    result = stakeout(*args)
    assert result.code == 2, result
    assert result.out == ""
    assert result.err


def test_text(target, stakeout):
    t = target("plain").settle()
    result = stakeout(t.pid)
    assert result.code == 0, result
    first = result.out.splitlines()[0]
    assert str(t.pid) in first and "2 threads" in first, first
    summary = "\n".join(result.out.splitlines()[:3])
    for word in ("stopped", "consistent", "ms"):
        assert word in summary, summary
    for word in ("worker", str(t.tids["worker"]), "inner", "middle", "outer", "plain.c:", "pause", "read"):
        assert word in result.out, result
    assert ESCAPE not in result.out


def test_identical_stacks_are_shown_once(target, stakeout):
    t = target("sleepers", "-n", 5, "-d", 3).settle()
    grouped, single = stakeout(t.pid), stakeout("--no-group", t.pid)
    assert grouped.code == single.code == 0
    assert len(re.findall(r"\bdescend\b", grouped.out)) == 3
    assert len(re.findall(r"\bdescend\b", single.out)) == 15
    for th in stakeout("--json", t.pid).doc["threads"]:
        assert str(th["tid"]) in grouped.out and str(th["tid"]) in single.out


REGISTERS = {
    "x86_64": "rip rsp rbp rbx r15 rax orig_rax eflags fs_base ds es fs gs".split(),
    "aarch64": "pc sp x0 x19 x29 x30 pstate".split(),
}


@pytest.mark.arch
@pytest.mark.parametrize("option", ["-r", native("--registers")])
def test_registers(target, stakeout, snap, option):
    t = target("spinners", "loop").settle("loop")
    doc = snap(t, option, "--stop=all")
    names = REGISTERS[doc["arch"]]
    for th in doc["threads"]:
        assert set(names) <= set(th["registers"])
        assert int(th["registers"][names[0]], 16) == int(th["user_stack"][0]["address"], 16)
    assert not any("registers" in th for th in snap(t)["threads"])
    text = stakeout(option, "--stop=all", t.pid).out
    assert all(name in text for name in names)


@pytest.mark.arch
def test_registers_of_sleeping_threads(target, snap, source):
    """The iterator knows all registers; /proc only those that a system call shows."""
    t = target("plain").settle()
    doc = snap(t, "-r", source)
    names = REGISTERS[doc["arch"]]
    for th in doc["threads"]:
        assert set(names if source.endswith("bpf") else names[:2]) <= set(th["registers"])
        assert int(th["registers"][names[0]], 16) == int(th["user_stack"][0]["address"], 16)


@pytest.mark.arch
@pytest.mark.parametrize("option", [native("--show-rsp"), "--show-sp"])
def test_stack_pointers(target, stakeout, snap, option):
    t = target("plain").settle()
    registers = thread(snap(t, "-r"), "worker")["registers"]
    sp = int(str(registers.get("rsp", registers.get("sp"))), 0)
    assert f"{sp:x}" in stakeout(option, t.pid).out
    assert f"{sp:x}" not in stakeout(t.pid).out


@pytest.mark.arch
@pytest.mark.parametrize(
    "args", [("--ptrace",), ("--proc-mem",), native(("--stop=all", "--proc-mem")), ("--stop=all",), ()], ids=" ".join
)
def test_ways_to_read_memory(target, snap, args):
    t = target("sleepers", "-n", 3, "-d", 30, "-s", 1)
    doc = snap(t, *args)
    assert all(th["user_stack_end"] == "complete" for th in doc["threads"])
    assert [symbols(th).count("descend") for th in doc["threads"] if th["name"] == "sleeper"] == [30] * 3
    assert_calls(thread(doc, "spinner"), "spin", "spinner")
    t.assert_progress()


@pytest.mark.parametrize("size", ["1048576", "1024k", "1024K", "1m", "1M"])
def test_stack_size_suffixes(target, snap, size):
    t = target("recursion", 3000).settle()
    th = thread(snap(t, "--stack-size", size), "worker")
    assert (symbols(th).count("recurse"), th["user_stack_end"]) == (3000, "complete")


@pytest.mark.parametrize("option", ["-t", "--tid"])
def test_one_thread(target, snap, option, source):
    t = target("signals").settle()
    doc = snap(t, option, t.tids["leaf"], source)
    assert [th["tid"] for th in doc["threads"]] == [t.tids["leaf"]]
    assert doc["pid"] == t.pid
    assert_calls(doc["threads"][0], "leaf_fault")


def test_thread_that_is_not_there(target, stakeout):
    t = target("plain").settle()
    result = stakeout("-t", 1, t.pid)
    assert result.code == 1, result
    assert "has no thread 1" in result.err and result.out == ""


def test_thread_instead_of_its_process(target, stakeout):
    """Each command says how it is told the process."""
    t = target("plain").settle()
    tid = t.tids["worker"]
    for args, advice in (([tid], f"`stakeout {t.pid} -t {tid}`"), (["offcpu", "-p", tid], f"`-p {t.pid}`")):
        result = stakeout(*args)
        assert result.code == 1 and result.out == "" and f"{tid} is a thread of process {t.pid}: use {advice}" in result.err, result


def test_no_kernel(target, snap, stakeout):
    t = target("plain").settle()
    for th in snap(t, "--no-kernel")["threads"]:
        assert th["kernel_stack"] == []
        assert th["user_stack_end"] == "complete"
    kernel = snap(t, "--kernel")["threads"]
    assert all(th["kernel_stack"] or th["kernel_stack_error"] for th in kernel)


@pytest.mark.parametrize("depth, count", [(1, 1), (5, 5)])
def test_depth(target, stakeout, depth, count):
    t = target("recursion", 50).settle()
    result = stakeout("--json", "--depth", depth, t.pid)
    assert result.code == 3
    th = thread(result.doc, "worker")
    assert len([frame for frame in th["user_stack"] if not frame["inlined"]]) == count
    assert th["user_stack_end"] == "depth_limit"
    assert "depth" in stakeout("--depth", depth, t.pid).out


def test_output_file(target, stakeout, tmp_path):
    t = target("plain").settle()
    to_file = stakeout("--json", "-o", tmp_path / "out.json", t.pid)
    assert (to_file.code, to_file.out) == (0, "")
    assert json.loads((tmp_path / "out.json").read_text())["pid"] == t.pid
    assert stakeout("--json", "-o", "-", t.pid).doc["pid"] == t.pid


def test_output_file_that_cannot_be_written(target, stakeout):
    t = target("plain").settle()
    result = stakeout("-o", "/no/such/directory/file", t.pid)
    assert result.code == 1
    assert "/no/such/directory/file" in result.err


def test_color(target, stakeout):
    t = target("plain").settle()
    assert ESCAPE in stakeout("--color=always", t.pid).out
    assert ESCAPE not in stakeout("--color=never", t.pid).out
    assert ESCAPE not in stakeout("--color=auto", t.pid).out, "not a terminal"
    # What the command line asks for is stronger than the environment.
    assert ESCAPE in stakeout("--color=always", t.pid, env={"NO_COLOR": "1"}).out


@pytest.mark.parametrize("env, colored", [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)])
def test_color_on_a_terminal(target, env, colored):
    t = target("plain").settle()
    code, said = on_a_terminal(t.pid, env=env)
    assert code == 0
    assert (ESCAPE in said) == colored


def frame_lines(text):
    return [line for line in text.splitlines() if re.match(r"  (#\d|k )", line)]


@pytest.mark.asan
@pytest.mark.parametrize("columns", [80, 120])
def test_lines_fit_the_terminal(target, stakeout, columns):
    t = target("cxx").settle()
    _, said = on_a_terminal("--no-color", t.pid, columns=columns, rows=10)
    lines = frame_lines(said)
    assert lines and max(map(len, lines)) <= columns, said
    others = [line for line in said.splitlines() if not line.startswith(("module ", "note: ", "  install "))]
    assert max(map(len, others)) <= columns, others
    assert any("0x0000" in line for line in lines) == (columns >= 100)
    _, whole = on_a_terminal("--no-color", "--long", t.pid, columns=columns)
    assert frame_lines(whole) == frame_lines(stakeout(t.pid).out), "nothing is cut in a pipe, either"
    assert max(map(len, frame_lines(whole))) > columns


def test_table(target, stakeout):
    t = target("sleepers", "-n", 5, "-d", 3).settle()
    brief = stakeout("--brief", t.pid)
    assert brief.code == 0
    assert re.search(r"^      5  S sleeping .* sleeper +target_block \(\w+\)$", brief.out, re.M), brief
    assert "#0" not in brief.out
    assert "threads  state" not in on_a_terminal(t.pid)[1], "it all fits"
    said = on_a_terminal("--no-color", t.pid, rows=10)[1]
    assert said.index("threads  state") < said.index("#0"), said
    assert stakeout("--brief", "--json", t.pid).code == 2


def test_selected_threads(target, stakeout, snap):
    t = target("sleepers", "-n", 3, "-d", 3, "-s", 1)
    names = lambda *args: sorted(th["name"] for th in snap(t, *args)["threads"])
    assert names("--name", "sl*er") == ["sleeper"] * 3
    assert names("--grep", "^descend$") == ["sleeper"] * 3
    assert names("--state", "R,D", "--name", "spin*") == ["spinner"]
    assert names("--state", "S", "--name", "spinner") == []
    doc = snap(t, "--name", "spinner")
    assert doc["capture"]["threads"] == len(tids(t.pid)) and len(doc["threads"]) == 1
    assert re.search(r"\d threads \(3 shown\)", stakeout("--name", "sleeper", t.pid).out)


def test_cpu_time(target, snap):
    t = target("sleepers", "-n", 1, "-s", 1)
    cpu = lambda name: thread(snap(t), name)["cpu_ms"]
    before = cpu("spinner")
    until(lambda: snap(t), lambda doc: thread(doc, "spinner")["cpu_ms"] > before)
    assert cpu("sleeper") == cpu("sleeper")


@pytest.mark.arch
@pytest.mark.asan
def test_arguments_by_their_meaning(target, stakeout, snap):
    t = target("waits_shown").settle()
    (joined,) = [th["tid"] for th in snap(t)["threads"] if th["name"] == "joined"]
    text = stakeout(t.pid).out
    joins, sleeps, polls = (re.search(rf"^tid \d+ {name} .*\n  in (.*)", text, re.M).group(1) for name in ("joins", "sleeps", "polls"))
    assert re.match(r"futex\(uaddr=0x[0-9a-f]+, op=FUTEX_WAIT\S*, val=\d+, ", joins), joins
    assert f"\n  waits for the end of a thread: tid {joined} joined\n" in text
    assert re.match(r"clock_nanosleep\(which_clock=CLOCK_MONOTONIC, flags=0, rqtp=1 d 00 h, ", sleeps), sleeps
    assert re.match(r"poll\(.*timeout_msecs=none\)|ppoll\(.*tsp=none,", polls), polls


@pytest.mark.arch
def test_call_that_is_restarted(target, stakeout):
    """A stop interrupts a sleep, and the kernel goes on with it by another call."""
    t = target("waits_shown").settle()
    stop(t.pid)
    os.kill(t.pid, signal.SIGCONT)
    t.settle()
    text = stakeout(t.pid).out
    assert re.search(r"^tid \d+ sleeps .*\n  in clock_nanosleep\(.*rqtp=1 d 00 h, .*\), restarted$", text, re.M), text


def test_no_addresses(target, stakeout):
    t = target("plain").settle()
    assert re.search(r"#0  0x[0-9a-f]{16}  ", stakeout(t.pid).out)
    result = stakeout("--no-addresses", t.pid)
    assert re.search(r"#0  [a-z_]", result.out) and not re.search(r"#\d+ +0x", result.out), result


def test_recursion_is_shown_once(target, stakeout):
    t = target("recursion", 50).settle()
    text = stakeout("--no-kernel", t.pid).out
    assert re.search(r"recurse.*\n  …   \d\d more times\n", text) and text.count("recurse+") <= 3, text
    assert stakeout("--no-kernel", "-v", t.pid).out.count("recurse+") == 50


def test_way_into_the_kernel(target, stakeout, snap):
    t = target("plain").settle()
    if not all(th["kernel_stack"] for th in snap(t)["threads"]):
        pytest.skip("no kernel stacks here")
    entry = re.compile(r"  k   (do_syscall_64|el0_svc)")
    assert entry.search(stakeout("-v", t.pid).out)
    assert not entry.search(stakeout(t.pid).out)


def test_several_processes(target, stakeout):
    a, b = target("plain").settle(), target("signals").settle()
    result = stakeout("--json", a.pid, b.pid)
    assert result.code == 0, result
    assert [doc["pid"] for doc in result.docs] == [a.pid, b.pid]
    text = stakeout(a.pid, b.pid).out
    assert "outer" in text and "leaf_fault" in text
    assert [line.split()[3].rstrip("):") for line in text.splitlines()[:2]] == [str(a.pid), str(b.pid)]


@pytest.mark.asan
def test_equal_stacks_of_several_processes(target, stakeout):
    """They are shown once, wherever the processes have their code."""
    several = [target("plain").settle() for _ in range(3)]
    text = stakeout(*(t.pid for t in several)).out
    workers = " ".join(f"{t.pid}:{t.tids['worker']}" for t in sorted(several, key=lambda t: t.tids["worker"]))
    assert re.search(rf"^3 threads  S sleeping .*\n  tid {workers} worker$", text, re.M), text
    assert text.count(" inner+") == 1
    mains = " ".join(str(t.pid) for t in sorted(several, key=lambda t: t.pid))
    assert re.search(rf"^  tid {mains} plain$", text, re.M), text
    assert stakeout("--no-group", *(t.pid for t in several)).out.count(" inner+") == 3


@pytest.mark.parametrize("mode", ["auto", "all", "none"])
def test_stop_modes(target, snap, mode):
    t = target("plain").settle()
    doc = snap(t, f"--stop={mode}")
    assert_calls(thread(doc, "worker"), "inner")
    assert doc["capture"]["stopped_threads"] == (2 if mode == "all" else 0)


def test_stop_timeout(target, snap):
    t = target("sleepers", "-n", 2, "-s", 1)
    doc = snap(t, "--stop-timeout", 5000)
    assert_calls(thread(doc, "spinner"), "spin")


def test_incomplete_text_tells_why(target, stakeout, snap):
    t = target("recursion", 50).settle()
    reason = thread(snap(t, "--depth", 5), "worker")["user_stack_error"]
    result = stakeout("--depth", 5, t.pid)
    assert result.code == 3
    assert reason in result.out
