"""Where everything lies in the memory the ranks of a host share.

    0        one cache line per rank: its parked word, and who it is for single copies:
             process, address of a probe, value of the probe (0 until it has one); then whether
             it has ended its use of sm
    tables   one table per rank: what it has registered for single copies, `TABLE_SLOTS` slots of
             identity (0: none), address, size, access; for memory that peers can map also its
             region's descriptor and number (0: none), and the offset in it
    rings    one ring per ordered pair, ring (receiver, sender) at receiver * ranks + sender
    pools    one pool per rank: blocks of a state line and room for one large fragment

All zero is the valid initial state: no ring has a message, no block is taken, nobody sleeps,
nothing is registered.
"""

from __future__ import annotations

from typing import Final

from ompy.net.memory.ring import CACHE_LINE, ring_size, slot_size_for

# values of a parked word
AWAKE: Final = 0
PARKED: Final = 1  # wake me when there is a message
WAITS_FOR_ROOM: Final = 2  # wake me also when a slot or block of mine became free

# kinds of records in a ring
INLINE: Final = 0
BLOCK: Final = 1  # the fragment is in a block that the record names
LENT_RECORD: Final = 2  # so, or it is lent

# values of a block's state word
FREE: Final = 0
TAKEN: Final = 1
# of one whose payload is still in the sender's memory (`lending.py`)
LENT: Final = 2
READING: Final = 3
REFUSED: Final = 4
WITHDRAWN: Final = 5
# kinds of words behind it, by place; then, from a byte on, the header
LENT_ADDRESS: Final = 1
LENT_SIZE: Final = 2
LENT_HEADER: Final = 24
LENT_HEADER_MOST: Final = 32  # bytes; the reader needs no other line
# of any block, set before FREE: nanoseconds that the receiver took for it
READ_FOR: Final = 7


# kinds of words behind a rank's parked word, by place
PROCESS: Final = 1
PROBE_ADDRESS: Final = 2
PROBE: Final = 3
LEFT: Final = 4

TABLE_BITS: Final = 9  # arbitrary: 32 KiB a rank
TABLE_SLOTS: Final = 1 << TABLE_BITS  # beyond it registrations are reached by fragments
# kinds of words of a slot, by place, and how many
SLOT_WORDS: Final = 8
IDENTITY: Final = 0
ADDRESS: Final = 1
SIZE: Final = 2
ACCESS: Final = 3
DESCRIPTOR: Final = 4
REGION: Final = 5
OFFSET: Final = 6


def _round_up(size: int) -> int:
    return -(-size // CACHE_LINE) * CACHE_LINE


# bytes of all rings of a host; arbitrary: they are touched as messages go through them, and stay
RINGS_MOST: Final = 32 << 20
SLOTS_LEAST: Final = 32  # of a ring; reference performance.md 6: more only lets a sender run ahead


def slots_of_ring(most: int, ranks: int, inline_max: int) -> int:
    """Slots of each ring: as many as were asked for, fewer where the ranks are many.

    A sender whose ring is full makes a request of each message and begins it again and again, at
    twice the cost. So a window of messages should have room, if that is to be had.
    """
    slot = slot_size_for(inline_max)
    return min(most, max(SLOTS_LEAST, RINGS_MOST // (ranks * ranks * slot)))


class SharedLayout:
    """Offsets for one host's segment.

    Attributes:
        slot_size: bytes of a ring slot.
        size: of the whole segment.
    """

    __slots__ = (
        "_blocks",
        "_pools",
        "_ranks",
        "_ring_size",
        "_rings",
        "_tables",
        "block_size",
        "size",
        "slot_size",
    )

    def __init__(
        self, ranks: int, slots: int, inline_max: int, blocks: int, block_room: int
    ) -> None:
        self._ranks = ranks
        self._blocks = blocks
        self.slot_size = slot_size_for(inline_max)
        self.block_size = _round_up(CACHE_LINE + block_room)
        self._ring_size = ring_size(slots, self.slot_size)
        self._tables = _round_up(ranks * CACHE_LINE)
        self._rings = self._tables + ranks * TABLE_SLOTS * SLOT_WORDS * 8
        self._pools = self._rings + ranks * ranks * self._ring_size
        self.size = self._pools + ranks * blocks * self.block_size

    def parked_word(self, rank: int) -> int:
        """Index of a rank's parked word, in 8-byte words."""
        return rank * CACHE_LINE // 8

    def table(self, rank: int) -> int:
        """Index of a rank's table of registrations, in 8-byte words."""
        return self._tables // 8 + rank * TABLE_SLOTS * SLOT_WORDS

    def ring(self, receiver: int, sender: int) -> int:
        """Byte offset of a ring."""
        return self._rings + (receiver * self._ranks + sender) * self._ring_size

    def block(self, rank: int, index: int) -> int:
        """Byte offset of a block: its state word; the fragment begins a cache line later."""
        return self._pools + (rank * self._blocks + index) * self.block_size
