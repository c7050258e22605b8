# SPDX-License-Identifier: MIT
"""The Java that tests look at, what its programs say of their stacks, and what was shown of these."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from harness import ROOT, TARGETS, Target

TARGET_NAMES = ("JavaStacks", "JavaWaits", "JavaChains", "JavaVirtual", "JavaPools", "JavaStubs", "JavaInPython", "JavaLocks")
SOURCES = [ROOT / f"tests/targets/{name}.java" for name in TARGET_NAMES]

CLASSES = TARGETS / "java"  # tests/vm/run makes them, as that takes an emulated machine a minute

# Another release than the host's: `make check-runtimes` names the command that starts it.
JAVA = os.environ.get("STAKEOUT_JAVA", "java").split()

# What executes the program: the interpreter, either compiler, or all of them in one stack.
MODES = {
    "mixed": [],
    "interpreted": ["-Xint"],
    "c1": ["-XX:TieredStopAtLevel=1"],
    "c2": ["-XX:-TieredCompilation"],
    "no_inlining": ["-XX:-Inline"],
    "frame_pointers": ["-XX:+PreserveFramePointer"],
}


def build(where):
    """Where the targets are, compiled to there, or by whoever made the other targets; or a skip."""
    if CLASSES.is_dir():
        # Of all folders of the tests another release than the host's sees only those in /tmp (tools/prepare-jdks).
        return shutil.copytree(CLASSES, where, dirs_exist_ok=True)
    if not shutil.which("javac"):
        pytest.skip("javac is not installed")
    command = ["javac", "-g", "-nowarn", "--release", "8", "-d", where, *SOURCES]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return where


def start(classes, *kinds, options=(), main="JavaStacks", before=()):
    """The target, ready; `before`: the command that starts it."""
    return Target([*before, *JAVA, *options, "-cp", classes, main, *kinds], stderr=subprocess.DEVNULL)


def start_in_python(classes):
    """Python that has called Java, which has called Python back: a target that waits there."""
    if JAVA != ["java"] or not shutil.which("java"):
        pytest.skip("only the host's Java is in the host's Python")
    library = Path(shutil.which("java")).resolve().parent.parent / "lib/server/libjvm.so"
    return Target(["/usr/bin/python3", ROOT / "tests/targets/python/java_in_python.py", library, classes], stderr=subprocess.DEVNULL)


# Its frames of both, innermost first.
IN_PYTHON = [
    ("python", "innermost"),
    ("python", "back"),
    ("java", "JavaInPython.back"),
    *[("java", "JavaInPython.descend")] * 4,
    ("python", "outermost"),
    ("python", "<module>"),
]


def version():
    said = subprocess.run([*JAVA, "-version"], capture_output=True, text=True).stderr
    number = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(number[1]) if number else 0


def answers(t, question):
    line = t.ask(question)
    while line != "end":
        yield line.split("\t")
        line = t.readline()


def truth(t):
    """What the target says of its threads: (function, file, line) of each frame, the innermost first."""
    stacks = {}
    for name, function, file, number in answers(t, "stacks"):
        place = bare(function), None if file == "null" else file, max(int(number), 0) or None
        if not is_hidden(function):
            stacks.setdefault(name, []).append(place)
    return stacks


def frames_of(t):
    return [f for f in t["user_stack"] if f["kind"] == "java"]


def is_hidden(symbol):
    """What it has made itself of method handles the virtual machine leaves out, but not in all releases."""
    return "LambdaForm$" in symbol


def bare(symbol):
    """The classes of lambdas: before 17 the virtual machine adds a number that is not in their names."""
    return re.sub(r"(\$\$Lambda\$\d+)/\w+", r"\1", symbol)


def place_of(frame):
    source = frame["source"] or {"file": None, "line": 0}
    return bare(frame["symbol"]), source["file"], source["line"] or None


def shown(t):
    return [place_of(f) for f in frames_of(t) if not is_hidden(f["symbol"])]


CHAIN = re.compile(r"JavaChains\.([abc])([abc])$")

# Frames of one size each, many methods in one frame, and calls from compiled into interpreted code and back.
RUNNING = {
    "mixed": [],
    "interpreted": ["-Xint"],
    "c1": ["-XX:TieredStopAtLevel=1"],
    "no_inlining": ["-XX:-Inline"],
    "both": [
        "-XX:-Inline",
        "-XX:CompileCommand=quiet",
        *(f"-XX:CompileCommand=exclude,JavaChains.{name}" for name in ("bb", "ca", "ac")),
    ],
}


def assert_chain(t):
    """Each method was called by one that calls it, up to the first: nothing is missing in between."""
    names = [f["symbol"] for f in frames_of(t)]
    chain = [match.groups() for match in map(CHAIN.match, names) if match]
    for callee, caller in zip(chain, chain[1:]):
        assert callee[0] == caller[1], names
    assert not chain or chain[-1] == ("a", "a"), names
    assert len(chain) <= 21 and names[-1] == "java.lang.Thread.run", names
    return len(chain)


# In code of the virtual machine that has no frames of one size: whoever is called there for these is asked for by name.
STUBS = ["copy", "fill", "zero", "checksum", "equal", "multiply", "raise"]
APART = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,JavaStubs.*"]


def assert_stub(t, kind):
    """What was interrupted: a method of the target, or what that called for its purpose, which has all three of its callers."""
    names = [f["symbol"] for f in frames_of(t)]
    callers = [f"JavaStubs.{name}" for name in (kind, "work", "run")]
    own = [name for name in names if name.startswith("JavaStubs.")]
    is_called = len(own) < len(names) or (t["user_stack"][0]["symbol"] or "").startswith("StubRoutines")
    assert own and own == names[-len(own) :] == callers[-len(own) :], names
    assert not is_called or own == callers, names
    return own == callers
