# SPDX-License-Identifier: MIT
"""Targets that see other files or other process ids than the program that looks at them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from harness import Result, assert_calls, built, command, state, thread, tids, wait_until
from offcpu_recording import rows_of

pytestmark = pytest.mark.usefixtures("root")

FOREIGN = "/proc is of another pid namespace"


def libraries(program):
    """The files that a program needs to start in a directory of its own."""
    listing = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(/\S+) \(0x", listing)


@pytest.fixture
def jail(tmp_path):
    """A directory to chroot into, with the plain program as /program."""
    plain = built("plain")
    for library in libraries(plain):
        place = tmp_path / library.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(library, place)
    shutil.copy2(plain, tmp_path / "program")
    return tmp_path


def test_chroot(target, snap, tool, jail):
    t = target(Path("/program"), wrap=[tool("chroot"), jail]).settle()
    doc = snap(t)
    worker = thread(doc, "worker")
    assert_calls(worker, "inner", "middle", "outer")
    assert doc["exe"] in ("/program", str(jail / "program"))
    (inner,) = (frame for frame in worker["user_stack"] if frame["symbol"] == "inner")
    assert inner["source"]["line"] > 0


@pytest.fixture
def stripped_jail(jail, tool):
    """The same with a stripped program, whose debug file is in the build-id directory of that root, and nowhere else."""
    objcopy, program = tool("objcopy"), jail / "program"
    notes = subprocess.run([tool("readelf"), "-n", program], capture_output=True, text=True, check=True).stdout
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)
    debug = jail / f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    debug.parent.mkdir(parents=True)
    subprocess.run([objcopy, "--only-keep-debug", program, debug], check=True)
    subprocess.run([objcopy, "--strip-all", program], check=True)
    return jail


def test_debug_file_below_the_targets_root(target, snap, tool, stripped_jail):
    t = target(Path("/program"), wrap=[tool("chroot"), stripped_jail]).settle()
    worker = thread(snap(t), "worker")
    assert_calls(worker, "inner", "middle", "outer")
    inner = next(frame for frame in worker["user_stack"] if frame["symbol"] == "inner")
    assert inner["source"]["file"].endswith("plain.c")


@pytest.mark.parametrize("end", ["alive", "ended"])
@pytest.mark.parametrize("maps", [[], ["--read-maps"]], ids=["found", "read"])
def test_debug_file_below_the_root_of_the_watched(target, record, tool, stripped_jail, maps, end):
    """Also when the process is gone by then."""
    t = target(Path("/program"), wrap=[tool("chroot"), stripped_jail]).settle()
    recording = record("--json", *maps, "-p", t.pid)
    if end == "ended":
        t.end()
    doc = recording.finish()
    frames = [frame for row in rows_of(doc, site="inner") for frame in row["user_stack"] if frame["symbol"] == "inner"]
    assert frames and all(frame["source"]["file"].endswith("plain.c") for frame in frames)


def test_mount_namespace(target, snap, unshare, tmp_path):
    """The program's path exists in the target's mount namespace only."""
    (tmp_path / "real").mkdir()
    (tmp_path / "seen").mkdir()
    shutil.copy2(built("plain"), tmp_path / "real/program")
    script = 'mount --bind "$0/real" "$0/seen" && exec "$0/seen/program"'
    t = target(tmp_path, wrap=[unshare, "-m", "sh", "-c", script]).settle()
    assert not (tmp_path / "seen/program").exists()
    doc = snap(t)
    assert_calls(thread(doc, "worker"), "inner", "middle", "outer")
    assert doc["exe"] == str(tmp_path / "seen/program")


def test_another_file_under_the_same_path(target, snap, unshare, tmp_path):
    """What our own mount namespace has under the path is another program."""
    (tmp_path / "real").mkdir()
    (tmp_path / "seen").mkdir()
    shutil.copy2(built("plain"), tmp_path / "real/program")
    shutil.copy2(built("recursion"), tmp_path / "seen/program")
    script = 'mount --bind "$0/real" "$0/seen" && exec "$0/seen/program"'
    t = target(tmp_path, wrap=[unshare, "-m", "sh", "-c", script]).settle()
    assert_calls(thread(snap(t), "worker"), "inner", "middle", "outer")


def child_in(wrapper):
    (pid,) = Path(f"/proc/{wrapper.pid}/task/{wrapper.pid}/children").read_text().split()
    return int(pid)


def test_target_in_a_pid_namespace(target, snap, stakeout, unshare, source):
    """Seen from outside: the target believes that it has pid 1."""
    t = target("spinners", "loop", wrap=[unshare, "-pf", "--kill-child", "--mount-proc"])
    assert t.tids["loop"] != t.pid
    doc = snap(child_in(t), source)
    assert doc["inner_pid"] == 1
    assert [th["inner_tid"] for th in doc["threads"]] == [1, t.tids["loop"]]
    assert_calls(thread(doc, "loop"), "spin_loop")
    text = stakeout(source, child_in(t)).out
    assert f"(pid {child_in(t)}, 1 in its namespace" in text, text
    assert f" ({t.tids['loop']} in its namespace) loop " in text, text
    t.assert_progress()


def test_both_in_a_pid_namespace(target, tool, unshare, source):
    """Seen from inside: pids of the namespace are what the user gives and gets."""
    t = target("spinners", "loop", wrap=[unshare, "-pf", "--kill-child", "--mount-proc"])
    wait_until(lambda: state(child_in(t)) == "S", "the main thread is asleep")
    nsenter = [tool("nsenter"), "-t", str(child_in(t)), "-p", "-m"]
    done = subprocess.run([*nsenter, *command("--json", source, 1)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    doc = Result([], done.returncode, done.stdout, done.stderr).doc
    assert doc["pid"] == 1 and doc["inner_pid"] is None
    assert sorted(th["tid"] for th in doc["threads"]) == sorted([1, t.tids["loop"]])
    assert [th["inner_tid"] for th in doc["threads"]] == [None, None]
    assert_calls(thread(doc, "loop"), "spin_loop")
    t.assert_progress()


@pytest.fixture
def siblings(target, tool, unshare):
    """Two targets, each the first of a pid namespace of its own, and the start of a command line for each namespace."""
    both = [target(name, wrap=[unshare, "-pf", "--kill-child", "--mount-proc"]) for name in ("plain", "nappers")]
    return [(t, [tool("nsenter"), "-t", str(child_in(t)), "-p", "-m"]) for t in both]


def numbers(wrapper):
    """Of the threads of the first process of a pid namespace, inside."""
    return list(range(1, len(tids(child_in(wrapper))) + 1))


def test_sibling_pid_namespaces(siblings, stakeout, source):
    """They are of equal depth, and have the same numbers: whose they are tells the namespace itself."""
    for (t, enter), name in zip(siblings, ("plain", "nappers")):
        doc = stakeout("--json", source, 1, wrap=enter).doc
        assert doc["comm"] == name and [th["tid"] for th in doc["threads"]] == numbers(t), doc


def test_offcpu_in_sibling_pid_namespaces(siblings, stakeout, bpf_missing):
    """All processes are those of one's own namespace."""
    for (t, enter), name in zip(siblings, ("plain", "nappers")):
        doc = stakeout("offcpu", "--json", "-a", "-d", "0.3", "--min", "0", wrap=enter).doc
        assert bpf_missing or doc["method"] != "proc"
        (process,) = (p for p in doc["processes"] if p["name"] != "stakeout-helper")
        assert (process["pid"], process["name"], process["inner_pid"]) == (1, name, None), process
        assert sorted({row["tid"] for row in doc["stacks"] if row["pid"] == 1}) == numbers(t)


