# SPDX-License-Identifier: MIT
"""Several looks, compared: who is stuck, who is slow, who runs, who comes and goes."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from harness import (
    BEHIND_A_SHELL,
    ROOT,
    SANITIZER_ENV,
    SANITIZER_EXIT,
    SLOW,
    TIMEOUT,
    built,
    child_of,
    command,
    gone,
    let_wait,
    run,
    thread,
    until,
    wait_until,
)

STILL = ("stuck", "idle", "holder", "brief")  # of the target
EVERY = "50ms"
FINE = (0, 3)  # on a busy machine a thread that runs may not be captured in time


class Watch:
    """A watch that goes on until the test ends it; its lines are read as they come."""

    def __init__(self, *args, wrap=(), sig=signal.SIGINT):
        self.sig = sig
        self.proc = subprocess.Popen(
            [*wrap, *command("watch", "--json", "-n", "0", *args)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **SANITIZER_ENV},
        )
        self.docs = []

    def line(self):
        text = self.proc.stdout.readline()
        assert text, self.proc.stderr.read()
        self.docs.append(json.loads(text))
        return self.docs[-1]

    def until(self, condition):
        """Rounds until one is as wanted."""
        found = wait_until(lambda: (doc := self.line()) and condition(doc) and doc, "a round is as wanted")
        assert found["type"] == "round"
        return found

    def end(self):
        """The exit code, and the summary."""
        self.proc.send_signal(self.sig)
        return self.await_end()

    def await_end(self):
        out, err = self.proc.communicate(timeout=TIMEOUT)
        assert self.proc.returncode >= 0 and self.proc.returncode != SANITIZER_EXIT, err
        self.docs += [json.loads(line) for line in out.splitlines()]
        assert [doc["type"] for doc in self.docs] == ["round"] * (len(self.docs) - 1) + ["summary"]
        return self.proc.returncode, self.docs[-1]

    def kill(self):
        self.proc.kill()
        self.proc.communicate()


@pytest.fixture
def watch():
    started = []

    def start(*args, **how):
        started.append(Watch(*args, **how))
        return started[-1]

    yield start
    for each in started:
        each.kill()


@pytest.fixture
def watched(target):
    naps = 3 if SLOW == 1 else 150  # who gets up while it is looked at is not seen to have come back
    return target("watched", naps).settle("spinner", "reader", "feeder")


def rule(t):
    """The verdict that what was counted leads to."""
    steps = t["steps"]
    if t["ended_in_round"]:
        return {"ended"}
    if not sum(steps.values()):
        return {"unknown"}
    if steps["still"] == sum(steps.values()):
        return {"stuck"}
    if t["still_at_the_end"] >= 2:
        return {"halted"}
    return {"busy", "moves"} if steps["ran"] else {"returned"}


@pytest.mark.asan
@pytest.mark.arch
def test_stuck_slow_busy(watch, watched, source):
    """A thread that moves may be seen while it does: it is watched until it was seen as wanted."""
    w = watch(source, "-i", EVERY, watched.pid)
    first = w.line()
    assert {th["step"] for th in first["threads"]} == {"first"} and all(th["changed"] for th in first["threads"])
    second = w.line()
    assert {name: thread(second, name)["step"] for name in STILL} == {name: "still" for name in STILL}
    assert not any(thread(second, name)["changed"] for name in STILL)
    for name in ("reader", "feeder"):
        w.until(lambda doc: thread(doc, name)["step"] == "returned")
    w.until(lambda doc: thread(doc, "spinner")["step"] == "ran" and thread(doc, "spinner")["cpu_percent"] > 0)
    code, summary = w.end()
    assert code in FINE and summary["interrupted"] and summary["round"] == len(w.docs) - 1
    for t in summary["threads"]:
        assert t["verdict"] in rule(t), t
        assert sum(place["looks"] for place in t["places"]) + t["other_looks"] == t["looks"] == sum(t["steps"].values()) + 1
    assert {thread(summary, name)["verdict"] for name in STILL} == {"stuck"}
    assert all(thread(summary, name)["cpu_percent"] == 0 for name in STILL)
    assert thread(summary, "spinner")["verdict"] in ("busy", "moves") and thread(summary, "spinner")["cpu_percent"] > 0
    assert thread(summary, "reader")["steps"]["returned"] and thread(summary, "reader")["verdict"] != "stuck"
    stuck = thread(summary, "stuck")
    assert stuck["places"] == [{"function": "want_mutex", "looks": stuck["looks"]}]
    assert (stuck["waits_for"]["kind"], stuck["waits_for"]["owner_tid"]) == ("mutex", watched.tids["holder"])
    assert "want_mutex" in [frame["symbol"] for frame in summary["stacks"][stuck["stack"]]]
    assert {"read_again"} <= {place["function"] for place in thread(summary, "reader")["places"]}


def test_text(watched):
    r = run("watch", "-n", "4", "-i", EVERY, watched.pid)
    assert r.code in FINE, r
    lines = r.out.splitlines()
    assert lines[0] == f"stakeout: watching watched (pid {watched.pid}): 4 looks, one every 50.0 ms; Ctrl-C ends it, with a summary"
    assert "   0.00 s  8 threads" in lines
    waits = rf"tid {watched.tids['stuck']} stuck waits for mutex held 0x[0-9a-f]+ \(watched\+0x[0-9a-f]+\), held by tid {watched.tids['holder']} holder"
    assert re.search(rf"^           {waits}.*, in want_mutex ← target_thread_main$", r.out, re.M), r.out
    assert re.search(r"^SUMMARY: 4 looks in \d+.*: 8 threads(; \d+ looks? left out for want of time)?$", r.out, re.M), r.out
    rest = r.out[r.out.index("SUMMARY"):]
    assert re.search(rf"^STUCK: 1 thread is blocked, and did not move at all in .*\n  {waits}.*\n    in want_mutex ← target_thread_main$", rest, re.M), rest
    # On a busy machine others may have had no CPU all the while.
    assert re.search(r"^DID NOT MOVE: [4-7] threads waited all the time for something to happen", rest, re.M), rest
    assert re.search(rf"^  tid {watched.tids['idle']} idle waits for .*\n    in await_nothing", rest, re.M), rest
    assert rest.index("\nSTUCK") < rest.index("\nDID NOT MOVE")
    assert rest.endswith("\nNo deadlock was found.\n")
    # Only what changes is told: who does not move is never named between the first look and the summary.
    rounds = [m.start() for m in re.finditer(r"^ +[\d.]+ s  ", r.out, re.M)]
    assert len(rounds) == 4
    between = r.out[rounds[1] : r.out.index("SUMMARY")]
    assert not any(f"tid {watched.tids[name]} " in between for name in STILL), r.out


def test_stacks_in_full(watched):
    r = run("watch", "-v", "-n", "2", "-i", EVERY, watched.pid)
    assert re.search(r"^ +#\d+ +.*target_thread_main.*\n", r.out[r.out.index("SUMMARY") :], re.M), r.out


def test_nothing_moves(target):
    """Then there is nothing to name, and nothing to tell; the threads are those of the first look."""
    t = target("locks", "mutex").settle()
    r = run("watch", "-n", "3", "-i", EVERY, t.pid)
    assert r.code == 0 and len(re.findall(r"^ +[\d.]+ s  none of 3 threads moved$", r.out, re.M)) == 2, r
    docs = run("watch", "--json", "-n", "3", "-i", EVERY, t.pid).docs
    assert [thread(doc, "waiter")["place"] for doc in docs[:3]] == ["want_mutex"] * 3
    assert [place["looks"] for place in thread(docs[3], "waiter")["places"]] == [3]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_count(watched, count):
    docs = run("watch", "--json", "-n", count, "-i", EVERY, watched.pid).docs
    assert [(doc["type"], doc["round"]) for doc in docs] == [("round", i + 1) for i in range(count)] + [("summary", count)]
    assert not docs[-1]["interrupted"] and docs[-1]["interval_ns"] == 50_000_000
    assert {t["looks"] for t in docs[-1]["threads"]} == {count}
    if count == 1:
        assert {t["verdict"] for t in docs[-1]["threads"]} == {"unknown"}
        assert "take at least two" in run("watch", "-n", "1", watched.pid).out


def test_rounds_are_multiples_of_the_interval(watched):
    """However long a look takes, it comes at its time, or is left out, which is told: here the program stands still meanwhile."""
    w = Watch("-i", EVERY, watched.pid)
    try:
        w.line()
        w.proc.send_signal(signal.SIGSTOP)
        let_wait([watched.tids["feeder"]], 100)  # which naps 3 ms each time
        w.proc.send_signal(signal.SIGCONT)
        w.until(lambda doc: doc["skipped_looks"] > 0)
        _, summary = w.end()
        assert summary["skipped_looks"] == sum(doc["skipped_looks"] for doc in w.docs[:-1]) > 0
        for doc in w.docs[1:-1]:  # never before their time
            turn = doc["round"] - 1 + sum(d["skipped_looks"] for d in w.docs[: doc["round"]])
            assert doc["elapsed_ns"] >= turn * 50_000_000, (doc["round"], turn)
    finally:
        w.kill()


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda s: s.name)
def test_it_is_ended_while_it_rests(watch, watched, sig):
    w = watch("-n", "none", "-i", "1h", watched.pid, sig=sig)
    w.line()
    code, summary = w.end()
    assert code in FINE and summary["interrupted"] and summary["round"] == 1


def test_several_processes(target):
    ends = [target("watched").settle("spinner", "reader", "feeder") for _ in range(2)]
    r = run("watch", "--json", "-n", "2", "-i", EVERY, *(t.pid for t in ends))
    summary = r.docs[-1]
    assert [p["pid"] for p in summary["processes"]] == [t.pid for t in ends]
    for t in ends:
        found = next(th for th in summary["threads"] if th["tid"] == t.tids["stuck"])
        assert (found["pid"], found["verdict"], found["waits_for"]["owner_tid"]) == (t.pid, "stuck", t.tids["holder"])
    text = run("watch", "-n", "2", "-i", EVERY, f"{ends[0].pid},{ends[1].pid}").out
    for t in ends:
        assert f"tid {t.tids['stuck']} stuck (pid {t.pid}) waits for mutex held" in text


def test_names(target, tmp_path):
    name = f"w{os.getpid()}"
    shutil.copy(built("watched"), tmp_path / name)
    ends = [target(tmp_path / name) for _ in range(2)]
    r = run("watch", "-n", "1", name)
    assert r.code == 1 and f"2 processes are named '{name}'" in r.err, r
    docs = run("watch", "--json", "-n", "2", "-i", EVERY, "--all", name).docs
    assert {p["pid"] for p in docs[-1]["processes"]} == {t.pid for t in ends}


def test_children(target):
    shell = target("watched", wrap=["sh", "-c", BEHIND_A_SHELL])
    docs = run("watch", "--json", "-n", "2", "-i", EVERY, "--children", shell.pid).docs
    assert [p["comm"] for p in docs[-1]["processes"]] == ["sh", "watched"]
    assert thread(docs[-1], "stuck")["verdict"] == "stuck"


def test_deadlock_is_told_when_it_is_found(watch, watched):
    w = watch("-i", EVERY, watched.pid)
    assert w.line()["deadlocks"] == []
    right = int(watched.ask("deadlock"))
    found = w.until(lambda doc: doc["deadlocks"])
    (cycle,) = found["deadlocks"]
    assert right in [member["tid"] for member in cycle] and len(cycle) == 2
    w.line()
    code, summary = w.end()
    assert code == 4
    assert [doc["round"] for doc in w.docs[:-1] if doc["deadlocks"]] == [found["round"]]  # once
    (again,) = summary["deadlocks"]
    assert sorted(member["tid"] for member in again) == sorted(member["tid"] for member in cycle)


MANY = 40
MANY_DEADLOCKS = f"""
import ctypes, os, threading
libc = ctypes.CDLL(None)

