# SPDX-License-Identifier: MIT
"""`stakeout setup`: a copy of the program gets its rights, and they are enough."""

import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from harness import NOBODY, STAKEOUT, TIMEOUT

pytestmark = pytest.mark.usefixtures("root")

GROUP = "nogroup"  # Debian's, of user nobody


@pytest.fixture
def installed():
    with tempfile.TemporaryDirectory(dir="/tmp") as path:
        Path(path).chmod(0o755)
        program = Path(path) / "stakeout"
        shutil.copy(STAKEOUT, program)
        program.chmod(0o755)
        yield program


def look(program):
    st = program.stat()
    try:
        rights = os.getxattr(program, "security.capability")
    except OSError:
        rights = b""
    return stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid, rights


def as_user(setpriv, program, *args, **how):
    return subprocess.run([*setpriv, program, *map(str, args)], capture_output=True, text=True, timeout=TIMEOUT, **how)


def test_dry_run(stakeout, installed):
    before = look(installed)
    result = stakeout("setup", "--dry-run", "--group", GROUP, installed)
    assert result.code == 0 and look(installed) == before, result
    for word in ("cap_sys_ptrace", "without it:", "read every process", f"chown root:{GROUP}", "chmod 0750", "setcap "):
        assert word in result.out, result


def test_asks_first(installed):
    before = look(installed)
    for answer, code in (("n\n", 1), ("\n", 1), ("", 1), ("y\n", 0)):
        command = [STAKEOUT, "setup", "--group", GROUP, installed]
        result = subprocess.run(command, input=answer, capture_output=True, text=True, timeout=TIMEOUT)
        assert result.returncode == code and "Go on?" in result.stdout, result
        assert (look(installed) == before) == (code == 1), result


def test_members_of_the_group_can_use_it(stakeout, installed, target, setpriv):
    """Another user's process, with running threads, as root would see it; after --undo no more."""
    t = target("spinners", "loop").settle("loop")
    cache = {**os.environ, "XDG_CACHE_HOME": "/nowhere"}
    assert as_user(setpriv, installed, t.pid, env=cache).returncode == 1
    assert stakeout("setup", "-y", "--group", GROUP, installed).code == 0
    assert look(installed)[:3] == (0o750, 0, NOBODY)
    shown = as_user(setpriv, installed, t.pid, env=cache)
    assert shown.returncode == 0 and "spin_loop" in shown.stdout, shown
    by_proc = as_user(setpriv, installed, "--source=proc", t.pid, env=cache)
    assert by_proc.returncode == 0 and "spin_loop" in by_proc.stdout, by_proc
    assert stakeout("setup", "--undo", "-y", installed).code == 0
    assert look(installed) == (0o755, 0, 0, b"")
    assert as_user(setpriv, installed, t.pid, env=cache).returncode == 1


def test_others_cannot(stakeout, installed, tool):
    assert stakeout("setup", "-y", "--group", GROUP, installed).code == 0
    with pytest.raises(PermissionError):
        subprocess.run([installed, "version"], user=12345, group=12345, extra_groups=[])


def test_refusals(stakeout, installed, setpriv, as_nobody):
    result = stakeout("setup", "-y", "--group", "nobody-has-this-group", installed)
    assert result.code == 1 and "groupadd" in result.err, result
    result = as_user(as_nobody, installed, "setup", "-y", "--group", GROUP, installed)
    assert result.returncode == 1 and "only root" in result.stderr, result
    installed.chmod(0o777)
    result = stakeout("setup", "-y", "--group", GROUP, installed)
    assert result.code == 1 and "others than root can change" in result.err, result
    assert not look(installed)[3]
