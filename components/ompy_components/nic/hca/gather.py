"""Local memory in several pieces, seen as one."""

from __future__ import annotations

from collections.abc import Sequence


class Pieces:
    """Spans, one after the other.

    Attributes:
        size: bytes in all.
    """

    __slots__ = ("_views", "size")

    def __init__(self, views: Sequence[memoryview]) -> None:
        """Of any contiguous memory."""
        self._views = [view if view.format == "B" else view.cast("B") for view in views]
        self.size = sum(len(view) for view in self._views)

    def copy(self) -> bytes:
        """All of it."""
        return b"".join(self._views)

    def views(self, begin: int, end: int) -> Sequence[memoryview]:
        """The bytes from `begin` up to `end`, in as many views as it takes."""
        if len(self._views) == 1:
            return (self._views[0][begin:end],)
        found = []
        for view in self._views:
            size = len(view)
            if begin < size and end > 0:
                found.append(view[max(begin, 0) : end])
            begin -= size
            end -= size
        return found

    def store(self, begin: int, data: memoryview) -> None:
        """Put bytes at `begin`; there is room for them."""
        for view in self.views(begin, begin + len(data)):
            view[:] = data[: len(view)]
            data = data[len(view) :]
