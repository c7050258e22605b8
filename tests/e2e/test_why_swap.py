# SPDX-License-Identifier: MIT
"""Threads that touch memory that is in swap, and wait for it: their control group may read but a byte or two a second of that device."""

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness import TIMEOUT, run, thread, until, wait_until
from test_why_states import control_group

MEGABYTE = 1 << 20


def do(*argv):
    """What it says; a skip where it cannot be done."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode:
        pytest.skip(f"{argv[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


@pytest.fixture
def swap(tmp_path, root):
    """
    A device that is swap. Others may get it as well, but whoever is not slowed down will find it as fast as the disk that its file is on, and
    it takes all back at the end.
    """
    if not all(map(shutil.which, ("losetup", "mkswap", "swapon", "swapoff"))):
        pytest.skip("needs losetup, mkswap, swapon and swapoff")
    compressed = Path("/sys/module/zswap/parameters/enabled")
    if compressed.exists() and compressed.read_text().strip() == "Y":
        pytest.skip("memory is kept compressed, and not written to swap")
    if shutil.which("modprobe"):
        subprocess.run(["modprobe", "-q", "loop"], capture_output=True, timeout=TIMEOUT)
    file = tmp_path / "swap"
    file.write_bytes(bytes(4 * MEGABYTE))
    device = do("losetup", "--find", "--show", file)
    try:
        do("mkswap", device)
        # Of a disk that turns, what is next to it would be read along, whoever's it is.
        Path(f"/sys/block/{Path(device).name}/queue/rotational").write_text("0")
        do("swapon", "--priority", "32767", device)
        try:
            yield device
        finally:
            subprocess.run(["swapoff", device], check=True, timeout=TIMEOUT)
    finally:
        subprocess.run(["losetup", "--detach", device], check=True, timeout=TIMEOUT)


@contextmanager
def slowed_down(pid, device):
    """Within it the process gets next to nothing from that device."""
    number = os.stat(device).st_rdev
    name = f"{os.major(number)}:{os.minor(number)}"
    with control_group("blkio", "") as group:
        file, limit, none = group / "blkio.throttle.read_bps_device", "1", "0"
        if not file.exists():
            file, limit, none = group / "io.max", "rbps=2", "rbps=max"
        if not file.exists():
            pytest.skip(f"{group} sets no limits for devices")
        (group / "cgroup.procs").write_text(str(pid))
        file.write_text(f"{name} {limit}")
        try:
            yield
        finally:
            file.write_text(f"{name} {none}")


@pytest.mark.arch
@pytest.mark.alone("swap is everybody's")
def test_swap(target, source, swap):
    t = target("later", "touch")

    def take():
        r = run("why", "--json", source, t.pid)
        assert r.code in (0, 3), r
        return thread(r.doc, t.tids["waiter"])["waits_for"]

    wait_until(lambda: t.ask("out") == "0", "its memory is in swap")
    with slowed_down(t.pid, swap):
        t.ask("go")
        found = until(take, lambda wait: wait and wait["certain"] and wait["kind"] == "swap")
        assert found["descriptor"] is None and found["peers"] == []
        said = f"tid {t.tids['waiter']} waiter waits for a page of memory from swap"
        assert until(lambda: run("why", source, t.pid).out.splitlines(), lambda lines: said in lines)
    t.end()
