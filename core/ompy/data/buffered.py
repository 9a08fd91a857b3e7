"""The bytes of a buffered send: the user's memory first, a copy of it afterwards.

The PML sends the first fragment straight from the user's memory and has the rest kept (seed
ob1 (Buffered Pipeline), step A). The floor above owns the attached buffer: it lends
the memory for the copy and takes it back when the request is complete.
"""

from __future__ import annotations

from collections.abc import Callable

from ompy.compiled import ccall, cclass
from ompy.data.convertor import Convertor


@cclass
class BufferedConvertor(Convertor):
    """A message whose memory the user gets back as soon as the send has begun.

    `view` is None: nothing may refer to the user's memory, so every fragment is packed.
    """

    _begin: int
    _copy: memoryview[int] | None
    _lend: Callable[[int], memoryview]
    _source: Convertor | None
    __slots__ = tuple(__annotations__)

    def __init__(self, source: Convertor, lend: Callable[[int], memoryview]) -> None:
        """Describe a message.

        Args:
            source: the user's memory.
            lend: called once, with the bytes to keep; returns writable memory of that size
                in the attached buffer, which the lender takes back when the send is done.
        """
        self._view = None
        self.size = source.size
        self._source = source
        self._lend = lend
        self._begin = source.size  # packed byte the copy begins at
        self._copy = None

    @ccall
    def keep(self, offset: int) -> None:
        """Copy the bytes from `offset` on; the user's memory is not touched afterwards.

        Only the first call does something: bytes before its `offset` are gone with it.
        """
        source: Convertor | None = self._source
        if source is None:
            return
        self._source = None
        self._begin = offset
        if offset < self.size:
            copy = self._lend(self.size - offset)
            source.pack(offset, copy)
            self._copy = copy

    @ccall
    def pack_at(self, target: memoryview, at: int, count: int) -> None:
        """Copy the first `count` bytes to byte `at` of `target`."""
        source: Convertor | None = self._source
        if source is not None:
            source.pack_at(target, at, count)
        else:
            self.pack(0, target[at : at + count])

    @ccall
    def pack_streamed(self, target: memoryview, at: int, count: int) -> None:
        """Copy as `pack_at` does, past this core's cache."""
        source: Convertor | None = self._source
        if source is not None:
            source.pack_streamed(target, at, count)
        else:
            Convertor.pack_streamed(self, target, at, count)

    @ccall
    def pack(self, offset: int, target: memoryview) -> int:
        """Copy bytes from `offset` on into `target`."""
        source: Convertor | None = self._source
        if source is not None:
            return source.pack(offset, target)
        assert offset >= self._begin, (
            f"byte {offset} was not kept: the copy begins at {self._begin}"
        )
        copy = self._copy
        if copy is None:
            return 0
        begin = offset - self._begin
        count = min(len(copy) - begin, len(target))
        target[:count] = copy[begin : begin + count]
        return count


@ccall
def buffered(source: Convertor, lend: Callable[[int], memoryview]) -> BufferedConvertor:
    """The same, made without `__init__`."""
    made: BufferedConvertor = BufferedConvertor.__new__(BufferedConvertor)
    made._view = None  # noqa: SLF001 - of this module
    made.size = source.size
    made._source = source  # noqa: SLF001 - of this module
    made._lend = lend  # noqa: SLF001 - of this module
    made._begin = source.size  # noqa: SLF001 - of this module
    made._copy = None  # noqa: SLF001 - of this module
    return made
