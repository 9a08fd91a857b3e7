"""Memory registered for put and get: handles, the table of a module, and a cache for the PML.

A handle says whose memory it is and which registration: 16 bytes on the wire.

    0 magic u32 | 4 rank u32 | 8 identity u64

It carries neither address nor size: whoever moves the bytes asks the owner's table, so that a
handle that was forged, cut short or given back names nothing. Identities are never used again.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from ompy import raw
from ompy.compiled import U64, ccall, cclass
from ompy.data.errors import ERR_INTERN, MPIError

if TYPE_CHECKING:
    from ompy.frameworks.btl import BtlModule, Endpoint

HANDLE_SIZE: Final = 16  # arbitrary: two words, see above
_SIZE: Final = HANDLE_SIZE
_MAGIC: Final = 0x52504D4F  # arbitrary: "OMPR" in little-endian order

_NOTHING: Final = memoryview(b"")


@cclass
class Registration:
    """One piece of registered memory; `bytes()` of it is the handle for peers.

    Attributes:
        memory: the bytes, while it is registered; the caller's.
        access: what peers may do with it, and a get into it: the `LOCAL_` and `REMOTE_` flags.
        identity: its number in the owner's table.
    """

    access: int
    identity: U64
    memory: memoryview
    wire: bytes
    __slots__ = tuple(__annotations__)

    def __bytes__(self) -> bytes:
        return self.wire


@ccall
def identity_of(handle: bytes, rank: U64) -> U64:
    """The identity in a handle that says it is of `rank`, or 0, which nothing has."""
    if len(handle) != _SIZE:
        return 0
    first: U64 = raw.word(handle, 0)
    return raw.word(handle, 8) if first == _MAGIC | rank << 32 else 0


@cclass
class RegistrationTable:
    """What one module has registered, by identity."""

    _entries: dict[int, Registration]
    _first_word: U64
    _next: U64
    __slots__ = tuple(__annotations__)

    def __init__(self, rank: int) -> None:
        self._first_word = _MAGIC | rank << 32
        self._entries = {}
        self._next = 1

    def __len__(self) -> int:
        return len(self._entries)

    @ccall
    def register_memory(
        self, memory: memoryview, access: int, low: U64 = 0, bits: int = 0
    ) -> Registration:
        """Register memory.

        Args:
            memory: contiguous; kept alive until `remove`.
            access: what may be done with it.
            low: what the lowest `bits` bits of the identity are to be.
            bits: how many.
        """
        identity = self._next << bits | low
        self._next += 1
        made: Registration = Registration.__new__(Registration)
        made.memory = raw.flat(memory)
        made.access = access
        made.identity = identity
        made.wire = raw.two_words(self._first_word, identity)
        self._entries[identity] = made
        return made

    @ccall
    def remove(self, handle: object) -> Registration:
        """Give a registration back.

        Raises:
            MPIError: ERR_INTERN, it is none of this table, or was given back already.
        """
        known: Registration | None = handle if isinstance(handle, Registration) else None
        if known is None or self._entries.get(known.identity) is not known:
            raise MPIError(ERR_INTERN, f"deregister_mem: {handle!r} is not registered here (now)")
        del self._entries[known.identity]
        known.memory = _NOTHING
        return known

    @ccall
    def get(self, identity: U64) -> Registration | None:
        """A registration, or None if there is none of that identity now."""
        return self._entries.get(identity)

    @ccall
    def find(self, identity: U64, offset: int, size: int, access: int) -> memoryview | None:
        """The bytes a peer asks for, or None when it may not have them.

        Args:
            identity: of the registration.
            offset: of the first byte in it.
            size: bytes.
            access: flag that the registration must have.
        """
        known = self._entries.get(identity)
        if known is None or not known.access & access:
            return None
        if offset < 0 or size < 0 or offset + size > len(known.memory):
            return None
        return known.memory[offset : offset + size]


class Pin(NamedTuple):
    """Memory as `RegistrationCache` registered it.

    Attributes:
        module: that registered it.
        handle: of a registration that contains the memory.
        offset: where the memory begins in it, in bytes: added to every remote address.
    """

    module: BtlModule
    handle: object
    offset: int


class _Entry:
    __slots__ = ("access", "address", "handle", "memory", "module", "users")

    def __init__(
        self, module: BtlModule, memory: memoryview, address: int, access: int, handle: object
    ) -> None:
        self.module = module
        self.memory = memory
        self.address = address
        self.access = access
        self.handle = handle
        self.users = 1

    def covers(self, module: BtlModule, address: int, size: int, access: int) -> bool:
        inside = self.address <= address and address + size <= self.address + len(self.memory)
        return inside and self.module is module and self.access & access == access


class RegistrationCache:
    """Registrations that outlive their use, for the next message from the same memory.

    With `keep` at 0 every pin registers and every unpin deregisters. With `keep` above 0, what
    `leave_pinned` asks for, up to that many registrations nobody uses are kept, the least
    recently used going first. What is kept keeps the user's memory alive, and a `bytearray`
    cannot be resized meanwhile.
    """

    __slots__ = ("_entries", "_keep", "hits", "misses")

    def __init__(self, keep: int) -> None:
        """Keep up to `keep` registrations that nobody uses."""
        self._keep = keep
        self._entries: OrderedDict[int, _Entry] = OrderedDict()  # by id() of the handle
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._entries)

    def pin(
        self, module: BtlModule, endpoint: Endpoint | None, memory: memoryview, access: int
    ) -> Pin:
        """Registered memory that contains `memory` and allows `access`."""
        address = 0
        if self._keep:
            from ompy.net.memory.kernel_copy import (
                address_of,  # late: ctypes, only where it is needed
            )

            address = address_of(memory)
            for key in reversed(self._entries):
                entry = self._entries[key]
                if entry.covers(module, address, len(memory), access):
                    self._entries.move_to_end(key)
                    entry.users += 1
                    self.hits += 1
                    return Pin(module, entry.handle, address - entry.address)
        self.misses += 1
        handle = module.register_mem(endpoint, memory, access)
        self._entries[id(handle)] = _Entry(module, memory, address, access, handle)
        return Pin(module, handle, 0)

    def unpin(self, pin: Pin) -> None:
        """Nobody needs it for this use any more."""
        entry = self._entries[id(pin.handle)]
        entry.users -= 1
        if not entry.users:
            self._trim(self._keep)

    def clear(self) -> None:
        """Deregister everything nobody uses."""
        self._trim(0)

    def _trim(self, keep: int) -> None:
        idle = [key for key, entry in self._entries.items() if not entry.users]
        for key in idle[: max(len(idle) - keep, 0)]:
            entry = self._entries.pop(key)
            entry.module.deregister_mem(entry.handle)
