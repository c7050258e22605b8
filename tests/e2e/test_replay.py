# SPDX-License-Identifier: MIT
"""Saved snapshots: replaying gives the same stacks, also when the process has gone, and damage gives an error."""

import shutil

import pytest
from harness import assert_calls, built, native, rounds, thread

pytestmark = pytest.mark.asan


def stacks(doc):
    keep = ("tid", "name", "state", "status", "capture", "syscall", "user_stack", "user_stack_end", "kernel_stack")
    return [{key: th[key] for key in keep} for th in doc["threads"]]


@pytest.fixture
def saved(target, stakeout, tmp_path):
    def save(name, *args):
        t = target(name, *args).settle(*args)
        file = tmp_path / f"{name}.snapshot"
        result = stakeout("--json", "--save", file, t.pid)
        assert result.code in (0, 3), result
        return t, file, result

    return save


@pytest.mark.arch
@pytest.mark.parametrize(
    "name, args",
    [
        native("plain", ()),
        ("signals", ()),
        ("cxx", ()),
        native("vla", ()),
        ("spinners", ("loop", "vdso")),
        native("zombie_main", ()),
    ],
)
def test_the_same_stacks(saved, stakeout, name, args):
    t, file, first = saved(name, *args)
    t.end()
    again = stakeout("replay", "--json", file)
    assert again.code == first.code, again
    assert stacks(again.doc) == stacks(first.doc)
    for key in ("pid", "comm", "exe", "arch", "taken_at", "capture"):
        assert again.doc[key] == first.doc[key]


@pytest.mark.arch
@pytest.mark.parametrize("name", ["signals", "signals_execstack"])
def test_stack_behind_an_alternate_one(target, stakeout, tmp_path, name, source):
    """Where it is not known in time, it is asked for while the process is looked at, whether it is executable or not."""
    t = target(name).settle()
    file = tmp_path / "snapshot"
    first = stakeout("--json", source, "--save", file, t.pid)
    t.end()
    for doc in (first.doc, stakeout("replay", "--json", file).doc):
        assert_calls(thread(doc, "altstack"), "block_in_handler", "interrupted", "altstack")


def test_text_and_options(saved, stakeout):
    t, file, _ = saved("plain")
    text = stakeout("replay", file)
    assert text.code == 0, text
    assert "inner" in text.out and str(t.pid) in text.out
    shallow = stakeout("replay", "--json", "--depth", 2, "-r", file)
    assert shallow.code == 3
    for th in shallow.doc["threads"]:
        assert len([frame for frame in th["user_stack"] if not frame["inlined"]]) == 2
        assert th["registers"]


def test_replaced_program_is_noticed(target, stakeout, tmp_path):
    """The file under the recorded path has another build-id: its symbols would be lies."""
    program = tmp_path / "program"
    shutil.copy2(built("plain"), program)
    t = target(program).settle()
    file = tmp_path / "s.snapshot"
    assert stakeout("--save", file, t.pid).code == 0
    t.end()
    program.unlink()
    shutil.copy2(built("recursion"), program)
    result = stakeout("replay", "--json", file)
    assert result.code in (0, 3), result
    own = [frame for frame in thread(result.doc, "worker")["user_stack"] if frame["module"] == str(program)]
    assert own and {frame["symbol"] for frame in own} == {None}


def test_build_ids_are_foreign_text(stakeout, target, tmp_path):
    """A file that claims a build-id which a terminal would obey: it is no build-id, and is not shown."""
    program = tmp_path / "program"
    shutil.copy2(built("plain_stripped"), program)
    t = target(program).settle()
    file = tmp_path / "s.snapshot"
    result = stakeout("--json", "--save", file, t.pid)
    t.end()
    program.unlink()
    (build_id,) = {
        f["build_id"] for th in result.doc["threads"] for f in th["user_stack"] if f["module"] == str(program)
    }
    data = file.read_bytes()
    assert build_id.encode() in data
    assert f"(build-id {build_id})" in stakeout("replay", file).out
    file.write_bytes(data.replace(build_id.encode(), b"\033[31m".ljust(len(build_id), b"x")))
    text = stakeout("replay", file)
    assert text.code in (0, 3) and f"module {program}: " in text.out, text
    assert "\033" not in text.out and "xxxx" not in text.out
    doc = stakeout("replay", "--json", file).doc
    assert {entry["build_id"] for entry in doc["lacking"] if entry["module"] == str(program)} == {None}


def test_not_a_snapshot(stakeout, tmp_path):
    (tmp_path / "junk").write_bytes(b"not a snapshot at all" * 100)
    (tmp_path / "empty").write_bytes(b"")
    for name in ("junk", "empty", "missing"):
        result = stakeout("replay", tmp_path / name)
        assert result.code == 1, result
        assert name in result.err and result.out == ""


def test_damaged_snapshot(saved, stakeout, tmp_path, rng):
    """Cut short or with flipped bytes: an error or other stacks, never a crash (run() checks for that)."""
    _, file, _ = saved("plain")
    whole = file.read_bytes()
    damaged = tmp_path / "damaged"
    for _ in rounds(10):
        damaged.write_bytes(whole[: rng.randrange(len(whole))])
        assert stakeout("replay", "--json", damaged).code == 1
    for _ in rounds(20):
        data = bytearray(whole)
        for _ in range(8):
            # Most of a snapshot is stack bytes; its structure is at the beginning.
            data[rng.randrange(min(len(data), 4096))] = rng.randrange(256)
        damaged.write_bytes(data)
        assert stakeout("replay", "--json", damaged).code in (0, 1, 3)


def test_save_to_a_place_that_cannot_be_written(target, stakeout):
    result = stakeout("--save", "/no/such/directory/s", target("plain").pid)
    assert result.code == 1, result
    assert "/no/such/directory/s" in result.err
