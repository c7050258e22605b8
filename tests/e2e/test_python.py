# SPDX-License-Identifier: MIT
"""Frames of Python programs, compared with what Python itself says of them."""

import json
import linecache
import os
import platform
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from harness import Target, native, rounds, states, thread, until, wait_until
from load import Load
from pythons import CHOSEN, HOST, LOOKS, SCRIPTS, TOOL, check_recursion, command, python_frames, start

@pytest.fixture(params=[CHOSEN[0], *[native(version) for version in CHOSEN[1:]]])
def version(request):
    return request.param


def truth(t):
    said = json.loads(t.ask("truth"))
    return {int(tid): frames for tid, frames in said["frames"].items()}, {
        int(tid): names for tid, names in said["names"].items()
    }


def assert_same(doc, frames):
    seen = {th["tid"]: python_frames(th) for th in doc["threads"] if th["tid"] in frames}
    assert seen.keys() == frames.keys()
    for tid, expected in frames.items():
        assert seen[tid] == expected, (tid, doc["runtimes"], thread(doc, tid)["runtime"])


def own_number(pid, tid):
    status = Path(f"/proc/{pid}/task/{tid}/status").read_text()
    return int(status.split("NSpid:")[1].split("\n")[0].split()[-1])


def look(stakeout, t, *args):
    result = stakeout("--json", *args, t.pid)
    assert result.code in (0, 3), result
    return result.doc


@pytest.mark.asan
@pytest.mark.arch
def test_frames_of_waiting_threads(python, stakeout):
    """Function, file, line and order of all threads, as sys._current_frames() has them."""
    t = python("waits.py").settle()
    frames, _ = truth(t)
    assert len(frames) == 19
    doc = look(stakeout, t.settle())
    assert [r["name"] for r in doc["runtimes"]] == ["python"] and not doc["runtimes"][0]["problem"]
    assert_same(doc, frames)


def faulthandler_truth(t):
    """What faulthandler writes of each thread, as (function, file, line), innermost first."""
    said = json.loads(t.ask("faulthandler"))
    stacks = {}
    for text in said["dump"].split("\n\n"):
        number = int(re.match(r"(?:Current t|T)hread 0x([0-9a-f]+)", text)[1], 16)
        frames = re.findall(r'^  File "(.*)", line (\d+) in (.*)$', text, re.M)
        # Whatever is not ASCII is escaped.
        places = [(name.encode().decode("unicode_escape"), file, int(line)) for file, line, name in frames]
        stacks[said["tids"][str(number)]] = places
    return stacks


def test_frames_as_faulthandler_has_them(python, stakeout):
    """It names the function alone, without what that is in, and no more than 100 frames."""
    t = python("waits.py").settle()
    stacks = faulthandler_truth(t)
    doc = look(stakeout, t.settle())
    assert stacks.keys() == {th["tid"] for th in doc["threads"]}
    compared = 0
    for th in doc["threads"]:
        places = stacks[th["tid"]]
        if "dump" in [name for name, file, line in places]:
            continue  # the one that has answered
        frames = [(name.split(".")[-1], file, line) for name, file, line in python_frames(th)]
        assert frames[:100] == places
        compared += 1
    assert compared == 19


def test_threads(python, stakeout):
    """Names, daemons, and who has the lock: nobody, where all wait for others."""
    t = python("waits.py").settle()
    _, names = truth(t)
    doc = look(stakeout, t.settle())
    for th in doc["threads"]:
        runtime = th["runtime"]
        assert [runtime["thread_name"], runtime["daemon"]] == names[th["tid"]]
        assert runtime["version"] == doc["runtimes"][0]["version"]
        assert not runtime["holds_gil"] and not runtime["waits_for_gil"] and not runtime["problem"]


@pytest.mark.parametrize("known_by", ["ident", "main"])
def test_green_threads(python, stakeout, known_by):
    """The main thread runs them in turns: it keeps its own name, and is no daemon for theirs."""
    t = python("green.py", known_by).settle()
    threads = {th["tid"] == t.pid: th["runtime"] for th in look(stakeout, t)["threads"]}
    assert [threads[True]["thread_name"], threads[True]["daemon"]] == ["MainThread", False]
    assert [threads[False]["thread_name"], threads[False]["daemon"]] == ["real", True]


