# SPDX-License-Identifier: MIT
"""The words for each kind of lock, of C libraries and of languages; test_why.py and test_why_runtimes.py check that it is the right one."""

import json
import re
from pathlib import Path

import pytest
from harness import ROOT, run, symbols, thread, until
from pythons import CHOSEN
from test_why import OWNERLESS

PLACE = r"0x[0-9a-f]+( \(\S+\+0x[0-9a-f]+\))?"
UNRECORDED = ", which does not record who holds it"
HELD = ", held by tid {holder} holder, which "

C = {
    "mutex": f"mutex global_mutex {PLACE}{HELD}",
    "recursive": f"recursive mutex global_mutex {PLACE}{HELD}",
    "errorcheck": f"error-checking mutex global_mutex {PLACE}{HELD}",
    "adaptive": f"adaptive mutex global_mutex {PLACE}{HELD}",
    "robust": f"robust mutex global_mutex {PLACE}{HELD}",
    "pi": f"priority-inheriting mutex global_mutex {PLACE}{HELD}",
    "timed": f"mutex global_mutex {PLACE}, for another .* at most{HELD}",
    "write": f"the right to write under lock global_rwlock {PLACE}{HELD}",
    "read": f"the right to read under lock global_rwlock {PLACE}{HELD}",
    "readers": f"the right to write under lock global_rwlock {PLACE}, held by readers, which it does not record$",
    "join": "the end of a thread: tid {holder} holder, which ",
    "condition": rf"condition variable (\S+ )?{PLACE}$",
    "semaphore": rf"semaphore (\S+ )?{PLACE}$",
    "barrier": rf"others to come to barrier (\S+ )?{PLACE}$",
    "once": rf"an initialization, at (\S+ )?{PLACE}, which does not record who does it$",
}
MUSL = {
    "mutex": f"mutex global_mutex {PLACE}{UNRECORDED}$",
    "recursive": f"mutex global_mutex {PLACE}{HELD}",
    "write": f"the right to write under lock global_rwlock {PLACE}{UNRECORDED}$",
    "readers": f"the right to write under lock global_rwlock {PLACE}, held by readers, which it does not record$",
    "join": "(the end of a thread|futex .*)",
    "stream": rf"the lock of a stream, at (\S+ )?{PLACE}{HELD}",
}
CXX = {
    "mutex": f"mutex global_mutex {PLACE}{HELD}",
    "write": f"the right to write under lock global_shared {PLACE}{HELD}",
    "condition": f"condition variable global_condition {PLACE}$",
    "future": f"the result of a future, at {PLACE}$",
    "semaphore": f"semaphore global_semaphore {PLACE}$",
    "static": rf"an initialization, at guard variable for make_static\(\)::value {PLACE}, which does not record who does it$",
}
PYTHON = {
    "lock": rf"lock 0x\w+{UNRECORDED}$",
    "rlock": r"RLock 0x\w+, held by tid \d+ holder \(3 times\)",
    "gil": "the GIL, held by tid \\d+ holder, which ",
    "condition": "a notification of a condition$",
    "event": "an event to be set$",
    "event-timed": "an event to be set, for another .* at most$",
    "semaphore": "a semaphore$",
    "barrier": "others to come to a barrier$",
    "item": "an item of a queue$",
    "simple-item": "an item of a queue$",
    "room": "room in a queue$",
    "done": "all items of a queue to be done$",
    "future": "the result of a future$",
    "futures": "the result of a future$",
    "join": r"the end of a thread: tid \d+ joined, which sleeps",
}
JAVA = {
    "monitor": r"the monitor of JavaLocks\$Account 0x\w+, held by tid \d+ holder",
    "lock": r"lock java\.util\.concurrent\.locks\.ReentrantLock\$NonfairSync 0x\w+, held by tid \d+ holder",
    "readers": r"lock java\.util\.concurrent\.locks\.\S+ 0x\w+, held by readers, which it does not record$",
    "condition": r"a signal of \S+ 0x\w+$",
    "semaphore": r"a permit of \S+ 0x\w+$",
    "latch": r"the end of \S+ 0x\w+$",
    "wait": r"a notification of JavaLocks\$Account 0x\w+$",
    "park": "being unparked",
    "join": r"the end of a thread: tid \d+ holder",
}


def assert_said(pid, who, words, *args):
    """Once it is: threads of languages get up now and then."""
    pattern = rf"^tid \d+ {who} waits for {words}"
    until(lambda: run("why", *args, pid).out, lambda out: re.search(pattern, out, re.M))


def filled(words, t):
    """With the holder's number, where the pattern has a place for it: it has other braces, too."""
    return words.replace("{holder}", str(t.tids.get("holder", r"\d+")))


@pytest.mark.parametrize("what", C)
def test_c(target, source, what):
    t = target("locks", what).settle()
    words = C[what]
    if what in OWNERLESS:
        names = symbols(thread(run("--json", source, t.pid).doc, "waiter"))
        if not any(re.match(rf"_*(GI_+)?{OWNERLESS[what]}", name or "") for name in names):
            words = rf"futex (\S+ )?{PLACE}{UNRECORDED}$"  # the C library has no symbol table
    assert_said(t.pid, "waiter", filled(words, t), source)


@pytest.mark.parametrize("what", MUSL)
def test_musl(target, what):
    t = target("locks_musl", what).settle()
    assert_said(t.pid, "waiter", filled(MUSL[what], t))


@pytest.mark.parametrize("what", CXX)
def test_cxx(target, what):
    t = target("locks_cxx", what).settle()
    assert_said(t.pid, "waiter", filled(CXX[what], t))


@pytest.fixture(params=CHOSEN)
def version(request):
    return request.param


@pytest.mark.parametrize("what", PYTHON)
def test_python(python, what):
    assert_said(python("locks.py", what).pid, "waiter", PYTHON[what])


@pytest.mark.parametrize("what", JAVA)
def test_java(java, what):
    assert_said(java(what, main="JavaLocks").pid, "waiter", JAVA[what])


# Kinds of which no real case can be built on any machine, and why; tests/unit/ has stacks of them.
NOT_BUILT = {
    "go_start": "the runtime waits so for microseconds",
    "go_stop": "likewise",
    "go_lock": "likewise",
    "go_note": "no such wait is known",
    "sysv_semaphore": "built: test_system_v puts its name together",
    "sysv_message": "likewise",
    "sysv_room": "likewise",
}


def kinds_in(schema):
    """All that waits_for.kind can be."""
    return json.loads((ROOT / f"docs/schema/{schema}.schema.json").read_text())["$defs"]["wait"]["properties"]["kind"]["enum"]


def test_every_kind_is_built():
    """A new kind of wait gets a program that waits so, or a reason why there is none."""
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_why*.py") if path != Path(__file__))
    assert [kind for kind in kinds_in("why") if f'"{kind}"' not in tests] == [kind for kind in kinds_in("why") if kind in NOT_BUILT]
    assert kinds_in("why") == kinds_in("snapshot") == kinds_in("watch")
