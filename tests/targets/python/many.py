# SPDX-License-Identifier: MIT
"""many.py N DEPTH: N threads that wait, each so deep in a recursion. With none the main thread does not wait, but runs there."""

import sys
import threading

gate = threading.Lock()
gate.acquire()
waiting = threading.Semaphore(0)


def descend(left):
    if left:
        return descend(left - 1)
    waiting.release()
    return gate.acquire()


def run(left):
    if left:
        return run(left - 1)
    print("ready", flush=True)
    while True:
        pass


count, depth = map(int, sys.argv[1:])
for _ in range(count):
    threading.Thread(target=descend, args=(depth,), daemon=True).start()
for _ in range(count):
    waiting.acquire()
if not count:
    run(depth)
print("ready", flush=True)
sys.stdin.read()
