# SPDX-License-Identifier: MIT
"""Fixtures, and how tests are run. Everything that a test starts is ended by its pid."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import javas
import pytest
from _pytest.assertion import rewrite
from _pytest.runner import runtestprotocol

from deadfs import DeadFs, need_fuse
from debuginfods import Server
from harness import CRASHED, HAVE_NO_STACK, NOBODY, STAKEOUT, TARGETS, TIMEOUT, Target, built, child_of, name_of, run, tids
from offcpu_recording import RUNGS, Recording, why_not
from pythons import start as start_python

# What a test may be marked with; CONTRIBUTING.md tells when. Those with (why) want the reason.
MARKERS = {
    "arch(variant…)": "what it looks at depends on the architecture or on the kernel: it runs on the emulated machine, too; of several variants these",
    "native": "what an arch test would not tell again on the emulated machine: it, or this variant of it, runs here only",
    "asan(variant…)": "foreign bytes, or threads of the program itself, are handled: it runs under the sanitizers, too; of several variants these",
    "patient(why)": "it hardly uses a processor: it runs beside the others, and one more at a time than there are processors",
    "alone(why)": "it needs the processors for itself: nothing else runs beside it",
    "chance(why)": "it may fail by chance: it is then run again, once",
}


# What an assertion says is cut after some elements otherwise, and what failed once in 1,000 runs is not seen again.
rewrite.saferepr = lambda what, **limits: repr(what)[:5000]


def pytest_configure(config):
    if not STAKEOUT.exists():
        pytest.exit(f"{STAKEOUT} is not there: run make first", returncode=2)
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def pytest_addoption(parser):
    parser.addoption("--once", action="store_true", help="run no test again that failed")


def is_for_others(marker, item):
    return marker.name in ("arch", "asan") and marker.args and item.callspec.id not in marker.args


def pytest_collection_modifyitems(items):
    for item in items:
        for marker in item.iter_markers():
            if marker.name in ("patient", "alone", "chance") and not marker.args:
                raise pytest.UsageError(f"{item.nodeid} is marked {marker.name}, but not why")
        item.own_markers = [marker for marker in item.own_markers if not is_for_others(marker, item)]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    # The tests are run in two parts: one that has none of those that were asked for has not failed.
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and session.config.getoption("keyword"):
        session.exitstatus = pytest.ExitCode.OK


AT_FIRST = "failed only at first"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """
    What fails is final, but for tests that say why chance can fail them: such a one is run again, once, and the first
    failure is shown at the end. Not after a crash or a hang: those are nobody else's fault.
    """
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    failed = [report for report in reports if report.failed]
    final = any(word in report.longreprtext for report in failed for word in (CRASHED, "Failed: Timeout"))
    if failed and not final and item.get_closest_marker("chance") and not item.config.getoption("once"):
        item._initrequest()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if not any(report.failed for report in reports):
            # With the report it gets to whoever prints the summary, which may be another process.
            text = "\n".join(report.longreprtext for report in failed)
            reports[-1].user_properties.append((AT_FIRST, text))
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter):
    reports = [report for some in terminalreporter.stats.values() for report in some]
    ends = [report for report in reports if getattr(report, "when", None) == "teardown"]
    told = {report.nodeid: text for report in ends for what, text in report.user_properties if what == AT_FIRST}
    for nodeid, text in told.items():
        terminalreporter.section(nodeid)
        terminalreporter.write_line(text)
    for nodeid in told:
        terminalreporter.write_line(f"{AT_FIRST}: {nodeid}")


@pytest.fixture(autouse=True)
def private_cache(tmp_path_factory, monkeypatch):
    """Each test starts with an empty cache, and asks no server that the machine knows."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)


