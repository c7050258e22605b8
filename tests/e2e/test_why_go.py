# SPDX-License-Identifier: MIT
"""What threads of Go do while goroutines wait: these have no thread, and what looks like a lock is only the runtime that has nothing to do."""

import json
import re

import pytest
from harness import ROOT, run, symbols, thread, until
from test_go import STRIP, compiler  # noqa: F401


@pytest.fixture(scope="session", params=STRIP)
def program(request, tmp_path_factory, compiler):  # noqa: F811
    path = tmp_path_factory.mktemp("go_waits") / "waits"
    compiler(ROOT / "tests/targets/go_waits.go", path, *STRIP[request.param])
    return path


def kinds(doc):
    return {th["waits_for"]["kind"] for th in doc["threads"] if th["waits_for"]}


EXPECTED = {"go_work", "go_monitor", "go_goroutine", "go_signal", "go_template", "events", "read"}


@pytest.fixture
def waits(target, program):
    return target(program)


def settled(t, *args):
    """The document, once all threads are where they stay; the one that looks after all others comes and goes."""

    def look():
        r = run("why", "--json", *args, t.pid)
        assert r.code in (0, 3), r
        return r.doc

    return until(look, lambda doc: EXPECTED <= kinds(doc) and all(th["state"] != "R" for th in doc["threads"]))


def polls(t, tid, source):
    """/proc does not tell the registers of a thread that must not be stopped there: its innermost function is all that is known."""
    names = symbols(thread(run("--json", source, t.pid).doc, tid))
    return "runtime.netpoll" in names or names[0].startswith("runtime.epollwait")


def test_kinds(waits, source):
    doc = settled(waits, source)
    assert kinds(doc) == EXPECTED, doc
    assert thread(doc, waits.tids["locked"])["waits_for"]["kind"] == "go_goroutine"
    assert thread(doc, waits.tids["main"])["waits_for"]["kind"] == "read"
    for th in doc["threads"]:
        wait = th["waits_for"]
        assert (wait["owner_tid"], wait["holder"], wait["address"]) == (None, "not_recorded", None), th
        assert wait["for_goroutines"] == (wait["kind"] == "events" and polls(waits, th["tid"], source))
    assert doc["deadlocks"] == []


def test_network(waits, source):
    (wait,) = [th["waits_for"] for th in settled(waits, source)["threads"] if th["waits_for"]["kind"] == "events"]
    assert wait["descriptor"]["kind"] == "epoll" and wait["set"]["kinds"]["socket"] == 2 and wait["set"]["listening"] == 1
    ports = {d["socket"]["local"] for d in wait["set"]["descriptors"] if d["socket"] and d["socket"]["listening"]}
    assert ports == {f"127.0.0.1:{waits.tids['port']}"}


WORDS = [
    r"(threads wait|waits) for work: no goroutine is ready",
    r"waits on behalf of goroutines for events of epoll fd \d+: .*2 sockets \(1 listening\)(, 1 eventfd)?",
    r"waits for its next look at the threads of Go \(sysmon\)(, for another .* at most)?",
    r"waits? for a goroutine that is locked to the thread, and not ready",
    r"waits for threads to start for Go \(templateThread\)",
    r"waits for a signal, to hand it to os/signal",
    r"reads fd 0: pipe \d+, which is empty.*",
]


def test_words(waits):
    settled(waits)
    out = until(lambda: run("why", waits.pid).out, lambda out: all(re.search(rf" {said}$", out, re.M) for said in WORDS))
    assert "futex" not in out and "does not record who holds it" not in out
    assert out.count("goroutines that wait have no thread") == 1


def test_limits_are_told_once(waits, target):
    doc = settled(waits)
    assert sum("goroutines that wait have no thread" in note for note in doc["notes"]) == 1
    other = target("locks", "mutex").settle()
    assert not any("goroutine" in note for note in run("why", "--json", other.pid).doc["notes"])


def test_schema_and_replay(waits, tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    settled(waits)
    live = run("--save", tmp_path / "snap", "--json", waits.pid).doc
    jsonschema.validate(live, json.loads((ROOT / "docs/schema/snapshot.schema.json").read_text()))
    again = run("replay", "--json", tmp_path / "snap").doc
    assert [th["waits_for"] for th in again["threads"]] == [th["waits_for"] for th in live["threads"]]
