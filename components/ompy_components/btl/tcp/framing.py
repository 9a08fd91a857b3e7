"""Frames on a proven connection: a header, then the fragment.

    0 tag u8 | 1 kind u8 | 2 reserved u16 | 4 size u32 | 8 fragment

The reader is sans-IO: it offers memory to receive into, and yields fragments from it.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ompy.net.base import LinkError

FRAME: Final = Struct("<BBHI")
assert FRAME.size == 8
FRAME_SIZE: Final = FRAME.size

DATA: Final = 0
BYE: Final = 1  # the sender will send nothing more


class FrameReader:
    """Cuts a stream of bytes into frames.

    Attributes:
        tag, kind: of the frame `next` found.
        fragment: its bytes, in the reader's own memory; valid until `room` is called.
    """

    __slots__ = ("_begin", "_end", "_largest", "_memory", "fragment", "kind", "tag")

    def __init__(self, largest: int) -> None:
        """Accept fragments of up to `largest` bytes."""
        self._largest = largest
        # room for one frame and as much again, so that many small ones come in one read
        self._memory = memoryview(bytearray(2 * (largest + FRAME_SIZE)))
        self._begin = 0
        self._end = 0
        self.tag = self.kind = 0
        self.fragment = self._memory[:0]

    def room(self) -> memoryview:
        """Memory to receive into. Invalidates `fragment`."""
        if self._begin == self._end:
            self._begin = self._end = 0
        elif self._begin > len(self._memory) // 2:
            held = self._end - self._begin
            self._memory[:held] = self._memory[self._begin : self._end]
            self._begin, self._end = 0, held
        return self._memory[self._end :]

    def received(self, count: int) -> None:
        """`count` bytes were stored in what `room` offered."""
        self._end += count

    def next(self) -> bool:
        """Find the next whole frame.

        Raises:
            LinkError: a header that no peer of ours writes.
        """
        held = self._end - self._begin
        if held < FRAME_SIZE:
            return False
        tag, kind, reserved, size = FRAME.unpack_from(self._memory, self._begin)
        if size > self._largest or kind > BYE or reserved:
            raise LinkError(
                f"a frame of kind {kind} with {size} bytes; at most {self._largest} are allowed"
            )
        if held < FRAME_SIZE + size:
            return False
        start = self._begin + FRAME_SIZE
        self.tag = tag
        self.kind = kind
        self.fragment = self._memory[start : start + size]
        self._begin = start + size
        return True
