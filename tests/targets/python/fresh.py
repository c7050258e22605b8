# SPDX-License-Identifier: MIT
"""Compiles code and executes it as fast as it can, and frees it each time: other code gets its memory. Round N has functions
first_N, second_N and third_N in a file of that number, whose lines follow from it, too."""

import sys
import threading

SOURCE = """
def first_{n}():
{gap}    return second_{n}()
def second_{n}():
{gap}    return third_{n}()
def third_{n}():
{gap}    return sum([i for i in range({count})])
first_{n}()
"""


def run():
    n = 0
    while True:
        n += 1
        text = SOURCE.format(n=n, gap="\n" * (n % 7), count=50 + n % 2000)
        exec(compile(text, f"round {n}", "exec"), {})


threading.Thread(target=run, name="executing", daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
