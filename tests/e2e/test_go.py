# SPDX-License-Identifier: MIT
"""Stripped Go programs: functions, lines and inlined calls from .gopclntab, as Go's own runtime tells them."""

import os
import re
import shutil
import subprocess

import pytest
from harness import ROOT, gather, symbols, thread, until

SOURCE = ROOT / "tests/targets/golang.go"
SWITCHES = ROOT / "tests/targets/go_switches.go"
SWITCHED = "the Go runtime has switched stacks here"

# How programs are linked decides where the tables are and what has to be relocated.
KINDS = {
    "exe": [],
    "pie": ["-buildmode=pie"],
    "cgo": ["-linkmode=external"],
    "cgo_pie": ["-buildmode=pie", "-linkmode=external"],
}

pytestmark = pytest.mark.asan


@pytest.fixture(scope="session")
def compiler(tmp_path_factory):
    """compiler(SOURCE, PROGRAM, FLAG…): builds a program."""
    if not shutil.which("go"):
        pytest.skip("go is not installed")
    cache = tmp_path_factory.mktemp("cache")
    env = {**os.environ, "GOCACHE": str(cache), "GO111MODULE": "off", "GOFLAGS": "", "GOPROXY": "off"}

    def compile(source, program, *flags):
        done = subprocess.run(["go", "build", *flags, "-o", program, source], env=env, capture_output=True, text=True)
        if any(what in done.stderr for what in ("requires external", "not supported", "C compiler")):
            pytest.skip(done.stderr.strip())
        assert done.returncode == 0, done.stderr

    return compile


@pytest.fixture(scope="session")
def go(tmp_path_factory, compiler):
    """go(KIND, strip): the path of the target, built as asked."""
    where = tmp_path_factory.mktemp("go")
    made = {}

    def build(kind, strip=True):
        path = where / f"{kind}-{'stripped' if strip else 'full'}"
        if path not in made:
            source = where / kind / "golang.go"
            source.parent.mkdir(exist_ok=True)
            text = SOURCE.read_text()
            if kind.startswith("cgo"):
                text = text.replace("import (", '// int three(void) { return 3; }\nimport "C"\n\nimport (')
                text = text.replace("+ 3", "+ int(C.three())")
            source.write_text(text)
            flags = KINDS[kind]
            linker = [flag for flag in flags if flag.startswith("-link")] + (["-s", "-w"] if strip else [])
            mode = [flag for flag in flags if flag.startswith("-build")]
            compiler(source, path, *mode, "-ldflags", " ".join(linker))
            made[path] = True
        return path

    return build


def cut_section_headers(path):
    """As packers do: nothing but the segments is left."""
    bare = path.with_name(path.name + "-bare")
    data = bytearray(path.read_bytes())
    data[0x28:0x30] = bytes(8)
    data[0x3C:0x40] = bytes(4)
    bare.write_bytes(data)
    bare.chmod(0o755)
    return bare


def check_stack(t, doc):
    truth = t.ask().split("\t")
    assert truth[0].startswith("main.serve "), truth
    main = [line for line in truth if line.startswith("main.")]
    frames = [f for f in thread(doc, t.pid)["user_stack"] if (f["symbol"] or "").startswith("main.")]
    got = [f"{f['symbol']} {f['source']['file']}:{f['source']['line']}" for f in frames if f["symbol"] != "main.hear"]
    assert got == main
    assert {f["symbol_source"] for f in frames} == {"gopclntab"}
    inlined = [f["symbol"] for f in frames if f["inlined"]]
    assert inlined == ["main.third", "main.second", "main.first"]


def snap_of_wait(t, snap):
    """Once the program waits for its question: the runtime puts its thread to sleep for other reasons, too."""

    def waits(doc):
        main = thread(doc, t.pid)
        return main["capture"] == "asleep" and "main.hear" in symbols(main)

    return until(lambda: snap(t), waits)


@pytest.mark.parametrize("kind", KINDS)
def test_stripped(target, snap, go, kind):
    t = target(go(kind))
    check_stack(t, snap_of_wait(t, snap))