def test_all_namespaces_are_others(target, snap, stakeout, unshare, source, tmp_path):
    """As a container without root's rights has it: user, mount, pid, network, host name, IPC and cgroup."""
    shutil.copy2(built("plain"), tmp_path / "program")
    script = 'mount -t tmpfs none "$0/seen" && cp "$0/program" "$0/seen/" && exec "$0/seen/program"'
    (tmp_path / "seen").mkdir()
    wrap = [unshare, "-UrmpnuiCf", "--kill-child", "--mount-proc", "sh", "-c", script]
    t = target(tmp_path, wrap=wrap)
    pid = child_in(t)
    wait_until(lambda: state(pid) == "S", "the main thread is asleep")
    doc = snap(pid, source)
    assert (doc["inner_pid"], doc["exe"]) == (1, str(tmp_path / "seen/program"))
    worker = thread(doc, "worker")
    assert worker["inner_tid"] == t.tids["worker"]
    assert_calls(worker, "inner", "middle", "outer")
    assert next(frame for frame in worker["user_stack"] if frame["symbol"] == "inner")["source"]["line"] > 0
    offcpu = stakeout("offcpu", "--json", "-d", "0.3", "-p", pid).doc
    (process,) = offcpu["processes"]
    assert (process["pid"], process["inner_pid"]) == (pid, 1)


