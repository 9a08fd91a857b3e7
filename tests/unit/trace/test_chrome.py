"""Chrome's JSON has the form that viewers ask for, checked field by field."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from ompy.trace.exporting.chrome import chrome
from ompy.trace.sink import Event
from ompy.trace.trace_files import JobTrace, RankHeader

from tests.sim.ob1.programs import exchange
from tests.support.worlds import virtual

# by phase: the fields an event has, with their types
FIELDS: dict[str, dict[str, Any]] = {
    "M": {"args": dict},
    "X": {"cat": str, "dur": (int, float), "args": dict},
    "b": {"cat": str, "id": str, "args": dict},
    "e": {"cat": str, "id": str, "args": dict},
    "s": {"cat": str, "id": int},
    "f": {"cat": str, "id": int, "bp": str},
    "C": {"args": dict},
}


@pytest.fixture(scope="module")
def found():
    job = virtual(3, exchange, btl="self,sm,tcp", trace=True)
    headers = {rank: RankHeader(rank, 0, "host0") for rank in range(3)}
    return json.loads(chrome(JobTrace({"seed": 0}, headers, {}, job.events())))


def test_form(found: dict[str, Any]) -> None:
    assert found["displayTimeUnit"] in {"ms", "ns"}
    for event in found["traceEvents"]:
        wanted = FIELDS[event["ph"]] | {"name": str, "ts": (int, float), "pid": int, "tid": int}
        assert set(event) == set(wanted) | {"ph"}, event
        for name, kind in wanted.items():
            assert isinstance(event[name], kind), (name, event)
        assert event["ts"] >= 0


def test_ranks_and_tracks_have_names(found: dict[str, Any]) -> None:
    events = found["traceEvents"]
    names = [event for event in events if event["name"] == "process_name"]
    assert {event["pid"]: event["args"]["name"] for event in names} == {
        rank: f"rank {rank} on host0" for rank in range(3)
    }
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in events if e["ph"] == "X"} == named


def test_slices_do_not_overlap_on_rails(found: dict[str, Any]) -> None:
    """But for puts and gets, which last, a slice ends before the next one of its track begins."""
    ends: dict[tuple[int, int], float] = {}
    slices = [event for event in found["traceEvents"] if event["ph"] == "X"]
    assert slices
    for event in sorted(slices, key=lambda event: event["ts"]):
        if event["name"].split()[-1] in {"WRITE", "READ"}:
            continue
        place = (event["pid"], event["tid"])
        assert event["dur"] >= 0
        assert ends.get(place, 0) <= event["ts"] + 1e-6
        ends[place] = event["ts"] + event["dur"]


def test_spans_begin_and_end(found: dict[str, Any]) -> None:
    begun = {e["id"]: e for e in found["traceEvents"] if e["ph"] == "b"}
    ended = {e["id"]: e for e in found["traceEvents"] if e["ph"] == "e"}
    assert set(begun) == set(ended)
    assert len(begun) == 2 * 81  # a send and a receive for each message
    for name, event in begun.items():
        assert event["pid"] == ended[name]["pid"]
        assert event["ts"] <= ended[name]["ts"]


def test_arrows_hold_on_to_slices(found: dict[str, Any]) -> None:
    events = found["traceEvents"]
    places = {(e["pid"], e["tid"], e["ts"]) for e in events if e["ph"] == "X"}
    arrows = [event for event in events if event["ph"] in "sf"]
    assert len(arrows) > 200
    assert set(Counter(event["id"] for event in arrows).values()) == {2}
    for event in arrows:
        assert (event["pid"], event["tid"], event["ts"]) in places
    starts = {e["id"]: e["ts"] for e in arrows if e["ph"] == "s"}
    assert all(starts[e["id"]] <= e["ts"] for e in arrows if e["ph"] == "f")


def test_a_trace_of_nothing() -> None:
    headers = {0: RankHeader(0)}
    events = [Event(5, 0, "bml.r2", "ADD_PROC", (("peer", 1),))]
    (*_, only) = json.loads(chrome(JobTrace({}, headers, {}, events)))["traceEvents"]
    assert (only["name"], only["dur"]) == ("ADD_PROC", 1)
