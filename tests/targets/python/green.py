# SPDX-License-Identifier: MIT
"""Threads as gevent has them: several that the main one runs in turns, which are known by numbers of their own and have its native
id. Beside them one that is real."""

import os
import sys
import threading


def wait():
    threading.Event().wait()


threading.Thread(target=wait, name="real", daemon=True).start()
main = threading.main_thread()
if "main" in sys.argv[1:]:  # it is known by such a number, too
    del threading._active[main.ident]
    threading._active[id(main)] = main
for number in range(5):
    green = threading.Thread(name=f"request-{number}", daemon=True)
    green._native_id = main.native_id
    threading._active[id(green)] = green
print("ready", flush=True)
os.read(0, 1)
os._exit(0)
