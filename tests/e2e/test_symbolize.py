# SPDX-License-Identifier: MIT
"""stakeout symbolize: beside addr2line, on files and on processes."""

import bisect
import json
import os
import pty
import re
import select
import shutil
import subprocess

import pytest
from harness import ROOT, SANITIZER_ENV, TIMEOUT, bare, built, command, thread

pytestmark = pytest.mark.asan

FLAGS = [(), ("-a",), ("-s",), ("-i",), ("-p",), ("-ai",), ("-ips",), ("-a", "-p", "-i")]
FLAG_IDS = ["none" if not f else "".join(f) for f in FLAGS]
PROGRAMS = ["plain", "plain_nopie", "cxx", "demo"]


def ask(*args, text=None):
    """The output for the lines of text on standard input, which may also be bytes."""
    given = text if isinstance(text, bytes) else (text or "").encode()
    done = subprocess.run(
        command("symbolize", *args),
        input=given,
        capture_output=True,
        timeout=TIMEOUT * 2,
        env={**os.environ, **SANITIZER_ENV},
    )
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout.decode()


def addr2line(*args, text="", program="addr2line"):
    done = subprocess.run([program, *map(str, args)], input=text.encode(), capture_output=True, check=True)
    return re.sub(r" \(discriminator \d+\)", "", done.stdout.decode())


class Functions:
    """The functions that a file's symbol table knows the size of, by nm."""

    def __init__(self, path, *nm_flags, nm="nm"):
        out = subprocess.run([nm, "-S", "--defined-only", *nm_flags, path], capture_output=True, text=True, check=True)
        found = (line.split() for line in out.stdout.splitlines())
        self.all = sorted(
            (int(f[0], 16), int(f[0], 16) + int(f[1], 16), f[3].partition("@")[0])
            for f in found
            if len(f) == 4 and f[2] in "tTwWui"
        )
        self.starts = [start for start, _, _ in self.all]

    def addresses(self, rng, count):
        picked = (rng.choice(self.all) for _ in range(count))
        return [rng.randrange(start, end) for start, end, _ in picked]

    def names(self, address):
        """All that cover the address: a function may have several names, and a part of it one of its own."""
        last = bisect.bisect_right(self.starts, address)
        return {name for start, end, name in self.all[max(0, last - 50) : last] if start <= address < end}


def lines(addresses):
    return "".join(f"{address:#x}\n" for address in addresses)


def blocks(out):
    """The answers of a run with -a."""
    return [answer.splitlines() for answer in re.split(r"^(?=0x)", out, flags=re.M)[1:]]


@pytest.fixture
def both(tool):
    """
    both(PATH, FLAG…, text=…): our output and addr2line's. Where no line is known it gives the file that the last local
    symbol came from, if there is one: on aarch64 that is crti.o for much that came from elsewhere.
    """
    for name in ("addr2line", "nm"):
        tool(name)

    def run_both(path, *flags, text):
        theirs = addr2line("-e", path, *flags, text=text)
        return ask("-e", path, *flags, text=text), re.sub(r"\bcrti\.o:\?", "??:?", theirs)

    return run_both


@pytest.fixture(scope="session")
def dwarf4(tmp_path_factory):
    """
    dwarf4(NAME): a program of tests/targets with DWARF 4. addr2line 2.40 gives some lines of DWARF 5 to the unit's
    main file instead of the header that they are in.
    """
    where = tmp_path_factory.mktemp("dwarf4")

    def build(name, suffix):
        compiler = shutil.which("c++" if suffix == "cc" else "cc")
        if not compiler:
            pytest.skip("no compiler is installed")
        source = ROOT / f"tests/targets/{name}.{suffix}"
        if not (where / name).exists():
            subprocess.run([compiler, "-g", "-gdwarf-4", "-O2", "-pthread", "-o", where / name, source], check=True)
        return where / name

    return build


SOURCES = [("plain", "c"), ("signals", "c"), ("cxx", "cc")]


