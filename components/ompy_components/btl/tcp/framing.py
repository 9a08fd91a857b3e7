"""Frames on a proven connection: a header, then the fragment.

    0 tag u8 | 1 kind u8 | 2 reserved u16 | 4 size u32 | 8 fragment

The frames of put and get begin their fragment with what they are about; bytes may follow:

    0 operation u64 | 8 identity u64 | 16 offset u64 | 24 size u64 | 32 status i64 | 40 bytes

A put may come in several frames, between which others may lie (`PART`).

The reader is sans-IO: it offers memory to receive into, and yields fragments from it. The
bytes of a put or get are received where `land` says.
"""

from __future__ import annotations

from typing import Final

from ompy import raw
from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.header_layout import HeaderLayout
from ompy.net.base import LinkError

FRAME_LAYOUT: Final = HeaderLayout("tcp.frame", "tag u8, kind u8, reserved u16, size u32")
FRAME: Final = FRAME_LAYOUT.struct
assert FRAME.size == 8
FRAME_SIZE: Final = FRAME.size

REMOTE_LAYOUT: Final = HeaderLayout(
    "tcp.remote", "operation u64, identity u64, offset u64, size u64, status i64"
)
REMOTE: Final = REMOTE_LAYOUT.struct
REMOTE_SIZE: Final = REMOTE.size
assert REMOTE_SIZE == 40

# kinds of frames
DATA: Final = 0
BYE: Final = 1  # the sender will send nothing more
PUT: Final = 2  # bytes for registered memory
GET: Final = 3  # a question for bytes of it
GOT: Final = 4  # bytes of registered memory
DONE: Final = 5  # how a put went, or that a get failed
ACK: Final = 6  # of a connection that acknowledges: its size says how many fragments
LANDED: Final = 255  # never on the wire: the bytes of a PUT or GOT are in their place

# bytes read at first when nothing is held: what follows the header of a put comes in it too and is
# copied once more; arbitrary: little beside a put, and room for many small frames
FIRST_READ: Final = 16 * 1024
JOIN_MAX: Final = 8192  # arbitrary: below it one copy is cheaper than a gathering system call
ASKS: Final = 0x8000  # in the reserved field: somebody waits for the acknowledgement
COUNT_MAX: Final = 0x7FFF  # the header has the 15 bits below for it
assert COUNT_MAX < ASKS


@ccall
def frame_word(tag: U64, kind: U64, taken: U64, size: U64) -> bytes:
    """A frame's header, as `FRAME` has it, made of a word.

    Args:
        tag: of the fragment, or 0.
        kind: of the frame.
        taken: how many fragments it acknowledges, with `ASKS` or without.
        size: bytes that follow.
    """
    return raw.one_word(tag | kind << 8 | taken << 16 | size << 32)


WITH_BYTES: Final = frozenset({PUT, GOT})
# status of a PUT
PART: Final = 1  # more of the same operation follows, and that is answered
UNANSWERED: Final = 2  # nobody waits for an answer
LARGEST: Final = (1 << 32) - 1 - REMOTE_SIZE  # bytes of a put or get: the size is a u32 (Linux)


