# SPDX-License-Identifier: MIT
"""What threads wait for, and who holds it, with the C libraries of other systems: `make check-locks` has them made."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from harness import ROOT, is_known, run, symbols, thread, until, wait_of
from test_why import OWNED, OWNERLESS

ROOTS = [Path(place) for place in os.environ.get("STAKEOUT_TEST_ROOTS", "").split()]
if not ROOTS:
    pytest.skip("systems with other C libraries are made by make check-locks", allow_module_level=True)


def library_of(root):
    """The folder of its C library; None: it has none of glibc."""
    found = [p for p in (root / "usr/lib").glob("*-linux-gnu/libc.so.6")] + [p for p in (root / "lib").glob("*-linux-gnu/libc.so.6")]
    return found[0].parent if found else None


@pytest.fixture(scope="module", params=ROOTS, ids=lambda root: root.name)
def locks(request):
    """tests/targets/locks.c, linked with the C library of that system, in its /tmp; and the root."""
    root = request.param
    folder = library_of(root)
    if os.geteuid() != 0 or not folder or not shutil.which("gcc"):
        pytest.skip("needs root, gcc, and a system that has glibc")
    version = re.search(rb"GNU C Library .*? version (\d+)\.(\d+)", (folder / "libc.so.6").resolve().read_bytes())
    libraries = [folder / "libpthread.so.0"] if (int(version[1]), int(version[2])) < (2, 34) else []
    libraries += [folder / "libc.so.6", next(folder.glob("ld-linux*.so.*"))]
    program = root / f"tmp/locks-{os.getpid()}"
    flags = ["-g", "-O2", "-pthread", "-nodefaultlibs", f"-Wl,-rpath-link,{folder}"]
    subprocess.run(
        ["gcc", *flags, "-o", program, ROOT / "tests/targets/locks.c", *libraries, "-lgcc"], check=True, timeout=60
    )
    yield root, program, (int(version[1]), int(version[2]))
    program.unlink()


@pytest.fixture
def started(locks, target):
    root, program, _ = locks

    def start(what):
        return target(Path(f"/tmp/{program.name}"), what, wrap=["chroot", str(root)]).settle()

    return start


def look(t, condition, *args):
    return until(lambda: wait_of(run("why", "--json", *args, t.pid).doc, t.tids["waiter"]), condition)


@pytest.mark.parametrize("what", OWNED)
def test_owner(started, what, source):
    t = started(what)
    if what in ("stream", "join") and source == "--source=proc":
        pytest.skip("/proc does not tell where threads have their descriptors")
    found = wait_of(run("why", "--json", source, t.pid).doc, t.tids["waiter"])
    assert (found["kind"], found["holder"], found["owner_tid"]) == (OWNED[what], "thread", t.tids["holder"])
    assert found["timed"] == (what == "timed")
    if what != "timed":  # whose call is another one once it was stopped for its registers
        assert look(t, is_known, source)


@pytest.mark.parametrize("what", OWNERLESS)
def test_nobody_is_recorded(started, what):
    t = started(what)
    found = look(t, lambda wait: wait)
    names = symbols(thread(run("--json", t.pid).doc, "waiter"))
    is_named = any(re.match(rf"_*(GI_+)?{OWNERLESS[what]}", name or "") for name in names)
    assert (found["kind"], found["holder"], found["owner_tid"]) == (what if is_named else "futex", "not_recorded", None)


@pytest.mark.parametrize("what, members", [("ring", 4), ("ring-pi", 4), ("relock", 1), ("relock-pi", 1), ("rwlock-cycle", 2)])
def test_deadlock(started, what, members):
    t = started(what)
    doc = until(lambda: run("why", "--json", t.pid).doc, lambda doc: doc["deadlocks"])
    assert [len(d) for d in doc["deadlocks"]] == [members]
