# SPDX-License-Identifier: MIT
"""Threads that wait for files whose server does not answer, or whose disk: that is a loop device, whose file is on such a file system."""

import os
import re
import shutil
import subprocess
from contextlib import contextmanager

import pytest
from deadfs import DeadFs, need_fuse
from harness import TIMEOUT, run, state, thread, until, wait_until

MEGABYTE = 1 << 20


@pytest.fixture
def disk(dead_fs, tmp_path, root):
    """A file of a file system on such a device."""
    if not shutil.which("mkfs.ext4") or not os.path.exists("/dev/loop-control"):
        pytest.skip("needs mkfs.ext4 and loop devices")
    content, mount = tmp_path / "content", tmp_path / "disk"
    content.mkdir()
    mount.mkdir()
    # So much before and behind it that it is not read along with what is needed to mount it.
    (content / "before").write_bytes(os.urandom(4 * MEGABYTE))
    (content / "file").write_bytes(os.urandom(MEGABYTE))
    image = tmp_path / "shown/image"
    made = subprocess.run(["mkfs.ext4", "-q", "-F", "-d", content, image, "32M"], capture_output=True, text=True, timeout=TIMEOUT)
    if made.returncode:
        pytest.skip(f"no file system could be made: {made.stderr.strip()}")
    argv = ["mount", "-t", "ext4", "-o", "loop,ro,noload", dead_fs.mount / "image", mount]
    mounted = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT)
    if mounted.returncode:
        pytest.skip(f"no loop device can be mounted here: {mounted.stderr.strip()}")
    yield mount / "file"
    # When the test has failed somebody may still be there: the device goes with the last one.
    subprocess.run(["umount", "--lazy", mount], check=True, timeout=TIMEOUT)


@contextmanager
def hung(t, fs):
    """Within it the target waits for what does not answer; it ends before that is gone."""
    try:
        with fs.dead():
            t.ask("go")
            wait_until(lambda: state(t.pid, t.tids["waiter"]) in ("D", "S") and fs.waiting(), "the server has a request")
            yield
    finally:
        t.end()


def look(t, source, wanted):
    def take():
        r = run("why", "--json", source, t.pid)
        assert r.code in (0, 3), r
        return thread(r.doc, t.tids["waiter"])["waits_for"]

    return until(take, lambda wait: wait and wanted(wait))


def line_of(t, source):
    return next(line for line in run("why", source, t.pid).out.splitlines() if line.startswith(f"tid {t.tids['waiter']} "))


def test_read(target, source, disk, dead_fs):
    t = target("descriptors", "file-later", disk)
    with hung(t, dead_fs):
        found = look(t, source, lambda wait: wait.get("medium"))
        assert (found["kind"], found["medium"], found["filesystem"]) == ("read", "disk", "ext4")
        assert re.fullmatch(r"/dev/loop\d+", found["device"])
        assert (found["descriptor"]["name"], found["descriptor"]["offset"]) == (str(disk), 10)
        said = f"waiter reads fd {found['descriptor']['fd']}: {disk}, at byte 10, waiting for the disk (ext4 of {found['device']})"
        assert until(lambda: line_of(t, source), lambda line: said in line)


def test_page(target, source, disk, dead_fs):
    """A page of memory that is of a file there."""
    t = target("descriptors", "mapped-later", disk)
    with hung(t, dead_fs):
        found = look(t, source, lambda wait: wait["kind"] == "disk")
        assert found["page_fault"] and found["peers"] == []
        said = "waiter waits for the disk, for a page of memory"
        if source == "--source=bpf":  # which sees the address
            assert (found["file"], found["filesystem"]) == (str(disk), "ext4")
            said += f": {disk} on ext4 of {found['device']}"
        assert until(lambda: line_of(t, source), lambda line: line.endswith(said))


def test_page_of_server(target, source, tmp_path):
    """The kernel asks for several pages at once, and waits for them as for those of a disk."""
    need_fuse()
    (tmp_path / "shown").mkdir()
    (tmp_path / "mount").mkdir()
    (tmp_path / "shown/file").write_bytes(b"x" * MEGABYTE)
    path = tmp_path / "mount/file"
    fs = DeadFs(tmp_path / "shown", tmp_path / "mount", "-r", MEGABYTE)
    try:
        t = target("later", "map", path)
        with hung(t, fs):
            if source == "--source=bpf":
                found = look(t, source, lambda wait: wait["kind"] == "fuse")
                assert (found["page_fault"], found["file"], found["filesystem"]) == (True, str(path), "fuse.deadfs")
                said = f"waits for the server of a FUSE file system to answer, for a page of memory: {path} on fuse.deadfs of deadfs"
            else:
                found = look(t, source, lambda wait: wait["kind"] == "page")
                assert "file" not in found and (found["filesystem"], found["device"]) == ("fuse.deadfs", "deadfs")
                said = "waits for a page of memory of a file, which may be on fuse.deadfs of deadfs"
            assert until(lambda: line_of(t, source), lambda line: line.endswith(f" waiter {said}"))
    finally:
        fs.end()


@pytest.mark.parametrize("kind, words", [("sync", "syncs"), ("control", "waits in ioctl() of")])
def test_server(target, source, dead_fs, kind, words):
    """fsync() and ioctl() of a file."""
    path = dead_fs.mount / "file"
    t = target("descriptors", f"{kind}-later", path)
    with hung(t, dead_fs):
        found = look(t, source, lambda wait: wait["kind"] == kind and wait.get("medium"))
        assert (found["medium"], found["descriptor"]["name"]) == ("fuse", str(path))
        said = f" waiter {words} fd {found['descriptor']['fd']}: {path}"
        assert until(lambda: line_of(t, source), lambda line: said in line and ", waiting for the server of a FUSE file system" in line)


@pytest.mark.parametrize("linked", [False, True])
def test_path(target, source, dead_fs, tmp_path, linked):
    """What is mounted where the path leads to, unless there is a link in it: then only what the kernel waits for is known."""
    path = dead_fs.mount / "file"
    if linked:
        path = tmp_path / "link"
        path.symlink_to(dead_fs.mount / "file")
    t = target("later", "open", path)
    with hung(t, dead_fs):
        found = look(t, source, lambda wait: wait.get("medium"))
        assert (found["kind"], found["medium"], found["path"]) == ("open", "fuse", str(path))
        assert (found.get("filesystem"), found.get("device")) == ((None, None) if linked else ("fuse.deadfs", "deadfs"))
        said = f" waiter opens {path}, waiting for the server of a FUSE file system" + ("" if linked else " (fuse.deadfs of deadfs)")
        assert until(lambda: line_of(t, source), lambda line: line.endswith(said))


def test_lock_in_the_kernel(target, source, dead_fs):
    """Of two that change one directory one has to wait for the other, which waits for the server."""
    t = target("descriptors", "directories-later", dead_fs.mount)

    def take():
        r = run("why", "--json", source, t.pid)
        assert r.code in (0, 3), r
        waits = [thread(r.doc, t.tids[name])["waits_for"] or {} for name in ("waiter", "another")]
        return sorted(str(wait.get("medium")) for wait in waits), waits

    with hung(t, dead_fs):
        media, waits = until(take, lambda found: found[0] == ["fuse", "kernel_lock"])
        assert {wait["path"] for wait in waits} == {f"{dead_fs.mount}/{t.tids[name]}" for name in ("waiter", "another")}
        out = until(lambda: run("why", source, t.pid).out, lambda out: "a lock in the kernel" in out)
        assert re.search(rf"looks up {dead_fs.mount}/\d+, waiting for a lock in the kernel", out), out
