"""Cuts a stream into headers of one size and the bytes behind each, which go where they belong."""

from __future__ import annotations

from typing import Final

DROPPED: Final = 1 << 16  # arbitrary: bytes without a place that are read at a time


class Intake:
    """What is read next from a stream.

    Attributes:
        header: the last one that was read whole.
        left: bytes behind it that have not come.
    """

    __slots__ = ("_in_header", "_room", "_scratch", "_target", "header", "left")

    def __init__(self, header_size: int) -> None:
        """A header comes first."""
        self.header = memoryview(bytearray(header_size))
        self._scratch: memoryview | None = None
        self._target: memoryview | None = None
        self._in_header = True
        self._room = self.header
        self.left = header_size

    def room(self) -> memoryview:
        """Where to receive into, never empty."""
        if self._in_header or self._target is not None:
            return self._room
        if self._scratch is None:
            self._scratch = memoryview(bytearray(DROPPED))
        return self._scratch[: self.left]

    def received(self, count: int) -> bool:
        """So many bytes were stored there. Whether that was all of header or bytes."""
        self.left -= count
        if self._in_header or self._target is not None:
            self._room = self._room[count:]
        return not self.left

    @property
    def in_header(self) -> bool:
        """Whether what is read, or was read last, is a header."""
        return self._in_header

    def land(self, size: int, target: memoryview | None) -> None:
        """Behind the header there are so many bytes: `target` has room for them; None drops them.

        Next comes a header again, at once if there are none.
        """
        if not size:
            self.next_header()
            return
        self._in_header = False
        self._target = target
        self.left = size
        if target is not None:
            self._room = target

    def next_header(self) -> None:
        """All behind the header is here."""
        self._in_header = True
        self._target = None
        self._room = self.header
        self.left = len(self.header)

    def drop(self) -> None:
        """What has not come yet has no place any more."""
        self._target = None