@pytest.mark.parametrize("flags", FLAGS, ids=FLAG_IDS)
@pytest.mark.parametrize("name, suffix", SOURCES)
def test_lines(both, rng, dwarf4, name, suffix, flags):
    """Byte for byte, in all that is not the name of a function."""
    path = dwarf4(name, suffix)
    ours, theirs = both(path, *flags, text=lines(Functions(path).addresses(rng, 400)))
    assert ours == theirs
    assert f"{name}.{suffix}:" in ours


def is_explained(ours, theirs, names):
    """
    The outermost function has its symbol's name here, in addr2line that of DWARF (no .cold, another alias); and an
    inlined function without a linkage name is shown by addr2line as the symbol that it is in.
    """
    functions = range(1, len(ours), 2)
    for i in functions:
        if ours[i] == theirs[i]:
            continue
        if i == functions[-1] and ours[i] in names:
            continue
        if i == 1 and len(functions) > 1 and theirs[i] in names:
            continue
        return False
    return True


def line_numbers(answer):
    return [line.rpartition(":")[2] for line in answer[::2]]


@pytest.mark.parametrize("name", PROGRAMS)
def test_names(both, rng, name):
    functions = Functions(built(name))
    addresses = functions.addresses(rng, 400)
    answers = list(zip(*map(blocks, both(built(name), "-afi", text=lines(addresses)))))
    assert len(answers) == len(addresses)
    for address, (ours, theirs) in zip(addresses, answers):
        assert line_numbers(ours) == line_numbers(theirs)
        assert is_explained(ours, theirs, functions.names(address)), (ours, theirs)
    equal = [ours for ours, theirs in answers if ours == theirs]
    assert len(equal) > len(answers) / 3
    assert any(len(ours) > 3 for ours in equal), "some of them are inlined"


@pytest.mark.parametrize("flags", [("-aCfi",), ("-aCfpi",), ("-a", "-C", "-f", "-p", "-i", "-s")], ids="".join)
def test_demangled(both, rng, dwarf4, flags):
    """Where the linker's names are equal, the source forms are too, return types of templates included."""
    path = dwarf4("cxx", "cc")
    text = lines(Functions(path).addresses(rng, 400))
    raw = zip(*map(blocks, both(path, "-afi", text=text)))
    forms = zip(*map(blocks, both(path, *flags, text=text)))
    seen = set()
    for (ours, theirs), (mine, other) in zip(raw, forms):
        if ours != theirs:
            continue
        assert mine == other
        seen |= set(mine)
    assert any("cxx::" in line for line in seen)


TEMPLATES = """
template <typename T> __attribute__((noipa)) T *twice(T *x) { x[0] += x[0]; return x; }
struct Holder { template <typename T> __attribute__((noipa)) T get(T x) const { return x; } };
namespace { template <typename T> __attribute__((noipa)) void hidden(T &x) { x++; } }
int main() { int x = 1; hidden(x); return *twice(&x) + Holder().get(x); }
"""


def test_return_types(both, stakeout, tool, tmp_path):
    (tmp_path / "program.cc").write_text(TEMPLATES)
    path = tmp_path / "program"
    subprocess.run([tool("c++"), "-g", "-gdwarf-4", "-O1", "-o", path, f"{path}.cc"], check=True)
    starts = [start for start, _, name in Functions(path).all if name.startswith("_Z")]
    ours, theirs = both(path, "-Cf", text=lines(starts))
    assert ours == theirs
    wanted = {
        "int* twice<int>(int*)",
        "int Holder::get<int>(int) const",
        "void (anonymous namespace)::hidden<int>(int&)",
    }
    assert wanted <= set(ours.splitlines())
    docs = stakeout("symbolize", "-C", "--json", "-e", path, *(f"{start:x}" for start in starts)).docs
    assert wanted <= {frame["symbol"] for doc in docs for frame in doc["frames"]}


def test_pretty_names(both, rng, dwarf4):
    """The words around names, on a program without C++'s differences."""
    path = dwarf4("plain", "c")
    addresses = Functions(path).addresses(rng, 200)
    for flags in (("-fp",), ("-fipa",), ("-f", "-i", "-s", "--pretty-print"), ("-f",), ("-fa",)):
        ours, theirs = both(path, *flags, text=lines(addresses))
        assert ours == theirs
    assert "inner" in ours