def named(doc, what):
    """The names of the threads of which the runtime says that; of one that ran while it was read it says nothing."""
    return {th["runtime"]["thread_name"] for th in doc["threads"] if th["runtime"].get(what)}


def test_gil(python, stakeout):
    """One has it, and is in C code that does not let go of it; all others that want to run wait for it."""
    t = python("gil.py", "3")
    waiters = {f"waiter {number}" for number in range(3)}
    doc = until(lambda: look(stakeout, t), lambda doc: waiters <= named(doc, "waits_for_gil"))
    assert named(doc, "holds_gil") == {"holder"}
    assert named(doc, "waits_for_gil") <= waiters | {"MainThread"}  # which may not have come to its own wait yet


def test_gil_of_a_stopped_process(python, stakeout):
    """SIGSTOP takes its threads out of their system calls: those that waited for the lock still do."""
    t = python("gil.py", "3")
    waiters = {f"waiter {number}" for number in range(3)}

    def wait(doc):
        return waiters <= named(doc, "waits_for_gil")

    def stop_and_look():
        os.kill(t.pid, signal.SIGCONT)
        until(lambda: look(stakeout, t), wait)
        os.kill(t.pid, signal.SIGSTOP)
        wait_until(lambda: states(t.pid) == {"T"}, "all are stopped")
        return look(stakeout, t)

    doc = until(stop_and_look, wait)
    assert named(doc, "waits_for_gil") <= waiters | {"MainThread"} and named(doc, "holds_gil") == {"holder"}
    unknown = look(stakeout, t, "--source=proc")  # where not all registers are known
    assert all(
        th["runtime"]["waits_for_gil"] in (True, None) for th in unknown["threads"] if th["runtime"]["thread_name"] in waiters
    )


def test_other_name(stakeout, tmp_path):
    """An interpreter whose files do not say so in their names is known by what it exports."""
    program = tmp_path / "program"
    shutil.copy(Path(TOOL).resolve(), program)
    # Built-in modules only: those of the library are in a folder that is named after it.
    script = "import sys, posix\ndef named():\n  posix.write(1, b'ready\\n')\n  posix.read(0, 1)\nnamed()"
    t = Target([program, "-I", "-S", "-c", script])
    try:
        if "python" in Path(f"/proc/{t.pid}/maps").read_text():
            pytest.skip("the interpreter is in a library")
        doc = until(lambda: look(stakeout, t), lambda doc: doc["threads"][0]["state"] == "S")
        assert [runtime["name"] for runtime in doc["runtimes"]] == ["python"]
        assert [name for name, _, _ in python_frames(doc["threads"][0])] == ["named", "<module>"]
    finally:
        t.end()


@pytest.mark.usefixtures("root")
def test_pid_namespace(stakeout, version, tool):
    """Threads have other numbers there."""
    t = start(version, "waits.py", "methods", "generators", wrap=[tool("unshare"), "--pid", "--fork", "--kill-child"])
    try:
        (child,) = [int(pid) for pid in Path(f"/proc/{t.pid}/task/{t.pid}/children").read_text().split()]
        said = json.loads(t.ask("truth"))["frames"]
        wait_until(lambda: states(child) == {"S"}, "all of it sleeps")
        doc = stakeout("--json", child).doc
        numbers = {own_number(child, th["tid"]): th for th in doc["threads"]}
        for own, frames in said.items():
            assert python_frames(numbers[int(own)]) == frames
    finally:
        t.end()


def test_perf_trampolines(python, stakeout, version):
    """With -X perf each call goes through code of its own, which is not shown beside the frame."""
    if version in (HOST, "3.9"):
        pytest.skip("since 3.12 there is -X perf")
    t = python("waits.py", "methods", "c_callbacks", "generators", options=["-X", "perf"]).settle()
    try:
        frames, _ = truth(t)
        doc = look(stakeout, t.settle())
    finally:
        Path(f"/tmp/perf-{t.pid}.map").unlink(missing_ok=True)
    assert_same(doc, frames)
    for th in doc["threads"]:
        assert not [frame for frame in th["user_stack"] if frame["kind"] == "native" and not frame["module"]]


