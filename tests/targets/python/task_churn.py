# SPDX-License-Identifier: MIT
"""Tasks whose coroutines call each other, sleep for no time, and return, as fast as they can. Each function is named after its
caller and a letter more, so that coroutines which never awaited each other are seen."""

import asyncio
import itertools
import random
import sys

DEPTH = 6
LETTERS = "abc"
TASKS = int(sys.argv[1])

functions = {}


def make(name):
    calls = {letter: name + letter for letter in LETTERS} if len(name) <= DEPTH else {}
    source = f"async def {name}(choose):\n    await asyncio.sleep(0)\n"
    for letter, callee in calls.items():
        source += f"    if choose() == {letter!r}:\n        await functions[{callee!r}](choose)\n"
    exec(source, globals(), functions)
    for callee in calls.values():
        make(callee)


make("f")


async def work(number):
    choose = random.Random(number).choice
    while True:
        await functions["f"](lambda: choose(LETTERS))


async def short(number):
    await asyncio.sleep(0)


async def main():
    tasks = [asyncio.create_task(work(number)) for number in range(TASKS)]
    print("ready", flush=True)
    for _ in itertools.count():
        tasks[TASKS:] = [asyncio.create_task(short(number)) for number in range(8)]
        await asyncio.sleep(0)


asyncio.run(main())
