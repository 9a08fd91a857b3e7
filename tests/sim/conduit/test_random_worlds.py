"""A slice of the worlds that `tools/sweep conduit` runs 10,000 of."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.conduit_random import CLASSES, world
from tests.support.effort import effort

WORLDS = len(CLASSES) * effort(40)


def test_nothing_is_lost_doubled_or_altered_and_no_credit_is_missing() -> None:
    seen: Counter[str] = Counter()
    for number in range(WORLDS):
        try:
            seen += world(number)[1]
        except Exception as problem:
            problem.add_note(f"repeat: python tools/sweep conduit --world {number}")
            raise
    for name in ("short", "medium", "long", "long async", "puts", "gets", "replies"):
        assert seen[name], f"{name} stayed 0"
    for name in ("am_credit_stalls", "messages_in_line", "message_events_lost"):
        assert seen[name], f"{name} stayed 0"


@pytest.mark.parametrize("number", [15, 232])
def test_worlds_that_failed(number: int) -> None:
    """15: a rank ended before its last word had left the host; 232: half of a flag was seen."""
    world(number)


def test_the_same_world_twice() -> None:
    assert world(7) == world(7)
