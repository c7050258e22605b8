# SPDX-License-Identifier: MIT
"""Walking stacks of every kind of code, and every way in which a walk can end."""

import subprocess

import pytest
from harness import assert_calls, built, native, symbols, thread, until

pytestmark = pytest.mark.asan

BUILDS = [
    "plain",
    native("plain_nopie"),
    native("plain_static"),
    "plain_static_pie",
    "plain_no_hdr",
    "plain_debug_frame",
    "plain_frame_pointer",
    native("plain_musl"),
    "plain_musl_static",
]


@pytest.mark.arch
@pytest.mark.parametrize("name", BUILDS)
def test_builds(target, snap, name):
    t = target(name).settle()
    doc = snap(t)
    worker = thread(doc, "worker")
    assert_calls(worker, "target_block", "inner", "middle", "outer", "worker", "target_thread_main")
    names = symbols(worker)
    first = names.index("inner")
    assert names[first : first + 4] == ["inner", "middle", "outer", "worker"]
    assert_calls(thread(doc, t.pid), "target_serve", "main")


@pytest.mark.arch
@pytest.mark.parametrize("how", ["malloc", "mmap", "landing"])
def test_return_to_the_start_of_a_function(target, snap, how):
    """No call has left that address: it is the outermost function of a makecontext() stack, wherever that lies."""
    t = target("contexts", how).settle()
    worker = thread(snap(t), "worker")
    assert_calls(worker, "target_block", "on_context")
    assert symbols(worker).index("on_context") == len(symbols(worker)) - 2
    if how == "landing":
        assert symbols(worker)[-1] == "landing" and worker["user_stack"][-1]["offset"] == 0


@pytest.mark.arch
def test_register_that_calls_do_not_keep(target, snap, source):
    """Nobody is stopped to learn it, since that would not tell."""
    t = target("lost_cfa").settle()
    doc = snap(t, source)
    worker = thread(doc, "worker")
    assert symbols(worker)[-1] == "lost"
    assert worker["user_stack_end"] == "no_unwind_info" and "which calls do not keep" in worker["user_stack_error"]
    assert doc["capture"]["stopped_threads"] == 0
    assert not [note for note in doc["notes"] if "stopped" in note]


@pytest.mark.arch
def test_call_that_is_being_bound(target, snap):
    """The C library's function for that has got the return address on the stack from the stub that jumped to it."""
    t = target("dlopen", built("plugin_lazy")).settle()
    worker = thread(snap(t), "worker")
    assert_calls(worker, "target_block", "callback", "plugin_inner", "plugin_enter", "worker", "target_thread_main")
    assert symbols(worker).count("plugin_inner") == 1 and worker["user_stack_error"] is None, symbols(worker)


def naps(th):
    """On a slow machine it gets up while it is copied, and is read in a window."""
    return th["capture"] in ("asleep", "quiet") and th["state"] == "S" and th["syscall"] and th["syscall"]["name"].endswith("nanosleep")


@pytest.mark.arch
def test_return_to_nowhere(target, snap):
    """An address that is in no code is no frame: nothing was called from there."""
    t = target("waits_astray")
    worker = until(lambda: thread(snap(t), "worker"), naps)
    assert symbols(worker)[-1] == "astray"
    assert worker["user_stack_end"] == "no_unwind_info"
    assert worker["user_stack_error"] == "0x16 is not in executable memory"


@pytest.mark.arch
def test_frame_pointer_frames_are_marked(target, snap):
    t = target("plain_frame_pointer").settle()
    frames = {frame["symbol"]: frame for frame in thread(snap(t), "worker")["user_stack"]}
    # target_block is found by libc's CFI; what target_block's own frame leads to is not.
    assert frames["inner"]["found_by"] == "frame_pointer"
    assert frames["middle"]["found_by"] == "frame_pointer"
    assert frames["target_block"]["found_by"] == "cfi"


@pytest.mark.arch
@pytest.mark.parametrize("how", ["debuglink", "none"])
def test_debug_frame_in_a_separate_file(target, snap, tool, tmp_path, how):
    """A stripped program without .eh_frame is walked by the .debug_frame of its debug file."""
    objcopy = tool("objcopy")
    program, debug = tmp_path / "program", tmp_path / "program.debug"
    subprocess.run([objcopy, "--only-keep-debug", built("plain_debug_frame"), debug], check=True)
    link = [f"--add-gnu-debuglink={debug}"] if how == "debuglink" else []
    subprocess.run([objcopy, "--strip-all", *link, built("plain_debug_frame"), program], check=True)
    t = target(program).settle()
    doc = snap(t)
    if how == "debuglink":
        assert_calls(thread(doc, "worker"), "inner", "middle", "outer", "worker")
    else:
        # Nothing describes this code: what is found is found by reading it, and marked as such.
        worker = thread(doc, "worker")
        own = [frame for frame in worker["user_stack"] if frame["module"] == str(program)]
        assert {frame["found_by"] for frame in own[1:]} <= {"scan", "code", "frame_pointer"}
        assert worker["user_stack_end"] == "complete" or worker["user_stack_error"]


