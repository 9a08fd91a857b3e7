"""Which packets of a peer have arrived, and which of those to come will be taken.

Packets are handed on as they come, in any order; the window only sees to it that each is taken
once.

Source: seed usnic (reliability); reference usnic.md 9.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ompy.compiled import ccall, cclass

from ompy_components.btl.usnic.reliability.sequence import WINDOW, after, distance, window_slot

_DIGITS: Final = b"01".ljust(256, b"1")  # flags as digits


class Arrival(Enum):
    """What a packet's number says about it."""

    NEW = "new"
    DUPLICATE = "duplicate"
    LOW = "below the window"  # has been taken long ago: its ACK was lost
    HIGH = "above the window"


NEW: Final = Arrival.NEW
DUPLICATE: Final = Arrival.DUPLICATE


@cclass
class ReceiveWindow:
    """What one peer has sent.

    Attributes:
        expected: the lowest number that has not arrived.
        highest: the highest number that has; the one before the first to begin with.
    """

    _here: bytearray
    expected: int
    highest: int
    __slots__ = tuple(__annotations__)

    def __init__(self, first: int) -> None:
        """Expect the number `first` to begin with."""
        self.expected = first
        self.highest = after(first, -1)
        self._here = bytearray(WINDOW)  # whether it is here, by slot

    @ccall
    def judge(self, sequence: int) -> Arrival:
        """What to think of a packet with this number; nothing changes."""
        ahead: int = distance(sequence, self.expected)
        if ahead < 0:
            return Arrival.LOW
        if ahead >= WINDOW:
            return Arrival.HIGH
        return DUPLICATE if self._here[window_slot(sequence)] else NEW

    @ccall
    def record(self, sequence: int) -> None:
        """A packet that is `NEW` has been taken."""
        here: bytearray = self._here
        expected: int = self.expected
        ahead: int = distance(sequence, expected)
        assert ahead >= 0, f"packet {sequence} was taken before"
        assert ahead < WINDOW, f"packet {sequence} is not in the window"
        assert not here[sequence % WINDOW], f"packet {sequence} was taken before"
        here[sequence % WINDOW] = 1
        if distance(sequence, self.highest) > 0:
            self.highest = sequence
        while here[expected % WINDOW]:
            here[expected % WINDOW] = 0
            expected = after(expected)
        self.expected = expected

    @property
    def acknowledgement(self) -> int:
        """As `acknowledged` has it."""
        return self.acknowledged()

    @ccall
    def acknowledged(self) -> int:
        """The number that acknowledges what has arrived: of the last before the first gap."""
        return after(self.expected, -1)

    @ccall
    def has_gap(self) -> bool:
        """Whether something has arrived behind the first number that has not."""
        return distance(self.highest, self.expected) > 0

    @ccall
    def behind_gap(self, most: int) -> bytes:
        """Which numbers behind the first that is missing have arrived, of 8 * `most` at most.

        Bit 0 of byte 0 is the number behind the missing one, and so on; empty without a gap.
        """
        count = min(distance(self.highest, self.expected), 8 * most)
        if count <= 0:
            return b""
        first = window_slot(after(self.expected))
        flags = self._here[first : first + count]
        flags += self._here[: count - len(flags)]  # the slots are a ring
        bits = int(flags[::-1].translate(_DIGITS), 2)
        return bits.to_bytes((count + 7) // 8, "little")
