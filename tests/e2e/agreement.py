# SPDX-License-Identifier: MIT
"""What stakeout symbolize says of random code addresses, beside llvm-symbolizer and addr2line.

Every tool is asked for linkage names, so no demangler's taste is compared, and for the whole chain of inlined calls.
What is compared is, for every call of the chain: function, file and line. Each difference gets a class; docs/internals.md
has them under "Agreement with peers" and says who is right.
"""

import json
import os
import random
import re
import shutil
import subprocess
from bisect import bisect_right
from collections import Counter, defaultdict

# What compilers append to the name of a part or a copy of a function. DWARF has the function's name, the symbol table
# the part's.
CLONE = re.compile(r"\.(cold|isra|part|constprop|lto_priv|llvm|localalias|specialized|__uniq)(\.[\w]+)*$|\.\d+$")


class ToolError(Exception):
    pass


def newest_llvm(tool):
    """The name under which a tool of LLVM is installed, which may end in its version; None if it is not."""
    names = [f"{tool}-{n}" for n in range(30, 12, -1)] + [tool]
    return next((name for name in names if shutil.which(name)), None)


def newest_llvm_symbolizer():
    return newest_llvm("llvm-symbolizer")


def puts_directories_twice():
    """An llvm-symbolizer before 16, where a unit's directory is relative: see "twice" below."""
    done = subprocess.run([newest_llvm_symbolizer(), "--version"], capture_output=True, text=True)
    return int(re.search(r"version (\d+)", done.stdout)[1]) < 16


def readelf(*args):
    # Also when the file is partly beyond it: what it did understand counts.
    return subprocess.run(["readelf", "-W", *map(str, args)], capture_output=True).stdout.decode(errors="replace")


def build_id(path):
    found = re.search(r"Build ID: ([0-9a-f]+)", readelf("-n", path))
    return found and found.group(1)


def debug_file(path):
    """The file's separate debug file where distributions put it, else None."""
    id = build_id(path)
    if not id:
        return None
    found = f"/usr/lib/debug/.build-id/{id[:2]}/{id[2:]}.debug"
    return found if os.path.exists(found) else None


class Names:
    """The symbol tables, for what a name in a difference is: another name of the same code, or of other code."""

    def __init__(self, path):
        kinds = "FUNC|IFUNC|NOTYPE|GNU_IFUNC"
        pattern = re.compile(
            rf"^\s*\d+: ([0-9a-f]+)\s+(\w+) (?:{kinds})\s+\w+\s+\S+\s+(?:\[.*\]\s+)?(\S+) (\S+)", re.M
        )
        self.starts, self.by_start = [], defaultdict(set)
        self.sizes = defaultdict(int)
        for file in filter(None, (path, debug_file(path))):
            for start, size, index, name in pattern.findall(readelf("-s", file)):
                if index == "UND" or name.startswith("$"):
                    continue
                at = int(start, 16)
                self.by_start[at].add(name.split("@")[0])
                self.sizes[at] = max(self.sizes[at], int(size, 0))
        self.starts = sorted(self.by_start)

    def at(self, address):
        """All names of the symbols that cover the address, and whether any does by its size."""
        i = bisect_right(self.starts, address) - 1
        for start in reversed(self.starts[max(i - 8, 0) : i + 1]):
            if start <= address < start + self.sizes[start]:
                return self.by_start[start], True
        return (self.by_start[self.starts[i]] if i >= 0 else set()), False


def text_sections(path):
    """(address, size) of the sections that hold functions; linkage tables are named in too many ways to compare."""
    pattern = re.compile(r"\] (\.text\S*|\.init\.text)\s+PROGBITS\s+([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)")
    sections = [(int(a, 16), int(size, 16)) for _, a, size in pattern.findall(readelf("-S", path))]
    if not sections:
        raise ToolError(f"{path} has no .text")
    return sections


def random_addresses(path, count, seed):
    sections = text_sections(path)
    total = sum(size for _, size in sections)
    chosen = []
    for where in random.Random(seed).choices(range(total), k=count):
        for address, size in sections:
            if where < size:
                chosen.append(address + where)
                break
            where -= size
    return chosen


def every_address(path):
    return [address + i for address, size in text_sections(path) for i in range(size)]


