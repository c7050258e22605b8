# SPDX-License-Identifier: MIT
"""Go programs, also stripped ones: whole stacks, functions, lines and inlined calls, as Go's own runtime tells them."""

import os
import platform
import re
import shutil
import subprocess

import pytest
from harness import ROOT, TARGETS, gather, symbols, thread, until

SOURCE = ROOT / "tests/targets/golang.go"
SWITCHES = ROOT / "tests/targets/go_switches.go"
HELD = ROOT / "tests/targets/go_held.go"
THREADS = ROOT / "tests/targets/go_threads.go"
CALLBACKS = ROOT / "tests/targets/go_callbacks.go"
STRIP = {"full": [], "stripped": ["-ldflags", "-s -w"]}

# How programs are linked decides where the tables are and what has to be relocated.
KINDS = {
    "exe": [],
    "pie": ["-buildmode=pie"],
    "cgo": ["-linkmode=external"],
    "cgo_pie": ["-buildmode=pie", "-linkmode=external"],
}

pytestmark = pytest.mark.asan


@pytest.fixture(scope="session")
def compiler():
    """compiler(SOURCE, PROGRAM, FLAG…): builds a program."""
    if not shutil.which("go"):
        pytest.skip("go is not installed")
    env = {**os.environ, "GOCACHE": str(TARGETS.parent / "go-cache"), "GO111MODULE": "off", "GOFLAGS": "", "GOPROXY": "off"}

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
    main = thread(doc, t.pid)
    frames = main["user_stack"][symbols(main).index("main.serve") :]
    got = [f"{f['symbol']} {f['source']['file']}:{f['source']['line']}" for f in frames]
    assert got == truth
    assert main["user_stack_error"] is None
    assert {f["symbol_source"] for f in frames} == {"gopclntab"}
    assert {f["found_by"] for f in main["user_stack"]} <= {None, "cfi"}
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


@pytest.fixture(scope="session", params=STRIP)
def build(request, tmp_path_factory, compiler):
    """build(SOURCE): the program, with symbols and without."""
    where = tmp_path_factory.mktemp("build")
    made = {}

    def make(source):
        path = where / source.stem
        if path not in made:
            compiler(source, path, *STRIP[request.param])
            made[path] = True
        return path

    make.stripped = request.param == "stripped"
    return make


def names(stack):
    return [(f["symbol"] or "?").removesuffix(".abi0") for f in stack]


def own_stacks(t):
    """The functions of each goroutine, as the program tells them."""
    blocks = [block.split("|")[1:] for block in t.ask().split("||")]
    calls = [[line for line in block if line[:1] not in ("", "\t") and "created by" not in line] for block in blocks]
    return [[re.sub(r"\([^()]*\)$", "", line) for line in block] for block in calls]


# The functions in which goroutines of the target wait.
WAITS = {"main._Cfunc_wait_in_c", "main._Cfunc_call_go", "main._Cfunc_call_twice", "main.waitInGo"}


def check_c(functions, stripped):
    """The frames of C between Go that it has called, and Go that has called it; a thread of C's own begins with C."""
    called_by = functions
    for n in range(functions.count("crosscall2")):
        called_by = called_by[called_by.index("crosscall2") + 1 :]
        if "runtime.asmcgocall" not in called_by:
            assert stripped or "call_from_thread" in called_by, functions
            assert not any(name.startswith(("runtime.", "main.")) for name in called_by), functions
            return
        c = called_by[: called_by.index("runtime.asmcgocall")]
        assert len(c) >= 2 and not any("." in name for name in c), functions
        assert stripped or "call_go" in c or "call_twice" in c, functions
    assert functions.count("crosscall2") == ("main.waitInGo" in functions) + ("main.callAgain" in functions), functions
    assert "runtime.systemstack_switch" not in functions, functions
    assert functions.index("runtime.goexit") == len(functions) - 1, functions


def check_against_own(t, stacks, stripped):
    """Each of our stacks in which one of the functions waits is one of the program's own, to its beginning."""
    own = own_stacks(t)
    found = set()
    for functions, error in stacks:
        waits = WAITS & set(functions)
        if not waits:
            continue
        assert error is None, (functions, error)
        check_c(functions, stripped)
        # Go's runtime shows neither itself nor C, and starts with the function that it remembers of a system call.
        shown = [name for name in functions if "." in name and not name.startswith(("runtime.", "runtime/"))]
        assert any(shown[-len(stack) :] == stack for stack in own if waits <= set(stack)), (functions, own)
        found |= waits
    return found


def test_stacks_behind_c(target, snap, build, source):
    """Behind C the walk goes on on the goroutine's stack, and Go that C has called is on top of its caller."""
    t = target(build(CALLBACKS))

    def look(_):
        # On aarch64 a thread that sleeps in a leaf function is held when /proc does not tell its link register.
        threads = [th for th in snap(t, source)["threads"] if th["state"] == "S" and th["capture"] != "moved"]
        stacks = ((names(th["user_stack"]), th["user_stack_error"]) for th in threads)
        return check_against_own(t, stacks, build.stripped)

    gather(look, WAITS)


