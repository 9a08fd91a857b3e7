"""A single-producer single-consumer ring in shared memory, without a lock.

Records follow each other, each as long as it has to be: small messages share pages and come in the
order in which a processor fetches memory ahead. Layout, in bytes from the ring's base; each end
writes one of the first two lines and looks at the other's only when it has to:

    0    records ever published u64 | where the next one begins u64 | where it last left for the
         first place, and 1, u64 | records published before that u64; written by the producer only
    64   records ever consumed  u64 | where the next one begins u64; written by the consumer only
    128  records, each on a cache line of its own

    record: 0 length u32 | 4 tag u8 | 5 kind + 1 u8 | 6 lines u16 | 8 reference u64 | 16 payload

where `lines` are the cache lines that it takes.

The consumer looks at the next record's first word and nowhere else. The word is 0 until the record
is there: the producer clears the word of the record after it before it stores its own. A record
that does not fit before the end begins at the first place again. Once it is there, a word of kind
`WRAP` in the place where it would have been says so, and where it is, in lines.

A processor makes its stores visible in order, and takes a line from the other one for each that is
not its own. So the word behind a record is cleared before anything is stored to the record's first
line: the consumer, which looks at that line all the time, takes it once and not half written. Lines
that both have used a moment ago change hands faster than those of a lap ago: after `REWIND` bytes
the producer begins at the first place again as soon as the ring is empty. Until the consumer has
followed, its records go round the word that says so.

A record belongs to the producer from `reserve` to `publish` and to the consumer from `peek` to
`release`. The ring is full when `slots` records are under way, however small they are. Its memory
is larger than these can be by three: what is lost before the end, what is lost in front of that
word, and the cleared word. So no record and no cleared word meets an unread one.
"""

from __future__ import annotations

from typing import Final

from ompy import raw
from ompy.compiled import U64, U64View, ccall, cclass, cfunc

HEADER_SIZE: Final = 128  # the layout above: one x86 cache line for each end
CACHE_LINE: Final = 64  # bytes; x86 and most aarch64
SLOT_HEADER: Final = 16
REWIND: Final = 16 * 1024  # bytes; arbitrary: half of the nearest cache of most processors
WRAP: Final = 255  # in place of a kind and 1: there is no record here, go on elsewhere
# indices of an end's words, from its ring's base, and how many more the ring holds than it takes
_WRITTEN: Final = 0
_READ: Final = CACHE_LINE // 8
_SPARE: Final = 3
_REWIND: Final = REWIND
_LINE: Final = CACHE_LINE
_SLOT_HEADER: Final = SLOT_HEADER
_WRAP: Final = WRAP
_LENGTH: Final = 0xFFFFFFFF  # the bits of it; by name, as compiled a number beyond int is an object
assert _READ * 8 + 16 <= HEADER_SIZE


