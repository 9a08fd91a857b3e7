"""The bytes of a buffered send: the user's memory first, a copy of it afterwards.

The PML sends the first fragment straight from the user's memory and has the rest kept (seed
ob1 (Buffered Pipeline), step A). The floor above owns the attached buffer: it lends
the memory for the copy and takes it back when the request is complete.
"""

from __future__ import annotations

from collections.abc import Callable

from ompy.data.convertor import Convertor


class BufferedConvertor(Convertor):
    """A message whose memory the user gets back as soon as the send has begun.

    `view` is None: nothing may refer to the user's memory, so every fragment is packed.
    """

    __slots__ = ("_begin", "_copy", "_lend", "_source")

    def __init__(self, source: Convertor, lend: Callable[[int], memoryview]) -> None:
        """Describe a message.

        Args:
            source: the user's memory.
            lend: called once, with the bytes to keep; returns writable memory of that size
                in the attached buffer, which the lender takes back when the send is done.
        """
        self.view = None
        self.size = source.size
        self._source: Convertor | None = source
        self._lend = lend
        self._begin = source.size  # packed byte the copy begins at
        self._copy = memoryview(b"")

    def keep(self, offset: int) -> None:
        """Copy the bytes from `offset` on; the user's memory is not touched afterwards.

        Only the first call does something: bytes before its `offset` are gone with it.
        """
        source = self._source
        if source is None:
            return
        self._source = None
        self._begin = offset
        if offset < self.size:
            self._copy = self._lend(self.size - offset)
            source.pack(offset, self._copy)

    def pack_at(self, target: memoryview, at: int, count: int) -> None:
        """Copy the first `count` bytes to byte `at` of `target`."""
        if self._source is not None:
            self._source.pack_at(target, at, count)
        else:
            self.pack(0, target[at : at + count])

    def pack(self, offset: int, target: memoryview) -> int:
        """Copy bytes from `offset` on into `target`."""
        if self._source is not None:
            return self._source.pack(offset, target)
        assert offset >= self._begin, (
            f"byte {offset} was not kept: the copy begins at {self._begin}"
        )
        begin = offset - self._begin
        count = min(len(self._copy) - begin, len(target))
        target[:count] = self._copy[begin : begin + count]
        return count
