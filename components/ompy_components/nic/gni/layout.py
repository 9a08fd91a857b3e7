"""Where everything lies in the memory that the NICs of a host share.

    0         a line per rank: its parked word; process, address and value of a probe for single
              copies (0 until it has one); the protection tag and cookie of its domain, and 1 above
    hints     per rank: a byte for each sender, not 0 when that has put something into its ring
    tables    per rank: registrations, `SLOT_WORDS` words each
    counters  per ordered pair (receiver, sender): short messages the receiver has released
    rings     per ordered pair (receiver, sender); an entry begins with the time it is there at

All zero is the valid initial state.
"""

from __future__ import annotations

from typing import Final

from ompy.net.memory.ring import CACHE_LINE, ring_size, slot_size_for

# words of a rank's line, by place
PARKED, PROCESS, PROBE_ADDRESS, PROBE, JOB = range(5)

# words of a registration, by place; IDENTITY is 0 where there is none, REGION where it is in none
SLOT_WORDS: Final = 8  # arbitrary: a cache line
IDENTITY, ADDRESS, SIZE, DESCRIPTOR, REGION, OFFSET = range(6)

# words of a pair's counters, by place
SMSG_RELEASED: Final = 0
MSGQ_RELEASED: Final = 1

# arbitrary: in place of a domain's tag and cookie, which have a 1 above: the NIC is gone for now
GONE: Final = 1
DUE_SIZE: Final = 8  # arbitrary: a word of an entry is its time, ns of the clock; 0 without one
LINE_WORDS: Final = CACHE_LINE // 8


class Layout:
    """Offsets for one host.

    Attributes:
        registrations: slots of a table.
        slot_size: bytes of a ring's slot.
        size: of the whole segment.
    """

    def __init__(self, ranks: int, registrations: int, slots: int, message_size: int) -> None:
        self._ranks = ranks
        self.registrations = registrations
        self.slot_size = slot_size_for(DUE_SIZE + message_size)
        self._ring = ring_size(slots, self.slot_size)
        self._hints_of = -(-ranks // CACHE_LINE) * CACHE_LINE
        self._hints = ranks * LINE_WORDS * 8
        self._tables = (self._hints + ranks * self._hints_of) // 8
        self._counters = self._tables + ranks * registrations * SLOT_WORDS
        self._rings = (self._counters + ranks * ranks * LINE_WORDS) * 8
        self.size = self._rings + ranks * ranks * self._ring

    def line(self, rank: int) -> int:
        """Index of a rank's line, in words."""
        return rank * LINE_WORDS

    def hint(self, receiver: int, sender: int) -> int:
        """Byte offset of what says that there may be something in a ring."""
        return self._hints + receiver * self._hints_of + sender

    def slot(self, rank: int, slot: int) -> int:
        """Index of a registration, in words."""
        return self._tables + (rank * self.registrations + slot) * SLOT_WORDS

    def released(self, receiver: int, sender: int) -> int:
        """Index of the counter of released messages, in words."""
        return self._counters + (receiver * self._ranks + sender) * LINE_WORDS

    def ring(self, receiver: int, sender: int) -> int:
        """Byte offset of a ring."""
        return self._rings + (receiver * self._ranks + sender) * self._ring
