# SPDX-License-Identifier: MIT
"""What the targets of stakeout offcpu have measured of their own waits, and how exactly a recording has to say the same."""

import json
import os
from pathlib import Path

import pytest
from harness import SLOW
from offcpu_recording import added, assert_whole, names, rows_of

# A thread is charged for its way into the kernel and back, and for what else ran on its CPU: more of that where every
# instruction is emulated.
TOLERANCE = 0.02 if SLOW == 1 else 0.2

# Times of switches come from the scheduler's clock; by how much the monotonic one is ahead of it is found out now and then.
CLOCKS_NS = 10000

TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")


def stolen():
    """Ticks that this virtual machine's CPUs were not run though they had work: on no thread's account."""
    return int(Path("/proc/stat").read_text().split(maxsplit=9)[8])


def measured(t):
    """Lets the target, or the command of a recording, wait; what it has measured itself."""
    before = stolen()
    truth = json.loads(t.ask("go"))
    truth["stolen"] = stolen() - before
    return truth


def is_stolen_from():
    """Whether this machine's CPUs may stand still: one that is emulated does not even know."""
    return SLOW > 1 or stolen() > 0


def most_stolen_ns(truth):
    """What was stolen at most: the last tick, which was not full yet, is not among those that are told."""
    return (truth["stolen"] + 1) * TICK_NS * SLOW if is_stolen_from() else 0


def assert_stolen(lacking, limit):
    """What the threads have measured and was not recorded, by place, is no more than a virtual machine explains."""
    lacking = {where: amount for where, amount in lacking.items() if amount > 0}
    assert sum(lacking.values()) <= limit, lacking


def assert_counts(lacking):
    """
    Likewise: of a tick that was not told one call may be long that has hardly waited, or a wait be short. On an emulated
    machine, which tells none, a few of them.
    """
    assert_stolen(lacking, 4 if SLOW > 1 else is_stolen_from())


def limits(site, truth):
    """
    How many waits over the threshold a call site has, at least and at most. A call that slept twice, or for hardly longer
    than the threshold, or within which another program pushed the thread off its CPU, is not one wait: the count is that
    uncertain then, and no more. Where the CPU itself was taken away, a call may be long that has hardly waited.
    """
    less = site["near"] + min(truth["stolen"], 1)
    return max(site["count"] - less, 0), site["count"] + site["again"]


def switches(truth, site):
    """How often the thread slept at this call site, by the kernel's count: a nap that was over in time needs no sleep."""
    (found,) = (th["sites"][site] for th in truth["threads"] if site in th["sites"])
    return found["switches"]


def assert_exact(doc, truth):
    """
    Counts are exact and totals within the tolerance, for each thread and call site. A wait cannot be longer than the
    call that waited. Returns whether most counts are certain.
    """
    sure, lacking, lacking_ns = 0, {}, {}
    for th in truth["threads"]:
        for name, site in th["sites"].items():
            rows = rows_of(doc, th["tid"], name, "SD")
            count, total = added(rows), added(rows, "total_ns")
            least, most = limits(site, truth)
            where = f"{th['name']} {name}: {count} waits, {total} ns; the thread itself: {site}"
            lacking[where] = least - count
            assert count <= most, where
            assert total <= site["total_ns"] + CLOCKS_NS * count, where
            assert max((row["max_ns"] for row in rows), default=0) <= site["max_ns"] + CLOCKS_NS, where
            pushed = added(rows_of(doc, th["tid"], name, "R"), "total_ns")
            uncertain = (site["count"] - least) * site["max_ns"]
            lacking_ns[where] = site["waited_ns"] * (1 - TOLERANCE) - 100000 * SLOW - uncertain - total - pushed
            sure += 0 if site["near"] else site["count"]
    assert_counts(lacking)
    assert_stolen(lacking_ns, most_stolen_ns(truth))
    # on a slow machine somebody is preempted at nearly every site
    return SLOW > 1 or sure > sum(s["count"] for th in truth["threads"] for s in th["sites"].values()) / 2


def skip_unless(certain):
    """To be said last, when all else has been checked."""
    if not certain:
        pytest.skip("too busy a machine: most waits were disturbed, and what they were could not be told exactly")


SITES = {  # call site: the thread's name, and the function that calls it
    "sleep_long": "sleeper",
    "hold_sleep": "holder",
    "lock_wait": "locker",
    "pipe_wait": "pipe_reader",
    "cond_wait": "cond_waiter",
    "vfork_wait": "forker",
}

WAKERS = {  # call site: the thread that ends the wait, and the function that does it
    "lock_wait": ("holder", "hold_release"),
    "pipe_wait": ("pipe_writer", "pipe_send"),
    "cond_wait": ("cond_signaller", "cond_give"),
}

# Of waits_churn. Tables are made in a fraction of the time that the first ones take; when who makes them hardly gets a CPU,
# or has those of a compiler to make that somebody else has started, in that of the last ones.
NAPS_US = [us if SLOW == 1 else us * 3 for us in (10000, 40000, 160000)]

CHURN = ("forked", "executed", "grandchild", "loader")


def churned(t):
    """Lets waits_churn run; kind: (pid, waits at least, waits at most, function)."""
    before = stolen()
    parts = (word.partition("=")[::2] for word in t.ask("go").split())
    taken = min(stolen() - before, 1)
    said = {kind: value.split(":") for kind, value in parts}
    return {kind: (int(pid), int(least) - taken, int(most), where) for kind, (pid, least, most, where) in said.items()}


def rows_of_churn(doc, kind, pid, least, most, function):
    """Those with whole stacks, of waits over the threshold, all of which are counted from the first one on."""
    mine = [row for row in doc["stacks"] if (row["pid"], row["thread_name"], row["state"]) == (pid, kind, "S")]
    assert added(mine) >= least, kind
    rows = [row for row in mine if function in names(row["user_stack"])]
    assert added(rows) <= most, kind
    whole = [row for row in rows if row["user_stack_error"] is None]
    for row in whole:
        assert_whole(row)
    return whole


def recorded_churn(record_one, kinds=CHURN):
    """
    The document of a recording in which most stacks are whole: tables for what is new are made while it runs, and stacks
    are whole from then on. How soon that is depends on what else runs, and so the naps may become longer.
    record_one(NAP_US) returns the document, and what `churned` does.
    """
    for nap in NAPS_US:
        doc, said = record_one(nap)
        whole = {kind: rows_of_churn(doc, kind, *said[kind]) for kind in kinds}
        late = {kind: added(rows) for kind, rows in whole.items() if added(rows) < said[kind][2] / 2}
        if not late:
            return doc
    pytest.fail(f"too few whole stacks: {late} of {said}")


def assert_thread_counts(doc, truth):
    """By thread, whether or not its stacks could be walked yet: tables for a new program are made while it runs."""
    lacking = {}
    for th in truth["threads"]:
        least = sum(limits(site, truth)[0] for site in th["sites"].values())
        lacking[str(th)] = least - added(rows_of(doc, th["tid"], state="SD"))
        for name, site in th["sites"].items():
            _, most = limits(site, truth)
            assert added(rows_of(doc, th["tid"], name, "SD")) <= most, (th["name"], name, site)
    assert_counts(lacking)
