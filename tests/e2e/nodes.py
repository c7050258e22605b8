# SPDX-License-Identifier: MIT
"""What V8 says of a stack, and what was shown of it."""

import json
import os
import shutil
from pathlib import Path

import pytest
from harness import ROOT, TIMEOUT

STACKS = ROOT / "tests/targets/node/stacks.js"


def node():
    """The program, which `make check-runtimes` may name, or a skip."""
    path = os.environ.get("STAKEOUT_NODE") or shutil.which("node")
    if not path:
        pytest.skip("node is not installed")
    return Path(path)


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


def line_of(text):
    """Where it is in the target."""
    lines = STACKS.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


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