@pytest.fixture
def cgroup(tmp_path):
    """cgroup(PATH, PID): moves a process into a control group of that path, which is removed at the end."""
    roots = [Path(line.split()[4]) for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - cgroup2 " in line]
    if not roots:
        pytest.skip("no unified cgroup file system is mounted")
    made = []

    def move(path, pid):
        for part in reversed([Path(path), *Path(path).parents][:-1]):
            place = roots[0] / str(part).lstrip("/")
            if not place.exists():
                place.mkdir()
                made.append(place)
        (place / "cgroup.procs").write_text(str(pid))

    yield move
    for place in reversed(made):
        for pid in (place / "cgroup.procs").read_text().split():
            (roots[0] / "cgroup.procs").write_text(pid)
        place.rmdir()


def test_container_and_pod(target, snap, stakeout, cgroup):
    """By the path of the control group; saved with the snapshot."""
    ident, pod = "0123456789abcdef" * 4, "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
    t = target("plain").settle()
    path = f"/stakeout-test.slice/kubepods-pod{pod.replace('-', '_')}.slice/cri-containerd-{ident}.scope"
    cgroup(path, t.pid)
    doc = snap(t)
    assert doc["cgroup"].endswith(path)
    assert doc["container"] == {"engine": "containerd", "id": ident, "pod": pod}
    words = f"(pid {t.pid}, container 0123456789ab (containerd), pod {pod})"
    assert words in stakeout(t.pid).out.splitlines()[0]
    offcpu = stakeout("offcpu", "--json", "-d", "0.3", "-p", t.pid).doc
    assert offcpu["processes"][0]["container"] == doc["container"]


def test_cgroup_that_is_no_container(target, snap, stakeout, cgroup):
    t = target("plain").settle()
    cgroup("/stakeout-test.slice/nginx.service", t.pid)
    doc = snap(t)
    assert doc["cgroup"].endswith("/stakeout-test.slice/nginx.service") and doc["container"] is None
    assert f"(pid {t.pid}, cgroup nginx.service)" in stakeout(t.pid).out.splitlines()[0]


@pytest.fixture
def from_inside(unshare):
    """The start of a command line that runs a program in a pid namespace of its own, with the /proc of ours."""
    return [unshare, "-pf", "--kill-child"]


def test_looking_out_of_a_pid_namespace(target, from_inside, stakeout):
    """The pid means what /proc says, and only /proc is asked: to BPF, ptrace and system calls it means another process."""
    t = target("plain").settle()
    result = stakeout("--json", t.pid, wrap=from_inside)
    assert result.code in (0, 3), result
    assert result.doc["pid"] == t.pid
    assert result.doc["comm"] == "plain"
    assert result.doc["capture"]["method"] == "proc"
    assert_calls(thread(result.doc, "worker"), "inner", "middle", "outer")


def test_running_thread_from_inside(target, from_inside, stakeout):
    t = target("spinners", "loop")
    result = stakeout("--json", t.pid, wrap=from_inside)
    assert result.code == 3 and result.doc["capture"]["stopped_threads"] == 0, result
    assert "means another thread to ptrace" in thread(result.doc, "loop")["user_stack_error"]
    t.assert_progress()


@pytest.mark.parametrize("option", ("--source=bpf", "--stop=all", "--ptrace"))
def test_what_cannot_be_done_from_inside(target, from_inside, stakeout, option):
    result = stakeout(option, target("plain").pid, wrap=from_inside)
    assert result.code == 1 and FOREIGN in result.err, result


@pytest.fixture(params=["further inside", "from outside"])
def first(target, tool, unshare, from_inside, request):
    """A target that is process 1 in /proc, and the start of a command line for a program to which another one is that."""
    t = target("plain", wrap=[unshare, "-pf", "--kill-child", "--mount-proc"]).settle()
    enter = [tool("nsenter"), "-t", str(child_in(t))]
    wrap = [*enter, "-p", "-m", *from_inside] if request.param == "further inside" else [*enter, "-m"]
    tried = subprocess.run([*wrap, *command("--version")], capture_output=True, text=True)
    if "Sanitizer" in tried.stderr:
        pytest.skip("it does not even start there: sanitizers need /proc/self")
    return t, wrap


def test_number_of_another_process(first, stakeout):
    """The program itself, or the machine's first one."""
    t, wrap = first
    doc = stakeout("--json", 1, wrap=wrap).doc
    assert doc["comm"] == "plain" and doc["capture"]["method"] == "proc"
    assert any(FOREIGN in note for note in doc["notes"]), doc["notes"]
    assert sorted(th["tid"] for th in doc["threads"]) == sorted([1, t.tids["worker"]])
    if "-p" in wrap:  # else /proc/self leads nowhere, and files cannot be opened by it
        assert_calls(thread(doc, "worker"), "inner", "middle", "outer")


def test_offcpu_of_all_but_itself(first, stakeout):
    """Which of them it is tells /proc."""
    t, wrap = first
    doc = stakeout("offcpu", "--json", "-a", "-d", "1", wrap=wrap).doc
    assert doc["method"] == "proc"
    found = {row["tid"]: row["thread_name"] for row in doc["stacks"]}
    assert {1, t.tids["worker"]} <= set(found) and "stakeout" not in found.values(), found


@pytest.mark.parametrize("source", ("auto", "proc"))
def test_offcpu_of_a_command(first, stakeout, source):
    """It would be another process in /proc: it is not even started."""
    _, wrap = first
    result = stakeout("offcpu", f"--source={source}", "--", "echo", "started", wrap=wrap)
    assert result.code == 1 and result.out == "" and FOREIGN in result.err, result


def test_offcpu_out_of_a_pid_namespace(target, from_inside, stakeout, bpf_missing):
    """The same for waits over time: without BPF."""
    t = target("plain").settle()
    result = stakeout("offcpu", "--json", "-d", "1", "-p", t.pid, wrap=from_inside)
    assert result.code == 3 and result.doc["method"] == "proc", result
    assert t.tids["worker"] in [row["tid"] for row in result.doc["stacks"]]
    if bpf_missing:
        return
    assert any(FOREIGN in note for note in result.doc["notes"]), result.doc["notes"]
    forced = stakeout("offcpu", "--source=switch", "-d", "1", "-p", t.pid, wrap=from_inside)
    assert forced.code == 1 and FOREIGN in forced.err, forced


@pytest.mark.parametrize("how", ["umount -l /proc", "mount -t tmpfs none /proc"])
def test_without_proc(target, stakeout, unshare, tmp_path, how):
    """Not that there is no such process: it is said why, once, and by every command that needs it."""
    t = target("plain").settle()
    saved = tmp_path / "saved"
    assert stakeout("--save", saved, t.pid).code == 0
    wrap = [unshare, "-m", "sh", "-c", f'{how} && exec "$0" "$@"']
    tried = subprocess.run([*wrap, *command("--version")], capture_output=True, text=True)
    if "Sanitizer" in tried.stderr:
        pytest.skip("sanitizers need /proc/self")
    commands = [
        (t.pid, t.pid + 1),
        ("offcpu", "-d", "1", "-p", t.pid),
        ("offcpu", "-d", "1", "-a"),
        ("offcpu", "-d", "1", "--source=proc", "-a"),
        ("offcpu", "--", "true"),
        ("symbolize", "-p", t.pid, "0x1000"),
        ("symbolize", "-e", built("plain"), "0x1000"),
        ("replay", saved),
    ]
    for args in commands:
        result = stakeout(*args, wrap=wrap)
        assert result.code == 1 and result.out == "", result
        (line,) = result.err.splitlines()
        assert line.startswith("stakeout: /proc is not mounted: "), result
    for args in (("--help",), ("--version",), ("cache",)):
        assert stakeout(*args, wrap=wrap).code == 0
