# SPDX-License-Identifier: MIT
"""many.py N DEPTH [spin]: N threads that wait, each so deep in a recursion. With none the main thread does not wait, but runs there.

With `spin` another thread runs: any line makes the program say for how many nanoseconds that one was kept from running, at most,
since it was last asked. SIGUSR1 makes faulthandler write all threads to the standard error."""

import faulthandler
import signal
import sys
import threading
import time

gate = threading.Lock()
gate.acquire()
waiting = threading.Semaphore(0)
longest = 0


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


def spin():
    global longest
    last = time.perf_counter_ns()
    while True:
        now = time.perf_counter_ns()
        if now - last > longest:
            longest = now - last
        last = now


def answer():
    global longest
    for _ in sys.stdin:
        gap, longest = longest, 0
        print(gap, flush=True)


count, depth = map(int, sys.argv[1:3])
faulthandler.register(signal.SIGUSR1)
for _ in range(count):
    threading.Thread(target=descend, args=(depth,), daemon=True).start()
for _ in range(count):
    waiting.acquire()
if sys.argv[3:] == ["spin"]:
    threading.Thread(target=spin, daemon=True).start()
elif not count:
    run(depth)
print("ready", flush=True)
answer()