def test_stacks_behind_c_are_saved(target, snap, stakeout, build, tmp_path):
    """What was read of goroutines is part of the snapshot."""
    t = target(build(CALLBACKS))
    file = tmp_path / "saved"

    def stacks(doc):
        threads = [th for th in doc["threads"] if WAITS & set(names(th["user_stack"]))]
        return sorted((th["tid"], th["user_stack_error"], names(th["user_stack"])) for th in threads)

    live = until(lambda: snap(t, "--save", file), lambda doc: len(stacks(doc)) == 4)
    assert stacks(stakeout("replay", "--json", file).doc) == stacks(live)


ENDS = {"runtime.goexit", "runtime.mcall", "runtime.mstart", "runtime.rt0_go", "runtime.morestack"}
SWITCHES_SEEN = {"runtime.mcall", "runtime.asmcgocall"}  # threads seldom sleep behind runtime.systemstack


def check_switches(stacks):
    """Stacks as (functions, error): behind a switch they go on to the goroutine's first function, unless it was left."""
    found = set()
    for functions, error in stacks:
        if error or functions[0] in {"clone", "clone3", "__clone3"}:
            continue  # taken in the middle of a switch, of a thread that ran, or of one that has just been created
        assert functions[-1] in ENDS, functions
        assert not (ENDS - {"runtime.morestack"}) & set(functions[1:-1]), functions
        for name in {"runtime.systemstack", "runtime.asmcgocall"} & set(functions[1:]):
            caller = functions[functions.index(name) + 1]
            assert caller.startswith("runtime."), functions
            found.add(name)
        found |= {functions[-1]}
    return found


def test_switched_stacks(target, snap, build):
    t = target(build(SWITCHES))

    def look(_):
        threads = [th for th in snap(t)["threads"] if th["capture"] != "moved"]
        return check_switches((names(th["user_stack"]), th["user_stack_error"]) for th in threads)

    gather(look, SWITCHES_SEEN)


def is_told(th):
    """The thread writes down stacks, which the runtime does on a stack of its own."""
    return any(name.startswith("runtime.Stack.func") for name in names(th["user_stack"]))


@pytest.mark.parametrize("stop", ["hold", "all"])
def test_held_behind_a_switch(target, snap, stakeout, build, tmp_path, stop):
    """The goroutine's stack is copied while its thread is held."""
    t = target(build(HELD))
    file = tmp_path / "saved"

    def is_held(doc):
        return any(th["capture"] == "held" and is_told(th) for th in doc["threads"])

    doc = until(lambda: snap(t, f"--stop={stop}", "--save", file), is_held)
    for seen in doc, stakeout("replay", "--json", file).doc:
        for th in filter(is_told, seen["threads"]):
            functions = names(th["user_stack"])
            assert th["user_stack_error"] is None, functions
            assert functions[functions.index("runtime.systemstack") :] == (
                ["runtime.systemstack", "runtime.Stack", "main.main.func2"]
                + 31 * ["main.deeper"]
                + ["main.main", "runtime.main", "runtime.goexit"]
            )


@pytest.mark.parametrize("how", ["auto", "proc"])
def test_switched_stacks_of_waits(target, stakeout, root, build, how):
    t = target(build(SWITCHES))

    def look(patience):
        args = "--json", "-d", patience / 2, "--min", "0.1ms", f"--source={how}", "-p", t.pid
        rows = [row for row in stakeout("offcpu", *args).doc["stacks"] if row["user_stack"]]
        return check_switches((names(row["user_stack"]), row["user_stack_error"]) for row in rows)

    # Threads without work sleep in leaf functions, whose callers only a register tells on aarch64: /proc does not.
    by_register = {"runtime.mcall"} if how == "proc" and platform.machine() == "aarch64" else set()
    gather(look, SWITCHES_SEEN - by_register)


def test_waits_behind_c(target, stakeout, root, build):
    t = target(build(CALLBACKS))

    def look(patience):
        rows = stakeout("offcpu", "--json", "-d", patience / 2, "-p", t.pid).doc["stacks"]
        stacks = ((names(row["user_stack"]), row["user_stack_error"]) for row in rows)
        return check_against_own(t, stacks, build.stripped)

    gather(look, WAITS)


# The runtime creates a thread on its own stack, by C code that uses the register which tells the goroutine.
CREATES = ["runtime.asmcgocall", "runtime.newm1", "runtime.newm", "runtime.main.func1", "runtime.systemstack", "runtime.main"]


def check_created(functions, error):
    at = functions.index("pthread_create")
    assert error is None and functions[functions.index(CREATES[0], at) :] == [*CREATES, "runtime.goexit"], (functions, error)


def test_c_of_the_runtime(target, snap, build, source):
    t = target(build(THREADS))

    def sleeps(doc):
        main = thread(doc, t.pid)
        return main["state"] == "S" and main["capture"] != "moved" and "pthread_create" in names(main["user_stack"])

    main = thread(until(lambda: snap(t, source), sleeps), t.pid)
    check_created(names(main["user_stack"]), main["user_stack_error"])


def test_waits_in_c_of_the_runtime(target, stakeout, root, build):
    t = target(build(THREADS))

    def look(patience):
        rows = stakeout("offcpu", "--json", "-d", patience / 2, "-p", t.pid).doc["stacks"]
        stacks = [(names(row["user_stack"]), row["user_stack_error"]) for row in rows]
        for functions, error in stacks:
            if "pthread_create" in functions:
                check_created(functions, error)
        return {name for functions, _ in stacks for name in functions}

    gather(look, {"pthread_create"})
