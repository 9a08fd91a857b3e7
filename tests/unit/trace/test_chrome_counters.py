"""Counters in Chrome's JSON: each point of a trace by hand, and what holds for all of any trace."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest
from ompy.trace.exporting.chrome import chrome
from ompy.trace.exporting.chrome_counters import counters
from ompy.trace.message_events import messages
from ompy.trace.reading import DamageError, RankHeader, event_of
from ompy.trace.sink import Event
from ompy.trace.trace_files import JobTrace

from tests.sim.ob1.programs import exchange
from tests.support.worlds import virtual

Points = dict[tuple[int, str], list[tuple[float, int]]]


def event(time: int, rank: int, layer: str, name: str, **fields: object) -> Event:
    return Event(time, rank, layer, name, tuple(fields.items()))


def points(events: list[Event]) -> Points:
    found: Points = defaultdict(list)
    for each in counters(events, messages(events)):
        assert each.keys() == {"name", "ph", "pid", "tid", "ts", "args"}
        assert (each["ph"], each["tid"]) == ("C", 0)
        found[each["pid"], each["name"]].append((each["ts"], each["args"]["value"]))
    return dict(found)


def message(times: list[int], sequence: int, size: int, posted: int = 0) -> list[Event]:
    """From rank 0 to 1: begun and sent, done with, arrived, matched."""
    begun, done, arrived, matched = times
    both = {"tag": 3, "context": 0, "source": 0, "sequence": sequence}
    sent, got = {"side": "send", "peer": 1, **both}, {"side": "receive", "peer": 0, **both}
    return [
        event(begun, 0, "pml", "PROTOCOL", **sent, size=size, protocol="Eager", rail="tcp"),
        event(begun, 0, "pml", "MATCH", **sent, payload=size, rail="tcp"),
        event(done, 0, "pml", "COMPLETE", **sent),
        event(arrived, 1, "pml", "MATCH", **got, payload=size),
        event(matched, 1, "pml", "COMPLETE", **got, posted=posted),
    ]


def test_each_point() -> None:
    post = {"side": "receive", "context": 0, "posted": 1, "source": 0, "tag": 3}
    events = [
        event(0, 0, "bml.r2", "ADD_PROC", peer=1, rails="tcp"),
        event(500, 1, "pml", "POST", **post),
        event(700, 1, "pml", "POST", **{**post, "posted": 2}),
        *message([1000, 2000, 3000, 3000], 1, 100, posted=1),
        *message([1500, 2500, 4000, 9000], 2, 50),
        event(4500, 0, "pml.ob1", "PENDING", count=2),
        event(4600, 0, "pml.ob1", "PENDING", count=0),
        event(5000, 0, "pml.bfo", "RAIL", what="broke", rail="tcp", peer=1),
        event(6000, 0, "pml.bfo", "RAIL", what="healed", rail="tcp", peer=1),
        event(199_999, 0, "pml", "END"),
    ]
    found = points(sorted(events, key=lambda each: each.time))
    assert found == {
        (0, "sends under way"): [(1.0, 1), (1.5, 2), (2.0, 1), (2.5, 0)],
        (1, "posted receives"): [(0.5, 1), (0.7, 2), (3.0, 1)],
        (1, "unexpected messages"): [(4.0, 1), (9.0, 0)],
        (0, "waits for room"): [(4.5, 2), (4.6, 0)],
        (0, "rail tcp: bytes in flight"): [(1.0, 100), (1.5, 150), (3.0, 50), (4.0, 0)],
        (0, "rail tcp: bytes a second"): [(1.0, 150_000_000), (2.0, 0)],
        (0, "rail tcp: peers reached"): [(0.0, 1), (5.0, 0), (6.0, 1)],
    }


def test_rails_of_one_name_are_numbered() -> None:
    found = points([event(0, 0, "bml.r2", "ADD_PROC", peer=1, rails="usnic,usnic,tcp")])
    rails = {name for _, name in found}
    assert rails == {f"rail {rail}: peers reached" for rail in ("usnic[0]", "usnic[1]", "tcp")}


def test_of_a_world_queues_end_empty_and_bytes_are_all_there() -> None:
    job = virtual(2, exchange, btl="self,usnic", trace=True)
    found = points(job.events())
    sent = sum(
        arrow.size
        for each in messages(job.events())
        for arrow in each.arrows()
        if arrow.sent.rank == 0 and arrow.target == 1
    )
    for (_, name), values in found.items():
        assert all(value >= 0 for _, value in values), name
        times = [time for time, _ in values]
        assert times == sorted(set(times)), name
        if not name.endswith("peers reached"):
            assert values[-1][1] == 0, name
    rates = found[0, "rail usnic: bytes a second"]
    end = job.events()[-1].time
    width = max(end // 200 + 1, 1000)
    assert sum(value for _, value in rates) * width / 1e9 == pytest.approx(sent, rel=1e-3)


def test_they_are_in_the_file() -> None:
    events = message([1000, 2000, 3000, 3000], 1, 100)
    headers = {rank: RankHeader(rank, 0, "host0") for rank in (0, 1)}
    text = chrome(JobTrace({}, headers, {}, events))
    told = [each for each in json.loads(text)["traceEvents"] if each["ph"] == "C"]
    assert {each["name"] for each in told} >= {"sends under way", "rail tcp: bytes in flight"}


@pytest.mark.parametrize(
    ("name", "fields"), [("PENDING", {"count": "2"}), ("PENDING", {}), ("ADD_PROC", {"rails": 3})]
)
def test_damage(name: str, fields: dict[str, object]) -> None:
    with pytest.raises(DamageError):
        event_of([1, "pml.ob1", name, fields], 0)