def place(file, line):
    """(file, line), or (None, 0): a file without a line, as the symbol table has it, says nothing of the code."""
    if not line or file in ("", "??"):
        return None, 0
    return os.path.normpath(file), line


def parse_addr2line(text, count):
    """Answers of addr2line -a -f -i, as a list of chains [(function, file, line)…], innermost call first."""
    chains = []
    lines = iter(text.split("\n"))
    for line in lines:
        if re.match(r"^0x[0-9a-f]+$", line):
            chains.append([])
        elif line or (chains and not chains[-1]):
            file, _, number = re.sub(r" \(discriminator \d+\)$", "", next(lines)).rpartition(":")
            number = number.split(" ")[0]
            chains[-1].append((None if line == "??" else line, *place(file, int(number) if number.isdigit() else 0)))
    if len(chains) != count:
        raise ToolError(f"{len(chains)} answers for {count} addresses")
    return chains


def parse_llvm(text, count):
    chains = []
    for line in text.splitlines():
        answer = json.loads(line)
        calls = answer.get("Symbol") or [{}]
        chains.append([(c.get("FunctionName") or None, *place(c.get("FileName", ""), c.get("Line", 0))) for c in calls])
    if len(chains) != count:
        raise ToolError(f"{len(chains)} answers for {count} addresses")
    return chains


def ask(argv, addresses, parse, env=None, check=True):
    text = "".join(f"{a:#x}\n" for a in addresses)
    done = subprocess.run(
        [str(a) for a in argv], input=text.encode(), capture_output=True, env={**os.environ, **(env or {})}
    )
    if done.returncode < 0 or (check and done.returncode):
        raise ToolError(f"{' '.join(map(str, argv))}: exit {done.returncode}: {done.stderr.decode()[-2000:]}")
    return parse(done.stdout.decode(errors="replace"), len(addresses))


def ask_stakeout(stakeout, path, addresses, *options, env=None):
    """Without the cache unless env has one: what an earlier run knew is not what is compared."""
    if not env or "XDG_CACHE_HOME" not in env:
        options = ["--no-cache", *options]
    return ask([stakeout, "symbolize", *options, "-a", "-f", "-i", "-e", path], addresses, parse_addr2line, env)


def ask_llvm(path, addresses, tool=None):
    argv = [tool or newest_llvm_symbolizer(), f"--obj={path}", "--no-demangle", "--output-style=JSON"]
    return ask(argv, addresses, parse_llvm)


def ask_addr2line(path, addresses, tool="addr2line"):
    return ask([tool, "-a", "-f", "-i", "-e", path], addresses, parse_addr2line)


def plain(name):
    """Without the version, and without what only says which part or copy of the function it is."""
    name = name and name.split("@")[0]
    while name and CLONE.search(name):
        name = CLONE.sub("", name)
    return name


def twice(path):
    """The path as it gets when the unit's relative directory is put before what is relative to it already."""
    return f"{path.split('/')[0]}/{path}"


def is_short_for(name, names):
    """DWARF has no linkage name for what is local to the unit: "f" stands for _ZN5spaceL1fEv then."""
    name = name.split("<")[0]
    mangled = {"operator()": "cl"}.get(name, f"{len(name)}{name}")
    return any(n.startswith("_Z") and mangled in n for n in names)


class Judge:
    def __init__(self, path):
        self.names = Names(path)

    def same_function(self, a, b, address, last):
        """By the same name, by another of the same code, or, where no linkage name is noted, by its unqualified one."""
        a, b = plain(a), plain(b)
        if a == b:
            return True
        if not last or not a or not b:
            return False
        names = {plain(name) for name in self.names.at(address)[0]}
        return (a in names or is_short_for(a, names)) and (b in names or is_short_for(b, names))

    def difference(self, ours, theirs, address):
        """None when they say the same; else how they differ."""
        for i, (a, b) in enumerate(zip(reversed(ours), reversed(theirs))):
            if self.same_function(a[0], b[0], address, i == 0):
                continue
            if i == 0:
                return "name missing" if not a[0] or not b[0] else "name"
            around = self.names.at(address)[0]
            return "inlined function: the name of the code around it" if {a[0], b[0]} & around else "inlined function"
        if len(ours) != len(theirs):
            return "chain shorter" if len(ours) < len(theirs) else "chain longer"
        for i, (a, b) in enumerate(zip(ours, theirs)):
            if a[1:] == b[1:]:
                continue
            where = "line" if i == 0 else "call line"
            if a[1] is None or b[1] is None:
                return f"{where} missing"
            if a[2] != b[2]:
                return where if a[1] == b[1] else f"{where} and file"
            if twice(a[1]) == b[1] or twice(b[1]) == a[1]:
                return f"file of {where}: relative directory of the unit twice"
            return f"file of {where}"
        return None

    def spelling(self, ours, theirs):
        return [c[0] for c in ours] != [c[0] for c in theirs]


