# SPDX-License-Identifier: MIT
"""Servers of the distribution, for tests, and with their own load for measurements beside them."""

import os
import pwd
import shutil
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path

from harness import wait_until


quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def find(program):
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/share/bcc/tools")


@contextmanager
def redis(directory):
    """A redis-server on a socket in the directory: (its pids, its load, as a command of some seconds)."""
    server = find("redis-server")
    assert server and find("redis-benchmark"), "redis-server or redis-benchmark: not installed"
    socket = directory / "redis"
    options = ["--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", directory]
    proc = subprocess.Popen([server, *map(str, options)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        wait_until(socket.exists, "redis-server is ready")
        yield proc.pid, lambda n: [find("redis-benchmark"), "-s", socket, "-t", "get", "-n", n, "--csv"]
    finally:
        proc.kill()
        proc.wait()


def home_of_nobody(directory, name):
    """A directory for a server that does not run as root, and how it is started."""
    user = pwd.getpwnam("nobody")
    home = directory / name
    home.mkdir(mode=0o700)
    os.chown(home, user.pw_uid, user.pw_gid)
    directory.chmod(0o711)
    return home, dict(user=user.pw_uid, group=user.pw_gid, extra_groups=[], cwd="/", stdin=subprocess.DEVNULL)


@contextmanager
def postgres_server(directory):
    """(Its pid, the directory of its socket, where its programs are)"""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    assert places, "postgres: not installed"
    home, as_user = home_of_nobody(directory, "postgres")
    initdb = [places[-1] / "initdb", "-D", home / "db", "--no-sync", "-A", "trust", "-U", "test"]
    subprocess.run(initdb, check=True, **as_user, **quiet)
    options = ["-D", home / "db", "-c", "listen_addresses=", "-k", home]
    proc = subprocess.Popen([places[-1] / "postgres", *options], **as_user, **quiet)
    try:
        ready = [places[-1] / "pg_isready", "-h", home, "-U", "test"]
        wait_until(lambda: subprocess.run(ready, **quiet).returncode == 0, "postgres is ready")
        yield proc.pid, home, places[-1]
    finally:
        proc.send_signal(signal.SIGQUIT)  # its children end with it
        proc.wait()


@contextmanager
def postgres(directory):
    with postgres_server(directory) as (pid, home, programs):
        pgbench = [programs / "pgbench", "-h", home, "-U", "test"]
        subprocess.run([*pgbench, "-i", "-s", "5", "postgres"], check=True, **quiet)
        yield pid, lambda seconds, clients=4: [*pgbench, "-c", clients, "-T", seconds, "postgres"]


@contextmanager
def mariadb(directory):
    server, install, load = find("mariadbd"), find("mariadb-install-db"), find("mariadb-slap")
    assert server and install and load, "mariadbd or mariadb-slap: not installed"
    home, as_user = home_of_nobody(directory, "mariadb")
    data = ["--no-defaults", f"--datadir={home / 'db'}"]
    subprocess.run([install, *data, "--skip-test-db"], check=True, **as_user, **quiet)
    socket = home / "socket"
    options = [f"--socket={socket}", "--skip-networking", "--skip-grant-tables"]
    proc = subprocess.Popen([server, *data, *options], **as_user, **quiet)
    slap = [load, "--no-defaults", "-S", socket, "--auto-generate-sql", "--auto-generate-sql-load-type=mixed", "--concurrency=32"]
    try:
        wait_until(socket.exists, "mariadbd is ready")
        yield proc.pid, lambda n: [*slap, f"--number-of-queries={n}"]
    finally:
        proc.kill()
        proc.wait()
