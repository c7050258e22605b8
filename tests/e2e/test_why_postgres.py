# SPDX-License-Identifier: MIT
"""Two sessions of a database, of which one waits for what the other has locked."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest
from harness import TIMEOUT, run, until
from servers import postgres_server


@pytest.fixture
def server():
    if not list(Path("/usr/lib/postgresql").glob("*/bin")):
        pytest.skip("postgres is not installed")
    if os.geteuid() != 0:
        pytest.skip("needs root, to be another user")
    with tempfile.TemporaryDirectory(dir="/tmp") as directory, postgres_server(Path(directory)) as found:
        yield found


@pytest.fixture
def session(server):
    """session(SQL): a client that has sent it, and waits for more to send."""
    _, home, programs = server
    started = []

    def start(sql):
        argv = [programs / "psql", "-h", home, "-U", "test", "-qAt", "postgres"]
        proc = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
        started.append(proc)
        proc.stdin.write(sql)
        proc.stdin.flush()
        return proc

    yield start
    for proc in started:
        proc.kill()
        proc.communicate(timeout=TIMEOUT)


def test_lock_of_another_session(server, session):
    holder = session("create table t (n int); insert into t values (1); begin; update t set n = 2; select pg_backend_pid();\n")
    has_it = int(holder.stdout.readline())
    waiter = session("select pg_backend_pid(); update t set n = 3;\n")
    wants_it = int(waiter.stdout.readline())

    def look():
        return run("why", waiter.pid, wants_it, has_it).out

    # The client waits for its backend, which waits to be woken; the one that has the lock waits for its own client.
    chain = rf"^tid {waiter.pid} psql of pid {waiter.pid} \(psql\) waits to read fd \d+: unix → .*, at the other end pid {wants_it} postgres, which waits for events of epoll"
    out = until(look, lambda out: re.search(chain, out, re.M))
    assert out.endswith("\nNo deadlock was found.\n"), out
    names = [frame["symbol"] for th in run("--json", wants_it).doc["threads"] for frame in th["user_stack"]]
    assert "ProcSleep" in names or not any(names), names