@pytest.mark.parametrize("path", ["/usr/bin/python3.11d", "/usr/bin/redis-server"])
def test_real_programs(both, rng, path):
    """addr2line 2.40 names a wrong file for the first lines of some functions: docs/internals.md."""
    if not os.path.exists(path):
        pytest.skip(f"{path} is not installed")
    functions = Functions(path, "-D")
    ours, theirs = both(path, "-afi", text=lines(functions.addresses(rng, 3000)))
    answers = list(zip(blocks(ours), blocks(theirs)))
    assert len(answers) == 3000
    different = [(mine, other) for mine, other in answers if mine != other]
    aliases = [(mine, other) for mine, other in different if mine[2:] == other[2:]]
    assert len(different) - len(aliases) <= 15, different
    for mine, _ in aliases:
        assert mine[1] in functions.names(int(mine[0], 16))


def test_addresses_as_people_write_them(both, stakeout):
    path = built("plain")
    start = next(start for start, _, name in Functions(path).all if name == "main")
    odd = [f"{start:x}", f"0x{start:X}", f"0X{start:x}", f"  {start:#x}  # main", "", "zz", "0x", "-1", "f" * 40]
    ours, theirs = both(path, "-af", text="\n".join(odd) + "\n")
    assert ours == theirs
    assert ours.count("main\n") == 4
    words = [word for word in odd if not word.startswith("-")]
    result = stakeout("symbolize", "-af", "-e", path, "--", *words)
    assert (result.code, result.out) == (0, addr2line("-af", "-e", path, "--", *words))


def test_section(both, stakeout):
    path = built("plain")
    for flags in (("-j", ".text", "-afi"), ("--section=.text", "-f"), ("-j", ".comment", "-af")):
        ours, theirs = both(path, *flags, text="0\n4\nfffffff\n\n")
        assert ours == theirs
    missing = stakeout("symbolize", "-j", ".nothing", "-e", path, "0")
    assert (missing.code, missing.out) == (1, "")
    assert ".nothing" in missing.err


SOURCE = """
extern int out(int);
static inline __attribute__((always_inline)) int second(int x) { return out(x) + x; }
static inline __attribute__((always_inline)) int first(int x) { return second(x * 3) - 1; }
__attribute__((noinline)) int outer(int x) { return first(x) ^ out(x); }
__attribute__((noipa)) int out(int x) { return x + 1; }
int main(int argc, char **argv) { return outer(argc); }
"""


@pytest.mark.parametrize("triple", ["i686-linux-gnu", "powerpc-linux-gnu", "aarch64-linux-gnu", "x86_64-linux-gnu"])
def test_other_machines(tool, tmp_path, triple):
    """32 bits, and the other byte order."""
    compiler, peer = tool(f"{triple}-gcc"), tool(f"{triple}-addr2line")
    (tmp_path / "program.c").write_text(SOURCE)
    subprocess.run(
        [compiler, "-g", "-O2", "-nostdlib", "-e", "main", "-o", "program", "program.c"], cwd=tmp_path, check=True
    )
    path = tmp_path / "program"
    functions = Functions(path, nm=tool(f"{triple}-nm"))
    everywhere = [
        a for start, end, name in functions.all if name in ("outer", "main", "out") for a in range(start, end)
    ]
    text = lines(everywhere) + "123456789abcd\n"
    ours, theirs = ask("-afi", "-e", path, text=text), addr2line("-afi", "-e", path, text=text, program=peer)
    assert ours == theirs
    assert "second\n" in ours and "first\n" in ours
    digits = 8 if triple.startswith(("i686", "powerpc-")) else 16
    assert {len(answer[0]) for answer in blocks(ours)} == {digits + 2}


class Conversation:
    """A run that is asked line by line."""

    def __init__(self, *args):
        env = {**os.environ, **SANITIZER_ENV}
        self.proc = subprocess.Popen(
            command("symbolize", *args), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=env
        )
        self.left = b""

    def say(self, text):
        self.proc.stdin.write(text.encode())

    def hear(self, count):
        while self.left.count(b"\n") < count:
            readable, _, _ = select.select([self.proc.stdout], [], [], TIMEOUT)
            assert readable, f"no answer; so far {self.left}"
            data = os.read(self.proc.stdout.fileno(), 65536)
            assert data, f"the output ended; so far {self.left}"
            self.left += data
        *heard, rest = self.left.split(b"\n", count)
        self.left = rest
        return [line.decode() for line in heard]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.stdin.close()
        try:
            assert self.proc.wait(TIMEOUT) == 0
        finally:
            self.proc.kill()
            self.proc.wait(TIMEOUT)
            self.proc.stdout.close()