@cclass
class FrameReader:
    """Cuts a stream of bytes into frames.

    Attributes:
        tag, kind: of the frame `next` found.
        fragment: its bytes, in the reader's own memory; valid until `room` is called. Of a PUT
            or GOT the first `REMOTE_SIZE`: `land` must be called then.
        left: bytes of a PUT or GOT that have not landed.
    """

    _begin: int
    _end: int
    _first: memoryview[int]
    _landing: bool
    _largest: int
    _memory: memoryview[int]
    _needed: int
    _target: memoryview[int] | None
    fragment: memoryview[int]
    kind: int
    left: int
    tag: int
    __slots__ = tuple(__annotations__)

    def __init__(self, largest: int) -> None:
        """Accept fragments of up to `largest` bytes."""
        self._largest = largest
        # room for one frame and as much again, so that many small ones come in one read
        self._memory = memoryview(bytearray(2 * (largest + FRAME_SIZE)))
        self._first = self._memory[:FIRST_READ]
        self._begin = 0
        self._end = 0
        self._needed = 0  # bytes of the frame that has begun and is not whole
        self.tag = self.kind = 0
        self.fragment = self._memory[:0]
        self._landing = False  # then nothing is held: _begin == _end
        self.left = 0
        self._target = None  # where; None drops them

    @ccall
    def room(self) -> memoryview:
        """Memory to receive into. Invalidates `fragment`."""
        if self._begin == self._end:
            if self._landing:
                return self._memory[: self.left] if self._target is None else self._target
            self._begin = self._end = 0
            return self._first
        elif self._begin > len(self._memory) // 2:
            held: int = self._end - self._begin
            self._memory[:held] = self._memory[self._begin : self._end]
            self._begin, self._end = 0, held
        # the rest of what has begun; behind it as little as where nothing has
        return self._memory[self._end : self._begin + self._needed + FIRST_READ]

    @ccall
    def received(self, count: int) -> None:
        """`count` bytes were stored in what `room` offered."""
        if self._landing:
            self.left -= count
            if self._target is not None:
                self._target = self._target[count:]
        else:
            self._end += count

    @ccall
    def next(self) -> bool:
        """Find the next whole frame, or the beginning or the end of a PUT or GOT.

        Raises:
            LinkError: a header that no peer of ours writes.
        """
        held: int = self._end - self._begin
        if held < FRAME_SIZE:
            self._needed = FRAME_SIZE
            return self._landing and self.left == 0 and self._landed()
        return self._framed(raw.word(self._memory, self._begin), held)

    @cfunc
    def _framed(self, word: U64, held: int) -> bool:
        """Find the frame that begins with the header `word`, if it is whole in `held` bytes."""
        # the fields of FRAME
        tag: int = word & 255
        kind: int = word >> 8 & 255
        reserved: int = word >> 16 & 65535
        size: int = word >> 32
        if kind > BYE and not reserved and self._is_remote(kind, size):
            return self._next_remote(kind, size, held)
        if size > self._largest or kind > BYE or reserved:
            raise LinkError(
                f"a frame of kind {kind} with {size} bytes; at most {self._largest} are allowed"
            )
        if held < FRAME_SIZE + size:
            self._needed = FRAME_SIZE + size
            return False
        start: int = self._begin + FRAME_SIZE
        self.tag = tag
        self.kind = kind
        self.fragment = self._memory[start : start + size]
        self._begin = start + size
        return True

    @cfunc
    def _is_remote(self, kind: int, size: int) -> bool:
        return (kind <= DONE and size == REMOTE_SIZE) or (kind in WITH_BYTES and size > REMOTE_SIZE)

    @cfunc
    def _next_remote(self, kind: int, size: int, held: int) -> bool:
        if held < FRAME_SIZE + REMOTE_SIZE:
            self._needed = FRAME_SIZE + REMOTE_SIZE
            return False
        start = self._begin + FRAME_SIZE
        self.tag = 0
        self.kind = kind
        self.fragment = self._memory[start : start + REMOTE_SIZE]
        self._begin = start + REMOTE_SIZE
        self.left = size - REMOTE_SIZE
        return True

    @ccall
    def land(self, target: memoryview | None) -> bool:
        """Say where the bytes of the PUT or GOT that `next` found go.

        Args:
            target: exactly as many bytes as the frame brings are stored in it; with another size,
                and with None, they are dropped.

        Returns:
            Whether all have been stored; otherwise `next` finds `LANDED` later.
        """
        here = min(self._end - self._begin, self.left)
        if target is not None and len(target) != self.left:
            target = None
        if target is not None and here:
            target[:here] = self._memory[self._begin : self._begin + here]
            target = target[here:]
        self._begin += here
        self.left -= here
        self._target = target
        self._landing = self.left > 0
        return not self._landing

    @ccall
    def drop(self) -> None:
        """Drop what has not landed yet."""
        self._target = None

    @cfunc
    def _landed(self) -> bool:
        self._landing = False
        self._target = None
        self.kind = LANDED
        return True
