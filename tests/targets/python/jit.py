# SPDX-License-Identifier: MIT
"""A loop that is worth compiling; it runs once it was asked whether there is a compiler."""

import sys

print("ready", flush=True)
sys.stdin.readline()
print("yes" if getattr(sys, "_jit", None) and sys._jit.is_enabled() else "no", flush=True)


def hot(n):

    total = 0
    for i in range(n):
        total += i * i
    return total


def spin():
    while True:
        hot(100000)


spin()
