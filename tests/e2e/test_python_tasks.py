# SPDX-License-Identifier: MIT
"""Tasks of asyncio and the coroutines that they wait in, compared with what Python itself says of them."""

import json

import pytest
from pythons import CHOSEN, python_frames

MOST = 64  # coroutines of a task that are shown
MOST_TASKS = 4096


@pytest.fixture(params=CHOSEN)
def version(request):
    return request.param


def truth(t):
    return json.loads(t.ask("truth"))


def look(stakeout, t, *args):
    result = stakeout("--json", *args, t.pid)
    assert result.code in (0, 3), result
    return result.doc


def told(task):
    awaits = task["awaits"]
    return {
        "stack": python_frames(task, "stack"),
        "awaits": awaits and [awaits["type"], awaits["task"]],
        "state": task["state"],
        "tid": task["tid"],
    }


def markers(task):
    return [frame["symbol"] for frame in task["stack"] if frame["kind"] == "marker"]


def assert_same(doc, expected):
    """All tasks, none twice, and nothing else. Of very deep ones the outermost coroutines are told, and that there are more."""
    tasks = {task["name"]: task for task in doc["tasks"]}
    assert len(tasks) == len(doc["tasks"]) and tasks.keys() == expected.keys()
    for name, task in tasks.items():
        known = dict(expected[name], stack=expected[name]["stack"][-MOST:])
        assert told(task) == known, name
        assert [task["runtime"], task["library"], task["problem"]] == ["python", "asyncio", None]
        assert bool(markers(task)) == (len(expected[name]["stack"]) > MOST), name


@pytest.mark.asan
def test_tasks(python, stakeout, tmp_path):
    """Names, coroutines with their lines, what is awaited, and by whose loop they are run: live, and replayed without the process."""
    t = python("tasks.py").settle()
    expected = truth(t)
    assert len(expected) > 400 and {task["state"] for task in expected.values()} == {"suspended", "running", "created"}
    file = tmp_path / "snapshot"
    live = look(stakeout, t.settle(), "--save", file)
    t.end()
    assert_same(live, expected)
    assert stakeout("replay", "--json", file).doc["tasks"] == live["tasks"]


def test_awaited(python, stakeout):
    """What leads to the future is named where it is neither a coroutine nor the future's own iterator."""
    t = python("tasks.py", "1").settle()
    tasks = {task["name"]: task["awaits"] for task in look(stakeout, t)["tasks"]}
    assert tasks["through an iterator"] == {"type": "Future", "task": None, "through": "Stepper"}
    assert tasks["through a generator"] == tasks["inside"] == {"type": "Future", "task": None, "through": None}
    assert tasks["awaits a task"] == {"type": "Task", "task": "awaited", "through": None}
    assert tasks["of another kind"] == {"type": "Future", "task": None, "through": "Foreign"}
    assert tasks["gathering"]["type"] == "_GatheringFuture"
    assert tasks["blocks"] is None and tasks["never started 0"] is None


@pytest.mark.parametrize("how", ["--source=proc", "--stop=all", "--stop=none", "--proc-mem"])
def test_other_ways_to_capture(python, stakeout, how):
    t = python("tasks.py", "5").settle()
    expected = truth(t)
    assert_same(look(stakeout, t.settle(), how), expected)


def test_no_tasks(python, stakeout):
    """Not without asyncio, and not without the runtime."""
    assert look(stakeout, python("tasks.py", "none").settle())["tasks"] == []
    assert look(stakeout, python("tasks.py", "1").settle(), "--no-runtime")["tasks"] == []


def test_too_many(python, stakeout):
    """The first of them are told, and that there are more."""
    t = python("tasks.py", "900").settle()
    expected = truth(t)
    doc = look(stakeout, t.settle())
    assert len(expected) > MOST_TASKS == len(doc["tasks"])
    assert any("4096" in note for note in doc["notes"]), doc["notes"]
    assert [task for task in doc["tasks"] if len(expected[task["name"]]["stack"]) <= MOST
            and told(task) != expected[task["name"]]] == []
