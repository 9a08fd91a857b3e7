"""Large fragments on their way in: chunks in any order become one piece of memory.

There are never more of them than packets fit the window, as each has one there that is new.
Open MPI has 2048 slots instead and drops chunks whose slot is taken; a sender that may send little
could then wait for ever for the ACK of a chunk that has to wait for others of its own.

Source: seed usnic (receive dataflow); reference usnic.md 13.
"""

from __future__ import annotations

from ompy import raw
from ompy.compiled import Shown, ccall, cclass

from ompy_components.btl.usnic.headers import Header


@cclass
class Incoming:
    """One fragment some chunks of which are here.

    Attributes:
        memory: for all of it.
        left: bytes that are not here yet.
    """

    left: int
    memory: memoryview[int]
    __slots__ = tuple(__annotations__)

    def __init__(self, size: int) -> None:
        self.memory = memoryview(bytearray(size))
        self.left = size


@cclass
class Reassembly:
    """The incoming fragments of one peer, by id."""

    _incoming: Shown[dict[int, Incoming]]
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        self._incoming = {}

    @ccall
    def claim(self, header: Header) -> Incoming | None:
        """The fragment a chunk belongs to; None when they disagree about its size."""
        found: Incoming | None = self._incoming.get(header.fragment)
        if found is None:
            found = Incoming(header.total)
            self._incoming[header.fragment] = found
        return found if raw.size(found.memory) == header.total else None

    @ccall
    def add_chunk(self, incoming: Incoming, header: Header, data: memoryview) -> bool:
        """Put a chunk, which is new, into its place; whether the fragment is whole now."""
        raw.copy(incoming.memory, header.offset, data, 0, header.length)
        incoming.left -= header.length
        if incoming.left:
            return False
        del self._incoming[header.fragment]
        return True
