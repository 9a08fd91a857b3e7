"""A single-producer single-consumer ring in shared memory, without a lock.

Layout, in bytes from the ring's base; the two counters lie on cache lines of their own, so
that producer and consumer do not take each other's line away at each look:

    0    tail   u64   slots ever published; written by the producer only
    64   head   u64   slots ever consumed; written by the consumer only
    128  slots        `slots` times `slot_size` bytes

    slot: 0 length u32 | 4 tag u8 | 5 kind u8 | 6 -  | 8 reference u64 | 16 payload

A slot belongs to the producer from `reserve` to `publish` and to the consumer from `peek` to
`release`. On x86 plain stores are seen in order; compiled for another architecture the
store of `tail` must be a release and its load an acquire (design: reference performance.md 3a).
"""

from __future__ import annotations

from typing import Final

from ompy.compiled import U64, U64View, ccall, cclass

HEADER_SIZE: Final = 128  # the layout above: one x86 cache line for each counter
CACHE_LINE: Final = 64  # bytes; x86 and most aarch64
SLOT_HEADER: Final = 16
_TAIL: Final = 0
_HEAD: Final = CACHE_LINE // 8
_SLOT_HEADER: Final = SLOT_HEADER
_LENGTH: Final = 0xFFFFFFFF  # the bits of it; by name, as compiled a number beyond int is an object
assert _HEAD * 8 + 8 <= HEADER_SIZE


def ring_size(slots: int, slot_size: int) -> int:
    """Bytes one ring takes."""
    assert slot_size % 8 == 0, "slots are aligned to words"
    return HEADER_SIZE + slots * slot_size


@cclass
class RingWriter:
    """The producer's end.

    Attributes:
        room: payload bytes one slot holds.
    """

    _base: int
    _bytes: memoryview[int]
    _first: int
    _head: U64
    _size: int
    _slots: U64
    _tail: U64
    _words: U64View
    room: int
    __slots__ = tuple(__annotations__)

    def __init__(self, memory: memoryview, base: int, slots: int, slot_size: int) -> None:
        """Take the ring at byte `base` of `memory` (format B)."""
        assert base % 8 == 0
        self._bytes = memory
        self._words = memory.cast("Q")
        self._base = base // 8
        self._first = base + HEADER_SIZE
        self._slots = slots
        self._size = slot_size
        self._tail = self._words[self._base + _TAIL]
        self._head = self._words[self._base + _HEAD]
        self.room = slot_size - SLOT_HEADER

    @ccall
    def reserve(self) -> int:
        """Byte offset in `memory` of the next slot's payload, or -1 when the ring is full."""
        if self._tail - self._head >= self._slots:
            self._head = self._words[self._base + _HEAD]
            if self._tail - self._head >= self._slots:
                return -1
        return self._first + (self._tail % self._slots) * self._size + _SLOT_HEADER

    @ccall
    def publish(self, length: U64, tag: U64, kind: U64, reference: U64) -> None:
        """Hand the slot last reserved to the consumer; its payload is written already."""
        slot: int = (self._first + (self._tail % self._slots) * self._size) >> 3
        self._words[slot] = length | (tag << 32) | (kind << 40)
        self._words[slot + 1] = reference
        self._tail += 1
        self._words[self._base + _TAIL] = self._tail

    @ccall
    def slots_written(self) -> int:
        """Slots that were filled so far."""
        return self._tail


@cclass
class RingReader:
    """The consumer's end.

    After `peek` has returned true the slot's number `slot`, its `length`, `tag`, `kind`,
    `reference` and the byte offset `payload` describe it, until `release`.
    """

    _base: int
    _first: int
    _head: U64
    _size: int
    _slots: U64
    _words: U64View
    kind: int
    length: U64
    payload: int
    reference: U64
    slot: int
    tag: int
    __slots__ = tuple(__annotations__)

    def __init__(self, memory: memoryview, base: int, slots: int, slot_size: int) -> None:
        """Take the ring at byte `base` of `memory` (format B)."""
        assert base % 8 == 0
        self._words = memory.cast("Q")
        self._base = base // 8
        self._first = base + HEADER_SIZE
        self._slots = slots
        self._size = slot_size
        self._head = self._words[self._base + _HEAD]
        self.length = self.tag = self.kind = self.reference = self.payload = self.slot = 0

    @ccall
    def pending(self) -> bool:
        """Whether a slot has been published and not yet consumed."""
        return self._words[self._base + _TAIL] != self._head

    @ccall
    def peek(self) -> bool:
        """Look at the oldest slot; false when there is none."""
        if self._words[self._base + _TAIL] == self._head:
            return False
        self.slot = self._head % self._slots
        start: int = self._first + self.slot * self._size
        word: U64 = self._words[start >> 3]
        self.length = word & _LENGTH
        self.tag = (word >> 32) & 0xFF
        self.kind = (word >> 40) & 0xFF
        self.reference = self._words[(start >> 3) + 1]
        self.payload = start + _SLOT_HEADER
        return True

    @ccall
    def release(self) -> None:
        """Give the slot back to the producer; its bytes may change at once."""
        self._head += 1
        self._words[self._base + _HEAD] = self._head

    @ccall
    def slots_read(self) -> int:
        """Slots that were emptied so far."""
        return self._head