@pytest.mark.parametrize("kind", ["exe", "pie", "cgo_pie"])
def test_without_section_headers(target, snap, go, kind):
    t = target(cut_section_headers(go(kind)))
    check_stack(t, snap_of_wait(t, snap))


def dwarf_truth(addr2line, full, addresses):
    """For each address the innermost position and the outermost function that the DWARF of the same program tells."""
    done = subprocess.run(
        [addr2line, "-afi", "-e", full], input="\n".join(addresses), capture_output=True, text=True, check=True
    )
    for answer in re.split(r"^0x[0-9a-f]+\n", done.stdout, flags=re.M)[1:]:
        lines = answer.splitlines()
        yield lines[1].removeprefix("./").split(" ")[0], lines[-2].removesuffix(".abi0")


@pytest.mark.parametrize("kind", KINDS)
def test_many_addresses(stakeout, go, kind, rng, tool):
    full, stripped = go(kind, strip=False), go(kind)
    names = subprocess.run([tool("nm"), full], capture_output=True, text=True, check=True).stdout
    place = {m[2]: int(m[1], 16) for m in re.finditer(r"^([0-9a-f]+) . (\S+)$", names, re.M)}
    addresses = [hex(rng.randrange(place["runtime.text"], place["runtime.etext"])) for _ in range(2000)]
    docs = stakeout("symbolize", "--json", "--no-cache", "-e", stripped, *addresses).docs
    assert len(docs) == len(addresses)
    wrong, compared = [], 0
    for doc, (position, function) in zip(docs, dwarf_truth(tool("addr2line"), full, addresses)):
        # Padding has no line. Names of instances and of array types are shortened in the tables.
        if position.startswith("??") or position.endswith((":?", ":0")) or "[" in function:
            continue
        compared += 1
        frames = doc["frames"]
        if not frames or not frames[0]["source"]:
            wrong.append((doc, position, function))
            continue
        ours = f"{frames[0]['source']['file']}:{frames[0]['source']['line']}", frames[-1]["symbol"]
        if ours != (position, function):
            wrong.append((ours, position, function))
    assert compared > 1500
    # The line tables of DWARF and of the runtime are not made from each other.
    assert len(wrong) <= compared // 500, wrong


@pytest.fixture(scope="session")
def switches(tmp_path_factory, compiler):
    """A program whose threads wait on stacks that the runtime has switched to."""
    path = tmp_path_factory.mktemp("switches") / "switches"
    compiler(SWITCHES, path)
    return path


BOTH_SWITCHES = {"runtime.mcall", "runtime.asmcgocall"}


def check_switches(stacks):
    """Stacks as (functions, error): they end where they were switched, and say so unless nothing is behind that."""
    ends = {"runtime.mcall": None, "runtime.systemstack": SWITCHED, "runtime.asmcgocall": SWITCHED}
    found = set()
    for functions, error in stacks:
        functions = [(name or "?").removesuffix(".abi0") for name in functions]
        for name in ends.keys() & set(functions[1:]):
            assert functions.index(name) == len(functions) - 1 and error == ends[name], (functions, error)
            found.add(name)
    return found


def test_switched_stacks(target, snap, switches):
    t = target(switches)

    def look(_):
        threads = [th for th in snap(t)["threads"] if th["capture"] != "moved"]
        return check_switches(([f["symbol"] for f in th["user_stack"]], th["user_stack_error"]) for th in threads)

    gather(look, BOTH_SWITCHES)


@pytest.mark.parametrize("how", ["auto", "proc"])
def test_switched_stacks_of_waits(target, stakeout, root, switches, how):
    t = target(switches)

    def look(patience):
        args = "--json", "-d", patience / 2, "--min", "0.1ms", f"--source={how}", "-p", t.pid
        rows = stakeout("offcpu", *args).doc["stacks"]
        rows = [row for row in rows if not (row["user_stack_error"] or "").startswith("the wait ended while")]
        return check_switches(([f["symbol"] for f in row["user_stack"]], row["user_stack_error"]) for row in rows)

    gather(look, BOTH_SWITCHES)
