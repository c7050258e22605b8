# SPDX-License-Identifier: MIT
"""stakeout symbolize says what llvm-symbolizer and addr2line say, in every form that debug info comes in.

tests/agree does the same with more addresses of any file; docs/internals.md explains the classes of difference.
"""

import shutil
import subprocess

import pytest
from agreement import ask_addr2line, ask_llvm, ask_stakeout, Comparison, debug_file, every_address
from agreement import newest_llvm_symbolizer, puts_directories_twice, random_addresses, readelf
from harness import STAKEOUT, built

pytestmark = pytest.mark.asan

SANE = {"DEBUGINFOD_URLS": ""}

# Classes in which the other peer says what we say; docs/internals.md has who is right.
KNOWN = (
    "only addr2line: name missing (no symbol covers the address)",
    "only addr2line: file of line",
    "only addr2line: file of call line",
    "only addr2line: file of line: relative directory of the unit twice",
    "only addr2line: file of call line: relative directory of the unit twice",
    "only addr2line: inlined function: the name of the code around it",
    "only llvm: name missing",
    "only llvm: name missing (no symbol covers the address)",
)

# Calls inlined three deep, from another file too, and a part that is cold; needs no header and no library.
SOURCE = """
#include "inlined.h"

typedef struct { long values[8]; struct list head; union { int small; long large; } either; } record;

static volatile long sink;

static __attribute__((noinline)) long leaf(record *r, long n)
{
	if (__builtin_expect(n > 1000000, 0)) {
		sink = n;
		__builtin_trap();
	}
	return r->values[n & 7] + push(&r->head, n);
}

static inline __attribute__((always_inline)) long inner(record *r, long n)
{
	for (long i = 0; i < n; i++)
		r->values[i & 7] += leaf(r, i) ^ scramble(n);
	return r->values[0];
}

static inline __attribute__((always_inline)) long middle(record *r, long n)
{
	return inner(r, n + 1) + inner(r, scramble(n));
}

long outer(record *r, long n)
{
	long sum = middle(r, n);
	r->either.large = sum;
	return sum + push(&r->head, sum);
}

void _start(void)
{
	static record r;
	sink = outer(&r, sink);
	for (;;)
		sink = outer(&r, middle(&r, 3));
}
"""
HEADER = """
struct list { struct list *next; long value; };

static inline __attribute__((always_inline)) long scramble(long n)
{
	return (n * 2654435761u) >> 3;
}

static inline __attribute__((always_inline)) long push(struct list *l, long n)
{
	l->value = scramble(n) + scramble(l->value);
	return l->next ? l->next->value : n;
}
"""

