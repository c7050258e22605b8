# SPDX-License-Identifier: MIT
"""A thread whose outer frames are of the main interpreter, and whose inner ones are of another."""

import os
import sys
import threading

try:
    import _interpreters as interpreters
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError as error:
        print(f"skip {error}", flush=True)
        sys.exit(77)

ends = os.pipe()
# What it does has to be in the interpreter itself: nothing is shared with it.
SOURCE = f"""
import os

def inner():
    os.write(1, b"ready\\n")
    os.read({ends[0]}, 1)

def outer():
    inner()

outer()
"""


def run():
    other = interpreters.create()
    if hasattr(interpreters, "exec"):
        interpreters.exec(other, SOURCE)
    else:
        interpreters.run_string(other, SOURCE)


thread = threading.Thread(target=run, daemon=True, name="two of them")
thread.start()
thread.join()
