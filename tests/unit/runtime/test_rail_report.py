"""The report about rails: what travels, what is shown, what the file has."""

from __future__ import annotations

import json

from ompy.frameworks.paths.rail_events import RailEvent
from ompy.runtime.rails.rail_report import (
    FIELDS,
    HEALED,
    LOST,
    RailTally,
    RailTeller,
    healed_line,
    line,
    plain,
)

BEGAN = 5_000_000_000
EVENT = RailEvent(1, 0, "tcp eth0 10.0.0.1 - 10.0.0.2", "the cable was pulled", BEGAN + 12_000_000)


SENTENCES = {LOST: line, HEALED: healed_line, "": lambda _event: ""}


def told(tally: RailTally, *events: RailEvent) -> list[str]:
    said: list[str] = []

    def take(header: dict[str, object]) -> None:
        became, known = tally.told(header)
        said.append(SENTENCES[became](known))

    reporter = RailTeller(events, BEGAN, take)
    for event in events:
        reporter.tell(event)
    return said


def test_an_event_is_shown_when_it_breaks_and_when_it_heals_and_once_at_the_end() -> None:
    tally = RailTally()
    event = RailEvent(**vars(EVENT))
    (broke,) = told(tally, event)
    assert "rank 1 to 0" in broke
    assert "at 12.0 ms: the cable was pulled" in broke
    assert "not healed" in broke
    assert told(tally, event) == [""], "nothing has happened"
    event.messages, event.bytes, event.pause = 2, 70_000, 3_500_000
    event.healed = BEGAN + 900_000_000
    (healed,) = told(tally, event)
    assert healed.endswith("healed at 900.0 ms")
    head, shown = tally.lines()
    assert head == "rails broke 1 time, 1 healed (each rank counts its end of a rail):"
    went = "2 messages or pieces went again, with 70000 bytes already sent, the first 3.5 ms later"
    assert f"{went}; healed at 900.0 ms" in shown


def test_what_went_again_is_said_only_where_something_could() -> None:
    """A receiver asks again for what others sent; where no rail is left nothing goes."""
    (asked,) = told(RailTally(), RailEvent(**{**vars(EVENT), "messages": 1, "pause": 2_000_000}))
    assert "1 message or piece went again, with no bytes already sent from here" in asked
    (idle,) = told(RailTally(), RailEvent(**vars(EVENT)))
    assert "nothing had to go again" in idle
    (last,) = told(RailTally(), RailEvent(**{**vars(EVENT), "last": True}))
    assert "no other rail was left, and what was under way failed" in last
    assert "again" not in last


def test_the_file_has_all_of_it() -> None:
    tally = RailTally()
    told(tally, RailEvent(**vars(EVENT)), RailEvent(1, 2, "usnic", "x" * 1_000, BEGAN + 1))
    first, second = json.loads(tally.document())["rails"]
    assert tuple(first) == FIELDS
    assert first["noticed_ns"] == 12_000_000
    assert first["healed_ns"] == 0
    assert second["peer"] == 2
    assert len(second["cause"]) == 300


def test_nothing_broke_nothing_is_said() -> None:
    assert RailTally().lines() == []
    assert json.loads(RailTally().document()) == {"rails": []}


def test_what_is_told_at_the_end_replaces_what_was_told_before() -> None:
    tally, event = RailTally(), RailEvent(**vars(EVENT))
    reporter = RailTeller([event], BEGAN, tally.told)
    reporter.tell(event)
    event.messages = 7
    reporter.tell_all()
    assert [one["messages"] for one in tally.events] == [7]
    assert plain(event, BEGAN)["messages"] == 7