def test_each_line_is_answered_at_once():
    with Conversation("-f", "-e", built("plain")) as talk:
        for _ in range(3):
            talk.say("0x1\n")
            assert talk.hear(2) == ["??", "??:0"]
            talk.say("0x")  # half a line is no question yet
            talk.say("2\n\n")
            assert talk.hear(4) == ["??", "??:0"] * 2
    assert talk.left == b""


def test_input_of_any_size(rng):
    """More than a block, lines longer than one, and a last line without its end."""
    path = built("plain")
    count = 60000
    out = ask("-a", "-e", path, text="".join(f"{i:x}\n" for i in range(count)))
    assert [answer[0] for answer in blocks(out)] == [f"0x{i:016x}" for i in range(count)]
    for size in (1 << 18, (1 << 18) - 1, (1 << 18) + 1, 1 << 20):
        out = ask("-a", "-e", path, text=b"7 " + b"x" * (size - 2) + b"\n8\n" + b"\0" * 10 + b"\n9")
        assert [answer[0] for answer in blocks(out)] == [f"0x{i:016x}" for i in (7, 8, 0, 9)], size
    assert ask("-a", "-e", path, text="") == ""


def frames_of(t):
    """The address of each frame that is not inlined, as looked up, with the bare names of the calls there."""
    found = []
    for i, frame in enumerate(f for f in t["user_stack"] if f["kind"] == "native"):
        if found and int(frame["address"], 16) == found[-1][2]:
            found[-1][1].append(bare(frame["symbol"]))
            continue
        address = int(frame["address"], 16)
        found.append((address - (i > 0), [bare(frame["symbol"])], address))
    return [(address, names) for address, names, _ in found]


@pytest.mark.parametrize("name, who", [("plain", "worker"), ("cxx", "inlines"), ("plain_static_pie", "worker")])
def test_process(target, snap, stakeout, name, who):
    t = target(name).settle()
    stack = frames_of(thread(snap(t), who))
    assert len(stack) > 3
    docs = stakeout("symbolize", "-C", "--json", "-p", t.pid, *(f"{address:x}" for address, _ in stack)).docs
    assert [[bare(frame["symbol"]) for frame in doc["frames"]] for doc in docs] == [
        [name for name in names if name] for _, names in stack
    ]
    assert {str(built(name))} <= {doc["module"] for doc in docs}
    # The same addresses of the same files, without the process.
    for doc in docs:
        alone = stakeout("symbolize", "-C", "--json", "-e", doc["module"], doc["module_offset"]).doc
        assert alone["frames"] == doc["frames"] and alone["build_id"] == doc["build_id"]


def mappings(pid):
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            span, perms, *_, path = (line.rstrip("\n").split(None, 5) + [""])[:6]
            start, end = (int(number, 16) for number in span.split("-"))
            yield start, end, perms, path


def test_process_without_a_file(target, stakeout):
    t = target("plain").settle()
    stack = next(start for start, _, _, path in mappings(t.pid) if path == "[stack]")
    result = stakeout("symbolize", "-a", "-f", "--pid", t.pid, "0", f"{stack:x}")
    assert result.code == 0, result
    assert result.out == f"0x{0:016x}\n??\n??:0\n0x{stack:016x}\n??\n??:0\n"
    for doc in stakeout("symbolize", "--json", "--pid", t.pid, "0", f"{stack:x}").docs:
        assert doc["module"] is None and doc["frames"] == [] and doc["problem"]


@pytest.mark.arch
def test_vdso(target, stakeout):
    """It is in no file: its bytes are the process's."""
    t = target("plain").settle()
    vdso = [(start, end) for start, end, _, path in mappings(t.pid) if path == "[vdso]"]
    if not vdso:
        pytest.skip("the process has no vDSO")
    every = [f"{address:x}" for address in range(vdso[0][0], vdso[0][1], 64)]
    docs = stakeout("symbolize", "--json", "--pid", t.pid, *every).docs
    assert {doc["module"] for doc in docs} == {"[vdso]"}
    names = {frame["symbol"] for doc in docs for frame in doc["frames"]}
    assert any("clock_gettime" in name for name in names if name), names


