# SPDX-License-Identifier: MIT
"""`stakeout cache`: what it shows, and what it removes."""

import json
import os
import shutil
import struct
import subprocess
import time
import zlib
from datetime import datetime, timezone

import pytest
from harness import ROOT, command

pytestmark = pytest.mark.asan

BUILD_ID = "0123456789abcdef0123456789abcdef01234567"
KEY = BUILD_ID + "fedcba9876543210"  # with what tells files that have the same build-id apart
ENVELOPE = 192


def envelope(key, length):
    """What symbol/store.c writes before a payload, in this machine's byte order."""
    head = b"STKOSTOR" + struct.pack(
        "=IIIIQ128s28x", 0x01020304, struct.calcsize("P"), 1, len(key), length, key.encode()
    )
    return head + struct.pack("=I", zlib.crc32(head))


class Cache:
    def __init__(self, stakeout, base):
        self.stakeout, self.base, self.dir = stakeout, base, base / "stakeout"
        self.env = {"XDG_CACHE_HOME": str(base), "STAKEOUT_CACHE_SIZE": ""}

    def run(self, *args, **env):
        return self.stakeout("cache", *args, env={**self.env, **env})

    def add(self, key, length, used=None):
        self.dir.mkdir(mode=0o700, exist_ok=True)
        path = self.dir / f"{key}.sym"
        path.write_bytes(envelope(key, length) + bytes(length))
        path.chmod(0o600)
        if used:
            os.utime(path, (used, used))
        return path


@pytest.fixture
def cache(stakeout, tmp_path):
    return Cache(stakeout, tmp_path)


@pytest.fixture(scope="module")
def validator():
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "docs/schema/cache.schema.json").read_text())
    cls = jsonschema.validators.validator_for(schema)
    cls.check_schema(schema)
    return cls(schema)


def fields(result):
    """The lines "name: value" of the text."""
    return dict(line.split(":", 1) for line in result.out.splitlines() if ":" in line.split(" ")[0])


def test_nothing_yet(cache):
    result = cache.run()
    assert result.code == 0 and result.err == "", result
    shown = {name: value.strip() for name, value in fields(result).items()}
    assert shown == {"path": str(cache.dir), "files": "0", "size": "0 bytes", "limit": "256 MiB"}
    assert not cache.dir.exists(), "looking does not create it"
    assert cache.run("--clear").code == 0
    assert not cache.dir.exists()


def test_files(cache):
    cache.add(KEY, 1024 * 1024 - ENVELOPE, used=1_600_000_000)
    cache.add("abcd", 100, used=1_700_000_000)
    result = cache.run()
    assert result.code == 0, result
    shown = fields(result)
    assert shown["files"].strip() == "2"
    assert shown["size"].strip() == "1.0 MiB"
    assert BUILD_ID not in result.out

    cache.add("ab" + KEY[-16:], 100, used=1_500_000_000)
    cache.add("cd" * 8, 100, used=1_400_000_000)
    lines = cache.run("-v", TZ="UTC").out.splitlines()
    assert [line.split() for line in lines[-4:]] == [
        ["abcd", "292", "bytes", "2023-11-14", "22:13"],
        [BUILD_ID, "1", "MiB", "2020-09-13", "12:26"],
        ["ab", "292", "bytes", "2017-07-14", "02:40"],
        ["cd" * 8, "292", "bytes", "2014-05-13", "16:53"],
    ]


def test_json(cache, validator):
    cache.add(KEY, 1000, used=1_600_000_000)
    broken = cache.add("abcd", 100, used=1_700_000_000)
    broken.write_bytes(broken.read_bytes()[:-1])
    os.utime(broken, (1_700_000_000, 1_700_000_000))
    result = cache.run("--json", STAKEOUT_CACHE_SIZE="3k")
    assert result.code == 0, result
    validator.validate(result.doc)
    assert result.doc == {
        "schema": "stakeout.cache/1",
        "path": str(cache.dir),
        "files": 2,
        "bytes": 1000 + 99 + 2 * ENVELOPE,
        "limit_bytes": 3072,
        "entries": [
            {"build_id": "abcd", "bytes": 99 + ENVELOPE, "last_used": "2023-11-14T22:13:20Z", "damaged": True},
            {"build_id": BUILD_ID, "bytes": 1000 + ENVELOPE, "last_used": "2020-09-13T12:26:40Z", "damaged": False},
        ],
        "removed": None,
    }
    wrong = result.doc
    wrong["entries"][0]["build_id"] = "../abcd"
    assert not validator.is_valid(wrong)


def test_clear_leaves_the_rest(cache, validator, tmp_path):
    ours = [cache.add(KEY, 1000), cache.add("abcd", 100)]
    ours.append(ours[0].rename(cache.dir / ".tmp-0123456789abcdef"))
    cache.add(KEY, 1000)
    outside = tmp_path / "outside"
    outside.write_bytes(ours[1].read_bytes())
    (cache.dir / "ee.sym").symlink_to(outside)
    (cache.dir / "ff.sym").write_bytes(b"not a cache file" * 100)
    (cache.dir / "notes").write_text("mine")
    (cache.dir / "sub").mkdir()
    (cache.dir / "sub" / "abcd.sym").write_bytes(outside.read_bytes())

    result = cache.run("--clear", "--json")
    assert result.code == 0, result
    validator.validate(result.doc)
    assert result.doc["removed"] == {"files": 3, "bytes": 2100 + 3 * ENVELOPE, "failed": 0}
    assert (result.doc["files"], result.doc["bytes"], result.doc["entries"]) == (0, 0, [])
    assert sorted(os.listdir(cache.dir)) == ["ee.sym", "ff.sym", "notes", "sub"]
    assert os.listdir(cache.dir / "sub") == ["abcd.sym"]
    assert outside.exists()
    assert "removed: 0 files, 0 bytes" in cache.run("--clear").out


