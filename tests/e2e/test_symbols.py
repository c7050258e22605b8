# SPDX-License-Identifier: MIT
"""Names: functions, files and lines, inlined calls, and files that are hard to find."""

import os
import re
import shutil
import subprocess

import pytest
from harness import assert_calls, built, symbols, thread

pytestmark = pytest.mark.asan


def frame_of(t, name):
    return next(frame for frame in t["user_stack"] if frame["symbol"] == name)


def build_id(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)


def line_of(source, text):
    path = os.path.join(os.path.dirname(__file__), "../targets", source)
    with open(path) as f:
        return next(number for number, line in enumerate(f, 1) if text in line)


@pytest.mark.arch
def test_what_a_frame_tells(target, snap, tool):
    tool("readelf")
    t = target("plain").settle()
    frame = frame_of(thread(snap(t), "worker"), "middle")
    path = t.proc.args[0]
    assert frame["module"] == path
    assert frame["build_id"] == build_id(path)
    assert frame["kind"] == "native"
    assert frame["inlined"] is False
    assert frame["found_by"] == "cfi"
    assert frame["source"]["file"].endswith("plain.c")
    assert frame["source"]["line"] == line_of("plain.c", "return inner(n + 1) + n;")
    assert frame["offset"] > 0
    # module_offset is what addr2line takes.
    addr2line = subprocess.run(
        [tool("addr2line"), "-fe", path, hex(int(frame["module_offset"], 16) - 1)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert addr2line.split("\n")[0] == "middle"


@pytest.mark.arch
def test_inlined_calls(target, snap):
    t = target("cxx").settle()
    th = thread(snap(t), "inlines")
    chain = ["cxx::block", "cxx::third_inlined", "cxx::second_inlined", "cxx::first_inlined", "cxx::inlines"]
    names = symbols(th)
    first = names.index("cxx::block")
    assert names[first : first + 5] == chain
    frames = th["user_stack"][first : first + 5]
    assert [frame["inlined"] for frame in frames] == [False, True, True, True, False]
    assert len({frame["address"] for frame in frames[1:]}) == 1, "inlined frames share their caller's address"
    functions = ["INLINED void third_inlined()", "INLINED void second_inlined()", "INLINED void first_inlined()"]
    for frame, function in zip(frames[1:], [*functions, "FRAME void inlines()"]):
        assert frame["source"]["line"] == line_of("cxx.cc", function) + 2


def test_demangled(target, snap):
    t = target("cxx").settle()
    th = thread(snap(t), "templates")
    hold = next(frame["symbol"] for frame in th["user_stack"] if "hold" in (frame["symbol"] or ""))
    assert hold.startswith("cxx::Box<std::") and ", 3>::hold(std::vector<" in hold, hold
    assert_calls(th, "cxx::templates")  # which has two more names in the symbol table
    assert_calls(thread(snap(t), "catch"), "cxx::catches")


def test_stripped_program(target, snap):
    """No names left: module and offset; the walk does not need names."""
    t = target("plain_stripped").settle()
    worker = thread(snap(t), "worker")
    assert worker["user_stack_end"] == "complete"
    own = [frame for frame in worker["user_stack"] if frame["module"] == t.proc.args[0]]
    assert len(own) == 6
    assert all(frame["symbol"] is None and int(frame["module_offset"], 16) > 0 for frame in own)


def test_loaded_library(target, snap):
    library = built("plugin")
    t = target("dlopen", library).settle()
    worker = thread(snap(t), "worker")
    assert_calls(worker, "callback", "plugin_inner", "plugin_enter", "worker")
    assert frame_of(worker, "plugin_inner")["module"] == str(library)
    assert frame_of(worker, "plugin_inner")["source"]["file"].endswith("plugin.c")


def copy_of(name, to):
    shutil.copy2(built(name), to)
    return to


def test_deleted_program(target, snap, tmp_path):
    t = target(copy_of("plain", tmp_path / "gone")).settle()
    (tmp_path / "gone").unlink()
    worker = thread(snap(t), "worker")
    assert_calls(worker, "inner", "middle", "outer")
    assert frame_of(worker, "inner")["source"]["line"] > 0
    assert frame_of(worker, "inner")["module"] == str(tmp_path / "gone")


def test_deleted_library(target, snap, root, tmp_path):
    library = copy_of("plugin", tmp_path / "gone.so")
    t = target("dlopen", library).settle()
    library.unlink()
    assert_calls(thread(snap(t), "worker"), "callback", "plugin_inner", "plugin_enter", "worker")


def test_replaced_program(target, snap, tmp_path):
    """Another file under the same path must not be taken for the one that runs."""
    program = copy_of("plain", tmp_path / "program")
    t = target(program).settle()
    program.unlink()
    copy_of("recursion", program)
    assert_calls(thread(snap(t), "worker"), "inner", "middle", "outer")


def test_ignore_deleted(target, snap, tmp_path):
    program = copy_of("plain", tmp_path / "program")
    t = target(program).settle()
    program.unlink()
    copy_of("plain", program)
    assert_calls(thread(snap(t, "--ignore-deleted"), "worker"), "inner", "middle", "outer")


def test_program_in_memory(target, snap):
    t = target("memfd", built("plain")).settle()
    worker = thread(snap(t), "worker")
    assert_calls(worker, "inner", "middle", "outer")
    assert "memfd:stakeout-test" in frame_of(worker, "inner")["module"]


@pytest.fixture
def split(tool, tmp_path):
    """The plain program stripped, and its debug file."""
    objcopy = tool("objcopy")
    program, debug = tmp_path / "program", tmp_path / "program.debug"
    subprocess.run([objcopy, "--only-keep-debug", built("plain"), debug], check=True)
    subprocess.run([objcopy, "--strip-all", built("plain"), program], check=True)
    return program, debug


@pytest.mark.parametrize("where", [".", ".debug"])
def test_debug_link(target, snap, tool, split, where):
    program, debug = split
    subprocess.run([tool("objcopy"), f"--add-gnu-debuglink={debug}", program], check=True)
    (program.parent / where).mkdir(exist_ok=True)
    debug.rename(program.parent / where / debug.name)
    worker = thread(snap(target(program).settle()), "worker")
    assert_calls(worker, "inner", "middle", "outer")
    assert frame_of(worker, "inner")["source"]["file"].endswith("plain.c")


def test_wrong_debug_file_is_refused(target, snap, tool, split):
    program, debug = split
    subprocess.run([tool("objcopy"), f"--add-gnu-debuglink={debug}", program], check=True)
    subprocess.run([tool("objcopy"), "--only-keep-debug", built("recursion"), debug], check=True)
    worker = thread(snap(target(program).settle()), "worker")
    assert worker["user_stack_end"] == "complete"
    assert not {"recurse", "bottom"} & set(symbols(worker))


def test_gnu_debugdata(target, snap, tool, split):
    """Symbols of a stripped program from its .gnu_debugdata section, as Fedora builds it."""
    program, debug = split
    objcopy, xz = tool("objcopy"), tool("xz")
    mini = program.with_name("mini")
    subprocess.run([objcopy, "--strip-debug", debug, mini], check=True)
    subprocess.run([xz, "-f", mini], check=True)
    subprocess.run([objcopy, f"--add-section=.gnu_debugdata={mini}.xz", program], check=True)
    worker = thread(snap(target(program).settle()), "worker")
    assert_calls(worker, "inner", "middle", "outer")
    assert frame_of(worker, "inner")["source"] is None


def test_verbose_names_what_is_missing(target, stakeout):
    t = target("plain_stripped").settle()
    result = stakeout("-v", t.pid)
    assert result.code == 0, result
    assert t.proc.args[0] in result.out + result.err
    assert "debug" in (result.out + result.err).lower()