def describe(chains):
    """Each chain, innermost call first; what they have in common is left out."""
    calls = [list(reversed(chain)) for chain in chains]
    same = {i for i in range(min(map(len, calls))) if len({chain[i] for chain in calls}) == 1}
    texts = []
    for chain in calls:
        shown = [None if i in same else f"{f or '??'} {file or '??'}:{line}" for i, (f, file, line) in enumerate(chain)]
        merged = [text or "…" for i, text in enumerate(shown) if text or i == 0 or shown[i - 1]]
        texts.append(" < ".join(reversed(merged)))
    return texts


class Comparison:
    """The differences between ours and each peer, by class."""

    def __init__(self, path, addresses, ours, peers):
        self.path, self.addresses, self.ours, self.peers = path, addresses, ours, peers
        judge = Judge(path)
        self.classes = defaultdict(list)  # class → indices
        self.spelled = 0
        self.agreeing = Counter()
        self.both = self.either = 0
        for i, address in enumerate(addresses):
            found = {name: judge.difference(ours[i], theirs[i], address) for name, theirs in peers.items()}
            for name, difference in found.items():
                self.agreeing[name] += difference is None
            differing = [name for name in found if found[name]]
            self.either += len(differing) < len(found)
            if not differing:
                self.both += 1
                self.spelled += any(judge.spelling(ours[i], theirs[i]) for theirs in peers.values())
                continue
            self.classes[self.classify(judge, i, address, found, differing)].append(i)

    def classify(self, judge, i, address, found, differing):
        what = ", ".join(f"{name}: {found[name]}" for name in differing)
        _, covered = judge.names.at(address)
        where = "" if covered else " (no symbol covers the address)"
        if len(found) == 1:
            return what + where
        if len(differing) < len(found):
            return f"only {what}{where}"
        peers = [chains[i] for chains in self.peers.values()]
        agree = not judge.difference(peers[0], peers[1], address)
        return f"{'OURS ALONE' if agree else 'all differ'}: {what}{where}"

    @property
    def alone(self):
        """Addresses where the peers say the same and ours something else."""
        return sum(len(where) for name, where in self.classes.items() if name.startswith("OURS ALONE"))

    def share(self, count):
        return 100 * count / len(self.addresses)

    def report(self, examples=3):
        lines = [f"{self.path}: {len(self.addresses)} addresses"]
        for name, count in self.agreeing.items():
            lines.append(f"  {self.share(count):8.3f} %  as {name}")
        lines.append(f"  {self.share(self.either):8.3f} %  as at least one of them")
        spelled = f"({self.spelled} by another name of the same code)"
        lines.append(f"  {self.share(self.both):8.3f} %  as all of them {spelled}")
        for name, where in sorted(self.classes.items(), key=lambda item: -len(item[1])):
            lines.append(f"  {len(where):6}  {name}")
            for i in where[:examples]:
                lines.append(f"          {self.addresses[i]:#x}")
                texts = describe([self.ours[i], *(chains[i] for chains in self.peers.values())])
                lines += [f"            {who:9} {text}" for who, text in zip(["ours", *self.peers], texts)]
        return "\n".join(lines)


def compare(stakeout, path, addresses, options=(), env=None, peers=("llvm", "addr2line")):
    """Peers that are not installed are left out; None when none is."""
    ask_peer = {"llvm": ask_llvm, "addr2line": ask_addr2line}
    there = {"llvm": newest_llvm_symbolizer(), "addr2line": shutil.which("addr2line")}
    answers = {name: ask_peer[name](path, addresses) for name in peers if there[name]}
    if not answers:
        return None
    return Comparison(path, addresses, ask_stakeout(stakeout, path, addresses, *options, env=env), answers)
