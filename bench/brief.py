# SPDX-License-Identifier: MIT
"""Commands that soon end, and the many processes that they start: how many of their waits have whole user stacks."""

import json
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

from harness import command
from measure import ROOT, figure, left_out

FILES = 60
PYTHON = "import json, urllib.request, subprocess; subprocess.run(['true'])"
NODE = "const fs = require('fs'); for (let i = 0; i < 50; i++) fs.readFile('/etc/passwd', () => {})"
PIPES = "for i in $(seq 300); do true | cat; done"
SOURCE = """
#include <stdio.h>
#include <stdlib.h>
int number_{0}(int n) {{ char text[16]; snprintf(text, sizeof(text), "%d", n); return atoi(text) + {0}; }}
"""
MAKEFILE = "all: $(patsubst %.c,%.o,$(wildcard *.c))\n%.o: %.c\n\tcc -O1 -c -o $@ $<\n"


@contextmanager
def project():
    """A directory with small files of C, none of them compiled."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        for i in range(FILES):
            (Path(directory) / f"{i}.c").write_text(SOURCE.format(i))
        (Path(directory) / "Makefile").write_text(MAKEFILE)
        yield directory


def reasons_of(argv, directory):
    """How many waits ended how: None is a whole stack. Threads that have none, as they exit or execute, are left out."""
    with tempfile.NamedTemporaryFile() as out:
        tool = command("offcpu", "--json", "--no-cache", "--min", "0", "-o", out.name, "--", *argv)
        done = subprocess.run(tool, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode in (0, 3), done.stderr
        doc = json.load(out)
    reasons = Counter()
    for row in doc["stacks"]:
        if row["user_stack"] or row["user_stack_error"]:
            reasons[row["user_stack_error"]] += row["count"]
    return reasons


def measure(name, argv, rounds):
    if not shutil.which(argv[0]):
        left_out(f"{name}: {argv[0]} is not there")
        return
    shares, reasons = [], Counter()
    for _ in range(rounds):
        with project() as directory:
            found = reasons_of(argv, directory)
        shares.append(found[None] / max(found.total(), 1))
        reasons += found
    share, waits = reasons[None] / max(reasons.total(), 1), reasons.total()
    told = f"{share * 100:.2f} % of {waits} ({min(shares) * 100:.2f} to {max(shares) * 100:.2f})"
    figure(f"{name}: 99 % of user stacks whole: {told}", share >= 0.99)
    for reason, count in reasons.most_common():
        if reason:
            print(f"          {count:8} {reason}")


def main(quick):
    rounds = 3 if quick else 10
    print(f"\ncommands that soon end, {rounds} times each: waits with whole user stacks")
    if os.geteuid() != 0:
        left_out("recording waits: needs root")
        return
    measure("make -j4", ["make", "-j4"], rounds)
    measure("sh, with pipes", ["sh", "-c", PIPES], rounds)
    measure("python3", ["/usr/bin/python3", "-c", PYTHON], rounds)
    measure("git log", ["git", "-C", ROOT, "log", "--stat", "-50"], rounds)
    measure("node", ["node", "-e", NODE], rounds)
    measure("java -version", ["java", "-version"], rounds)
