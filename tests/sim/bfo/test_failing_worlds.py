"""A slice of the sweep over random worlds of bfo; `tools/sweep bfo` runs a million."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.failing_rails import KINDS
from tests.support.failing_worlds import CLASSES, GROUP, world

TURN = len(CLASSES) * GROUP  # all classes once


def test_worlds() -> None:
    total: Counter[str] = Counter()
    for number in range(TURN):
        total.update(world(number)[1].counted)
    assert all(total[kind] for kind in KINDS)
    for name in ("RNDVRESTARTNOTIFY", "RNDVRESTARTACK", "RNDVRESTARTNACK", "RECVERRNOTIFY"):
        assert total[f"> {name}"], f"no {name} was ever sent"


# worlds in which a defect was found, each with what it was
FOUND = {
    1: "the ACK of a whole message was lost when its receive was complete",
    81: "the offer of a refused RGET was left behind",
    930: "a put that waited for room kept its registration when its rail died",
    1365: "a refused RNDV was blamed on the rail of a registration",
    13604: "a PUT had answered the RNDV that failed, and its FRAGs were under way at the restart",
    16740: "a message of sendi came back when its sender had said BYE",
    84072: "a receive took a queued RGET when its sender was lost already",
    109721: "an ACK for the rest of a message overtook the PUT that acknowledges its RNDV",
}


@pytest.mark.parametrize("number", FOUND, ids=lambda number: FOUND[number].replace(" ", "-"))
def test_worlds_that_found_something(number: int) -> None:
    world(number)