def test_what_p_means(target, stakeout):
    t = target("plain").settle()
    path = built("plain")
    pretty = "?? ??:0\n"
    for args in (
        ("-fip", "-e", path),
        ("-e", path, "-Cfpi"),
        ("-f", "--pretty-print", "--exe", path),
        ("-p", "-f", f"--exe={path}"),
        ("--pid", t.pid, "-pf"),
        ("-p", t.pid, "-f", "--pretty-print"),
        (f"-p{t.pid}", "-f", "--pretty-print"),
        ("-ifp", t.pid, "--pretty-print"),
    ):
        result = stakeout("symbolize", *args, "1")
        assert (result.code, result.out) == (0, pretty), result
    result = stakeout("symbolize", "-f", "-p", t.pid, "1")
    assert (result.code, result.out) == (0, "??\n??:0\n")
    assert "no process named 'f' (-p means --pretty-print only together" in stakeout("symbolize", "-pf", t.pid, "1").err


def test_build_id(stakeout, rng):
    where = "/usr/lib/debug/.build-id"
    if not os.path.isdir(where):
        pytest.skip(f"no debug package is installed: {where}")
    found = [(two, rest) for two in sorted(os.listdir(where)) for rest in os.listdir(f"{where}/{two}")]
    two, rest = rng.choice([(two, rest) for two, rest in found if rest.endswith(".debug")])
    build_id = two + rest.removesuffix(".debug")
    by_path = stakeout("symbolize", "--json", "-e", f"{where}/{two}/{rest}", "0", "1000", "2040").docs
    assert {doc["build_id"] for doc in by_path} == {build_id}
    by_id = stakeout("symbolize", "--json", "--build-id", build_id.upper(), "0", "1000", "2040").docs
    assert [doc["frames"] for doc in by_id] == [doc["frames"] for doc in by_path]
    assert {doc["build_id"] for doc in by_id} == {build_id}


@pytest.fixture(scope="module")
def validate():
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "docs/schema/symbolize.schema.json").read_text())
    cls = jsonschema.validators.validator_for(schema)
    cls.check_schema(schema)
    return cls(schema).validate


@pytest.mark.parametrize("name", [*PROGRAMS, "plain_stripped"])
def test_json(validate, name):
    """The JSON says what the text says, and the addresses cover all kinds of answers."""
    path = built(name)
    base = 0x400000 if name == "plain_nopie" else 0
    text = lines(range(base + 0x800, base + 0x3400, 7)) + "word\n"
    for flags in ((), ("-C",), ("-s",)):
        docs = [json.loads(line) for line in ask("--json", "-e", path, *flags, text=text).splitlines()]
        answers = blocks(ask("-afi", "-e", path, *flags, text=text))
        assert len(docs) == len(answers)
        for doc, answer in zip(docs[:-1], answers):
            validate(doc)
            assert int(doc["address"], 16) == int(answer[0], 16)
            assert (doc["module"], doc["module_offset"]) == (str(path), doc["address"])
            shown = []
            for frame in doc["frames"]:
                source = frame["source"] or {"file": "??", "line": 0}
                shown += [frame["symbol"] or "??", f"{source['file']}:{source['line'] or '?'}"]
            assert answer[1:] == (shown or ["??", "??:0"])
            assert [frame["inlined"] for frame in doc["frames"]] == [True] * (len(doc["frames"]) - 1) + [False] * bool(
                shown
            )
            assert (doc["problem"] is None) == bool(doc["frames"] and doc["frames"][0]["source"])
            assert (doc["help"] is not None) == (name == "plain_stripped")
        validate(docs[-1])
        assert docs[-1]["address"] is None and "word" in docs[-1]["problem"]
    if name == "plain_stripped":
        assert all("debug" in doc["problem"] and "keep its debug file" in doc["help"] for doc in docs[:-1])
    else:
        assert any(doc["problem"] is None for doc in docs)


