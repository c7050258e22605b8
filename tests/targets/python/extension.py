# SPDX-License-Identifier: MIT
"""Loads the library that a line names, plugin.c, and sleeps in it; then says so."""

import ctypes
import sys

NAP_US = 30000  # far more than what the slowest machine takes to fall asleep

usleep = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p)


def load(path):
    library = ctypes.CDLL(path)
    return call(library)


def call(library):
    return library.plugin_enter(usleep, NAP_US)


print("ready", flush=True)
for line in sys.stdin:
    load(line.strip())
    print("done", flush=True)
