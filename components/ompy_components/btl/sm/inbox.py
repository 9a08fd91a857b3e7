"""The ring that one peer writes and this rank reads."""

from __future__ import annotations

from ompy import raw
from ompy.compiled import ccall, cclass
from ompy.net.memory.ring import RingReader

from ompy_components.btl.sm.endpoint import SmEndpoint


@cclass
class Inbox:
    """The ring from one peer to us.

    Attributes:
        peer: who writes it.
        reader: our end.
        view: of the payload handed over last; making one takes longer than reading it.
    """

    peer: SmEndpoint
    reader: RingReader
    view: memoryview[int]
    __slots__ = tuple(__annotations__)

    def __init__(self, peer: SmEndpoint, reader: RingReader, memory: memoryview) -> None:
        self.peer = peer
        self.reader = reader
        self.view = memory[:0]

    @ccall
    def payload(self, memory: memoryview, at: int, length: int) -> memoryview:
        """What the record just looked at carries, or names; valid until the next one."""
        self.view = raw.moved(self.view, memory, at, length)
        return self.view