def test_json_names(stakeout, tool):
    tool("nm")
    path = built("cxx")
    start, _, name = next(f for f in Functions(path).all if f[2] == "_ZN3cxx7inlinesEv")
    for flags, shown in (
        ((), name),
        (("--no-demangle",), name),
        (("-C",), "cxx::inlines()"),
        (("-C", "--demangle=none"), name),
    ):
        doc = stakeout("symbolize", "--json", *flags, "-e", path, f"{start:x}").doc
        last = doc["frames"][-1]
        assert (last["symbol"], last["symbol_source"], last["offset"]) == (shown, "symtab", 0)
        assert last["source"]["file"].endswith("/cxx.cc") and last["source"]["line"] > 0


def test_json_schema_is_strict(stakeout, validate):
    jsonschema = pytest.importorskip("jsonschema")
    doc = stakeout("symbolize", "--json", "-e", built("plain"), "1").doc
    validate(doc)
    for damage in (
        lambda d: d.pop("problem"),
        lambda d: d.pop("help"),
        lambda d: d.update(unknown=1),
        lambda d: d.update(address=1),
        lambda d: d["frames"].append({}),
        lambda d: d.update(schema="stakeout.snapshot/1"),
    ):
        broken = json.loads(json.dumps(doc))
        damage(broken)
        with pytest.raises(jsonschema.ValidationError):
            validate(broken)


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("0x10",),
        ("-p",),
        ("-p", "1,2", "1"),
        ("-p", "0", "1"),
        ("-e",),
        ("-e", "a", "--pid", "1"),
        ("-e", "a", "--build-id", "abcd"),
        ("--build-id", "xyz!"),
        ("--build-id", "abc"),
        ("--build-id", "../../abcd"),
        ("--build-id", "ab" * 65),
        ("--pid", "1", "-j", ".text"),
        ("--demangle=java", "-e", "a"),
        ("--no-such-option",),
        ("-e", "a", "-x"),
    ],
    ids=" ".join,
)
def test_wrong_usage(stakeout, args):
    result = stakeout("symbolize", *args)
    assert (result.code, result.out) == (2, ""), result
    assert "symbolize --help" in result.err


def test_help(stakeout):
    for option in ("--help", "-h", "-H"):
        result = stakeout("symbolize", option)
        assert (result.code, result.err) == (0, "")
        assert "--build-id" in result.out


def test_files_that_cannot_be_read(stakeout, tool, tmp_path):
    (tmp_path / "text").write_text("not a program\n" * 100)
    (tmp_path / "empty").write_text("")
    (tmp_path / "cut").write_bytes(built("plain").read_bytes()[:40])
    os.mkfifo(tmp_path / "fifo")
    for name, why in (
        ("text", "not an ELF file"),
        ("empty", "not an ELF file"),
        ("cut", "not an ELF file"),
        ("fifo", "not a regular file"),
        ("", "not a regular file"),
        ("missing", "No such file"),
    ):
        result = stakeout("symbolize", "-e", tmp_path / name, "1")
        assert (result.code, result.out) == (1, ""), result
        assert why in result.err and str(tmp_path / name) in result.err
    assert stakeout("symbolize", "--build-id", "ab" * 20, "1").code == 1


def test_object_files_are_refused(stakeout, tool, tmp_path):
    (tmp_path / "program.c").write_text(SOURCE)
    subprocess.run([tool("cc"), "-g", "-c", "program.c"], cwd=tmp_path, check=True)
    result = stakeout("symbolize", "-e", tmp_path / "program.o", "1")
    assert (result.code, result.out) == (1, "")
    assert "relocatable" in result.err


def test_damaged_files(rng, tmp_path):
    """Fewer names, never a crash."""
    good = built("cxx").read_bytes()
    text = lines(range(0x1000, 0x3000, 16))
    for i in range(30):
        damaged = bytearray(good[: rng.randrange(64, len(good))] if i % 3 == 0 else good)
        for _ in range(rng.randrange(1, 200)):
            damaged[rng.randrange(20, len(damaged))] = rng.randrange(256)
        (tmp_path / "damaged").write_bytes(damaged)
        done = subprocess.run(
            command("symbolize", "--no-cache", "-afiC", "-e", tmp_path / "damaged"),
            input=text.encode(),
            capture_output=True,
            timeout=TIMEOUT * 2,
            env={**os.environ, **SANITIZER_ENV},
        )
        assert done.returncode in (0, 1), (i, done.stderr)
        if done.returncode == 0:
            assert done.stdout.count(b"0x0000") == 512


