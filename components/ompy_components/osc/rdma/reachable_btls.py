"""Which BTLs reach the members' memory: registrations here, handles from there.

What a member tells another, for each module of its that reaches it:

    0 length of name u16 | 2 of path u16 | 4 of handle u16 | name, path, handle

Name and path are those of the module at either end, so that both mean the same rail.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from struct import Struct
from typing import Final, NamedTuple

from ompy.data.convertor import GrowingConvertor, contiguous
from ompy.data.errors import ERR_INTERN, MPIError
from ompy.frameworks.bml import BmlEndpoint, Rail, RailArray
from ompy.frameworks.btl import (
    ACCESS_ANY,
    ATOMIC_FOPS,
    ATOMIC_OPS,
    GET,
    PUT,
    RDMA_COMPLETION,
    BtlModule,
    Endpoint,
)
from ompy.frameworks.btl_base.atomics import SUPPORTS_OWNER, WIDTH, AtomicOp, AtomicType, supported
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.pml import STANDARD
from ompy.frameworks.proc import Proc
from ompy.mca.selection import Selection

HANDLES_TAG: Final = 1  # arbitrary: between the tags of commands and of data
PUTS: Final = PUT | RDMA_COMPLETION  # what a put needs; see "Remote memory" in frameworks/btl.py
_LENGTHS: Final = Struct("<HHH")

Known = tuple[bytes, bytes]  # name and path of a rail


class Way(NamedTuple):
    """How an operation reaches a member's memory.

    Attributes:
        module, endpoint: the rail.
        handle: the member's, for that module.
    """

    module: BtlModule
    endpoint: Endpoint
    handle: bytes


def able_modules(communicator: Communicator, allowed: Selection) -> list[BtlModule]:
    """The allowed modules of this rank that put or get, and reach another member."""
    found: dict[BtlModule, None] = {}
    for proc in communicator.procs:
        for rail in _rails(communicator, proc):
            module = rail.module
            does = module.flags & GET or module.flags & PUTS == PUTS
            if does and allowed.allows(module.name):
                found[module] = None
    return list(found)


def _rails(communicator: Communicator, proc: Proc) -> list[Rail]:
    """The rails for put and get to another member; none where nothing reaches it."""
    context = communicator.context
    if proc is context.me or context.bml is None:
        return []
    with context.engine.lock, suppress(MPIError):
        return list(context.bml.endpoint(proc).rdma.rails)
    return []


class Ways:
    """A window's registrations, and those of its members."""

    def __init__(
        self, communicator: Communicator, memory: memoryview, able: Collection[BtlModule]
    ) -> None:
        """Register this rank's part with the able modules, and exchange handles.

        Args:
            communicator: the window's; all members call this.
            memory: this rank's part; stays registered until `close`. One that must not be
                written to is not registered.
            able: modules of this rank.

        Raises:
            MPIError: a member has ended.
        """
        self._communicator = communicator
        self._engine = communicator.context.engine
        self._able = frozenset(able)
        self._own: dict[BtlModule, object] = {}
        if len(memory) and not memory.readonly:
            self._register(memory)
        self._theirs: list[dict[BtlModule, bytes]] = self._exchange()

    def _register(self, memory: memoryview) -> None:
        with self._engine.lock:
            for module in self._able:
                handle = module.register_mem(None, memory, ACCESS_ANY)
                if handle is not None:  # else it has no room: peers take another way
                    self._own[module] = handle

    def _exchange(self) -> list[dict[BtlModule, bytes]]:
        communicator, pml = self._communicator, self._communicator.pml
        others = [rank for rank in range(communicator.size) if rank != communicator.rank]
        rooms = {rank: GrowingConvertor() for rank in others}
        waits = [pml.irecv(communicator, rooms[rank], rank, HANDLES_TAG) for rank in others]
        for rank in others:
            told = contiguous(memoryview(self._told(rank)))
            waits.append(pml.isend(communicator, told, rank, HANDLES_TAG, STANDARD))
        for request in waits:
            self._engine.wait(request)
            if request.error:
                raise MPIError(request.error, request.detail)
        return [
            self._matched(rank, rooms[rank].view) if rank in rooms else {}
            for rank in range(communicator.size)
        ]

    def _told(self, rank: int) -> bytes:
        """What a member is told."""
        parts = []
        for module, endpoint in self._reaching(rank):
            handle = self._own.get(module)
            if handle is not None:
                each = (module.name.encode(), module.path(endpoint), _wire(handle))
                parts += [_LENGTHS.pack(*map(len, each)), *each]
        return b"".join(parts) or bytes(_LENGTHS.size)

    def _reaching(self, rank: int) -> Iterator[tuple[BtlModule, Endpoint]]:
        communicator = self._communicator
        for rail in _rails(communicator, communicator.procs[rank]):
            if rail.module in self._able:
                yield rail.module, rail.endpoint

    def _matched(self, rank: int, view: memoryview | None) -> dict[BtlModule, bytes]:
        """A member's handles, by the module of this rank that is for them."""
        assert view is not None, "a received message has its memory"
        told = dict(_parsed(view))
        found = {}
        for module, endpoint in self._reaching(rank):
            handle = told.get((module.name.encode(), module.path(endpoint)))
            if handle is not None:
                found[module] = handle
        return found

    def _rails_to(self, rank: int) -> RailArray | None:
        """The rails for put and get to a member that has told its handles, else None."""
        made = self._communicator.procs[rank].bml_endpoint
        return made.rdma if self._theirs[rank] and isinstance(made, BmlEndpoint) else None

    def find(
        self, rank: int, need: int, at: int, size: int, without: Collection[BtlModule]
    ) -> Way | None:
        """The next rail that can, or None. The rank's lock is held.

        Args:
            rank: whose memory.
            need: flags of a module that has them all.
            at: byte of its part where the place begins; modules ask for alignment.
            size: bytes.
            without: modules that were tried.
        """
        handles = self._theirs[rank]
        rails = self._rails_to(rank)
        for rail in rails.in_turn() if rails is not None else ():
            module = rail.module
            handle = handles.get(module)
            if handle is None or module in without or module.flags & need != need:
                continue
            align = module.put_alignment if need & PUT else module.get_alignment
            if align <= 1 or not (at % align or size % align):
                return Way(module, rail.endpoint, handle)
        return None

    def find_atomic(self, rank: int, op: AtomicOp, kind: AtomicType, *, fetch: bool) -> Way | None:
        """A rail whose BTL has the owner make such an atomic, or None. The rank's lock is held."""
        need = ATOMIC_FOPS if fetch else ATOMIC_OPS
        handles = self._theirs[rank]
        rails = self._rails_to(rank)
        for rail in rails.rails if rails is not None else ():
            module = rail.module
            able = module.atomic_flags & SUPPORTS_OWNER and supported(module.atomic_flags, op, kind)
            unregistered = WIDTH[kind] <= module.local_registration_threshold
            if module in handles and module.flags & need and able and unregistered:
                return Way(module, rail.endpoint, handles[module])
        return None

    def close(self) -> None:
        """Give the registrations back; no member uses them any more. The rank's lock is held."""
        own, self._own = self._own, {}
        for module, handle in own.items():
            module.deregister_mem(handle)


def _parsed(view: memoryview) -> Iterator[tuple[Known, bytes]]:
    """Handles by name and path.

    Raises:
        MPIError: ERR_INTERN, the message is cut.
    """
    at = 0
    while at < len(view):
        if at + _LENGTHS.size > len(view):
            raise MPIError(ERR_INTERN, "handles of a window: the message is cut")
        name, path, handle = _LENGTHS.unpack_from(view, at)
        at += _LENGTHS.size
        if at + name + path + handle > len(view):
            raise MPIError(ERR_INTERN, "handles of a window: the message is cut")
        text = bytes(view[at : at + name + path + handle])
        yield (text[:name], text[name : name + path]), text[name + path :]
        at += len(text)


def _wire(handle: object) -> bytes:
    return bytes(handle)  # type: ignore[call-overload, no-any-return]
