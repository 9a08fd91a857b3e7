"""Copies into shared memory that another core reads next: by way of this core's cache, or past it.

Source: README.md of net, "Copies that another core reads", which has the measurements.
"""

from __future__ import annotations

from typing import Final

from ompy import raw
from ompy.compiled import ccall, cclass, cfunc
from ompy.data.convertor import Convertor, stream_part

STREAM_LEAST: Final = 4096  # bytes; measured: README.md
STREAM_ALWAYS: Final = 16384  # bytes; measured: README.md
TRIED_AGAIN: Final = 64  # copies; arbitrary: a try costs less than two of them
FAST: Final = 10  # bytes a nanosecond; measured: near cores 20 and more, far ones 3 to 5
_ALWAYS: Final = STREAM_ALWAYS
_AGAIN: Final = TRIED_AGAIN
_FAST: Final = FAST


@cclass
class Streaming:
    """The copies to one reader, or to several.

    A store to a line that a far core has in its cache takes long. So copies of a middling size are
    timed, and where they take long the next ones go past the cache; then one is timed again, as a
    rank may have moved to another core.
    """

    _least: int
    _left: int
    __slots__ = tuple(__annotations__)

    def __init__(self, least: int) -> None:
        """Stream no copy of less than `least` bytes."""
        self._least = least
        self._left = 0

    @ccall
    def pack(self, convertor: Convertor, memory: memoryview, at: int, count: int) -> None:
        """Copy the first `count` bytes of a message to byte `at` of `memory`."""
        if count < self._least:
            convertor.pack_at(memory, at, count)
        elif self._is_due(count):
            convertor.pack_streamed(memory, at, count)
        else:
            began: int = raw.clock()
            convertor.pack_at(memory, at, count)
            self.judge(count, raw.clock() - began)

    @ccall
    def pack_part(
        self, convertor: Convertor, offset: int, memory: memoryview, at: int, count: int
    ) -> None:
        """Copy `count` bytes of a message from `offset` on to byte `at` of `memory`."""
        if count < self._least:
            convertor.pack(offset, memory[at : at + count])
        elif self._is_due(count):
            stream_part(convertor, offset, memory, at, count)
        else:
            began: int = raw.clock()
            convertor.pack(offset, memory[at : at + count])
            self.judge(count, raw.clock() - began)

    @ccall
    def copy(self, memory: memoryview, at: int, view: memoryview, start: int, count: int) -> None:
        """Copy `count` bytes of `view` from `start` on to byte `at` of `memory`."""
        if count < self._least:
            raw.copy(memory, at, view, start, count)
        elif self._is_due(count):
            raw.stream(memory, at, view, start, count)
        else:
            began: int = raw.clock()
            raw.copy(memory, at, view, start, count)
            self.judge(count, raw.clock() - began)

    @cfunc
    def _is_due(self, count: int) -> bool:
        """Whether a copy of `count` bytes goes past the cache, `least` or more."""
        if count >= _ALWAYS:
            return True
        if self._left:
            self._left -= 1
            return True
        return False

    @ccall
    def judge(self, count: int, took: int) -> None:
        """A copy of `count` bytes through the cache took so many nanoseconds."""
        if took * _FAST > count:
            self._left = _AGAIN