def test_subinterpreter(python, stakeout):
    """The frames of both interpreters that a thread is in, each where it belongs."""
    t = python("subinterpreter.py").settle()
    doc = look(stakeout, t)
    (th,) = [th for th in doc["threads"] if th["tid"] != t.pid]
    names = [name.split(".")[-1] for name, file, line in python_frames(th)]
    assert names == ["inner", "outer", "<module>", "run", "run", "_bootstrap_inner", "_bootstrap"], th["runtime"]
    assert th["runtime"]["thread_name"] == "two of them"


def test_forked_by_other_code(python, stakeout, tmp_path):
    """Its thread state says that it is the parent's thread."""
    t = python("forked.py")
    child, file = t.tids["child"], tmp_path / "saved"

    def look_at_child():
        return stakeout("--json", "--save", file, child).doc

    doc = until(look_at_child, lambda doc: [f[0] for f in python_frames(thread(doc, child))] == ["wait", "main", "<module>"])
    assert thread(doc, child)["user_stack_end"] == "complete"
    assert thread(stakeout("replay", "--json", file).doc, child)["user_stack"] == thread(doc, child)["user_stack"]


def test_embedded(target, stakeout):
    """Python as a library of a C program, called from a thread of that."""
    found = sorted(Path("/usr/lib").glob("*-linux-gnu/libpython3.*.so.1.0"))
    if not found:
        pytest.skip("no libpython is installed")
    t = target("embed_python", found[0]).settle()
    doc = look(stakeout, t)
    (th,) = [th for th in doc["threads"] if th["tid"] != t.pid]
    names = [(frame["kind"], frame["symbol"]) for frame in th["user_stack"]]
    left = iter(names)
    for wanted in (("python", "embedded"), ("python", "<module>"), ("native", "work"), ("native", "work_thread")):
        assert wanted in left, names
    assert doc["runtimes"][0]["version"].startswith("3.")
    assert thread(doc, t.pid)["runtime"]["name"] == "python"  # which has a thread state, but runs no Python


def test_compiled_code(python, stakeout, monkeypatch):
    """Code that 3.14 and later compile is called by the interpreter, and shown as the function that it is of."""
    if platform.machine() != "aarch64":
        pytest.skip("only there the compiled code is known to keep frame pointers")
    monkeypatch.setenv("PYTHON_JIT", "1")
    t = python("jit.py")
    if t.ask("jit?") != "yes":
        pytest.skip("this Python has no JIT compiler")

    def compiled(doc):
        (th,) = doc["threads"]
        frames = python_frames(th)
        assert th["runtime"]["problem"] or [name for name, file, line in frames][-2:] == ["spin", "<module>"], frames
        return [frame for frame in th["user_stack"] if frame["kind"] == "python" and frame["tier"] == "JIT"]

    doc = until(lambda: look(stakeout, t), compiled)
    (th,) = doc["threads"]
    (frame,) = compiled(doc)
    assert frame["symbol"] == "hot" and frame["source"]["line"] in (14, 15, 16)
    assert th["user_stack_end"] == "complete", th


def test_native_frames_stay(python, stakeout):
    """Only the interpreter's own frames give way: what is between and below stays, and --raw shows all."""
    t = python("waits.py", "from_c").settle()
    doc, raw, native = (look(stakeout, t, *args) for args in ([], ["--raw"], ["--no-runtime"]))
    assert not native["runtimes"]
    for th in doc["threads"]:
        stack, whole, plain = (thread(d, th["tid"])["user_stack"] for d in (doc, raw, native))
        kept = [frame["address"] for frame in stack if frame["kind"] == "native"]
        addresses = [frame["address"] for frame in plain]
        assert [frame["address"] for frame in whole if frame["kind"] == "native"] == addresses
        assert not [frame for frame in plain if frame["kind"] == "python"]
        replaced = sum(frame.get("replaces", 0) for frame in stack)
        assert replaced and len(kept) + replaced == len(addresses)
        left = iter(addresses)
        assert all(address in left for address in kept)
        assert len(whole) == len(plain) + len([frame for frame in stack if frame["kind"] == "python"])
    names = [frame["symbol"] for th in doc["threads"] for frame in th["user_stack"]]
    assert any("qsort" in name or "msort" in name for name in names if name), names


