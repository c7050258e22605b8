# SPDX-License-Identifier: MIT
"""Threads that wait for servers of files that do not answer: of NFS and CIFS. test_why_disk.py has the same for FUSE."""

import os
import socket

import nfs
import pytest
from harness import is_known, run, state, thread, until, wait_until

WORDS = {
    "read": "reads fd {fd}: {path}, at byte 0, waiting for an NFS server {server}",
    "write": "writes fd {fd}: {path}, at byte 0, waiting for an NFS server {server}",
    "sync": "syncs fd {fd}: {path}, at byte 4096, waiting for an NFS server {server}",
    "open": "opens {path}, waiting for an NFS server {server}",
    "stat": "looks up {path}, waiting for an NFS server {server}",
    "close": "waits for an NFS server to answer, in close()",
}


@pytest.fixture
def server(tmp_path):
    (tmp_path / "far").mkdir()
    with nfs.mounted(tmp_path / "far") as server:
        yield server


@pytest.fixture
def hung(target, server, tmp_path):
    """hung(WHAT, PATH): a target that does that to a file of the server, which does not answer any more."""
    started = []

    def start(what, path=tmp_path / "far/file"):
        t = target("later", what, path)
        started.append(t)
        server.stop()
        t.ask("go")
        wait_until(lambda: state(t.pid, t.tids["waiter"]) == "D" and server.waiting(), "the server has a request")
        return t

    yield start
    server.go()  # who writes cannot even be killed before
    for t in started:
        t.end()


def look(t, source, wanted):
    def take():
        r = run("why", "--json", source, t.pid)
        assert r.code in (0, 3), r
        return thread(r.doc, t.tids["waiter"])["waits_for"]

    return until(take, lambda wait: wait and wanted(wait))


def said_of(t, source):
    start = f"tid {t.tids['waiter']} waiter "
    return next(line[len(start) :] for line in run("why", source, t.pid).out.splitlines() if line.startswith(start))


@pytest.mark.arch
@pytest.mark.parametrize(
    "what, source", [(what, "bpf") for what in WORDS] + [("read", "proc"), ("open", "proc")], indirect=["source"]
)
def test_file(hung, source, tmp_path, what):
    t = hung(what)
    found = look(t, source, is_known)
    path = str(tmp_path / "far/file")
    if what == "close":
        assert found["kind"] == "nfs" and "file" not in found  # it is not among the descriptors any more
    else:
        assert (found["kind"], found["medium"]) == ("open" if what == "stat" else what, "nfs")
        assert (found["filesystem"], found["device"]) == ("nfs", nfs.EXPORT)
        assert found["path"] == path if found["kind"] == "open" else found["descriptor"]["name"] == path
    fd = (found["descriptor"] or {}).get("fd")
    wanted = WORDS[what].format(fd=fd, path=path, server=f"(nfs of {nfs.EXPORT})")
    assert until(lambda: said_of(t, source), lambda said: said == wanted)


@pytest.mark.arch
def test_page(hung, source, tmp_path):
    """A program or a library there is waited for like this; there is nothing of NFS in the stack."""
    t = hung("map")
    if source == "--source=bpf":  # which sees the address
        found = look(t, source, lambda wait: wait["kind"] == "nfs")
        assert (found["page_fault"], found["file"]) == (True, str(tmp_path / "far/file"))
        wanted = f"waits for an NFS server to answer, for a page of memory: {tmp_path / 'far/file'} on nfs of {nfs.EXPORT}"
    else:
        found = look(t, source, lambda wait: wait["kind"] == "page")
        wanted = f"waits for a page of memory of a file, which may be on nfs of {nfs.EXPORT}"
    assert (found["filesystem"], found["device"]) == ("nfs", nfs.EXPORT)
    assert until(lambda: said_of(t, source), lambda said: said == wanted)


@pytest.mark.arch
def test_link(hung, tmp_path):
    """The path is on a disk, the file is not: what is mounted where the path seems to be is not told."""
    os.symlink(tmp_path / "far/file", tmp_path / "link")
    t = hung("open", tmp_path / "link")
    found = look(t, "--source=proc", is_known)
    assert (found["kind"], found["medium"], found["path"]) == ("open", "nfs", str(tmp_path / "link"))
    assert "filesystem" not in found and "device" not in found


@pytest.mark.arch
def test_another_kind(target, source, tmp_path):
    """A server of CIFS that takes connections, and says nothing: it cannot even be mounted."""
    nfs.need_filesystem("cifs")
    with socket.create_server(("127.0.0.1", 0)) as server:
        options = f"ip=127.0.0.1,port={server.getsockname()[1]},user=x,pass=x,vers=3.0"
        t = target("later", "mount", tmp_path, "cifs", "//127.0.0.1/share", options)
        t.ask("go")
        found = look(t, source, lambda wait: wait["certain"] and wait["kind"] == "remote_file")
        assert found["descriptor"] is None and "medium" not in found
        assert until(lambda: said_of(t, source), lambda said: said == "waits for the server of a file system to answer, in mount()")
        t.end()
