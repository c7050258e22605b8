# SPDX-License-Identifier: MIT
"""A thread that sleeps in C code without letting go of the interpreter's lock, and N others that want it."""

import ctypes
import os
import sys
import threading

library = ctypes.PyDLL(None)  # calls through it keep the lock
ends = os.pipe()
begun = threading.Semaphore(0)
go = threading.Event()


def hold():
    for _ in range(int(sys.argv[1])):
        begun.acquire()
    os.write(1, b"ready\n")
    go.set()
    library.read(ends[0], ctypes.create_string_buffer(1), 1)


def want():
    begun.release()
    go.wait()
    while True:
        pass


for number in range(int(sys.argv[1])):
    threading.Thread(target=want, name=f"waiter {number}", daemon=True).start()
holder = threading.Thread(target=hold, name="holder", daemon=True)
holder.start()
holder.join()
