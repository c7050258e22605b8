# SPDX-License-Identifier: MIT
"""stakeout offcpu on kernels that can do less: each step down says what is missing."""

import re

import pytest
from harness import bare, native, refusing, run, without_btf
from offcpu_recording import over, why_not

pytestmark = [pytest.mark.usefixtures("root"), pytest.mark.asan]

LOADS = 4  # with all stacks, with kernel stacks, with user stacks, without any: the programs are loaded again for each

# Numbers of the kernel's interface. Only kernel stacks need the first, only user stacks the other (Linux 5.17).
GET_STACK, LOOP = 67, 181
TASK_STORAGE = 29  # a type of maps

# Its last words, not its way there.
VERIFIER_SAYS = re.compile("loading the BPF programs failed: the kernel's verifier says \"invalid func [^\"\n]+\"")


def recorded(t, refusals, *args, program="on_switch", **more):
    env = refusing({"REFUSE_BPF": f"{program} {refusals}", **more})
    return run("offcpu", "--json", "-d", "0.5", *args, "-p", t.pid, env=env)


def recorded_without(t, helper, has_seen, *args):
    """
    A recording in which has_seen(DOC); a slow machine takes longer for that. All waits count, so that no waker's stack
    is missing because its wait was still too short.
    """
    env = refusing({"REFUSE_HELPER": str(helper)})
    for seconds in (0.5, 2, 8):
        result = run("offcpu", "--json", "--min", 0, "-d", seconds, *args, "-p", t.pid, env=env)
        if has_seen(result.doc):
            break
    return result


@pytest.fixture
def waiting(target):
    return target("plain").settle()


def has(rung):
    """This kernel, of its own."""
    return why_not(rung) is None


def row_of(doc, tid):
    return next(row for row in doc["stacks"] if row["tid"] == tid)


@pytest.mark.arch
def test_nothing_refused(waiting):
    result = recorded(waiting, 0, "--source=switch")
    row = row_of(result.doc, waiting.tids["worker"])
    assert result.code == 0 and result.doc["notes"] == []
    assert row["kernel_stack"] and "worker" in [bare(f["symbol"]) for f in row["user_stack"]]


def test_tables_that_do_not_grow(waiting):
    """A kernel before 6.1: the tables get all their memory when they are made."""
    result = recorded(waiting, 0, REFUSE_BPF_GROWING="1")
    row = row_of(result.doc, waiting.tids["worker"])
    assert result.code == 0 and result.doc["notes"] == []
    assert row["kernel_stack"] and "worker" in [bare(f["symbol"]) for f in row["user_stack"]]


def test_mappings_that_bpf_may_not_list(waiting):
    """A kernel that has the iterator of mappings, but not for these programs: they are loaded without it."""
    if not has("sched_exit"):
        pytest.skip(why_not("sched_exit"))
    result = recorded(waiting, 1, "--source=sched_exit", program="on_sched_exit")
    row = row_of(result.doc, waiting.tids["worker"])
    assert result.code == 0 and result.doc["notes"] == []
    assert row["kernel_stack"] and "worker" in [bare(f["symbol"]) for f in row["user_stack"]]


def test_no_task_storage(waiting):
    """A kernel before 5.12: what is missing has a name, and /proc is asked instead."""
    result = run("offcpu", "--json", "-d", "0.5", "-p", waiting.pid, env=refusing({"REFUSE_MAP": str(TASK_STORAGE)}))
    assert result.doc["method"] == "proc"
    assert any("BPF notes of a thread, which Linux 5.12 has" in note for note in result.doc["notes"]), result.doc["notes"]


def test_kernel_stacks_only(waiting):
    result = recorded(waiting, 1, "--source=switch")
    row = row_of(result.doc, waiting.tids["worker"])
    assert result.code == 3
    assert result.doc["method"] == "switch"
    assert row["kernel_stack"] and not row["user_stack"]
    assert "Invalid argument" in row["user_stack_error"]
    assert any(note.startswith("no user stacks: ") for note in result.doc["notes"]), result.doc["notes"]


