"""Whole lines out of a stream that arrives in any pieces."""

from __future__ import annotations

from typing import Final

LINE_LIMIT: Final = 1024 * 1024  # bytes; arbitrary: a longer line is cut rather than kept


class LineAssembler:
    """Keeps the beginning of a line until its end has come."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._rest: list[bytes] = []
        self._held = 0

    def feed(self, data: bytes) -> bytes:
        """Add what was read. Returns what can go on: whole lines, or a line beyond the limit."""
        end = data.rfind(b"\n") + 1
        if not end:
            self._rest.append(data)
            self._held += len(data)
            return self.flush() if self._held > self._limit else b""
        lines = b"".join((*self._rest, data[:end]))
        self._rest = [data[end:]] if end < len(data) else []
        self._held = len(data) - end
        return lines

    @property
    def held(self) -> int:
        """Bytes of a line that has begun."""
        return self._held

    def flush(self) -> bytes:
        """What is left without a line end, at the end of the stream."""
        rest = b"".join(self._rest)
        self._rest = []
        self._held = 0
        return rest
