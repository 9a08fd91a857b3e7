"""Memory that a BTL has registered with a device, and memory of peers as their handles say.

A handle has what the device needs to name the memory, and beside it size and access: what cannot
be is refused before it is posted. The device decides all the same.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from ompy.data.errors import ERR_INTERN, MPIError


class Region(Protocol):
    """What a device calls registered memory."""

    def close(self) -> None:
        """Take the memory back."""


R = TypeVar("R", bound=Region)


class RegisteredMemory(Generic[R]):
    """One registration; `bytes()` of it is the handle for peers.

    Attributes:
        region: the device's; None for memory that it has not been asked about.
        wire: the handle.
    """

    __slots__ = ("region", "wire")

    def __init__(self, region: R | None, wire: bytes) -> None:
        self.region = region
        self.wire = wire

    def __bytes__(self) -> bytes:
        return self.wire


class Remote:
    """Memory of a peer, as its handle says.

    Attributes:
        key, base: by which the device names it, and what an offset in it is added to.
    """

    __slots__ = ("_access", "_size", "base", "key")

    def __init__(self, key: int, base: int, size: int, access: int) -> None:
        self.key = key
        self.base = base
        self._size = size
        self._access = access

    def allows(self, offset: int, size: int, access: int) -> bool:
        """Whether these bytes are in it and may be used so."""
        return bool(self._access & access) and offset >= 0 and offset + size <= self._size


class DeviceMemoryTable(Generic[R]):
    """What one module has registered."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[int, RegisteredMemory[R]] = {}  # by id()

    def __len__(self) -> int:
        return len(self._entries)

    def keep(self, region: R | None, wire: bytes) -> RegisteredMemory[R]:
        """Enter what the device has registered."""
        made = RegisteredMemory(region, wire)
        self._entries[id(made)] = made
        return made

    def remove(self, handle: object) -> None:
        """Deregister.

        Raises:
            MPIError: ERR_INTERN, it is none of this table, or was given back already.
        """
        if handle is None or self._entries.get(id(handle)) is not handle:
            raise MPIError(ERR_INTERN, f"deregister_mem: {handle!r} is not registered here (now)")
        _take_back(self._entries.pop(id(handle)))

    def close(self) -> None:
        """Take everything back from the device."""
        for entry in self._entries.values():
            _take_back(entry)
        self._entries.clear()


def _take_back(entry: RegisteredMemory[R]) -> None:
    if entry.region is not None:
        entry.region.close()
