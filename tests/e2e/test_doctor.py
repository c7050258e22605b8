# SPDX-License-Identifier: MIT
"""stakeout doctor: what works on this machine, tried, and what that means for a process."""

import json
import re
import shutil
import tempfile
from pathlib import Path

import pytest
from harness import ROOT, built, refusing, run, until, without_btf
from offcpu_recording import why_not

SNAPSHOTS = ("snapshot_bpf", "snapshot_libbpf", "snapshot_proc")
RUNGS = {"offcpu_sched_exit": "sched_exit", "offcpu_kprobe": "kprobe", "offcpu_switch": "switch"}


def examined(*args, **how):
    """The document, after a check that it is valid, and that the exit code agrees with it."""
    result = run("doctor", "--json", *args, **how)
    assert result.code in (0, 3), result
    doc = json.loads(result.out)
    validate(doc)
    assert doc["good"] == (result.code == 0), result
    if not doc["process"]:
        assert doc["good"] == (not {f["state"] for f in doc["findings"]} & {"partly", "fails"}), doc
    return doc


def validate(doc):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(doc, json.loads((ROOT / "docs/schema/doctor.schema.json").read_text()))
    for finding in doc["findings"]:
        assert (finding["state"] == "works") == (finding["why"] is None) == (finding["costs"] is None), finding


def finding(doc, name):
    (found,) = [f for f in doc["findings"] if f["name"] == name]
    return found


def verdict(doc, command):
    (found,) = [v for v in doc["process"]["verdicts"] if v["command"] == command]
    return found


@pytest.mark.asan
def test_agrees_with_the_commands(root, target):
    """Each way to take a stack works, and is told to, where the command can take it."""
    t = target("plain").settle()
    doc = examined()
    for name, rung in RUNGS.items():
        why = why_not(rung)
        assert (finding(doc, name)["state"] == "works") == (why is None), (why, finding(doc, name))
    for name in SNAPSHOTS:
        taken = run("--json", f"--source={name.removeprefix('snapshot_')}", t.pid)
        assert (finding(doc, name)["state"] == "works") == (taken.code == 0), (taken, finding(doc, name))
    for name in ("proc", "process_vm_readv", "mem", "ptrace", "syscall"):
        assert finding(doc, name)["state"] == "works", finding(doc, name)


@pytest.mark.arch
def test_window(root, target, stakeout):
    """Of a thread that runs, where the command has one."""
    t = target("spinners", "loop").settle("loop")
    window = finding(examined(), "window")
    if window["state"] == "works":
        assert re.fullmatch(r"\d+ µs on \d+ CPUs?", window["how"]), window
        until(lambda: stakeout("--json", t.pid).doc, lambda doc: doc["capture"]["windows"])
    else:
        assert window["state"] == "fails" and "ptrace" in window["costs"], window
        assert any(window["why"] in note for note in stakeout("--json", t.pid).doc["notes"]), window