def slot_size_for(payload: int) -> int:
    """Bytes of the largest record, where payloads have up to so many."""
    return -(-(SLOT_HEADER + payload) // CACHE_LINE) * CACHE_LINE


def ring_size(slots: int, slot_size: int) -> int:
    """Bytes one ring takes that has room for so many records of up to `slot_size` bytes.

    They are whole cache lines.
    """
    assert slot_size % CACHE_LINE == 0, "records lie on cache lines"
    assert slot_size < CACHE_LINE << 16, "a record says in 16 bits how many"
    return HEADER_SIZE + (slots + _SPARE) * slot_size


@cclass
class RingWriter:
    """The producer's end.

    Attributes:
        room: payload bytes one record holds at most.
    """

    _after: int
    _at: int
    _base: int
    _bytes: memoryview[int]
    _end: int
    _first: int
    _least: int
    _left: int
    _left_at: U64
    _lines: U64
    _place: int
    _read: U64
    _slots: U64
    _turn: int
    _words: U64View
    _written: U64
    room: int
    __slots__ = tuple(__annotations__)

    def __init__(self, memory: memoryview, base: int, slots: int, slot_size: int) -> None:
        """Take the ring at byte `base` of `memory` (format B)."""
        assert base % 8 == 0
        self._bytes = memory
        self._words = memory.cast("Q")
        self._base = base // 8
        self._first = base + HEADER_SIZE
        self._end = base + ring_size(slots, slot_size)
        self._slots = slots
        self._written = self._words[self._base + _WRITTEN]
        self._read = self._words[self._base + _READ]
        self._at = self._after = self._first + self._words[self._base + _WRITTEN + 1]
        self._place = self._at
        # as far, so that a record at the first place ends before the place that is left
        self._least = max(_REWIND, 2 * slot_size)
        self._turn = self._first + self._least
        self._left = self._words[self._base + _WRITTEN + 2] + self._first - 1
        self._left_at = self._words[self._base + _WRITTEN + 3]
        self._lines = 0
        self.room = slot_size - SLOT_HEADER

    @ccall
    def reserve(self, size: int) -> int:
        """Byte offset in `memory` for a payload of `size` bytes, or -1 when the ring is full."""
        if self._written - self._read >= self._slots:
            self._read = self._words[self._base + _READ]
            if self._written - self._read >= self._slots:
                return -1
        self._lines = (_SLOT_HEADER + size + _LINE - 1) // _LINE
        length: int = self._lines * _LINE
        self._place = self._at
        if self._at >= self._turn:
            self._look_for_rewind()
        if self._place <= self._left <= self._place + length:
            self._go_round()
        if self._place + length > self._end:
            self._place = self._first
        self._after = self._place + length
        if self._after >= self._end:
            self._after = self._first
        self._words[self._after >> 3] = 0
        return self._place + _SLOT_HEADER

    @cfunc
    def _look_for_rewind(self) -> None:
        """Put the record to the first place if the ring is empty; else look later again."""
        self._read = self._words[self._base + _READ]
        if self._read != self._written:
            self._turn = self._at + self._least
            return
        self._place = self._first
        self._left = self._at
        self._left_at = self._written
        self._words[self._base + _WRITTEN + 2] = self._left - self._first + 1
        self._words[self._base + _WRITTEN + 3] = self._written

    @cfunc
    def _go_round(self) -> None:
        """Put the record behind the place that was left, if the consumer has not left it yet."""
        self._read = self._words[self._base + _READ]
        if self._read > self._left_at:
            self._left = -1
        else:
            self._place = self._left + _LINE

    @ccall
    def publish(self, length: U64, tag: U64, kind: U64, reference: U64) -> None:
        """Hand the record last reserved to the consumer; its payload is written already.

        The length is told as it is: that of what the reference is to, where the payload is empty.
        """
        at: int = self._place
        self._words[(at >> 3) + 1] = reference
        word: U64 = length | (tag << 32) | ((kind + 1) << 40) | (self._lines << 48)
        raw.put_word(self._bytes, at, word)
        if at != self._at:
            there: U64 = (at - self._first) // _LINE
            raw.put_word(self._bytes, self._at, (_WRAP << 40) | there)
            self._turn = self._first + self._least
        self._at = self._after
        self._written += 1
        self._words[self._base + _WRITTEN] = self._written
        self._words[self._base + _WRITTEN + 1] = self._at - self._first

    @ccall
    def records_written(self) -> int:
        """Records that were published so far."""
        return self._written


@cclass
class RingReader:
    """The consumer's end.

    After `peek` has returned true, `length`, `tag`, `kind`, `reference` and the byte offset
    `payload` describe the oldest record, until `release`.
    """

    _at: int
    _base: int
    _bytes: memoryview[int]
    _end: int
    _first: int
    _lines: U64
    _read: U64
    _words: U64View
    kind: int
    length: U64
    payload: int
    reference: U64
    tag: int
    __slots__ = tuple(__annotations__)

    def __init__(self, memory: memoryview, base: int, slots: int, slot_size: int) -> None:
        """Take the ring at byte `base` of `memory` (format B)."""
        assert base % 8 == 0
        self._bytes = memory
        self._words = memory.cast("Q")
        self._base = base // 8
        self._first = base + HEADER_SIZE
        self._end = base + ring_size(slots, slot_size)
        self._read = self._words[self._base + _READ]
        self._at = self._first + self._words[self._base + _READ + 1]
        self._lines = 0
        self.length = self.tag = self.kind = self.reference = self.payload = 0

    @ccall
    def pending(self) -> bool:
        """Whether a record has been published and not yet consumed."""
        return self._words[self._at >> 3] != 0

    @ccall
    def peek(self) -> bool:
        """Look at the oldest record; false when there is none."""
        word: U64 = self._words[self._at >> 3]
        if word >> 40 == _WRAP:
            raw.load_fence()
            self._at = self._first + (word & _LENGTH) * _LINE
            word = self._words[self._at >> 3]
        if not word:
            return False
        raw.load_fence()
        self.length = word & _LENGTH
        self.tag = (word >> 32) & 0xFF
        self.kind = ((word >> 40) & 0xFF) - 1
        self._lines = word >> 48
        self.reference = self._words[(self._at >> 3) + 1]
        self.payload = self._at + _SLOT_HEADER
        if self.length > _LINE - _SLOT_HEADER:  # its other lines come while the first one is read
            raw.fetch_ahead(self._bytes, self._at + _LINE, self.length - (_LINE - _SLOT_HEADER))
        return True

    @ccall
    def release(self) -> None:
        """Give the record back to the producer; its bytes may change at once."""
        after: int = self._at + self._lines * _LINE
        if after >= self._end:
            after = self._first
        self._at = after
        self._read += 1
        self._words[self._base + _READ + 1] = after - self._first
        raw.put_word(self._bytes, (self._base + _READ) << 3, self._read)

    @ccall
    def records_read(self) -> int:
        """Records that were released so far."""
        return self._read