def test_processes_that_cannot_be_read(stakeout, target):
    t = target("plain")
    t.end()
    result = stakeout("symbolize", "-p", t.pid, "1")
    assert (result.code, result.out) == (1, "")
    assert str(t.pid) in result.err


def test_output_that_cannot_be_written():
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command("symbolize", "-e", built("plain"), "1"), stdout=full, stderr=subprocess.PIPE, timeout=TIMEOUT
        )
    assert done.returncode == 1
    assert b"No space left" in done.stderr


def test_debug_file_beside_the_program(stakeout, tool, tmp_path):
    """Also when the program is named by a relative path, or through a link from elsewhere."""
    objcopy = tool("objcopy")
    program, debug = tmp_path / "program", tmp_path / "program.debug"
    shutil.copy(built("plain"), program)
    start = next(start for start, _, name in Functions(program).all if name == "main")
    subprocess.run([objcopy, "--only-keep-debug", program, debug], check=True)
    subprocess.run([objcopy, "--strip-all", f"--add-gnu-debuglink={debug}", program], check=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/link").symlink_to(program)
    paths = (("program", tmp_path), ("elsewhere/link", tmp_path), ("link", tmp_path / "elsewhere"), (debug, "/"))
    for path, cwd in paths:
        result = stakeout("symbolize", "-sf", "-e", path, f"{start:x}", cwd=cwd)
        assert result.code == 0 and result.out.startswith("main\nplain.c:"), (path, result)


EVIL = r"""
__asm__(".globl \"evil\033]0;mine\007\"\n.type \"evil\033]0;mine\007\", %function\n"
        "\"evil\033]0;mine\007\": .skip 16\n.size \"evil\033]0;mine\007\", 16");
int main(void) { return 0; }
"""


def terminal(*args):
    """What a run writes to a terminal."""
    ours, theirs = pty.openpty()
    proc = subprocess.Popen(
        command("symbolize", *args), stdin=subprocess.DEVNULL, stdout=theirs, env={**os.environ, **SANITIZER_ENV}
    )
    os.close(theirs)
    shown = b""
    try:
        while True:
            readable, _, _ = select.select([ours], [], [], TIMEOUT)
            assert readable, f"nothing more came; so far {shown}"
            try:
                shown += os.read(ours, 4096)
            except OSError:
                break  # the other side is closed
        assert proc.wait(TIMEOUT) == 0
    finally:
        proc.kill()
        proc.wait(TIMEOUT)
        os.close(ours)
    return shown.replace(b"\r\n", b"\n")


def test_names_that_a_terminal_would_obey(stakeout, tool, tmp_path):
    """A file names its functions and sources as it likes. On a terminal that is shown, elsewhere it stays as it is."""
    where = tmp_path / "dir\033[31m"
    where.mkdir()
    (where / "program.c").write_text(EVIL)
    path = tmp_path / "program"
    subprocess.run([tool("cc"), "-g", "-gdwarf-4", "-o", path, where / "program.c"], check=True)
    found = subprocess.run([tool("nm"), path], capture_output=True, check=True).stdout.splitlines()
    main, evil = (next(f.split()[0].decode() for f in found if name in f) for name in (b" main", b" evil"))
    raw = b"evil\033]0;mine\007\n??:?\nmain\n" + str(where / "program.c").encode() + b":4\n"
    for flags in ("-f", "-Cf"):
        args = (flags, "-e", path, evil, main)
        assert ask(*args).encode() == raw
        shown = terminal(*args)
        assert shown == raw.replace(b"\033", b"\\x1b").replace(b"\007", b"\\x07"), shown
    for doc in map(json.loads, terminal("--json", "-e", path, evil, main).splitlines()):
        assert doc == stakeout("symbolize", "--json", "-e", path, doc["address"]).doc
