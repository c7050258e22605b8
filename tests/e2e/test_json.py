# SPDX-License-Identifier: MIT
"""The JSON document against its published schema."""

import json
from datetime import datetime, timezone

import pytest
from harness import ROOT, state, thread, wait_until

pytestmark = pytest.mark.asan

jsonschema = pytest.importorskip("jsonschema")


@pytest.fixture(scope="module")
def validate():
    schema = json.loads((ROOT / "docs/schema/snapshot.schema.json").read_text())
    cls = jsonschema.validators.validator_for(schema)
    cls.check_schema(schema)
    return cls(schema).validate


CASES = [
    ("plain", (), ()),
    ("plain", (), ("-r",)),
    ("plain", (), ("--no-kernel",)),
    ("plain", (), ("--stop=all", "-r")),
    ("plain_stripped", (), ("-v",)),
    ("spinners", ("loop", "vdso"), ()),
    ("spinners", ("loop",), ("--stop=none", "-r")),
    ("spinners", ("loop",), ("--ptrace",)),
    ("zombie_main", (), ("-r",)),
    ("signals", (), ()),
    ("cxx", (), ()),
    ("recursion", (100,), ("--depth", 3)),
    ("recursion", (1000,), ("--stack-size", "4k")),
    ("oddnames", (), ()),
]


@pytest.mark.parametrize(
    "name, args, options", CASES, ids=lambda v: "_".join(map(str, v)) if isinstance(v, tuple) else v
)
def test_schema(target, stakeout, validate, name, args, options):
    t = target(name, *args)
    result = stakeout("--json", *options, t.pid)
    assert result.code in (0, 3), result
    assert result.out.count("\n") == 1, "one line"
    validate(result.doc)


def test_schema_of_each_source(target, stakeout, validate, source):
    validate(stakeout("--json", "-r", source, target("sleepers", "-s", 1).pid).doc)


def test_schema_is_strict(target, stakeout, validate):
    """A schema that allows anything would make the tests above worthless."""
    doc = stakeout("--json", target("plain").settle().pid).doc
    for damage in (
        lambda d: d.pop("pid"),
        lambda d: d.update(unknown=1),
        lambda d: d["capture"].update(consistent="yes"),
        lambda d: d["threads"][0].update(user_stack_end="because"),
        lambda d: d["threads"][0]["user_stack"][0].pop("address"),
    ):
        broken = json.loads(json.dumps(doc))
        damage(broken)
        with pytest.raises(jsonschema.ValidationError):
            validate(broken)


def test_document(target, stakeout):
    t = target("plain").settle()
    before = datetime.now(timezone.utc).timestamp()
    doc = stakeout("--json", t.pid).doc
    after = datetime.now(timezone.utc).timestamp()
    assert doc["schema"] == "stakeout.snapshot/1"
    assert (doc["pid"], doc["comm"], doc["exe"]) == (t.pid, "plain", t.proc.args[0])
    assert doc["arch"] in ("x86_64", "aarch64")
    taken = datetime.fromisoformat(doc["taken_at"].replace("Z", "+00:00")).timestamp()
    assert before - 1 <= taken <= after + 1
    stages = {name: ms for name, ms in doc["timings_ms"].items() if name != "total"}
    assert set(stages) == {"setup", "capture", "unwind", "save", "symbolize"} and stages["save"] == 0
    assert sum(stages.values()) == pytest.approx(doc["timings_ms"]["total"], abs=0.01), "microseconds are cut off"
    assert [th["tid"] for th in doc["threads"]] == sorted(th["tid"] for th in doc["threads"])


def test_32bit_program(narrow, stakeout, source):
    """
    It has system calls of its own, with numbers and registers of their own. /proc does not tell the one that its frames are
    found by: it is learned by a stop, as the program still sleeps then.
    """

    def look(*args):
        t = narrow("for good")
        wait_until(lambda: state(t.pid) == "S", "the program is asleep")
        return stakeout(*args, source, t.pid)

    doc = look("--json").doc
    call = doc["threads"][0]["syscall"]
    assert (call["nr"], call["name"]) == (162, "nanosleep")
    assert int(call["args"][0], 16) in range(1, 1 << 32) and call["args"][1] == "0x0"
    assert doc["arch"] == "i386"
    assert [frame["symbol"] for frame in doc["threads"][0]["user_stack"]][:2] == ["narrow_wait", "narrow_caller"], doc
    assert "in nanosleep(" in look().out, "of another one: after a stop the system call is another"


def test_odd_thread_names(target, stakeout, source):
    t = target("oddnames").settle()
    names = {th["name"] for th in stakeout("--json", source, t.pid).doc["threads"]}
    assert {'q"b\\s', "esc\033[31mred", "line\nbreak", "utf8 é", "a b) R (c", "oddnames"} <= names
    assert len(names) == 7, "bytes that are not UTF-8 are replaced, not dropped with their thread"
    text = stakeout("--color=never", t.pid).out
    assert "\033" not in text, "a thread's name must not reach the terminal as an escape sequence"
    assert "line\nbreak" not in text
    assert "a b) R (c" in text


def test_thread_without_a_stack(target, stakeout):
    t = target("zombie_main").settle()
    main = thread(stakeout("--json", t.pid).doc, t.pid)
    assert main["user_stack"] == [] and main["user_stack_end"] == "not_captured"