@pytest.mark.arch
def test_user_stacks_only(waiting):
    result = recorded(waiting, 2, "--source=switch")
    row = row_of(result.doc, waiting.tids["worker"])
    assert result.code == 3
    assert not row["kernel_stack"] and "worker" in [bare(f["symbol"]) for f in row["user_stack"]]
    assert "Invalid argument" in row["kernel_stack_error"] and row["user_stack_error"] is None
    assert [note for note in result.doc["notes"] if note.startswith("no ")] == [
        f"no kernel stacks: {row['kernel_stack_error']}"
    ]


@pytest.mark.arch
@pytest.mark.parametrize("wakers", (native(()), ("--wakers",)), ids=("alone", "wakers"))
@pytest.mark.parametrize("helper, lacks", (native(GET_STACK, "kernel"), (LOOP, "user")))
def test_kernel_without_a_helper(target, helper, lacks, wakers):
    """The verifier is the kernel's own, and sees what the programs would call: also on behalf of wakers."""
    t = target("waits_woken")

    def of_reader(doc):
        return [row for row in over(doc["stacks"]) if row["tid"] == t.tids["reader"] and row["state"] == "S"]

    def of_writer(rows):
        return [row["waker"] for row in rows if row["waker"] and row["waker"]["tid"] == t.tids["writer"]]

    result = recorded_without(t, helper, lambda doc: of_writer(of_reader(doc)) if wakers else of_reader(doc), *wakers)
    has = "user" if lacks == "kernel" else "kernel"
    notes = result.doc["notes"]
    rows = of_reader(result.doc)
    woken = of_writer(rows)
    assert result.code == 3 and rows and bool(woken) == bool(wakers), result
    for who in (*rows, *woken):
        assert who[f"{has}_stack"] and who[f"{has}_stack_error"] is None, who
        assert not who[f"{lacks}_stack"] and VERIFIER_SAYS.fullmatch(who[f"{lacks}_stack_error"]), who
    assert sum(note.startswith(f"no {lacks} stacks: ") for note in notes) == 1, notes
    assert not any(note.startswith(f"no {has} stacks: ") for note in notes), notes
    assert any("interrupt" in note for note in notes) == bool(wakers and lacks == "kernel"), notes


def test_interrupts_are_told_without_stacks(target):
    """With --user-only, on a kernel that has kernel stacks only: none are shown, but wakers are those that woke."""
    t = target("waits_woken")

    def has_interrupts(doc):
        wakers = [row["waker"] for row in doc["stacks"] if row["tid"] == t.tids["writer"] and row["waker"]]
        return any(waker["tid"] == 0 for waker in wakers)

    result = recorded_without(t, LOOP, has_interrupts, "--user-only", "--wakers")
    wakers = [row["waker"] for row in result.doc["stacks"] if row["tid"] == t.tids["writer"] and row["waker"]]
    assert result.code == 3 and has_interrupts(result.doc), result
    assert not any(who["kernel_stack"] or who["user_stack"] for who in (*result.doc["stacks"], *wakers))
    assert not any("interrupt" in note for note in result.doc["notes"]), result.doc["notes"]


def test_waits_without_stacks(waiting):
    result = recorded(waiting, 3, "--source=switch")
    row = row_of(result.doc, waiting.tids["worker"])
    assert result.code == 3
    assert not row["kernel_stack"] and not row["user_stack"]
    assert row["thread_name"] == "worker" and row["total_ns"] > 0
    notes = result.doc["notes"]
    for what in ("no user stacks: ", "no kernel stacks: "):
        assert any(note.startswith(what) for note in notes), notes


def test_no_waits(waiting):
    """A rung that was asked for and cannot be had is an error; what could not be loaded is said."""
    result = recorded(waiting, LOADS, "--source=switch")
    assert result.code == 1 and "loading the BPF programs failed" in result.err


def test_estimate(waiting):
    """Nothing loads at all."""
    result = recorded(waiting, 1000)
    assert result.code == 3 and result.doc["method"] == "proc"
    assert any("loading the BPF programs failed" in note for note in result.doc["notes"]), result.doc["notes"]
    assert row_of(result.doc, waiting.tids["worker"])["user_stack"]


