# SPDX-License-Identifier: MIT
"""--debug: what was tried, how it ended and when, on the standard error; the output stays as it is."""

import re

import pytest
from harness import built

LINE = re.compile(r"stakeout: \[ *(\d+\.\d{3}) ms\] (.*)")


def said(result):
    """What was said, in the order of time for each process."""
    found = LINE.findall(result.err)
    assert found, result
    return [words for _, words in found]


def assert_said(result, *patterns):
    words = said(result)
    for pattern in patterns:
        assert any(re.search(pattern, line) for line in words), (pattern, result)


def test_snapshot(target, stakeout):
    t = target("plain").settle()
    result = stakeout("--json", "--source=proc", "--debug", t.pid)
    assert result.code == 0 and result.doc["threads"]
    assert_said(
        result,
        rf"^opening process {t.pid}$",
        "^looking at threads by /proc$",
        f"^opening the mapped file .*{built('plain').name}$",
        "^opening the cache ",
        "^a process to parse was made",
        "^the parser has given up its rights$",
        r"^errand cache: .*: ENOENT$",
        "^errand file: .*/plain.dwp: ENOENT$",
    )


def test_what_is_refused_has_its_name(target, stakeout, root, as_nobody):
    t = target("plain").settle()
    result = stakeout("--debug", "--source=bpf", t.pid, wrap=as_nobody)
    assert result.code == 1
    assert_said(result, "looking at threads by BPF: .*: (EPERM|ENOSYS|EACCES|EOPNOTSUPP)$")


@pytest.mark.parametrize("args", [["cache"], ["doctor"], ["setup", "--dry-run", "--group", "nobody-has-this"],
                                  ["symbolize", "-e", "/proc/self/exe", "0"], ["replay", "/dev/null"]])
def test_every_command(stakeout, args):
    """Anywhere among the arguments, and nothing of it in the output."""
    plain = stakeout(*args)
    for with_debug in ([*args, "--debug"], [args[0], "--debug", *args[1:]], ["--debug", *args]):
        result = stakeout(*with_debug)
        assert result.code == plain.code and "unrecognized" not in result.err, result
        assert LINE.search(result.err), result
        assert not LINE.search(result.out), result


def test_offcpu(target, stakeout):
    t = target("plain").settle()
    result = stakeout("offcpu", "--source=proc", "-d", "0.1", "--debug", "-p", t.pid)
    assert_said(result, "^opening the mapped file .*/plain$")


def test_not_of_a_command(stakeout):
    """What comes behind -- belongs to the command."""
    result = stakeout("offcpu", "-o", "/dev/null", "--", "echo", "--debug")
    assert result.out == "--debug\n" and not LINE.search(result.err), result