@pytest.mark.asan
def test_replay(python, stakeout, tmp_path):
    """A saved snapshot has all that is needed: the same frames when the process has gone."""
    t = python("waits.py").settle()
    frames, _ = truth(t)
    file = tmp_path / "snapshot"
    first = look(stakeout, t.settle(), "--save", file)
    t.end()
    again = stakeout("replay", "--json", file).doc
    assert_same(again, frames)
    keys = ("tid", "user_stack", "user_stack_end", "runtime")
    assert [[th[key] for key in keys] for th in again["threads"]] == [[th[key] for key in keys] for th in first["threads"]]


@pytest.mark.skipif(platform.machine() != "aarch64", reason="elsewhere programs keep no frame pointers to walk by")
def test_replay_without_the_interpreter(stakeout, tmp_path):
    """Its file is missing, so that native frames are found by frame pointer: those of Python stand for the same ones."""
    program = tmp_path / "python3"
    shutil.copy(Path(TOOL).resolve(), program)
    environment = {**os.environ, "PYTHONHOME": "/usr", "PYTHONDONTWRITEBYTECODE": "1"}
    t = Target([program, SCRIPTS / "waits.py", "methods", "generators", "c_callbacks"], env=environment)
    file = tmp_path / "snapshot"
    try:
        first = look(stakeout, t.settle(), "--save", file)
    finally:
        t.end()
    program.unlink()
    again = stakeout("replay", "--json", file).doc

    def places(doc):
        return {
            th["tid"]: [[frame["symbol"], frame["address"]] for frame in th["user_stack"] if frame["kind"] == "python"]
            for th in doc["threads"]
        }

    assert places(again) == places(first)
    assert any(len(frames) > 3 for frames in places(first).values())


@pytest.mark.parametrize("how", ["--source=proc", "--stop=all", "--proc-mem"])
def test_other_ways_to_capture(python, stakeout, how):
    t = python("waits.py", "methods", "generators", "c_callbacks").settle()
    frames, _ = truth(t)
    assert_same(look(stakeout, t.settle(), how), frames)


def test_deep_recursion(python, stakeout):
    """Of more than 1,024 frames the innermost are shown, and that there are more."""
    t = python("waits.py", "abyss").settle()
    frames, _ = truth(t)
    (deep,) = [tid for tid, known in frames.items() if len(known) > 3000]
    result = stakeout("--json", t.settle().pid)
    th = thread(result.doc, deep)
    shown = python_frames(th)
    assert result.code == 3 and th["user_stack_end"] == "depth_limit" and "1024 frames of Python" in th["user_stack_error"]
    assert "not all is shown: depth_limit" in stakeout(t.pid).out
    assert not th["runtime"]["problem"]
    assert len(shown) == 1024 and shown == frames[deep][:1024]
    assert [frame["symbol"] for frame in th["user_stack"] if frame["kind"] == "marker"]


# Of these not all is shown, or only the type.
SHORTENED = {
    "thing": "<Thing>",
    "kinds": "<type>",
    "inner": "<function>",
    "enormous": "<int of about 510 bits>",
    "long": "'" + "x" * 60 + "…'",
    "many": "[0, 1, 2, 3, …] (100)",
    "crowd": "{0, 1, 2, 3, …} (10)",
    "bounded": "deque([193, 194, 195, 196, …], maxlen=150) (150)",
    "ordered": "OrderedDict({'a': 1})",
    "preset": "defaultdict({'a': 1})",
    "own": "Table({'a': 1})",
    "word": "Word('wörd')",
}


