# SPDX-License-Identifier: MIT
"""What threads wait for in Rust's standard library, by the names of its functions: who holds it is not recorded there."""

import os
import re
import shutil
import subprocess

import pytest
from harness import ROOT, TIMEOUT, run, symbols, thread, until

# How much of the library is inlined, how names are mangled, and whether inlined calls are known.
BUILDS = {
    "debug": ["-g"],
    "optimized": ["-g", "-O"],
    "names-only": ["-O", "-C", "strip=debuginfo"],
}
CHOSEN = BUILDS if "STAKEOUT_TEST_ROOTS" in os.environ else ["optimized"]  # make check-locks takes all
KINDS = {
    "mutex": ("mutex", "GLOBAL_MUTEX"),
    "read": ("read_lock", "GLOBAL_RWLOCK"),
    "write": ("write_lock", "GLOBAL_RWLOCK"),
    "condition": ("condition", "GLOBAL_CONDITION"),
    "condition-timed": ("condition", "GLOBAL_CONDITION"),
    "once": ("once", "GLOBAL_ONCE"),
    "park": ("parked", None),
    "park-timed": ("parked", None),
    "receive": ("channel", None),
    "receive-bounded": ("channel", None),
    "send": ("channel_room", None),
    "meet": ("channel_room", None),
    "barrier": ("barrier", None),
}
WORDS = {
    "mutex": r"mutex \S*GLOBAL_MUTEX 0x[0-9a-f]+ \(\S+\), which does not record who holds it",
    "read": r"the right to read under lock \S*GLOBAL_RWLOCK 0x[0-9a-f]+ \(\S+\), which does not record who holds it",
    "write": r"the right to write under lock \S*GLOBAL_RWLOCK 0x[0-9a-f]+ \(\S+\), which does not record who holds it",
    "once": r"an initialization, at .*0x[0-9a-f]+.*, which does not record who does it",
    "park-timed": r"another thread to unpark it, at 0x[0-9a-f]+, for another 1 d 03 h at most",
    "receive": "a message of a channel",
    "send": "room in a channel",
    "barrier": r"others to come to barrier 0x[0-9a-f]+",
}


@pytest.fixture(scope="session")
def version():
    """Of the compiler, and with it of the library."""
    said = subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout if shutil.which("rustc") else ""
    found = re.match(r"rustc (\d+)\.(\d+)", said)
    if not found:
        pytest.skip("rustc is not installed: make check-locks does that")
    return int(found[1]), int(found[2])


@pytest.fixture(scope="session", params=CHOSEN)
def program(request, tmp_path_factory, version):
    path = tmp_path_factory.mktemp("rust") / f"locks_rust-{request.param}"
    source = ROOT / "tests/targets/locks_rust.rs"
    done = subprocess.run(["rustc", *BUILDS[request.param], "-o", path, source], capture_output=True, text=True, timeout=10 * TIMEOUT)
    assert done.returncode == 0, done.stderr
    return path


def look(t, *args):
    r = run("why", "--json", *args, t.pid)
    assert r.code in (0, 3), r
    return r.doc


def line(t):
    out = run("why", t.pid).out
    return next(said for said in out.splitlines() if said.startswith(f"tid {t.tids['waiter']} "))


@pytest.mark.parametrize("what", KINDS)
def test_kind(program, version, target, source, what):
    t = target(program, what).settle()
    kind, variable = KINDS[what]
    doc = until(lambda: look(t, source), lambda doc: (thread(doc, t.tids["waiter"])["waits_for"] or {"kind": None})["kind"] == kind)
    found = thread(doc, t.tids["waiter"])["waits_for"]
    assert (found["kind"], found["holder"], found["owner_tid"], found["certain"]) == (kind, "not_recorded", None, False)
    assert found["timed"] == what.endswith("-timed") and doc["deadlocks"] == []
    if variable and (what != "once" or version >= (1, 65)):  # before that who waits for one parks itself
        assert found["variable"].endswith(variable) and found["variable_offset"] == "0x0"


@pytest.mark.parametrize("what", WORDS)
def test_words(program, target, what):
    t = target(program, what).settle()
    assert re.fullmatch(rf"tid \d+ waiter waits for {WORDS[what]}", line(t)), line(t)


def test_join(program, target, source):
    """Which is the C library's."""
    t = target(program, "join").settle()
    found = until(lambda: thread(look(t, source), t.tids["waiter"])["waits_for"], lambda wait: wait and wait["kind"] == "join")
    assert (found["kind"], found["owner_tid"]) == ("join", thread(run("--json", t.pid).doc, "holder")["tid"])


def test_threads_of_a_scope(program, target):
    """How the library waits for them is how a program parks itself."""
    t = target(program, "scope").settle()
    until(lambda: thread(look(t), t.tids["waiter"])["waits_for"], lambda wait: wait and wait["kind"] == "parked")
    assert any("scope" in (name or "") for name in symbols(thread(run("--json", t.pid).doc, t.tids["waiter"])))