@pytest.fixture(autouse=True)
def usual_terminal(monkeypatch):
    """Whatever terminal the tests themselves have."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture
def target():
    """target(NAME or PATH, ARG…, wrap=[COMMAND…]): a started and ready target."""
    started = []

    def start(name, *args, wrap=(), **popen):
        path = name if isinstance(name, Path) else built(name)
        started.append(Target([*wrap, path, *args], **popen))
        return started[-1]

    yield start
    for t in reversed(started):  # a tracer before what it traces, which else stays a zombie
        t.end()


@pytest.fixture
def python(version):
    """python(SCRIPT, ARG…): a started and ready target, run by the Python of that version."""
    started = []

    def begin(script, *args, **more):
        started.append(start_python(version, script, *args, **more))
        return started[-1]

    yield begin
    for t in started:
        t.end()


@pytest.fixture
def narrow(target):
    """narrow(ARG…): a 32-bit program that sleeps again and again, or, with an argument, for good."""

    def start(*args):
        if not (TARGETS / "waits_32bit").exists():
            pytest.skip("no i686-linux-gnu-gcc at build time")
        try:
            return target("waits_32bit", *args)
        except OSError as error:
            pytest.skip(f"this kernel runs no 32-bit programs: {error}")

    return start


@pytest.fixture
def dead_fs(tmp_path):
    """A file system with one file, "file", which answers nobody within its dead()."""
    need_fuse()
    shown, mount = tmp_path / "shown", tmp_path / "mount"
    shown.mkdir()
    mount.mkdir()
    (shown / "file").write_bytes(b"x" * 100)
    fs = DeadFs(shown, mount)
    yield fs
    fs.end()


@pytest.fixture
def stakeout():
    """stakeout(ARG…): the result of a run."""
    return run


@pytest.fixture
def snap(stakeout):
    """snap(PID or target, ARG…): the JSON document, after a check that exit code and stacks agree."""

    def take(who, *args):
        pid = who.pid if isinstance(who, Target) else who
        # A busy machine has threads that run wait for a CPU: they get more time to stop than they have by default.
        result = stakeout("--json", "--stop-timeout", int(TIMEOUT / 2 * 1000), *args, pid)
        assert result.code in (0, 3), result
        whole = all(
            t["status"] in HAVE_NO_STACK or (t["user_stack_end"] == "complete" and t["capture"] != "moved")
            for t in result.doc["threads"]
        )
        assert result.code == (0 if whole else 3), result
        return result.doc

    return take


@pytest.fixture(scope="session")
def bpf_missing():
    """Why the BPF source cannot be used here; None when it has to work."""
    if os.geteuid() != 0:
        return "BPF needs root"
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        return "the kernel has no BTF"
    if "-bpf" in run("--version").out:
        return "built without BPF"
    return None


@pytest.fixture(params=["bpf", "proc"])
def source(request, bpf_missing):
    """Each source of pass 1, as the option that forces it."""
    if request.param == "bpf" and bpf_missing:
        pytest.skip(bpf_missing)
    return f"--source={request.param}"


@pytest.fixture
def root():
    if os.geteuid() != 0:
        pytest.skip("needs root")


@pytest.fixture
def tool():
    """tool(NAME): the path of a program that the test needs, or a skip."""

    def find(name, where=None):
        path = shutil.which(name, path=where)
        if not path:
            pytest.skip(f"{name} is not installed")
        return path

    return find


@pytest.fixture
def kthreadd():
    """The number of a thread of the kernel."""
    if name_of(2, 2) != "kthreadd":
        pytest.skip("no thread of the kernel is in this pid namespace")
    return 2


@pytest.fixture
def unshare(tool):
    """The command; a skip where it makes no namespaces: of mounts in a chroot, whose root is no mount point."""
    path = tool("unshare")
    tried = subprocess.run([path, "-mpf", "true"], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(tried.stderr.strip())
    return path


@pytest.fixture
def pid_namespace(unshare, tool):
    """
    A command that runs another one in a pid namespace of its own, where all processes can be seen: elsewhere the descriptors of some may be
    nobody's to see, and nothing is known for sure.
    """
    nsenter = tool("nsenter")
    first = subprocess.Popen([unshare, "--pid", "--fork", "--mount-proc", "--kill-child", "sleep", "infinity"])
    yield [nsenter, "--target", str(child_of(first.pid, "sleep")), "--pid", "--mount"]
    first.kill()
    first.wait()


@pytest.fixture
def apart():
    """apart(target): the target on one processor, what the test starts from now on on the others."""
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        pytest.skip("needs two processors")

    def separate(t):
        cpu = min(before)
        for tid in tids(t.pid):
            os.sched_setaffinity(tid, {cpu})
        os.sched_setaffinity(0, before - {cpu})
        return t

    yield separate
    os.sched_setaffinity(0, before)


@pytest.fixture
def rng():
    """Random, but the same on every run."""
    return random.Random(1)


@pytest.fixture
def setpriv(tool):
    """The start of a command line that runs the program as another user."""
    path = STAKEOUT
    while path != path.parent:
        path = path.parent
        if not os.stat(path).st_mode & 0o001:
            pytest.skip(f"{path} is closed to other users")
    return [tool("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


@pytest.fixture
def as_nobody(setpriv):
    """The same, and that user has no rights at all."""
    return [*setpriv, "--bounding-set=-all", "--inh-caps=-all"]


@pytest.fixture(scope="session")
def classes(tmp_path_factory):
    """Where the targets in Java are."""
    return javas.build(tmp_path_factory.mktemp("java"))


@pytest.fixture
def java_in_python(classes):
    t = javas.start_in_python(classes)
    yield t
    t.end()


@pytest.fixture
def java(classes):
    """java(KIND…, options=…, main=…): the target, ready."""
    started = []

    def start(*kinds, **how):
        started.append(javas.start(classes, *kinds, **how))
        return started[-1]

    yield start
    for t in started:
        t.end()


@pytest.fixture
def virtual(java):
    """virtual(KIND): a target with one virtual thread; skips what has none."""

    def start(kind, **how):
        if javas.version() < 21:
            pytest.skip("this Java has no virtual threads")
        return java(kind, main="JavaVirtual", **how)

    return start


@pytest.fixture
def record():
    """record(ARG…): a recording that has begun."""
    started = []

    def start(*args, **how):
        started.append(Recording(args, **how))
        return started[-1].begun()

    yield start
    for recording in started:
        recording.close()


@pytest.fixture(params=RUNGS)
def rung(request):
    """Each place at which stacks can be taken; what this kernel lacks it has to say."""
    reason = why_not(request.param)
    if reason:
        pytest.skip(reason)
    return request.param


@pytest.fixture
def serve():
    started = []

    def start(answer):
        started.append(Server(answer))
        return started[-1]

    yield start
    for server in started:
        server.end()


@pytest.fixture(scope="session")
def libdebuginfod():
    """By loading it, as the program does, but in another process."""
    load = "import ctypes; ctypes.CDLL('libdebuginfod.so.1')"
    if subprocess.run([sys.executable, "-c", load], capture_output=True).returncode:
        pytest.skip("libdebuginfod is not installed")
