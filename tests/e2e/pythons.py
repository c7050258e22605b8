# SPDX-License-Identifier: MIT
"""The Pythons that tests look at: the host's, and those of other suites that tools/prepare-pythons unpacks."""

import os
import subprocess
from pathlib import Path

import pytest
from harness import ROOT, Target

HOST = "host"
# What `make check` looks at; `make check-runtimes` names more.
CHOSEN = os.environ.get("STAKEOUT_TEST_PYTHONS", f"{HOST} 3.13").split()
ENVIRONMENT = dict(os.environ)  # before a test has got a cache folder of its own
SCRIPTS = ROOT / "tests/targets/python"
TOOL = "/usr/bin/python3"

# How often a recursing target is looked at: `make check-runtimes` says 10000.
LOOKS = int(os.environ.get("STAKEOUT_TEST_LOOKS", "75"))

_commands = {}


def command(version):
    """How to start it, or a skip that says why it is not there."""
    if version == HOST:
        if not Path(TOOL).exists():
            pytest.skip(f"{TOOL} is not there")
        return [TOOL]
    if version not in _commands:
        done = subprocess.run([TOOL, ROOT / "tools/prepare-pythons", version], capture_output=True, text=True, env=ENVIRONMENT,
                              timeout=600)
        _commands[version] = done.stdout.split()[1:] or done.stderr.strip()
    if isinstance(_commands[version], str):
        pytest.skip(_commands[version])
    return _commands[version]


def start(version, script, *args, options=(), wrap=(), **popen):
    # What a script imports from beside it leaves nothing there.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return Target([*wrap, *command(version), *options, SCRIPTS / script, *args], env=environment, **popen)


def python_frames(thread, key="user_stack"):
    """[function, file, line] of each Python frame of a thread, or of a task, of a document, innermost first."""
    return [
        [frame["symbol"], frame["source"] and frame["source"]["file"], frame["source"] and frame["source"]["line"]]
        for frame in thread[key]
        if frame["kind"] == "python"
    ]


# What stands between a function of recurse.py and the one that it calls, by its last letter, innermost first.
BETWEEN = {"a": ["go"], "b": ["go", "<lambda>"], "c": ["go", "stream"], "d": ["go"], "e": ["go", "<lambda>"]}
ABOVE = {"go", "<lambda>", "stream", "lambda_of", "find", "<genexpr>", "<module>"}
BELOW = ["run", "run", "_bootstrap_inner", "_bootstrap"]


def is_way(name):
    return name[0] == "f" and name[1:] and set(name[1:]) <= set("abcde")


def check_recursion(frames):
    """Each function's name is its caller's and a letter more; returns how many there are."""
    # What defines a function is freed when it has: such a frame may have no name.
    names = [name.split(".")[-1] if name else "<module>" for name, file, line in frames]
    ways = [name for name in names if is_way(name)]
    first = next((i for i, name in enumerate(names) if is_way(name) or name == "run"), 0)
    expected = []
    for name in ways:
        expected += [name, *(BETWEEN[name[-2]] if len(name) > 2 else [])]
    assert names[first:] == expected + BELOW, names
    assert set(names[:first]) <= ABOVE, names
    assert all(inner[:-1] == outer for inner, outer in zip(ways, ways[1:])), names
    assert not ways or len(ways[-1]) == 2, names
    return len(ways)
