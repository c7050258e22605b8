# SPDX-License-Identifier: MIT
"""Forks as a C program does that has Python in it: Python does not know, and the child's thread state has the parent's tid. Tells the
child's pid; both wait."""

import ctypes
import os


def wait(number):
    os.read(number, 1)


def parent(child):
    print("ready", os.getpid(), f"child={child}", flush=True)
    wait(0)


def main():
    ours, theirs = os.pipe()
    child = ctypes.PyDLL(None).fork()
    if not child:
        os.close(theirs)
        wait(ours)  # until the parent is gone
        os._exit(0)
    parent(child)


main()
os._exit(0)