def test_window_that_is_refused(root, bpf_missing, tool):
    """It takes BPF and a priority, and is told which."""
    if bpf_missing:
        pytest.skip(bpf_missing)
    without = [tool("setpriv"), "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]
    window = finding(examined(wrap=without), "window")
    assert window["state"] == "fails" and "--cap-add=SYS_NICE" in window["remedy"] and window["remedy"] in window["why"], window
    window = finding(examined(env=refusing({"REFUSE_BPF": "look_at_range 1000", "REFUSE_LOADER": "1"})), "window")
    assert window["state"] == "fails" and "BPF program for running threads" in window["why"], window


def test_kprobe_that_is_refused(root, setpriv):
    """That is asked before programs are loaded for it, which takes long; and the setting that refuses it is named."""
    level = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    if not Path("/sys/bus/event_source/devices/kprobe/type").exists():
        pytest.skip("this kernel has no kprobes")
    if level <= 2:
        pytest.skip("kernel.perf_event_paranoid refuses none")
    wrap = [*setpriv, "--inh-caps=+cap_38,+cap_39,+cap_34", "--ambient-caps=+cap_38,+cap_39,+cap_34"]
    kprobe = finding(examined(env=refusing({"REFUSE_BPF": "on_finish_switch 1000"}), wrap=wrap), "offcpu_kprobe")
    if kprobe["state"] == "works":
        pytest.skip("this kernel lets CAP_PERFMON do what it wants at this level")
    assert kprobe["why"].startswith("a kprobe on finish_task_switch"), kprobe
    assert kprobe["remedy"] == f"sudo sysctl kernel.perf_event_paranoid=2 (it is {level})" and kprobe["remedy"] in kprobe["why"]


def test_text(root):
    """A line each; what does not work is explained below, in the same words."""
    result = run("doctor", "-v")
    doc = examined()
    for f in doc["findings"]:
        (line,) = [text for text in result.out.splitlines() if f"({f['name']}, " in text]
        assert f["about"] in line and line.startswith("  works" if f["state"] == "works" else "  "), line
    for f in doc["findings"]:
        assert f["remedy"] is None or f"help: {f['remedy']}" in result.out, f


@pytest.mark.asan
def test_without_rights(root, as_nobody, target):
    """Own processes can be read; what cannot be done needs named rights, and the process is told of it."""
    t = target("plain", wrap=as_nobody).settle()
    doc = examined(t.pid, wrap=as_nobody)
    assert not doc["good"]
    for name, capability in (("stack", "cap_sys_admin"), ("bpf", "cap_bpf"), ("realtime", "cap_sys_nice"), ("window", "cap_sys_nice,cap_perfmon,cap_bpf")):
        assert finding(doc, name)["state"] == "fails", finding(doc, name)
        assert capability in finding(doc, name)["remedy"], finding(doc, name)
    assert finding(doc, "snapshot_proc")["state"] == "partly" and "no kernel stacks" in finding(doc, "snapshot_proc")["why"]
    assert verdict(doc, "snapshot")["method"] == "proc"
    assert any("kernel stacks take BPF" in lack for lack in verdict(doc, "snapshot")["lacks"])
    stopped = [lack for lack in verdict(doc, "snapshot")["lacks"] if lack.startswith("threads that run are stopped for a moment: ")]
    assert len(stopped) == (finding(doc, "ptrace")["state"] == "works"), doc["process"]
    assert verdict(doc, "offcpu")["method"] == "proc"
    assert any("waits are estimated" in lack for lack in verdict(doc, "offcpu")["lacks"])


def test_another_users_process(root, as_nobody, target):
    doc = examined(target("plain").settle().pid, wrap=as_nobody)
    assert verdict(doc, "snapshot")["method"] is None
    assert any("belongs to another user" in lack for lack in verdict(doc, "snapshot")["lacks"]), doc["process"]
    assert any("memory map" in lack for lack in verdict(doc, "offcpu")["lacks"]), doc["process"]


def test_kernel_without_btf(root, unshare):
    doc = examined(wrap=without_btf(unshare))
    assert finding(doc, "btf")["state"] == "fails" and "CONFIG_DEBUG_INFO_BTF" in finding(doc, "btf")["remedy"]
    for name in RUNGS:
        assert finding(doc, name)["state"] == "fails", finding(doc, name)
    assert finding(doc, "offcpu_proc")["state"] == "works", finding(doc, "offcpu_proc")


def test_programs_that_are_refused(root, target):
    """What the verifier says is told, and the process is recorded by /proc."""
    doc = examined(target("plain").settle().pid, env=refusing({"REFUSE_BPF": "on_switch 1000"}))
    switch = finding(doc, "offcpu_switch")
    assert switch["state"] == "fails" and "loading the BPF programs failed" in switch["why"], switch
    assert verdict(doc, "offcpu")["method"] == "proc" and verdict(doc, "snapshot")["method"] != "proc"


def test_user_namespace(root, tool):
    """Rights that are worth nothing outside: more of them would not help."""
    wrap = [tool("unshare"), "-Ur"]
    if run("version", wrap=wrap).code:
        pytest.skip("no user namespaces here")
    doc = examined(wrap=wrap)
    assert finding(doc, "bpf")["state"] == "fails" and "host" in finding(doc, "bpf")["remedy"], finding(doc, "bpf")


def test_processes_that_are_not_there(root):
    nobody = run("doctor", 4_000_000)
    assert nobody.code == 1 and nobody.out == "" and "4000000" in nobody.err, nobody
    assert run("doctor", "1", "2").code == 2


def readme_table():
    """The rows of the table of permissions: what one has, and the capabilities that each way to have it takes."""
    text = (ROOT / "README.md").read_text().split("## Permissions")[1].split("\n\n")[1]
    rows = dict(re.findall(r"^\| (.*?) \| (.*) \|$", text, re.M))
    return {what: re.findall(r"CAP_[A-Z_]+(?: and CAP_[A-Z_]+)*", need) for what, need in rows.items()}


# What doctor calls that of which the table tells.
FINDINGS = {
    "all registers of sleeping threads, off-CPU times": ["snapshot_bpf"],
    "running threads without stopping them": ["window"],
    "kernel stacks": ["stack"],
    "`stakeout offcpu`": ["offcpu_switch"],
    "names in them": ["kallsyms"],
}
NUMBERS = {"CAP_DAC_READ_SEARCH": 2, "CAP_SYS_PTRACE": 19, "CAP_SYS_ADMIN": 21, "CAP_SYS_NICE": 23, "CAP_SYSLOG": 34}
NUMBERS |= {"CAP_PERFMON": 38, "CAP_BPF": 39}


def having_only(setpriv, way):
    """Runs a command with these capabilities."""
    numbers = ",".join(f"+cap_{NUMBERS[name]}" for name in way.split(" and "))
    return [*setpriv, f"--inh-caps={numbers}", f"--ambient-caps={numbers}"]


def test_table_of_the_readme(root, target, setpriv, as_nobody, bpf_missing):
    """What is written there to be needed doctor asks for, and with just that it works."""
    if bpf_missing:
        pytest.skip(bpf_missing)
    table = readme_table()
    assert set(table) == {"to have", "your own processes", "all processes", *FINDINGS}
    bare = examined(target("plain", wrap=as_nobody).settle().pid, wrap=as_nobody)
    assert verdict(bare, "snapshot")["method"] == "proc" and table["your own processes"] == []
    other = target("plain").settle()
    others = examined(other.pid, wrap=as_nobody)
    assert verdict(others, "snapshot")["method"] is None and "CAP_SYS_PTRACE" in verdict(others, "snapshot")["lacks"][0]
    (way,) = table["all processes"]
    allowed = verdict(examined(other.pid, wrap=having_only(setpriv, way)), "snapshot")
    assert allowed["method"] == "proc" and not any("cannot be read" in lack for lack in allowed["lacks"]), allowed
    for what, names in FINDINGS.items():
        (way,) = table[what]
        having = examined(wrap=having_only(setpriv, way))
        for name in names:
            assert finding(bare, name)["state"] != "works" and finding(having, name)["state"] == "works", finding(having, name)
            words = (way.split(" and ")[0].lower(), *(["kptr_restrict"] if name == "kallsyms" else []))
            assert any(word in finding(bare, name)["remedy"] for word in words), finding(bare, name)


def test_commands_say_the_same(root, target, as_nobody):
    """What helps, word for word."""
    own = target("spinners", "loop", wrap=as_nobody).settle("loop")
    doc = examined(own.pid, wrap=as_nobody)
    for name, args in (
        ("stack", [own.pid]),
        ("stack", ["offcpu", "-d", "0.2", "--source=proc", "-v", "-p", own.pid]),
        ("bpf", [own.pid]),
        ("bpf", ["--source=bpf", own.pid]),
        ("bpf", ["offcpu", "-d", "0.2", "-p", own.pid]),
        ("realtime", ["--debug", own.pid]),
    ):
        said = run(*args, wrap=as_nobody)
        assert finding(doc, name)["remedy"] in said.out + said.err, (name, said)


def test_commands_say_the_same_of_deleted_files(root, target, as_nobody):
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        Path(place).chmod(0o755)
        t = target("dlopen", shutil.copy(built("plugin"), place), wrap=as_nobody).settle()
    said = run("-v", t.pid, wrap=as_nobody)
    assert f"/proc/PID/map_files: {finding(examined(wrap=as_nobody), 'map_files')['remedy']}; --ignore-deleted" in said.out, said


def test_commands_say_the_same_of_btf(root, unshare, target):
    t = target("plain").settle()
    wrap = without_btf(unshare)
    for args in (["--source=libbpf", t.pid], ["offcpu", "-d", "0.2", "--source=switch", "-p", t.pid]):
        said = run(*args, wrap=wrap)
        assert said.code == 1 and finding(examined(wrap=wrap), "btf")["remedy"] in said.err, said


def test_commands_say_the_same_of_hidden_processes(root, unshare, as_nobody, target):
    """Where /proc hides them, a number is not said to be nobody's."""
    t = target("plain").settle()
    script = 'mount -t proc -o hidepid=invisible proc /proc && exec "$@"'
    wrap = [unshare, "-m", "sh", "-c", script, "-", *as_nobody]
    hides = finding(examined(wrap=wrap), "proc")
    said = run(t.pid, wrap=wrap)
    assert hides["state"] == "fails" and said.code == 1, (hides, said)
    assert f"process {t.pid}: {hides['why']}: {hides['remedy']}" in said.err, said
