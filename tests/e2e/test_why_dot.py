# SPDX-License-Identifier: MIT
"""Who waits for whom, as a graph: parsed here, and by graphviz where it is installed."""

import re
import subprocess

import pytest
from harness import run, until

QUOTED = r'"(?:[^"\\\n]|\\.)*"'
ATTRIBUTES = re.compile(rf"(\w+)=({QUOTED}|[\w.]+)(?:, |$)")
LINE = re.compile(rf'\t*(?:(\w+) -> (\w+)|(\w+)) \[((?:\w+=(?:{QUOTED}|[\w.]+)(?:, )?)+)\];')
OTHERS = re.compile(rf'// .*|digraph waits \{{|\t*\}}|\trankdir=LR;|\tsubgraph cluster_\d+ \{{|\t+label={QUOTED};')


def unquoted(value):
    if not value.startswith('"'):
        return value
    text = re.sub(r"\\(.)", lambda m: {"l": "\n"}.get(m[1], m[1]), value[1:-1])
    return text.replace("&amp;", "&")


class Graph:
    def __init__(self, text):
        self.nodes, self.edges = {}, []
        for line in text.splitlines():
            found = LINE.fullmatch(line)
            if not found:
                assert OTHERS.fullmatch(line), line
                continue
            tail, head, node, attributes = found.groups()
            values = {name: unquoted(value) for name, value in ATTRIBUTES.findall(attributes)}
            if node in ("graph", "node", "edge"):
                continue
            if node:
                assert node not in self.nodes
                self.nodes[node] = values
            else:
                self.edges.append((tail, head, values))
        assert all(tail in self.nodes and head in self.nodes for tail, head, _ in self.edges)

    def node(self, tid):
        (found,) = [name for name, values in self.nodes.items() if re.search(rf"^tid(.*,)? {tid}\b", values["label"], re.M)]
        return found

    def edge(self, tid):
        (found,) = [(head, values) for tail, head, values in self.edges if tail == self.node(tid)]
        return found


def graph(*pids):
    r = run("why", "--dot", *pids)
    assert r.code in (0, 3, 4), r
    return Graph(r.out)


def is_red(values):
    return values.get("color") == "#c00000"


@pytest.mark.asan
def test_deadlock_is_red(target):
    t = target("locks", "ring").settle()
    g = until(lambda: graph(t.pid), lambda g: any(is_red(values) for values in g.nodes.values()))
    ring = [t.tids[f"ring_{i}"] for i in range(4)]
    for tid, following in zip(ring, ring[1:] + ring[:1]):
        head, values = g.edge(tid)
        assert head == g.node(following) and is_red(values) and values["label"].startswith("mutex others")
        assert is_red(g.nodes[g.node(tid)])
    assert not is_red(g.nodes[g.node(t.pid)])


def test_threads_that_wait_for_the_same_are_one(target):
    t = target("locks", "mutex").settle()
    g = graph(t.pid)
    head, values = g.edge(t.tids["waiter"])
    assert head == g.node(t.tids["holder"]) and values["label"] == "mutex global_mutex" and "style" not in values
    many = target("sleepers", "-n", "20").settle()
    labels = [values["label"] for values in graph(many.pid).nodes.values()]
    assert len(labels) < 10 and any(re.match(r"\d+ threads", label) for label in labels), labels


def test_what_is_not_certain_is_dashed(target, tmp_path):
    """Here since the other process is not looked at."""
    holder = target("locks_shared", tmp_path / "memory", "mutex", "holder").settle()
    waiter = target("locks_shared", tmp_path / "memory", "mutex", "waiter").settle()
    g = graph(waiter.pid)
    head, values = g.edge(waiter.tids["waiter"])
    assert values["style"] == "dashed"
    assert g.nodes[head]["label"] == f"tid {holder.tids['holder']}\npid {holder.pid} (locks_shared)\nnot looked at\n"
    g = until(lambda: graph(waiter.pid, holder.pid), lambda g: "style" not in g.edge(waiter.tids["waiter"])[1])
    assert g.edge(waiter.tids["waiter"])[0] == g.node(holder.tids["holder"])


@pytest.mark.asan
def test_hostile_names(target):
    t = target("oddnames").settle()
    r = run("why", "--dot", t.pid)
    labels = "".join(values["label"] for values in Graph(r.out).nodes.values())
    for name in ('q"b\\s', "esc\\x1b[31mred", "line\\x0abreak", "utf8 é"):
        assert name in labels, labels


def test_graphviz_takes_it(target, tool):
    t = target("oddnames").settle()
    done = subprocess.run([tool("dot"), "-Tplain"], input=run("why", "--dot", t.pid).out, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done


def test_picture(target, tool, tmp_path):
    tool("dot")
    t = target("deadlock").settle()
    file = tmp_path / "graph.svg"
    until(lambda: run("why", "-o", file, t.pid), lambda r: r.code == 4)
    text = file.read_text()
    assert "<svg" in text and text.rstrip().endswith("</svg>")
    assert text.count("a_then_b") >= 1 and "mutex b" in text.replace("&#160;", " ")


def test_no_graphviz(target, tmp_path):
    t = target("deadlock").settle()
    file = tmp_path / "graph.svg"
    r = run("why", "-o", file, t.pid, env={"PATH": str(tmp_path)})
    assert r.code == 2 and "install the package graphviz, or use --dot" in r.err
    assert not file.exists()
    assert run("why", "--json", "-o", file, t.pid).code == 2
    assert run("why", "--json", "--dot", t.pid).code == 2
