# SPDX-License-Identifier: MIT
"""What the published schemas share: each is whole by itself, so that the parts they have in common are copies."""

import json

import pytest
from harness import ROOT


def load(name):
    return json.loads((ROOT / f"docs/schema/{name}.schema.json").read_text())


def references(value):
    """Every $ref in a schema."""
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from references(item)


@pytest.mark.parametrize("name", ["snapshot", "why", "watch", "offcpu", "offcpu-events", "symbolize", "cache"])
def test_references_are_within_the_file(name):
    schema = load(name)
    for ref in references(schema):
        assert ref.startswith("#/$defs/")
        assert ref.removeprefix("#/$defs/") in schema["$defs"]


@pytest.mark.parametrize(
    "name, parts",
    [
        ("offcpu", {"address", "address_or_null", "frame", "source", "lacking_module"}),
        ("offcpu-events", {"address", "address_or_null", "frame", "source"}),
        ("why", {"address", "address_or_null", "wait", "frame", "source"}),
        ("watch", {"address", "address_or_null", "descriptor", "peers", "wait", "frame", "source"}),
    ],
)
def test_frames_are_those_of_the_snapshot(name, parts):
    original, copy = load("snapshot")["$defs"], load(name)["$defs"]
    assert {part: copy[part] for part in parts} == {part: original[part] for part in parts}


def test_events_are_described_as_in_the_report():
    report, events = load("offcpu")["$defs"], load("offcpu-events")["$defs"]
    common = report.keys() & events.keys()
    assert common >= {"method", "lost", "kernel_stack", "user_stack", "thread_name", "state", "time"}
    assert {part: events[part] for part in common} == {part: report[part] for part in common}