def test_ten_thousand_frames(target, snap, source):
    t = target("recursion", 10_000).settle()
    worker = thread(snap(t, source), "worker")
    assert symbols(worker).count("recurse") == 10_000
    assert_calls(worker, "target_block", "bottom", "recurse", "worker", "target_thread_main")


def test_ten_thousand_frames_of_a_running_thread(target, snap):
    t = target("recursion", 10_000, "spin").settle("worker")
    worker = thread(snap(t), "worker")
    assert symbols(worker).count("recurse") == 10_000
    assert_calls(worker, "bottom", "recurse", "worker", "target_thread_main")


def test_depth_limit(target, snap):
    t = target("recursion", 100).settle()
    worker = thread(snap(t, "--depth", 10), "worker")
    assert worker["user_stack_end"] == "depth_limit"
    assert len([frame for frame in worker["user_stack"] if not frame["inlined"]]) == 10
    assert worker["user_stack_error"]


@pytest.mark.parametrize("size, frames", [("8k", 50), ("64k", 400)])
def test_stack_copy_limit(target, stakeout, tmp_path, size, frames):
    """What fits into the copy is walked, at some 150 bytes a frame, and the end says why it is one."""
    t = target("recursion", 10_000).settle()
    file = tmp_path / "snapshot"
    # The live walk of a thread that sleeps may read on where the copy ends; a replay has nothing but the copy.
    assert stakeout("--stack-size", size, "--save", file, t.pid).code in (0, 3)
    result = stakeout("replay", "--json", file)
    assert result.code == 3, result
    worker = thread(result.doc, "worker")
    assert worker["user_stack_end"] == "stack_copy_limit"
    assert frames / 2 < symbols(worker).count("recurse") < frames * 2
    assert worker["user_stack_error"]


def test_stack_copy_limit_of_a_held_thread(target, snap):
    t = target("recursion", 10_000, "spin").settle("worker")
    worker = thread(snap(t, "--stop=all", "--stack-size", "16k"), "worker")
    assert worker["user_stack_end"] == "stack_copy_limit"
    assert 50 < symbols(worker).count("recurse") < 200


@pytest.mark.arch
def test_variable_frames(target, snap, source):
    t = target("vla").settle()
    assert_calls(thread(snap(t, source), "worker"), "with_alloca", "with_vla", "realigned", "worker")


@pytest.mark.arch
@pytest.mark.parametrize("option", ["--source=bpf", "--source=proc", "--stop=all", "--ptrace"])
def test_signal_frames(target, snap, bpf_missing, option):
    if option == "--source=bpf" and bpf_missing:
        pytest.skip(bpf_missing)
    t = target("signals").settle()
    doc = snap(t, option)
    for name in ("normal", "altstack"):
        assert_calls(thread(doc, name), "target_block", "block_in_handler", "interrupted", name, "target_thread_main")
    assert_calls(thread(doc, "nested"), "block_in_handler", "raise_in_handler", "interrupted", "nested")
    assert_calls(thread(doc, "leaf"), "block_in_handler", "leaf_fault", "leaf", "target_thread_main")
    for name, signals in (("normal", 1), ("altstack", 1), ("leaf", 1), ("nested", 2)):
        kinds = [frame["kind"] for frame in thread(doc, name)["user_stack"]]
        assert kinds.count("signal") == signals


@pytest.mark.arch
def test_interrupted_at_the_first_instruction(target, snap):
    """The pc of an interrupted frame is not a return address: pc - 1 would be in another function."""
    t = target("signals").settle()
    frames = thread(snap(t), "leaf")["user_stack"]
    fault = next(frame for frame in frames if frame["symbol"] == "leaf_fault")
    assert fault["offset"] == 0


@pytest.mark.arch
def test_call_as_the_last_instruction(target, snap):
    """The return address is in the next function: pc - 1 is not."""
    t = target("noreturn").settle()
    th = thread(snap(t), "worker")
    assert_calls(th, "never_returns", "last_call", "worker")
    assert "next_function" not in symbols(th)


@pytest.mark.arch
def test_exceptions(target, snap):
    t = target("cxx").settle()
    doc = snap(t)
    assert_calls(thread(doc, "catch"), "cxx::block", "cxx::catches")
    assert_calls(thread(doc, "cleanup"), "cxx::block", "cxx::Guard::~Guard", "cxx::guarded", "cxx::cleanup")
    assert_calls(thread(doc, "terminate"), "cxx::at_terminate", "cxx::throw_error", "cxx::terminates")


@pytest.mark.arch
def test_unwinding_while_stopped_gives_the_same(target, snap):
    t = target("signals").settle()

    def stacks(*args):
        t.settle()  # a thread that was held is on its way back to its sleep
        return {th["tid"]: [frame["address"] for frame in th["user_stack"]] for th in snap(t, *args)["threads"]}

    assert stacks("--ptrace") == stacks("--proc-mem") == stacks()
