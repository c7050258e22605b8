# SPDX-License-Identifier: MIT
"""stakeout offcpu --wakers: who ended a wait, and where."""

import pytest
from offcpu_recording import added, let_run, names, rows_of
from offcpu_truth import SITES, WAKERS

pytestmark = pytest.mark.usefixtures("root")

# One that has waited less than --min when it is woken has no stack of its waker, and counts if it then waits for a CPU.
ALL = ("--min", 0)


def waker_name(waker):
    return waker.get("thread_name", waker.get("name"))


@pytest.mark.arch
def test_wakers(target, record):
    t = target("waits_exact", 1000, 30)
    recording = record("--json", "--wakers", *ALL, "-p", t.pid)
    t.ask("go")
    doc = recording.finish()
    for site, (waker, function) in WAKERS.items():
        woken = rows_of(doc, t.tids[SITES[site]], site, "S")
        by = [row for row in woken if row["waker"] and row["waker"]["tid"] == t.tids[waker]]
        told = [(row["count"], row["waker"] and (row["waker"]["tid"], waker_name(row["waker"]))) for row in woken]
        assert woken and added(by) >= 0.8 * added(woken), (site, told, t.tids)
        for row in by:
            assert row["waker"]["pid"] == t.pid
            assert waker_name(row["waker"]) == waker[:15]
            assert function in names(row["waker"]["user_stack"]), names(row["waker"]["user_stack"])
    for row in rows_of(doc, t.tids["sleeper"], "sleep_long", "S"):
        assert not row["waker"] or row["waker"]["pid"] != t.pid or row["waker"]["tid"] != t.tids["sleeper"]


def woken(doc, t):
    """The rows of waits_woken's reader that its writer ended; an interrupt within the write may wake as well."""
    return [row for row in rows_of(doc, t.tids["reader"]) if row["waker"] and row["waker"]["tid"] == t.tids["writer"]]


@pytest.mark.asan
def test_waker_that_is_too_deep(target, record):
    """What is missing of a waker's stack is said, and the exit code knows of it."""
    t = target("waits_woken", 400)
    recording = record("--json", "--wakers", *ALL, "-p", t.pid)
    let_run(t)
    result = recording.end()
    rows = woken(result.doc, t)
    assert result.code == 3 and added(rows) >= 15, result
    for row in rows:
        assert row["user_stack_error"] is None
        assert len(row["waker"]["user_stack"]) >= 256
        assert row["waker"]["user_stack_error"] == "more frames than are walked"
        assert row["waker"]["kernel_stack"] and row["waker"]["kernel_stack_error"] is None


@pytest.mark.parametrize("option, have", (("--user-only", "user"), ("--kernel-only", "kernel")))
def test_wakers_with_one_kind_of_stack(target, record, option, have):
    t = target("waits_woken")
    recording = record("--json", "--wakers", *ALL, option, "-p", t.pid)
    let_run(t)
    doc = recording.finish()
    rows = woken(doc, t)
    assert added(rows) >= 15
    assert all(row["waker"][f"{have}_stack"] and not row["waker"][f"{have}_stack_error"] for row in rows)
    others = [who for row in doc["stacks"] for who in (row, row["waker"]) if who]
    other = "kernel" if have == "user" else "user"
    assert not any(who[f"{other}_stack"] or who[f"{other}_stack_error"] for who in others)
    if have == "user":  # a timer's interrupt is still told from the thread that it hit
        wakers = [row["waker"] for row in rows_of(doc, t.tids["writer"], "bottom_wake", "S") if row["waker"]]
        assert any(waker["tid"] == 0 for waker in wakers), wakers
        assert not any(waker["user_stack"] for waker in wakers), wakers


def test_without_wakers(target, record):
    t = target("waits_exact", 1000, 5)
    recording = record("--json", "-p", t.pid)
    t.ask("go")
    assert not any(row["waker"] for row in recording.finish()["stacks"])