@pytest.mark.asan
def test_locals(python, stakeout, tmp_path):
    """As repr() shows them, as far as they are shown; a saved snapshot has them, too."""
    t = python("values.py").settle()
    expected = {**json.loads(t.ask("truth")), **SHORTENED}
    file = tmp_path / "snapshot"
    docs = [look(stakeout, t.settle(), "--locals", "--save", file)]
    text = stakeout("--locals", t.pid).out
    assert not [frame for th in look(stakeout, t)["threads"] for frame in th["user_stack"] if "locals" in frame]
    t.end()
    docs.append(stakeout("replay", "--locals", "--json", file).doc)
    for doc in docs:
        (th,) = [th for th in doc["threads"] if th["tid"] != t.pid]
        (frame,) = [frame for frame in th["user_stack"] if frame["symbol"] == "hold"]
        shown = {local["name"]: local["value"] for local in frame["locals"]}
        for name, value in expected.items():
            assert shown.pop(name) == value
        assert not shown
    assert "\n          large = 1180591620717411303427\n" in text


@pytest.mark.asan
@pytest.mark.parametrize("what", ["lengths", "type", "list"])
def test_hostile_memory(python, stakeout, what):
    """What says nonsense costs frames or their names, and says so: never the run, and never a wrong frame."""
    t = python("hostile.py", what).settle()
    doc = look(stakeout, t)
    assert len(doc["threads"]) == 2 and all(th["user_stack"] for th in doc["threads"])
    (th,) = [th for th in doc["threads"] if th["tid"] != t.pid]
    frames = python_frames(th)
    if what == "type":
        assert th["runtime"]["problem"] and not frames
    elif frames:
        assert frames[0][0] is None or frames[0][0].startswith("victim")


def test_free_threaded(python, stakeout, version):
    """Such a build is named as not supported in the first line, and native frames are all there. No suite has one to look at."""
    if subprocess.run([*command(version), "-c", "import sys; sys.exit(sys.version_info < (3, 13))"]).returncode:
        pytest.skip("since 3.13 Python says whether it is free-threaded")
    t = python("hostile.py", "free").settle()
    doc, native = look(stakeout, t), look(stakeout, t, "--no-runtime")
    (runtime,) = doc["runtimes"]
    assert runtime["name"] == "python" and runtime["problem"] == "free-threaded builds are not supported"
    for th in doc["threads"]:
        addresses = [frame["address"] for frame in th["user_stack"]]
        assert addresses == [frame["address"] for frame in thread(native, th["tid"])["user_stack"]]
        assert th["user_stack_end"] == "complete" and {frame["kind"] for frame in th["user_stack"]} == {"native"}
    assert "free-threaded builds are not supported" in stakeout(t.pid).out.splitlines()[0]


def test_server_under_load(python, stakeout):
    """Whatever threads are just doing, their stacks begin where threads do, and their own functions call each other."""
    t = python("server.py")
    shown, seen = 0, set()
    for _ in rounds(25):
        doc = look(stakeout, t, "--no-kernel")
        for th in doc["threads"]:
            frames = python_frames(th)
            if not frames:
                continue
            names = [name.split(".")[-1] for name, file, line in frames]
            # When a thread has ended its object is freed, often by itself, and the set of all threads forgets it.
            if names[-1] == "_remove" and th["tid"] != t.pid:
                continue
            assert names[-1] == ("<module>" if th["tid"] == t.pid else "_bootstrap"), names
            assert "load" not in names or names[-4:] == ["load", "run", "_bootstrap_inner", "_bootstrap"], names
            assert "do_GET" not in names or "process_request_thread" in names[names.index("do_GET") :], names
            assert "_run_once" not in names or "run_forever" in names[names.index("_run_once") :], names
            shown += 1
            seen |= set(names)
    assert shown > 25 and {"load", "_run_once"} <= seen, (shown, seen)


VIEWS = {"locked": "with gate:", "reading": "os.read(", "template": "with gate:"}


