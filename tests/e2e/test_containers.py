# SPDX-License-Identifier: MIT
"""From inside of containers: with the capabilities and the seccomp profiles of their engines (tests/targets/contained.c)."""

import json
import re
import tempfile
from pathlib import Path

import pytest
from harness import ROOT, assert_calls, built, run, state, thread, wait_until

pytestmark = pytest.mark.usefixtures("root")

CAPABILITIES = {"SYS_PTRACE": 19, "SYS_ADMIN": 21, "SYS_NICE": 23, "SYSLOG": 34, "PERFMON": 38, "BPF": 39, "CHECKPOINT_RESTORE": 40}
OTHER = 1000


def contained(engine, *added, user=0):
    """The start of a command line that runs a program as that engine does, with these capabilities besides its own."""
    numbers = ",".join(str(CAPABILITIES[name]) for name in added) or "-"
    return [built("contained"), engine, numbers, *(["-u", str(user)] if user else [])]


def table():
    """The rows of the manual's table: what is added, and what can be had of processes of the same user, of others, by offcpu."""
    text = (ROOT / "docs/man/stakeout.1").read_text()
    rows = re.findall(r"^\.It (none|[A-Z_ ]+) Ta (.*) Ta (.*) Ta (.*)$", text, re.M)
    assert len(rows) == 5
    return rows


@pytest.fixture
def pod(target, tool, unshare):
    """
    pod(USER): a container whose program is on a file system of its own, and the start of a command line for another container
    beside it, which shares nothing with it but the pid namespace.
    """

    place = Path(tempfile.mkdtemp(prefix="stakeout-pod-"))
    place.chmod(0o755)  # for every user; only the container has something there

    def start(user=0, program="spinners", *args):
        script = f'mount -t tmpfs none {place} && cp "$0" {place}/program && exec "$@" {place}/program {" ".join(args)}'
        wrap = [unshare, "-pmf", "--kill-child", "--mount-proc", "sh", "-c", script, built(program)]
        t = target(Path("env"), wrap=[*wrap, *contained("docker", user=user)])
        (pid,) = Path(f"/proc/{t.pid}/task/{t.pid}/children").read_text().split()
        wait_until(lambda: state(int(pid)) == "S", "the main thread is asleep")
        assert not (place / "program").exists()
        return t, [tool("nsenter"), "-t", pid, "-p", unshare, "--mount-proc"]

    yield start
    place.rmdir()


def what_is_had(result):
    """As the manual's table says it."""
    if result.code == 1:
        assert "--cap-add=SYS_PTRACE " in result.err and len(result.err.splitlines()) == 1, result
        return "no"
    doc = result.doc
    assert re.fullmatch(r"/tmp/stakeout-pod-\w+/program", doc["exe"])
    assert_calls(thread(doc, "loop"), "spin_loop")
    return "kernel and user" if all(th["kernel_stack"] for th in doc["threads"] if th["state"] == "S") else "user"


@pytest.mark.parametrize("added, same, others, offcpu", table(), ids=lambda cell: cell.replace(" ", "_"))
def test_table_of_the_manual(pod, bpf_missing, added, same, others, offcpu):
    """True for Docker's profile, and from a neighbour of the process."""
    if bpf_missing and "measured" in offcpu:
        pytest.skip(bpf_missing)
    names = [] if added == "none" else added.split()
    for user, expected in ((0, same), (OTHER, others)):
        t, beside = pod(user, "spinners", "loop")
        wrap = [*beside, *contained("docker", *names)]
        assert what_is_had(run("--json", 1, wrap=wrap)) == expected
        t.assert_progress()
        if expected != "no":
            doc = run("offcpu", "--json", "-d", "0.2", "-p", 1, wrap=wrap).doc
            assert doc["estimate"] == (offcpu == "estimated"), doc
            # The thread that runs may just have been waiting for a CPU when the recording began.
            before = ("R", "the wait began before the recording, and stacks are taken when a wait begins")
            errors = {(row["state"], row["user_stack_error"]) for row in doc["stacks"] if row["user_stack_error"]}
            assert errors <= {before} and any(row["user_stack"] for row in doc["stacks"]), doc["stacks"]


def test_neighbour_and_its_files(pod):
    """Names and lines come from files that only the container of the process has."""
    t, beside = pod(0, "plain")
    doc = run("--json", 1, wrap=[*beside, *contained("docker")]).doc
    worker = thread(doc, "worker")
    assert_calls(worker, "inner", "middle", "outer")
    assert next(frame for frame in worker["user_stack"] if frame["symbol"] == "inner")["source"]["line"] > 0
    assert doc["inner_pid"] is None and worker["tid"] == t.tids["worker"]