@pytest.mark.arch
def test_no_btf(waiting, unshare, bpf_missing):
    if bpf_missing:
        pytest.skip(bpf_missing)
    wrap = without_btf(unshare)
    result = run("offcpu", "--json", "-d", "0.5", "-p", waiting.pid, wrap=wrap)
    assert result.code == 3 and result.doc["method"] == "proc" and result.doc["estimate"], result
    reason = "this kernel has no BTF (/sys/kernel/btf/vmlinux)"
    assert any(reason in note for note in result.doc["notes"]), result.doc["notes"]
    assert row_of(result.doc, waiting.tids["worker"])["user_stack"]
    result = run("offcpu", "--events", "-d", "0.5", "-p", waiting.pid, wrap=wrap)
    assert result.code == 1 and reason in result.err and "--events needs BPF" in result.err, result


@pytest.mark.arch
def test_lesser_rung(waiting):
    """Where the tracepoint is refused that is said, with what it means; stacks are as good, and the exit code is 0."""
    if not has("sched_exit"):
        pytest.skip("this kernel has no sched_exit_tp")
    result = recorded(waiting, 1000, program="on_sched_exit")
    kprobe = has("kprobe")
    row = row_of(result.doc, waiting.tids["worker"])
    assert result.code == 0 and row["kernel_stack"] and row["user_stack"], result
    assert result.doc["method"] == ("kprobe" if kprobe else "switch")
    (note,) = result.doc["notes"]
    assert note.startswith("stacks are taken by a kprobe" if kprobe else "stacks are taken at every switch"), note
    assert "costs" in note and "sched_exit: loading the BPF programs failed: Invalid argument" in note, note
    if not kprobe:
        assert "; kprobe: " in note and "CONFIG_KPROBE_EVENTS" in note, note


@pytest.mark.arch
def test_last_rung(waiting):
    """The kprobe is refused too, or not there."""
    if not has("kprobe"):
        pytest.skip("no kprobes here: see test_lesser_rung")
    if has("sched_exit"):
        pytest.skip("this kernel need not come that far")
    result = recorded(waiting, 1000, program="on_finish_switch")
    (note,) = result.doc["notes"]
    assert result.code == 0 and result.doc["method"] == "switch"
    assert "sched_exit: this kernel has no tracepoint" in note and "; kprobe: loading" in note, note


@pytest.mark.arch
def test_usual_rung(waiting):
    """The best that a kernel has needs no words: neither the tracepoint nor, where there is none, the kprobe."""
    result = recorded(waiting, 0)
    best = next(rung for rung in ("sched_exit", "kprobe", "switch") if has(rung))
    assert result.doc["method"] == best
    assert bool(result.doc["notes"]) == (best == "switch"), result.doc["notes"]


@pytest.mark.arch
@pytest.mark.parametrize("rung", ("sched_exit", "kprobe", "switch"))
def test_forced_rung(waiting, rung):
    """One that was asked for is no step down."""
    if not has(rung):
        pytest.skip(why_not(rung))
    assert recorded(waiting, 0, f"--source={rung}").doc["notes"] == []


def test_rung_that_is_not_there(waiting):
    """Fewer stacks would not help: it is tried once."""
    missing = [rung for rung in ("sched_exit", "kprobe") if why_not(rung)]
    if not missing:
        pytest.skip("this kernel has all rungs")
    for rung in missing:
        result = run("offcpu", "--debug", f"--source={rung}", "-d", "0.1", "-p", waiting.pid)
        assert result.code == 1 and result.err.count(f"rung {rung}") == 1, result


def test_command_is_not_run_in_vain(tmp_path):
    """One that cannot be recorded is not started."""
    env = refusing({"REFUSE_BPF": "on_switch 1000"})
    result = run("offcpu", "--source=switch", "--", "touch", tmp_path / "ran", env=env)
    assert result.code == 1 and not (tmp_path / "ran").exists()


@pytest.mark.arch
@pytest.mark.parametrize("source", ["auto", native("switch")])
def test_no_task_iterator(waiting, source):
    """What is not over has no stacks, and its row says why."""
    result = recorded(waiting, 99, f"--source={source}", program="dump_task", REFUSE_LOADER="1")
    row = row_of(result.doc, waiting.tids["worker"])
    told = "waits that are not over have no stacks: "
    (why,) = [note.removeprefix(told) for note in result.doc["notes"] if note.startswith(told)]
    assert result.code == 3 and "task iterator" in why, result
    assert row["unfinished"] == 1 and row["kernel_stack"] == row["user_stack"] == []
    assert row["kernel_stack_error"] == row["user_stack_error"] == why
