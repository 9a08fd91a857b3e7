"""What a world of a described cluster says when it has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ompy.runtime.cluster.timed_exchange import TimedExchange
from ompy.runtime.cluster.timed_stub import TimedStub
from ompy.runtime.cluster.topology import LinkName


class LinkUse(NamedTuple):
    """How a link was used.

    Attributes:
        name: of it.
        bytes: that it has carried.
        share: of what it could have carried.
    """

    name: LinkName
    bytes: int
    share: float


class Prediction(NamedTuple):
    """What a program takes on a cluster.

    Attributes:
        time: ns until the last rank has finalized; all begin at 0.
        communication: share of each rank's time that it neither slept nor computed.
        counts: messages and bytes, by the way they take.
        links: the busiest first.
    """

    time: int
    communication: list[float]
    counts: dict[str, tuple[int, int]]
    links: list[LinkUse]


def prediction_of(stubs: Sequence[TimedStub], timed: TimedExchange) -> Prediction:
    """Of a world that has ended."""
    time = max((stub.ended for stub in stubs), default=0)
    shares = [1 - min(stub.computed / stub.ended, 1.0) if stub.ended else 0.0 for stub in stubs]
    links = [
        LinkUse(name, carried, carried / (capacity * time) if time else 0.0)
        for name, carried, capacity in timed.link_loads()
    ]
    links.sort(key=lambda link: (-link.share, str(link.name)))
    counts = {way: (count[0], count[1]) for way, count in timed.counts.items()}
    return Prediction(time, shares, counts, links)