def test_profile_without_ptrace(pod):
    """Threads that sleep are read all the same; why those that run have no stack is told."""
    t, beside = pod(0, "spinners", "loop")
    result = run("--json", 1, wrap=[*beside, *contained("docker-old")])
    assert result.code == 3, result
    assert_calls(thread(result.doc, "program"), "target_serve", "main")
    loop = thread(result.doc, "loop")
    assert loop["user_stack_end"] == "not_captured" and loop["user_stack_error"].startswith("it runs, and ptrace was"), loop
    for stopped in run("--json", "--stop=all", 1, wrap=[*beside, *contained("docker-old")]).doc["threads"]:
        assert stopped["status_reason"].startswith("ptrace was refused: "), "whether it runs or not"
    t.assert_progress()


def examined(*wrap, args=()):
    result = run("doctor", "--json", *args, wrap=wrap)
    assert result.code == 3, result
    return {finding["name"]: finding for finding in json.loads(result.out)["findings"]}


PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")


@pytest.fixture
def paranoid():
    """How far perf events are refused, which the test may change."""
    before = PARANOID.read_text()
    yield int(before)
    PARANOID.write_text(before)


@pytest.mark.alone("it may change a setting of the kernel that other tests depend on")
@pytest.mark.parametrize("engine", ("cri-o", "unconfined"))
def test_doctor_names_what_to_add(engine, paranoid):
    """And with it, all of that works."""
    found = examined(*contained(engine))
    added = set()
    for name in ("bpf", "map_files", "realtime", "kallsyms"):
        assert found[name]["state"] != "works", found[name]
        (list_of_names,) = re.findall(r"\{add: \[(.*?)\]\}", found[name]["remedy"])
        added.update(list_of_names.split(", "))
    assert added == {"BPF", "PERFMON", "CHECKPOINT_RESTORE", "SYS_NICE", "SYSLOG"}
    again = run("doctor", "--json", wrap=contained(engine, *added))
    found = {f["name"]: f for f in json.loads(again.out)["findings"]}
    if found["perf_event_open"]["state"] != "works":  # Debian's kernels refuse it even with CAP_PERFMON, as they are set up
        assert again.code == 3, again
        assert found["perf_event_open"]["remedy"] == f"sudo sysctl kernel.perf_event_paranoid=2 (it is {paranoid})", found
        PARANOID.write_text("2")
        again = run("doctor", "--json", wrap=contained(engine, *added))
        found = {f["name"]: f for f in json.loads(again.out)["findings"]}
    assert again.code == 0, [f for f in found.values() if f["state"] != "works"]
    for name in ("bpf", "map_files", "realtime", "kallsyms", "perf_event_open", "window"):
        assert found[name]["state"] == "works", found[name]


def test_doctor_of_another_user():
    """To whom engines give nothing, whatever is added."""
    found = examined(*contained("docker", *CAPABILITIES, user=OTHER))
    assert "as root (runAsUser: 0)" in found["bpf"]["remedy"], found["bpf"]


def test_doctor_names_the_system_call():
    """Which the profile does not open with capabilities."""
    found = examined(*contained("fixed", *CAPABILITIES))
    for name, call in (("bpf", "bpf"), ("ring_buffer", "bpf"), ("ptrace", "ptrace"), ("perf_event_open",) * 2):
        assert f'{{"names": ["{call}"], "action": "SCMP_ACT_ALLOW"}}' in found[name]["remedy"], found[name]


def test_doctor_in_a_user_namespace(unshare, bpf_missing):
    found = examined(unshare, "-Urpf", "--kill-child", "--mount-proc")
    assert found["bpf"]["state"] == "fails"
    assert bpf_missing or "run it on the host" in found["bpf"]["remedy"], found["bpf"]
    for name in ("process_vm_readv", "mem", "ptrace"):
        assert found[name]["state"] == "works", found[name]


@pytest.fixture
def one_cpu():
    """The start of a command line for a cpuset with one processor."""
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    places = [Path(m[4]) for m in mounts if "cpuset" in m[-1].split(",") and m[m.index("-") + 1] == "cgroup"]
    if not places:
        pytest.skip("no cpuset of the first version of cgroups is mounted")
    place = places[0] / "stakeout-test"
    place.mkdir()
    (place / "cpuset.mems").write_text((places[0] / "cpuset.mems").read_text())
    (place / "cpuset.cpus").write_text("0")
    yield ["sh", "-c", f'echo $$ > {place}/tasks && exec "$0" "$@"']
    wait_until(lambda: not (place / "tasks").read_text(), "nobody is in the cpuset")
    place.rmdir()


def test_doctor_in_a_cpuset(one_cpu):
    """No loss, but it is told."""
    result = run("doctor", "--json", wrap=one_cpu)
    (cpus,) = (f for f in json.loads(result.out)["findings"] if f["name"] == "cpus")
    assert cpus["state"] == "no_loss" and "cpuset" in cpus["why"] and "--cpuset-cpus" in cpus["remedy"], cpus
