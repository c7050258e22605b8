# SPDX-License-Identifier: MIT
"""Files that --save, -o and --events write: whose they are, who may read them, and what is left after a failure."""

import json
import os
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from harness import command


@pytest.fixture
def writers(target):
    """What is written where, as functions of the file's name."""
    pid = target("plain").settle().pid
    return {
        "save": lambda path: ("--save", path, pid),
        "output": lambda path: ("--json", "-o", path, pid),
        "offcpu": lambda path: ("offcpu", "--json", "--source=proc", "-d", "0.1", "-o", path, "-p", pid),
        "events": lambda path: ("offcpu", f"--events={path}", "-d", "0.1", "-p", pid),
    }


@pytest.fixture(params=["save", "output", "offcpu", "events"])
def writing(request, writers, bpf_missing):
    if request.param == "events" and bpf_missing:
        pytest.skip(bpf_missing)
    return writers[request.param]


def permissions(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_new_files_of_root_are_its_own(stakeout, writing, tmp_path, root):
    assert stakeout(*writing(tmp_path / "out")).code in (0, 3)
    assert permissions(tmp_path / "out") == 0o600
    assert (tmp_path / "out").stat().st_size > 0


def test_saved_snapshot_is_its_owners(target, stakeout, as_nobody, root):
    t = target("plain", wrap=as_nobody).settle()
    with tempfile.TemporaryDirectory() as name:  # pytest's own is closed to other users
        where = Path(name)
        where.chmod(0o777)
        stakeout("--save", where / "snap", "-o", where / "report", t.pid, wrap=as_nobody, umask=0o022)
        assert permissions(where / "snap") == 0o600
        assert permissions(where / "report") == 0o644


@pytest.mark.parametrize("kind", ["link", "dangling link", "hard link", "another user's"])
def test_refused(stakeout, writing, tmp_path, root, kind):
    """What another user may have put there; nothing is written then."""
    there, path = tmp_path / "there", tmp_path / "out"
    there.write_text("precious")
    if kind == "hard link":
        path.hardlink_to(there)
    elif kind == "another user's":
        path.write_text("precious")
        os.chown(path, 54321, 54321)
    else:
        path.symlink_to(there if kind == "link" else tmp_path / "nothing")
    result = stakeout(*writing(path))
    assert result.code == 1 and result.out == "", result
    assert f"{path} " in result.err and kind.split()[-1].replace("user's", "user") in result.err, result
    assert there.read_text() == "precious"
    assert not (tmp_path / "nothing").exists()
    assert kind != "another user's" or path.read_text() == "precious"


def test_names_of_open_files(writers, tmp_path):
    for name in ("/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"):
        with open(tmp_path / "out", "w") as out:
            assert subprocess.run(command(*writers["output"](name)), stdout=out).returncode == 0
        assert json.loads((tmp_path / "out").read_text())["comm"] == "plain"
    with open(tmp_path / "errors", "w") as err:
        subprocess.run(command(*writers["save"]("/dev/stderr")), stdout=subprocess.DEVNULL, stderr=err)
    assert (tmp_path / "errors").read_bytes().startswith(b"STKOSNAP")


def test_half_a_snapshot_is_not_left(target, stakeout, unshare, tmp_path, root):
    """The disk becomes full: a new file is removed, one that was there is empty."""
    t = target("sleepers", "-n", 50, "-d", 100).settle()
    script = 'mount -t tmpfs -o size=64k none "$0" && : >"$0/old" && "$@"; code=$?; ls -s "$0" >&2; exit $code'
    for name in ("new", "old"):
        result = stakeout("--save", tmp_path / name, t.pid, wrap=[unshare, "-m", "sh", "-c", script, str(tmp_path)])
        assert result.code == 1 and "cannot save the snapshot: No space left on device" in result.err, result
        assert "total 0" in result.err and " new" not in result.err.split("total 0")[1], result