def program(cc, path, function, build_id):
    text = f"int {function}(void) {{ return 1; }}\nint main(void) {{ return {function}(); }}\n"
    path.with_suffix(".c").write_text(text)
    subprocess.run(
        [cc, "-g", "-O0", "-nostdlib", "-Wl,-e,main", f"-Wl,--build-id=0x{build_id}", "-o", path, f"{path}.c"],
        check=True,
    )
    return path


def test_only_for_the_very_file(cache, tool, tmp_path):
    """Another file that claims the same build-id does not get, nor change, what is known of the first."""
    build_id = "ab" * 20
    one, two = (program(tool("cc"), tmp_path / name, name, build_id) for name in ("one", "two"))
    nm = subprocess.run([tool("nm"), one], capture_output=True, text=True, check=True).stdout
    address = next(line.split()[0] for line in nm.splitlines() if line.endswith(" one"))

    def ask(path):
        result = cache.stakeout("symbolize", "-fs", "-e", path, address, env=cache.env)
        assert result.code == 0, result
        return result.out

    def entries():
        return [entry["build_id"] for entry in cache.run("--json").doc["entries"]]

    assert ask(one) == "one\none.c:1\n"
    assert entries() == [build_id]
    for path in (two, one, two):
        assert ask(path) == f"{path.name}\n{path.name}.c:1\n"
    assert entries() == [build_id] * 2
    # The same file by another name is the same file; a copy is another.
    (tmp_path / "linked").symlink_to(one)
    assert ask(tmp_path / "linked") == ask(one)
    assert entries() == [build_id] * 2
    shutil.copy(one, tmp_path / "copied")
    assert ask(tmp_path / "copied") == ask(one)
    assert entries() == [build_id] * 3


def test_home(stakeout, tmp_path):
    def path(**env):
        return stakeout("cache", "--json", env={"XDG_CACHE_HOME": "", "STAKEOUT_CACHE_SIZE": "", **env})

    assert path(HOME=str(tmp_path)).doc["path"] == f"{tmp_path}/.cache/stakeout"
    assert path(HOME=str(tmp_path), XDG_CACHE_HOME="relative").doc["path"] == f"{tmp_path}/.cache/stakeout"
    result = path(HOME="")
    assert result.code == 1 and result.out == "", result
    assert "XDG_CACHE_HOME" in result.err and "HOME" in result.err


@pytest.mark.parametrize(
    "text, limit", [("0", 0), ("1000", 1000), ("5k", 5 << 10), ("5M", 5 << 20), ("2G", 2 << 30), ("", 256 << 20)]
)
def test_size(cache, text, limit):
    assert cache.run("--json", STAKEOUT_CACHE_SIZE=text).doc["limit_bytes"] == limit


def test_size_of_nothing(cache):
    assert "not used" in cache.run(STAKEOUT_CACHE_SIZE="0").out


@pytest.mark.parametrize("text", ["lots", "-1", "1T", "1.5G", "99999999999999999999"])
def test_wrong_size(cache, text):
    result = cache.run(STAKEOUT_CACHE_SIZE=text)
    assert result.code == 2 and result.out == "", result
    assert "STAKEOUT_CACHE_SIZE" in result.err and text in result.err
    cache.add("abcd", 1)
    assert cache.run("--clear", STAKEOUT_CACHE_SIZE=text).code == 0
    assert os.listdir(cache.dir) == []


@pytest.mark.parametrize("mode", [0o770, 0o702])
def test_writable_by_others(cache, mode):
    path = cache.add("abcd", 1)
    cache.dir.chmod(mode)
    for args in [(), ("--clear",), ("--json",)]:
        result = cache.run(*args)
        assert result.code == 1 and result.out == "", result
        assert str(cache.dir) in result.err and "others may write" in result.err
    assert path.exists()


@pytest.mark.parametrize("whose", ["directory", "base"])
def test_of_another_user(cache, root, whose):
    """As after `sudo` with the HOME of who called it: root's files do not belong there."""
    path = cache.add("abcd", 1)
    os.chown(cache.dir if whose == "directory" else cache.base, 65534, -1)
    result = cache.run("--clear")
    assert result.code == 1, result
    assert "another user" in result.err and "65534" in result.err
    assert path.exists()


def test_link_of_another_user(cache, root, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    cache.dir.symlink_to("elsewhere")
    assert cache.run().code == 0
    os.lchown(cache.dir, 65534, -1)
    assert cache.run().code == 1


def test_last_used_is_now(cache):
    (cache.base / "before").touch()  # the clock of files is a little behind the other one
    cache.add("abcd", 1)
    (entry,) = cache.run("--json").doc["entries"]
    used = datetime.strptime(entry["last_used"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    assert int((cache.base / "before").stat().st_mtime) <= used.timestamp() <= time.time()


def test_full_output(cache):
    with open("/dev/full", "w") as full:
        done = subprocess.run(command("cache"), stdout=full, stderr=subprocess.PIPE, env={**os.environ, **cache.env})
    assert done.returncode == 1 and b"written" in done.stderr


@pytest.mark.parametrize("args", [("--no-such-option",), ("everything",), ("--clear", "abcd")], ids=" ".join)
def test_wrong_usage(cache, args):
    path = cache.add("abcd", 1)
    result = cache.run(*args)
    assert result.code == 2 and result.out == "" and "--help" in result.err, result
    assert path.exists()


def test_help(cache):
    result = cache.run("--help")
    assert result.code == 0 and result.err == ""
    for word in ["--clear", "--json", "--verbose", "STAKEOUT_CACHE_SIZE", "XDG_CACHE_HOME"]:
        assert word in result.out
