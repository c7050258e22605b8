# SPDX-License-Identifier: MIT
"""Functions that are made, wait twice and are given up: the next one is then at the same address."""

import time

for number in range(25):
    space = {"sleep": time.sleep}
    exec(compile(f"def made_{number}():\n    for _ in range(2):\n        sleep(0.02)\n", f"<made {number}>", "exec"), space)
    function = space.pop(f"made_{number}")
    function()
    del function, space