FLAGS = ["-O2", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-static"]


def ask_peers(path, addresses, addr2line="addr2line"):
    """addr2line alone will not do: it names what lies between functions, and has mistakes of its own."""
    if not newest_llvm_symbolizer():
        pytest.skip("llvm-symbolizer is not installed")
    answers = {"llvm": ask_llvm(path, addresses)}
    if shutil.which(addr2line):
        answers["addr2line"] = ask_addr2line(path, addresses, addr2line)
    return answers


class Build:
    """A program with plain debug info, its addresses, and what the peers say of them."""

    def __init__(self, directory, cc, flags, addr2line="addr2line"):
        self.directory, self.cc, self.flags = directory, cc, flags
        (directory / "chain.c").write_text(SOURCE)
        (directory / "inlined.h").write_text(HEADER)
        self.plain = self.compile("plain")
        self.addresses = every_address(self.plain)
        self.peers = ask_peers(self.plain, self.addresses, addr2line)
        assert max(len(chain) for chains in self.peers.values() for chain in chains) > 2, "nothing was inlined"

    def compile(self, name, *flags):
        argv = [self.cc, *FLAGS, *self.flags, *flags, "-o", name, "chain.c"]
        done = subprocess.run(argv, cwd=self.directory, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"{self.cc} cannot: {done.stderr[:200]}")
        return self.directory / name


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    """builds(COMPILER, FLAG…): made once."""
    made = {}

    def build(cc, *flags, **options):
        if not shutil.which(cc):
            pytest.skip(f"{cc} is not installed")
        key = (cc, *flags)
        if key not in made:
            made[key] = Build(tmp_path_factory.mktemp("chain"), cc, flags, **options)
        return made[key]

    return build


def run(tool, *argv, cwd):
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    subprocess.run([tool, *map(str, argv)], cwd=cwd, check=True, capture_output=True)


def plain(build, _):
    return build.plain


def compressed(build, directory, kind="zlib"):
    run("objcopy", f"--compress-debug-sections={kind}", build.plain, "compressed", cwd=directory)
    program = directory / "compressed"
    assert "ZLIB" in readelf("-t", program) or ".zdebug_info" in readelf("-S", program)
    return program


def gnu_compressed(build, directory):
    return compressed(build, directory, "zlib-gnu")


def zstd_compressed(build, directory):
    argv = ["objcopy", "--compress-debug-sections=zstd", build.plain, directory / "zstd"]
    if subprocess.run(argv, capture_output=True).returncode or "ZSTD" not in readelf("-t", directory / "zstd"):
        pytest.skip("objcopy cannot compress with zstd")
    return directory / "zstd"


def split(build, _):
    program = build.compile("split", "-gsplit-dwarf")
    if not list(build.directory.glob("*.dwo")):
        pytest.skip(f"{build.cc} does not split this version")
    return program


def package(program, directory):
    """Writes PROGRAM.dwp with the first tool that can: some do not know DWARF 5, one does not end on gcc's."""
    for tool in filter(shutil.which, ("dwp", "llvm-dwp", "llvm-dwp-19")):
        argv = [tool, "-e", str(program), "-o", f"{program}.dwp"]
        try:
            if subprocess.run(argv, cwd=directory, capture_output=True, timeout=5).returncode == 0:
                return
        except subprocess.TimeoutExpired:
            pass
    pytest.skip("no dwp that can package this")


def packaged(build, directory):
    """Split, the parts then collected in a package."""
    split(build, directory)
    program = directory / "packaged"
    shutil.copy(build.directory / "split", program)
    package(program, build.directory)
    hidden = directory / "hidden"
    hidden.mkdir()
    for part in build.directory.glob("*.dwo"):
        part.rename(hidden / part.name)
    return program


def shared(build, directory):
    """Two programs that share DWARF in a third file."""
    for name in ("one", "two"):
        shutil.copy(build.plain, directory / name)
    if not shutil.which("dwz"):
        pytest.skip("dwz is not installed")
    argv = ["dwz", "-m", "common", "-M", directory / "common", "one", "two"]
    done = subprocess.run(argv, cwd=directory, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"dwz cannot: {done.stderr.strip()}")
    if ".gnu_debugaltlink" not in readelf("-S", directory / "one"):
        pytest.skip("dwz finds nothing to share")
    return directory / "one"


def linked(build, directory):
    """Stripped, with a debug file beside it."""
    run("objcopy", "--only-keep-debug", build.plain, "linked.debug", cwd=directory)
    run("objcopy", "--strip-all", build.plain, "linked", cwd=directory)
    run("objcopy", "--remove-section=.note.gnu.build-id", "--add-gnu-debuglink=linked.debug", "linked", cwd=directory)
    return directory / "linked"


def assert_same(build, path, env=SANE):
    """Every address gets the answer that a peer gives for the plain program."""
    answers = ask_stakeout(STAKEOUT, path, build.addresses, env=env)
    comparison = Comparison(build.plain, build.addresses, answers, build.peers)
    assert comparison.either == len(build.addresses), comparison.report()


@pytest.mark.parametrize("form", [plain, compressed, gnu_compressed, zstd_compressed, split, packaged, shared, linked])
@pytest.mark.parametrize("version", [2, 3, 4, 5])
@pytest.mark.parametrize("cc", ["gcc", "clang"])
def test_forms_of_dwarf(builds, tmp_path, cc, version, form):
    build = builds(cc, f"-gdwarf-{version}", "-g")
    assert_same(build, form(build, tmp_path))


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("cc", ["gcc", "clang"])
def test_64_bit_dwarf(builds, cc, version):
    build = builds(cc, f"-gdwarf-{version}", "-gdwarf64")
    assert_same(build, build.plain)


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("flag", ["-fdebug-types-section", "-ffunction-sections", "-O0", "-O3", "-Og"])
def test_how_the_code_is_made(builds, version, flag):
    build = builds("gcc", f"-gdwarf-{version}", "-g", flag)
    assert_same(build, build.plain)


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("machine", ["i686", "powerpc", "aarch64", "x86_64"])
def test_other_machines(builds, machine, version):
    """32-bit and big-endian files too. They are only read."""
    prefix = f"{machine}-linux-gnu-"
    build = builds(f"{prefix}gcc", f"-gdwarf-{version}", "-g", addr2line=f"{prefix}addr2line")
    assert_same(build, build.plain)


SHARED = """
inline __attribute__((noinline)) long common(long *n)
{
#line LINE
	*n += 1;
	return *n * 2;
}
long user_LINE(long *n) { return common(n) + LINE; }
"""


def test_discarded_copies(tool, tmp_path):
    """Of a function that several units have the linker keeps the first; the debug info of all of them claims it."""
    for line in (1000, 2000, 3000):
        (tmp_path / f"unit{line}.cc").write_text(SHARED.replace("LINE", str(line)))
    (tmp_path / "start.cc").write_text('extern "C" void _start() {}\n')
    units = ["start.cc", "unit2000.cc", "unit1000.cc", "unit3000.cc"]
    subprocess.run([tool("g++"), *FLAGS, "-g", "-o", "program", *units], cwd=tmp_path, check=True)
    program = tmp_path / "program"
    addresses = every_address(program)
    answers = ask_stakeout(STAKEOUT, program, addresses, env=SANE)
    lines = {call[2] for chain in answers for call in chain if call[0] == "_Z6commonPl"}
    assert lines == {1999, 2000, 2001, 2002} & lines and 2000 in lines, lines


def libc():
    with open("/proc/self/maps") as maps:
        path = next(line.split()[-1] for line in maps if "/libc.so" in line or "/libc-2" in line)
    if not debug_file(path):
        pytest.skip("libc's debug file is not installed")
    if newest_llvm_symbolizer() and puts_directories_twice():
        pytest.skip("this llvm-symbolizer has files of libc wrong, as addr2line has")
    return path


@pytest.mark.parametrize("path", [lambda: built("cxx"), lambda: built("demo"), libc], ids=["cxx", "demo", "libc"])
def test_random_addresses(path, tmp_path):
    """One in a thousand may differ from both; where only one peer differs, the class must be known."""
    path = path()
    addresses = random_addresses(path, 2000, seed=1)
    peers = ask_peers(path, addresses)
    answers = ask_stakeout(STAKEOUT, path, addresses, env=SANE)
    comparison = Comparison(path, addresses, answers, peers)
    few = len(addresses) / 1000
    unknown = sum(len(where) for name, where in comparison.classes.items() if name not in KNOWN)
    assert unknown <= few, comparison.report()
    for _ in ("cold", "warm"):
        assert ask_stakeout(STAKEOUT, path, addresses, env={**SANE, "XDG_CACHE_HOME": str(tmp_path)}) == answers
    assert list(tmp_path.rglob("*")), "nothing was cached"