def take_twice():
    mutex = ctypes.create_string_buffer(64)
    libc.pthread_mutex_lock(mutex)
    libc.pthread_mutex_lock(mutex)

for _ in range({MANY}):
    threading.Thread(target=take_twice, daemon=True).start()
print(f"ready {{os.getpid()}} main={{os.getpid()}}", flush=True)
threading.Event().wait()
"""


def test_more_deadlocks_than_one_round_tells(watch, target):
    """The rest is told in the next round, though nobody has moved."""
    t = target(sys.executable, "-c", MANY_DEADLOCKS).settle()
    w = watch("-i", EVERY, t.pid)
    found = []

    def all_are_told(doc):
        found.extend(member["tid"] for cycle in doc["deadlocks"] for member in cycle)
        return len(found) >= MANY

    w.until(all_are_told)
    assert not w.line()["deadlocks"]
    assert len(found) == len(set(found)) == MANY
    assert w.docs[0]["deadlocks"] and len(w.docs[0]["deadlocks"]) < MANY
    assert w.end()[0] == 4


def test_deadlock_by_an_unwatched_process(watch, target, tmp_path, pid_namespace):
    """Nobody who is watched moves when the only other one goes away that could have helped."""
    t = target("file_locks", tmp_path, "pipe", "reader", "third", wrap=pid_namespace)
    pids = list(t.tids.values())

    def is_helped(doc):
        return all(th["waits_for"] and th["waits_for"]["certain"] and len(th["waits_for"]["peers"]) == 2 for th in doc["threads"])

    until(lambda: run("why", "--json", *pids, wrap=pid_namespace).doc, is_helped)
    w = watch("-i", EVERY, *pids, wrap=pid_namespace)
    quiet = w.until(lambda doc: {th["step"] for th in doc["threads"]} == {"still"})
    assert quiet["deadlocks"] == []
    t.proc.stdin.write(b"\n")
    found = w.until(lambda doc: doc["deadlocks"])
    assert [{member["pid"] for member in d} for d in found["deadlocks"]] == [set(pids)]
    os.kill(child_of(w.proc.pid, "stakeout"), signal.SIGINT)
    code, summary = w.await_end()
    assert code == 4 and len(summary["deadlocks"]) == 1
    assert [doc["round"] for doc in w.docs[:-1] if doc["deadlocks"]] == [found["round"]]


def test_deadlock_in_text(target):
    t = target("deadlock").settle()
    r = run("watch", "-n", "3", "-i", EVERY, t.pid)
    assert r.code == 4
    before, after = r.out.split("\nSUMMARY", 1)
    for part in (before, after):
        assert part.count("\nDEADLOCK: 2 threads wait for each other\n") == 1, r.out
    assert "#0  " in before and "#0  " not in after
    assert re.search(rf"^  tid {t.tids['a_then_b']} a_then_b waits for mutex b .*\n    in take_second ← take_both", after, re.M), after
    assert "No deadlock" not in after


def test_born_and_ended(watch, watched):
    w = watch("-i", EVERY, watched.pid)
    w.line()
    assert watched.ask("end") == "yes"
    ended = w.until(lambda doc: doc["ended_count"])
    assert [(t["tid"], t["name"], t["place"]) for t in ended["ended_threads"]] == [(watched.tids["brief"], "brief", "live_briefly")]
    late = int(watched.ask("bear"))
    born = w.until(lambda doc: any(th["tid"] == late for th in doc["threads"]))
    assert thread(born, late)["step"] == "first" and thread(born, late)["changed"]
    w.line()
    w.line()
    _, summary = w.end()
    assert (summary["born_count"], summary["ended_count"]) == (1, 1)
    brief = thread(summary, "brief")
    assert (brief["verdict"], brief["ended_in_round"], brief["stack"]) == ("ended", ended["round"], None)
    # It may have been born while it was looked at first; then it moved once.
    assert thread(summary, late)["born_in_round"] == born["round"] and thread(summary, late)["verdict"] in rule(thread(summary, late))


def test_born_and_ended_in_text(watch, watched, tmp_path):
    out = tmp_path / "out"
    proc = subprocess.Popen(command("watch", "-n", "0", "-i", EVERY, "-o", out, watched.pid))
    try:
        wait_until(lambda: out.exists() and "0.00 s" in out.read_text(), "the first look was told")
        watched.ask("end")
        late = int(watched.ask("bear"))
        brief = f"tid {watched.tids['brief']} brief"
        wait_until(lambda: f"{brief} has ended; last seen in live_briefly\n" in out.read_text(), "the end was told")
        wait_until(lambda: re.search(rf"tid {late} late is new", out.read_text()), "the birth was told")
    finally:
        proc.send_signal(signal.SIGINT)
        assert proc.wait(TIMEOUT) in FINE
    text = out.read_text()
    assert re.search(rf"^BORN: tid {late} late \(in look \d+\)$", text, re.M), text
    assert re.search(rf"^ENDED: 1 thread\n  {brief}, before look \d+: (seen once|had not moved), last seen in live_briefly$", text, re.M), text


def test_thread_that_stops_moving(watch, watched):
    w = watch("-i", EVERY, watched.pid)
    w.until(lambda doc: thread(doc, "reader")["step"] in ("returned", "ran"))
    assert watched.ask("starve") == "yes"
    still = []
    w.until(lambda doc: still.append(thread(doc, "reader")["step"]) or still[-2:] == ["still"] * 2)
    _, summary = w.end()
    assert thread(summary, "reader")["verdict"] == "halted" and thread(summary, "reader")["still_at_the_end"] >= 2


def test_target_ends(watch, watched):
    w = watch("-i", EVERY, watched.pid)
    w.line()
    w.line()
    watched.end()
    code, summary = w.await_end()
    assert code in FINE and not summary["interrupted"]
    assert summary["processes"][0]["ended_in_round"] and summary["ended_count"] == 8
    assert {t["verdict"] for t in summary["threads"]} == {"ended"}


def test_target_ends_in_text(watched, tmp_path):
    out = tmp_path / "out"
    proc = subprocess.Popen(command("watch", "-n", "0", "-i", EVERY, "-o", out, watched.pid))
    wait_until(lambda: out.exists() and len(re.findall(r"^ +[\d.]+ s  ", out.read_text(), re.M)) > 2, "there were three looks")
    watched.end()
    assert proc.wait(TIMEOUT) in FINE
    text = out.read_text()
    assert f"           watched (pid {watched.pid}) has ended\n" in text
    assert re.search(r"^SUMMARY: \d+ looks in .*: no thread is left, 8 ended", text, re.M), text
    assert re.search(rf"^  tid {watched.tids['stuck']} stuck, before look \d+: had not moved, last seen in want_mutex$", text, re.M), text
    assert "No deadlock" not in text  # nobody looked for one in the end


def test_one_of_two_ends(watch, watched, target):
    other = target("locks", "mutex").settle()
    w = watch("-i", EVERY, watched.pid, other.pid)
    w.line()
    other.end()
    w.until(lambda doc: [p["ended_in_round"] for p in doc["processes"]][1])
    w.line()
    code, summary = w.end()
    assert code in FINE and summary["processes"][0]["ended_in_round"] is None
    assert thread(summary, "stuck")["verdict"] == "stuck" and thread(summary, "waiter")["verdict"] == "ended"


def test_look_that_fails(watch, target, as_nobody):
    """It is told, and the next one comes all the same."""
    t = target("watched", wrap=as_nobody).settle("spinner", "reader", "feeder")
    w = watch("-i", EVERY, t.pid, wrap=as_nobody)
    w.line()
    assert t.ask("hide") == "0"
    failed = w.until(lambda doc: not doc["threads"])
    assert failed["notes"], failed
    assert t.ask("show") == "0"
    w.until(lambda doc: doc["threads"])
    code, summary = w.end()
    assert code == 3 and summary["failed_looks"] >= 1 and summary["ended_count"] == 0
    assert set(failed["notes"]) <= set(summary["notes"])


def test_notes_are_told_once(target, as_nobody):
    """Who may not use BPF is told that, but not in each round."""
    t = target("watched", wrap=as_nobody).settle("spinner", "reader", "feeder")
    r = run("watch", "-n", "3", "-i", EVERY, t.pid, wrap=as_nobody)
    assert r.code in FINE and r.out.count("note: threads are read through /proc") == 1, r
    docs = run("watch", "--json", "-n", "3", "-i", EVERY, t.pid, wrap=as_nobody).docs
    told = [any("are read through /proc" in note for note in doc["notes"]) for doc in docs]
    assert told == [True, False, False, True]


def test_missing(watched):
    nobody = gone()
    r = run("watch", nobody)
    assert (r.code, r.out) == (1, "") and f"{nobody}" in r.err, r
    r = run("watch", "--json", "-n", "2", "-i", EVERY, watched.pid, nobody)
    assert r.code == 3 and any(str(nobody) in note for note in r.docs[0]["notes"]), r
    assert run("watch", "-n", "1", f"no-such-{os.getpid()}").code == 1


@pytest.mark.parametrize(
    "args", [("-i", "0"), ("-i", "1ms"), ("-i", "25h"), ("-i", "soon"), ("-n", "-1"), ("-n", "many"), ("--stop=all",), ("-t", "1")], ids=" ".join
)
def test_wrong_usage(watched, args):
    r = run("watch", *args, watched.pid)
    assert (r.code, r.out) == (2, "") and "stakeout watch" in r.err, r


def test_too_many(tmp_path):
    script = tmp_path / "many"
    script.write_text("for i in $(seq 70); do sleep 100 & done; echo ready; wait")
    proc = subprocess.Popen(["sh", script], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert proc.stdout.readline() == b"ready\n"
        r = run("watch", "-n", "1", "--children", proc.pid)
        assert (r.code, r.out) == (2, "") and "too many processes" in r.err, r
    finally:
        os.killpg(proc.pid, signal.SIGKILL)
        proc.communicate()


def test_schema(watched):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "docs/schema/watch.schema.json").read_text())
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    watched.ask("deadlock")
    docs = run("watch", "--json", "-n", "3", "-i", EVERY, watched.pid).docs
    assert docs[0]["deadlocks"] and docs[-1]["deadlocks"]
    for doc in docs:
        validator(schema).validate(doc)
    for unknown in ({**docs[0], "type": "summary"}, {**docs[-1], "more": 1}, {**docs[1], "round": 0}):
        with pytest.raises(jsonschema.ValidationError):
            validator(schema).validate(unknown)
