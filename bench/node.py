# SPDX-License-Identifier: MIT
"""Node.js with workers deep in recursions: the whole command, and what a running worker notices of it. No other tool shows them."""

import shutil
import statistics

from harness import ROOT, STAKEOUT, Target
from measure import compare_gaps, figure, left_out

WORKERS, DEPTH = 8, 100


def main(quick):
    if not shutil.which("node"):
        left_out("JavaScript: node is not installed")
        return
    target = Target(["node", ROOT / "tests/targets/node/many.js", WORKERS, DEPTH])
    argvs = {"stakeout": [STAKEOUT, target.pid], "stakeout --json": [STAKEOUT, "--json", target.pid],
             "stakeout --no-runtime": [STAKEOUT, "--no-runtime", target.pid]}  # fmt: skip
    try:
        found = compare_gaps(f"{WORKERS} workers of {DEPTH} frames, Node.js", target, 4 if quick else 15, argvs)
    finally:
        target.end()
    wall = found["stakeout"][2]
    figure(f"whole command below 50 ms: {wall:.1f} ms", wall < 50)
    pause = statistics.median(run.capture["max_pause_us"] for run in found["stakeout --json"][0])
    print(f"          (by its own account the longest pause was {pause:.0f} µs, median)")
