"""Which packets of a peer have arrived, and which of those to come will be taken.

Packets are handed on as they come, in any order; the window only sees to it that each is taken
once.

Source: seed usnic (reliability); reference usnic.md 9.
"""

from __future__ import annotations

from enum import Enum

from ompy_components.btl.usnic.sequence import WINDOW, after, distance, slot


class Arrival(Enum):
    """What a packet's number says about it."""

    NEW = "new"
    DUPLICATE = "duplicate"
    LOW = "below the window"  # has been taken long ago: its ACK was lost
    HIGH = "above the window"


class ReceiveWindow:
    """What one peer has sent.

    Attributes:
        expected: the lowest number that has not arrived.
    """

    __slots__ = ("_here", "expected")

    def __init__(self, first: int) -> None:
        """Expect the number `first` to begin with."""
        self.expected = first
        self._here = bytearray(WINDOW)  # whether it is here, by slot

    def judge(self, sequence: int) -> Arrival:
        """What to think of a packet with this number; nothing changes."""
        ahead = distance(sequence, self.expected)
        if ahead < 0:
            return Arrival.LOW
        if ahead >= WINDOW:
            return Arrival.HIGH
        return Arrival.DUPLICATE if self._here[slot(sequence)] else Arrival.NEW

    def record(self, sequence: int) -> None:
        """A packet that is `NEW` has been taken."""
        here, expected = self._here, self.expected
        ahead = distance(sequence, expected)
        assert ahead >= 0, f"packet {sequence} was taken before"
        assert ahead < WINDOW, f"packet {sequence} is not in the window"
        assert not here[sequence % WINDOW], f"packet {sequence} was taken before"
        here[sequence % WINDOW] = 1
        while here[expected % WINDOW]:
            here[expected % WINDOW] = 0
            expected = after(expected)
        self.expected = expected

    @property
    def acknowledgement(self) -> int:
        """The number that acknowledges what has arrived: of the last before the first gap."""
        return after(self.expected, -1)