@pytest.fixture
def flask():
    """A Flask application on its own server."""
    if subprocess.run([*command(HOST), "-c", "import flask"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("python3-flask is not installed")
    t = start(HOST, "flask_server.py")
    yield t
    t.end()


def waiting_views(t):
    """The threads in which views wait, as Python says it: {view: (tid, frames)}; None before all of them do."""
    views = {}
    for tid, frames in truth(t)[0].items():
        _, file, line = frames[0]
        (view,) = [name for name, _, _ in frames if name in VIEWS] or [None]
        if view and VIEWS[view] in linecache.getline(file, line):
            views[view] = tid, frames
    return views if views.keys() == VIEWS.keys() else None


def test_flask_under_load(flask, stakeout):
    """Views that wait are shown with all that Flask, Werkzeug and Jinja call them through, as requests go on; none fails."""
    port = int(flask.ask("port"))
    with Load(port, "/orders", once=[f"/{view}" for view in VIEWS]) as load:
        try:
            views = wait_until(lambda: waiting_views(flask), "all views wait")
            for _ in rounds(5):
                doc = look(stakeout, flask)
                for tid, frames in views.values():
                    th = thread(doc, tid)
                    assert python_frames(th) == frames, th["runtime"]
                    assert th["user_stack_end"] == "complete"
                load.go_on()
        finally:
            flask.ask("open")
        load.finish_once()
        load.go_on()
    functions = {view: [name for name, file, line in frames] for view, (tid, frames) in views.items()}
    for names in functions.values():
        assert {"Flask.full_dispatch_request", "Flask.wsgi_app", "WSGIRequestHandler.run_wsgi", "Orders.find"} <= set(names)
    assert "Template.render" in functions["template"]


def test_recursing_thread(python, stakeout):
    """It recurses and returns as fast as it can: what is shown of it was there at one instant, in each snapshot."""
    t = python("recurse.py", "7")
    looks, shown, deepest = rounds(LOOKS), 0, 0
    for _ in looks:
        doc = look(stakeout, t, "--no-kernel")
        (th,) = [th for th in doc["threads"] if th["tid"] != t.pid]
        frames = python_frames(th)
        if th["runtime"]["problem"] or th["status"] != "captured":
            assert not frames
            continue
        deepest = max(deepest, check_recursion(frames))
        shown += 1
    print({"shown": shown, "of": len(looks), "deepest": deepest})
    assert shown > len(looks) / 2 and deepest > 5, (shown, deepest)


# Lines of a round of fresh.py, by the number of empty lines in each function: where it begins, and where it is.
FRESH = {
    "first": lambda gap: (2, 3 + gap),
    "second": lambda gap: (4 + gap, 5 + 2 * gap),
    "third": lambda gap: (6 + 2 * gap, 7 + 3 * gap),
}


def check_round(frames):
    """All are of one round, in order, each at a line of its own; frames without a name say nothing."""
    made = [frame for frame in frames if frame[1] and frame[1].startswith("round ")]
    numbers = {int(file.split()[1]) for name, file, line in made}
    assert len(numbers) <= 1, frames
    expected = ["third", "second", "first", "<module>"]
    for name, file, line in made:
        if name == "<listcomp>":  # before 3.11 code does not know where it is defined
            name = f"third_{min(numbers)}.<locals>.{name}"
        function = name.split(".")[0]
        assert file == f"round {min(numbers)}" and function.split("_")[-1] in (str(min(numbers)), "<module>"), frames
        kind = function.split("_")[0]
        assert kind in expected, frames
        if "<locals>" not in name:
            expected = expected[expected.index(kind) + 1 :]
        if kind in FRESH:
            assert line in FRESH[kind](min(numbers) % 7), frames
    assert all(line != 0 for name, file, line in frames), frames


def test_code_that_is_freed(python, stakeout, tmp_path):
    """Other code may have the memory by the time that names are read: then a frame has none, and the stack is not called whole."""
    t = python("fresh.py")
    file = tmp_path / "snapshot"
    shown = 0
    for _ in rounds(LOOKS):
        result = stakeout("--json", "--no-kernel", "--save", file, t.pid)
        (th,) = [th for th in result.doc["threads"] if th["tid"] != t.pid]
        frames = python_frames(th)
        check_round(frames)
        shown += len(frames) > 4
        if any(name is None for name, _, _ in frames):
            assert th["user_stack_end"] != "complete" and result.code == 3, th
            if th["user_stack_end"] == "doubtful":
                assert "freed before it was read" in th["user_stack_error"]
            (again,) = [th for th in stakeout("replay", "--json", file).doc["threads"] if th["tid"] != t.pid]
            assert python_frames(again) == frames and again["user_stack_end"] == th["user_stack_end"]
    assert shown
