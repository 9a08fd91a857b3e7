"""Large fragments on their way in: chunks in any order become one piece of memory.

Source: seed usnic-btl-design-notes (receive dataflow); reference usnic.md 13.
"""

from __future__ import annotations

from typing import Final

from ompy_components.btl.usnic.headers import Header

ACTIVE_MAX: Final = 2048  # reference usnic.md 3: MAX_ACTIVE_FRAGS, half of the window


class Incoming:
    """One fragment some chunks of which are here.

    Attributes:
        memory: for all of it.
        left: bytes that are not here yet.
    """

    __slots__ = ("left", "memory", "number")

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self.memory = bytearray(size)
        self.left = size


class Reassembly:
    """The incoming fragments of one peer, by id; as many as there are slots."""

    __slots__ = ("_slots",)

    def __init__(self) -> None:
        self._slots: dict[int, Incoming] = {}

    def claim(self, header: Header) -> Incoming | None:
        """The fragment a chunk belongs to; None when its slot is another's, or it lies."""
        slot = header.fragment % ACTIVE_MAX
        found = self._slots.get(slot)
        if found is None:
            found = self._slots[slot] = Incoming(header.fragment, header.total)
        if found.number != header.fragment or len(found.memory) != header.total:
            return None
        return found

    def add(self, incoming: Incoming, header: Header, data: memoryview) -> bool:
        """Put a chunk, which is new, into its place; whether the fragment is whole now."""
        incoming.memory[header.offset : header.offset + header.length] = data
        incoming.left -= header.length
        if incoming.left:
            return False
        del self._slots[incoming.number % ACTIVE_MAX]
        return True
