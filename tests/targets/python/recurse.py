# SPDX-License-Identifier: MIT
"""Recurses and returns as fast as it can. A function's name is its way from the root, and its caller's name is the same
without the last letter: a stack that never was is seen by that. Frames are of many sizes, and some calls go through C, a
generator or a method, so that no function is always at the same place of memory."""

import random
import sys
import threading

LETTERS = "abcde"
DEPTH = 12
MOST = 20000
SOURCES = {
    "a": "def {name}(d):\n    {locals}\n    return d and go('{name}', d)\n",
    "b": "def {name}(d):\n    {locals}\n    return d and list(map(lambda_of('{name}', d), (1,)))\n",
    "c": "def {name}(d):\n    {locals}\n    for x in stream('{name}', d): pass\n",
    "d": "def {name}(d, *rest, **more):\n    {locals}\n    try:\n        return d and go('{name}', d, *rest)\n    finally:\n        pass\n",
    "e": "def {name}(d):\n    {locals}\n    return d and sorted([1], key=lambda_of('{name}', d))\n",
}
# What stands between a function and the one that it calls.
HELPERS = ("go", "lambda_of.<locals>.<lambda>", "<lambda>", "stream")  # test_python.py has them, too

functions = {}
names = {"__name__": "made"}
pick = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1).random


def find(path):
    """Each way has a function of its own, made when it is needed. None: there are enough."""
    if path not in functions:
        if len(functions) == MOST:
            return None
        count = int(pick() * 12)
        source = SOURCES[path[-1]].format(name="f" + path, locals="; ".join(f"v{i} = d" for i in range(count)) or "pass")
        exec(compile(source, "recurse", "exec"), names)
        functions[path] = names.pop("f" + path)
    return functions[path]


def go(caller, d, *rest):
    function = find(caller[1:] + LETTERS[int(pick() * 5)])
    return function and function(d - 1)


def lambda_of(caller, d):
    return lambda _: go(caller, d)


def stream(caller, d):
    yield 1
    if d:
        yield go(caller, d)


names.update(go=go, lambda_of=lambda_of, stream=stream)


def run():
    while True:
        find(LETTERS[int(pick() * 5)])(int(pick() * DEPTH))


threading.Thread(target=run, name="recursing", daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
