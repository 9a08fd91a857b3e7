"""What fault scripts speak of: flows, single packets of them, and what becomes of those."""

from __future__ import annotations

from typing import Final, NamedTuple

from ompy.net.faults.fault_rules import NEVER

UNKNOWN: Final = -1  # the rank behind an address nobody has introduced


class Injection(NamedTuple):
    """A packet that was struck: enough to strike the same one again.

    Attributes:
        rule: index in the script.
        sender: rank it came from.
        receiver: rank it went to, `UNKNOWN` when nobody knows.
        rail: it went over.
        nth: packet of its flow.
        detail: what was drawn: how long it was held, or which bit was turned.
    """

    rule: int
    sender: int
    receiver: int
    rail: str
    nth: int
    detail: int


class Flow:
    """What goes from this rank to another over one rail.

    Attributes:
        receiver: the other rank.
        rail: name of the interface.
        count: packets so far.
        free_at: when what is paced has left, by rule.
    """

    __slots__ = ("count", "free_at", "rail", "receiver")

    def __init__(self, receiver: int, rail: str) -> None:
        self.receiver = receiver
        self.rail = rail
        self.count = 0
        self.free_at: dict[int, int] = {}


class Outcome(NamedTuple):
    """What becomes of one packet.

    Attributes:
        copies: what is sent, and how many ns from now; none when it is lost.
        hold: for connections: how long it and what is behind it waits.
        hole: it falls into a black hole; for how long that holds a connection, `NEVER` for no hole.
    """

    copies: list[tuple[int, bytes | None]]
    hold: int = 0
    hole: int = NEVER


PASSED: Final = Outcome([(0, None)])
