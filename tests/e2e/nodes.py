# SPDX-License-Identifier: MIT
"""The Node.js that tests look at, what V8 says of a stack, and what was shown of it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from harness import ROOT, TIMEOUT

STACKS = ROOT / "tests/targets/node/stacks.js"
SERVER = ROOT / "tests/targets/node/server.js"
RECURSION = ROOT / "tests/targets/node/recurse.js"
INLINED = ROOT / "tests/targets/node/inlined.js"
PATHS = [
    "plain", "callback", "sort", "replace", "construct", "accessor", "private", "reflect", "bound", "generator", "closure",
    "evaluated", "spelled", "proxied", "parsed", "json", "many", "recursion", "timer", "awaited", "promised",
]  # fmt: skip

# Without inlining: it takes away the frames of what is called.
TIERS = {
    "interpreted": ["--jitless"],
    "baseline": ["--always-sparkplug", "--no-opt"],
    "optimised": ["--max-inlined-bytecode-size=0"],
}

HOST = "host"
# What `make check` looks at; `make check-runtimes` names more, which tools/prepare-nodes unpacks.
CHOSEN = os.environ.get("STAKEOUT_TEST_NODES", HOST).split()
ENVIRONMENT = dict(os.environ)  # before a test has got a cache folder of its own

_programs = {}


def program(version):
    """The program of a version, or a skip that says why it is not there."""
    if version == HOST:
        path = shutil.which("node")
        if not path:
            pytest.skip("node is not installed")
        return Path(path)
    if version not in _programs:
        done = subprocess.run([ROOT / "tools/prepare-nodes", version], capture_output=True, text=True, env=ENVIRONMENT, timeout=600)
        _programs[version] = Path(done.stdout.split()[1]) if done.stdout else done.stderr.strip()
    if isinstance(_programs[version], str):
        pytest.skip(_programs[version])
    return _programs[version]


def v8_options(node):
    return subprocess.run([node, "--v8-options"], capture_output=True, text=True, timeout=TIMEOUT).stdout


def no_maglev(node):
    """Without the compiler in the middle, where there is one: it inlines, whatever it is told."""
    return ["--no-maglev"] if "--maglev (" in v8_options(node) else []


def has_maglev(node):
    """Whether it is in use; V8 may know its options and not have it."""
    return "default: --maglev\n" in v8_options(node)


def tier_options(node, tier):
    """To have functions executed that way."""
    return [*TIERS[tier], *no_maglev(node)]


def always_options(node, tier):
    """To have each function compiled as soon as it is called."""
    if tier == "baseline":
        return tier_options(node, tier)
    known = v8_options(node)
    wait = "--minimum-invocations-before-optimization"  # since 12 the first calls do not count
    return [
        "--always-turbofan" if "--always-turbofan (" in known else "--always-opt",
        *([f"{wait}=0"] if f"{wait} (" in known else []),
    ]


def truth(t):
    """(function, file, line) of each frame, the innermost first, as the target says it once it is ready."""
    return [tuple(site) for site in json.loads(t.readline(TIMEOUT))]


def shown(thread):
    """The same of what was found, with what the line is."""
    found = []
    for frame in thread["user_stack"]:
        if frame["kind"] == "js":
            source = frame["source"] or {}
            found.append((frame["symbol"], source.get("file"), source.get("line"), frame["line_kind"]))
    return found


def is_inner(frame):
    """Of what V8 or Node.js themselves call on the way to where a thread blocks."""
    return frame[1] is None or frame[1].startswith("node:")


def is_same(found, expected):
    """
    What has no name for V8 may have any, as may a method that is named by a symbol when the program runs. A script of eval()
    has no name, and a builtin has neither file nor line.
    """
    name, file, line, kind = found
    true_name, true_file, true_line = expected
    if true_name not in (None, name) and not true_name.startswith("[") or file != (true_file or true_line and "<anonymous>"):
        return False
    return not true_line or (line, kind) == (true_line, "current")


def assert_same(thread, expected, inner=0):
    """
    Frame by frame from the outermost. Only what was called later may come in addition, and functions made with V8's API;
    and so many of the innermost.
    """
    found = shown(thread)
    left = found[::-1]
    for frame in reversed(expected):
        while left and left[0][1] is None and not is_same(left[0], frame):
            left.pop(0)
        assert left and is_same(left[0], frame), (frame, found, expected)
        left.pop(0)
    assert all(is_inner(frame) for frame in left[: len(left) - inner]), (left, found, expected)


def assert_calls_fit(thread):
    """
    Of recurse.js: which function is called follows from those before, and on which line. False: the thread was not in them.
    A function that has just begun, or returns, may not be told.
    """
    frames = shown(thread)[::-1]
    found = [frame[0] for frame in frames]
    if "main" not in found:
        return False
    for name, _, line, kind in frames[found.index("main") + 2 : -1]:
        assert kind == "definition" or line == 4 * int(name.removeprefix("f")) + 5, frames
    inner = found[found.index("main") + 1 :]
    assert inner[:1] in ([], ["entry"]), found
    numbers = [int(name.removeprefix("f")) for name in inner[1:]]
    for depth, (caller, callee) in enumerate(zip(numbers, numbers[1:])):
        assert callee == (3 * caller + depth) % 8, (depth, found)
    return True
