# SPDX-License-Identifier: MIT
"""The Pythons that tests look at: the host's, and those of other suites that tools/prepare-pythons unpacks."""

import os
import subprocess
from pathlib import Path

import pytest
from harness import ROOT, Target

HOST = "host"
# What `make check` looks at; `make check-runtimes` names more.
CHOSEN = os.environ.get("STAKEOUT_TEST_PYTHONS", f"{HOST} 3.13").split()
ENVIRONMENT = dict(os.environ)  # before a test has got a cache folder of its own
SCRIPTS = ROOT / "tests/targets/python"
TOOL = "/usr/bin/python3"

_commands = {}


def command(version):
    """How to start it, or a skip that says why it is not there."""
    if version == HOST:
        if not Path(TOOL).exists():
            pytest.skip(f"{TOOL} is not there")
        return [TOOL]
    if version not in _commands:
        done = subprocess.run([TOOL, ROOT / "tools/prepare-pythons", version], capture_output=True, text=True, env=ENVIRONMENT,
                              timeout=600)
        _commands[version] = done.stdout.split()[1:] or done.stderr.strip()
    if isinstance(_commands[version], str):
        pytest.skip(_commands[version])
    return _commands[version]


def start(version, script, *args, options=(), wrap=(), **popen):
    # What a script imports from beside it leaves nothing there.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return Target([*wrap, *command(version), *options, SCRIPTS / script, *args], env=environment, **popen)


def python_frames(thread, key="user_stack"):
    """[function, file, line] of each Python frame of a thread, or of a task, of a document, innermost first."""
    return [
        [frame["symbol"], frame["source"] and frame["source"]["file"], frame["source"] and frame["source"]["line"]]
        for frame in thread[key]
        if frame["kind"] == "python"
    ]
