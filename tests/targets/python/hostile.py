# SPDX-License-Identifier: MIT
"""A thread sleeps, and then what Python knows of it is overwritten: `lengths` of strings and tables, the `type` of a code
object, the `list` of thread states, which becomes a ring. `free` makes it a build without the interpreter's lock, for whoever reads
what it says of itself to debuggers (since 3.13)."""

import ctypes
import os
import sys
import threading

ends = os.pipe()
begun = threading.Semaphore(0)
tstates = []


def victim():
    tstates.append(ctypes.pythonapi.PyThreadState_Get())
    begun.release()
    os.read(ends[0], 1)


def put(address, value):
    ctypes.c_uint64.from_address(address).value = value


def lengths(code):
    table = getattr(code, "co_linetable", None) or code.co_lnotab
    for item in (table, code.co_filename, code.co_name, getattr(code, "co_qualname", code.co_name)):
        put(id(item) + 16, (1 << 62) + 12345)


def type_(code):
    put(id(code) + 8, id(code))


def list_(code):
    for tstate in tstates:
        put(tstate + 8, tstate)


def free(code):
    runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    assert ctypes.string_at(runtime, 8) == b"xdebugpy"
    put(runtime + 16, 1)


ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_uint64
threading.Thread(target=victim, daemon=True).start()
begun.acquire()
what = {"lengths": lengths, "type": type_, "list": list_, "free": free}[sys.argv[1]]
what(victim.__code__)
os.write(1, b"ready\n")
os.read(0, 1)
