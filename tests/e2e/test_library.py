# SPDX-License-Identifier: MIT
"""libstakeout, as a program sees it: what it exports, and the examples. tools/check-install tries it where it is installed."""

import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from deadfs import BOUND, DeadFs, need_fuse
from harness import ROOT, STAKEOUT, TIMEOUT, built, kernel_stack, wait_until

HEADER = ROOT / "include/stakeout.h"
SHARED = STAKEOUT.parent / "lib/libstakeout.so.1"
STATIC = STAKEOUT.parent / "lib/libstakeout.a"
EXAMPLES = sorted((ROOT / "examples").glob("*.c"))
# Of the C library: what writes into memory, and how a child process ends: see tools/check-includes.
SILENT = {"snprintf", "vsnprintf", "asprintf", "vasprintf", "sprintf", "_exit"}


def nm(*args):
    out = subprocess.run(["nm", *map(str, args)], capture_output=True, text=True, check=True).stdout
    return [line.split() for line in out.splitlines() if line.strip()]


def public_names():
    return set(re.findall(r"^STAKEOUT_EXPORT[^;(]*?\b(\w+)\(", HEADER.read_text(), re.M))


def private_libraries():
    """As the pkg-config file has them."""
    rules = (ROOT / "Makefile").read_text()
    names = re.search(r"^LIBS := (-.*)", rules, re.M).group(1).split()
    uses_bpf = any(name.startswith("bpf_") for _, name in nm("-D", "--undefined-only", SHARED))
    return (["-lbpf"] if uses_bpf else []) + names


@pytest.fixture(params=["shared", "static"])
def example(request, tmp_path):
    """example(NAME): the path of an example that was built with the library."""
    library = [SHARED, f"-Wl,-rpath,{SHARED.parent}"] if request.param == "shared" else [STATIC, *private_libraries()]

    def build(name):
        flags = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-O2", f"-I{HEADER.parent}"]
        subprocess.run(["cc", *flags, "-o", tmp_path / name, ROOT / f"examples/{name}.c", *library], check=True)
        return tmp_path / name

    return build


def test_only_public_names_are_exported():
    names = public_names()
    assert len(names) > 20
    assert {name for _, kind, name in nm("-D", "--defined-only", SHARED) if kind != "A"} == {f"{n}@@STAKEOUT_1" for n in names}
    assert {words[-1] for words in nm("-g", "--defined-only", STATIC) if len(words) == 3} == names


def test_nothing_prints_or_exits():
    """Whatever is linked into it from elsewhere, too."""
    needed = {words[-1].split("@")[0].removeprefix("__").removesuffix("_chk") for words in nm("-D", "--undefined-only", SHARED)}
    prints = re.compile(r"std(out|err)|.*printf|.*puts|.*putc(har)?|perror|warnx?|errx?|psignal|.*exit|abort|assert_fail")
    assert {name for name in needed if prints.fullmatch(name)} <= SILENT


@pytest.mark.parametrize("compiler", [["cc", "-xc", "-std=c99"], ["cc", "-xc", "-std=c17"], ["c++", "-xc++", "-std=c++11"]], ids=lambda c: c[2][5:])
def test_header_stands_alone(compiler):
    flags = ["-Wall", "-Wextra", "-Wpedantic", "-Wmissing-declarations", "-Werror", "-fsyntax-only", "-D_DEFAULT_SOURCE"]
    subprocess.run([*compiler, *flags, f"-I{HEADER.parent}", "-"], input=b"#include <stakeout.h>\n", check=True)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_are_short(path):
    assert len(path.read_text().splitlines()) < 60


def test_stacks(target, example):
    """With each SIGALRM, until the process has ended."""
    t = target("sleepers", "-n", "2").settle()
    proc = subprocess.Popen([example("stacks"), str(t.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    head = f"sleepers (pid {t.pid}): 3 threads, 0 held\n"
    said = []
    try:
        wait_until(lambda: "sigtimedwait" in kernel_stack(proc.pid, proc.pid), "it waits for a signal")
        for count in (1, 2):
            proc.send_signal(signal.SIGALRM)
            while said.count(head) < count:  # the end of what is said of one is the start of the next
                said.append(proc.stdout.readline())
                assert said[-1], said
        t.end()
        proc.send_signal(signal.SIGALRM)
        said += proc.stdout.readlines()
        err = proc.stderr.read()
        proc.wait(TIMEOUT)
    finally:
        proc.kill()
        proc.wait()
        proc.stdout.close()
        proc.stderr.close()
    assert (proc.returncode, err.count("\n")) == (1, 1) and str(t.pid) in err
    before, *stacks = "".join(said).split(head)
    assert before == "" and len(stacks) == 2, said
    for text in stacks:
        assert len(re.findall(r"^tid \d+ ", text, re.M)) == 3 and len(re.findall(r"^tid \d+ sleeper ", text, re.M)) == 2, text
        assert len(re.findall(r"^  native .* descend\b", text, re.M)) >= 2, text


def run_example(path, *args):
    done = subprocess.run([path, *map(str, args)], capture_output=True, text=True, timeout=TIMEOUT * 2)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def test_names(example, tmp_path, monkeypatch):
    """Of a file by its path, and of one that a package has installed by its build-id."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    names, program = example("names"), built("plain")
    (main,) = [address for address, _, name in nm("--defined-only", program) if name == "main"]
    assert re.fullmatch(rf"0x{int(main, 16):x}  main\+0x0  at \S*plain\.c:\d+\n", run_example(names, program, main))
    assert list((tmp_path / "cache/stakeout").glob("*.sym"))
    done = subprocess.run([names, "00" * 20, "0"], capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 1 and "00" * 20 in done.stderr
    debug = next(Path("/usr/lib/debug/.build-id").glob("*/*.debug"), None)
    if not debug:
        pytest.skip("no debug files of a package are installed")
    assert run_example(names, debug.parent.name.upper() + debug.stem, "0", "1000").count("\n") >= 2


def test_no_answer(example, tmp_path):
    """Once the patience is over, which each call has anew, and without a trace of who waited."""
    need_fuse()
    shown, mount = tmp_path / "shown", tmp_path / "mount"
    shown.mkdir()
    mount.mkdir()
    shutil.copy(built("plain"), shown)
    names, fs = example("names"), DeadFs(shown, mount)
    try:
        with fs.dead():
            done = subprocess.run([names, mount / "plain", "0"], capture_output=True, text=True, timeout=BOUND)
        assert run_example(names, mount / "plain", "0").count("\n") == 1
    finally:
        fs.end()
    fs.assert_unmounted()
    assert done.returncode == 1 and "did not answer" in done.stderr, done


def test_waits(target, example):
    t = target("sleepers", "-n", "2", "-d", "5").settle()
    out = run_example(example("waits"), t.pid, 0.5)
    head, *rows = re.split(r"^tid ", out, flags=re.M)
    assert int(head.split()[0]) >= 3
    sleepers = [row for row in rows if " sleeper " in row]
    assert len(sleepers) == 2 and all(re.search(r"native descend$", row, re.M) for row in sleepers), out


def test_manual_has_all():
    manual = (ROOT / "docs/man/libstakeout.3").read_text()
    assert public_names() == set(re.findall(r"^\.Fn (\w+) ", manual.split(".Sh DESCRIPTION")[0], re.M))
