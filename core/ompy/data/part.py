"""A part of a message: some of its packed bytes as a message of their own."""

from __future__ import annotations

from ompy.data.convertor import Convertor


class PartConvertor(Convertor):
    """Bytes of another convertor's message, from one on."""

    __slots__ = ("_start", "_whole")

    def __init__(self, whole: Convertor, start: int, size: int) -> None:
        """Take a part.

        Args:
            whole: of the message; its memory stays put.
            start: the part's first byte in it.
            size: bytes of the part, all of which the message has.
        """
        self._whole = whole
        self._start = start
        self.size = size
        view = whole.view
        self.view = None if view is None else view[start : start + size]

    def pack(self, offset: int, target: memoryview) -> int:
        """Copy bytes from `offset` on into `target`."""
        return self._whole.pack(self._start + offset, target[: max(0, self.size - offset)])

    def unpack(self, offset: int, source: memoryview) -> int:
        """Copy `source` to the bytes from `offset` on."""
        return self._whole.unpack(self._start + offset, source[: max(0, self.size - offset)])
