"""Payload that is still in its sender's memory when its fragment arrives."""

from __future__ import annotations

from ompy import raw
from ompy.compiled import ccall, cclass


@cclass
class LentPayload:
    """The payload of a fragment that its sender lends: it is read where it is, once.

    Attributes:
        size: bytes.
    """

    size: int
    __slots__ = tuple(__annotations__)

    @ccall
    def read(self, view: memoryview) -> bool:
        """Copy its first bytes, as many as `view` has; false if the sender is gone."""
        raise NotImplementedError


@ccall
def fetched(header: memoryview, payload: LentPayload) -> memoryview | None:
    """Header and payload in memory of this rank's own; None if the sender is gone."""
    begin: int = raw.size(header)
    data = memoryview(raw.room(begin + payload.size))
    raw.copy(data, 0, header, 0, begin)
    return data if payload.read(data[begin:]) else None
