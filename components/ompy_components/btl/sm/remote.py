"""Put and get between the ranks of a host: one copy by the kernel, or fragments.

A rank that registers memory writes identity, address, size and access into its table in the
shared segment. A peer looks there before it copies, so that a handle which was given back, or
memory outside of it, is refused before anything is touched. Whether the kernel lets this rank
copy with a peer is tried once per peer, by reading a word whose value stands in the segment
too: that also notices a peer in another process namespace. Where it does not, and for
registrations beyond the table's room, the bytes go in fragments
(`ompy.frameworks.btl_base.emulation`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy import raw
from ompy.compiled import U64, Shown, U64View, ccall, cclass, cfunc
from ompy.frameworks.btl import (
    BAD_PARAM,
    COMPLETED,
    NOT_AVAILABLE,
    REMOTE_READ,
    REMOTE_WRITE,
    Descriptor,
    Endpoint,
)
from ompy.frameworks.btl_base.emulation import GET_PIECE, PUT_PIECE, EmulatedTransfers
from ompy.frameworks.btl_base.registration import Registration, RegistrationTable
from ompy.net.base import LinkError
from ompy.net.memory.process_copy import ProcessCopy

from ompy_components.btl.sm.endpoint import SmEndpoint
from ompy_components.btl.sm.layout import (
    ACCESS,
    ADDRESS,
    DESCRIPTOR,
    IDENTITY,
    LEFT,
    OFFSET,
    PROBE,
    PROBE_ADDRESS,
    PROCESS,
    REGION,
    SIZE,
    SLOT_WORDS,
    TABLE_BITS,
    TABLE_SLOTS,
    SharedLayout,
)

if TYPE_CHECKING:
    from ompy.frameworks.context import RankContext

    from ompy_components.btl.sm.module import SmModule

NO_SLOT = TABLE_SLOTS - 1  # the low bits of an identity that stands in no slot


@cclass
class RemoteMemory:
    """What this rank has registered, and its way to what its peers have.

    Attributes:
        single_copy: the kernel's copy is used where it works.
    """

    _context: RankContext
    _copy: ProcessCopy | None
    _emulation: EmulatedTransfers
    _forgets: bool
    _free_slots: list[int]
    _layout: SharedLayout
    _module: SmModule
    _own_line: int
    _own_table: int
    _probe: memoryview[int]
    _table: Shown[RegistrationTable]
    _words: U64View
    single_copy: bool
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        module: SmModule,
        layout: SharedLayout,
        words: memoryview,
        place: int,
        *,
        single_copy: bool,
    ) -> None:
        self._module = module
        self._context = module.context
        self._words = words
        self._layout = layout
        self._table = RegistrationTable(module.context.rank)
        self._emulation = EmulatedTransfers(module, self._table, self._gone)
        self.single_copy = single_copy
        self._copy = None
        self._forgets = False
        self._probe = memoryview(bytearray(8))
        self._own_line = layout.parked_word(place)
        self._own_table = layout.table(place)
        self._free_slots = list(range(NO_SLOT))

    @property
    def idle(self) -> bool:
        """Nothing is under way."""
        return self._emulation.idle

    # -- registering

    @ccall
    def register(self, memory: memoryview, access: int) -> Registration:
        """Register memory; peers may copy at once."""
        copy: ProcessCopy | None = self._copy
        if copy is None:
            copy = self._open()
        if copy is None or not self._free_slots:
            return self._table.register_memory(memory, access, NO_SLOT, TABLE_BITS)
        slot: int = self._free_slots.pop()
        made: Registration = self._table.register_memory(memory, access, slot, TABLE_BITS)
        words = self._words
        at: int = self._own_table + slot * SLOT_WORDS
        words[at + ADDRESS] = copy.address_of(made.memory)
        words[at + SIZE] = len(made.memory)
        words[at + ACCESS] = access
        place = copy.region_of(made.memory)
        if place is None:
            words[at + REGION] = 0
        else:
            words[at + DESCRIPTOR], words[at + REGION], words[at + OFFSET] = place
        words[at + IDENTITY] = made.identity  # last: from now on it counts
        return made

    @ccall
    def deregister(self, handle: object) -> None:
        """Give a registration back; no peer that looks from now on finds it."""
        removed: Registration = self._table.remove(handle)
        slot: int = removed.identity & NO_SLOT
        if slot != NO_SLOT and self._copy is not None:
            at: int = self._own_table + slot * SLOT_WORDS
            self._words[at + IDENTITY] = 0
            if self._forgets:
                self._copy.forget(self._words[at + ADDRESS])
            self._free_slots.append(slot)

    def _open(self) -> ProcessCopy | None:
        """The kernel's copy; the first time, also show the peers the probe."""
        if self._copy is None and self.single_copy:
            self._copy = self._context.network.process_copy()
            if self._copy is None:
                self._refuse(None, "this system has no cross-process copy")
                self.single_copy = False
                return None
            self._forgets = self._copy.forgets
            self._probe[:] = self._context.network.entropy(8)
            self._probe[0] |= 1  # never all zero
            line = self._own_line
            self._words[line + PROCESS] = self._copy.identity
            self._words[line + PROBE_ADDRESS] = self._copy.address_of(self._probe)
            self._words[line + PROBE] = int.from_bytes(self._probe, "little")
        return self._copy

    # -- moving bytes

    @ccall
    def move(
        self,
        endpoint: SmEndpoint,
        descriptor: Descriptor,
        identity: U64,
        offset: int,
        access: int,
    ) -> int:
        """Put (`access` is `REMOTE_WRITE`) or get (`REMOTE_READ`). Returns as the contract says."""
        if identity & NO_SLOT != NO_SLOT and self.may_copy(endpoint):
            problem = self._copy_once(endpoint, descriptor.segment, offset, identity, access)
            if problem is None:
                return self._module.finish(endpoint, descriptor)
            if problem < 0:
                return problem
        kind = PUT_PIECE if access == REMOTE_WRITE else GET_PIECE
        return self._emulation.begin_transfer(kind, endpoint, descriptor, identity, offset)

    @ccall
    def copy_now(self, endpoint: SmEndpoint, local: memoryview, identity: U64, offset: int) -> int:
        """Read a peer's memory if one copy does it. Returns as `get_now` of the contract does."""
        if identity & NO_SLOT == NO_SLOT or not self.may_copy(endpoint):
            return NOT_AVAILABLE
        problem = self._copy_once(endpoint, local, offset, identity, REMOTE_READ)
        return COMPLETED if problem is None else NOT_AVAILABLE

    # -- memory that is lent for one reading

    @ccall
    def lent_address(self, memory: memoryview) -> U64:
        """A number by which peers name memory until `end_loan`; 0 where none may read it."""
        copy: ProcessCopy | None = self._copy
        if copy is None:
            copy = self._open()
        return 0 if copy is None else copy.address_of(memory)

    @ccall
    def end_loan(self, address: U64) -> None:
        """No peer reads there any more."""
        if self._forgets and self._copy is not None:
            self._copy.forget(address)

    @ccall
    def read_lent(self, endpoint: SmEndpoint, address: U64, view: memoryview) -> bool:
        """Read what a peer lends; false if the peer is gone."""
        try:
            self._ask_kernel(self._words[endpoint.parked + PROCESS], address, view, REMOTE_READ)
        except LinkError:
            return False
        return True

    @cfunc
    def _copy_once(
        self, endpoint: SmEndpoint, local: memoryview, offset: int, identity: U64, access: int
    ) -> int | None:
        """Copy with the peer's registered memory.

        Returns:
            None when it is done, a bad result, or 0 when the kernel refused after all.
        """
        words = self._words
        at: int = endpoint.table + (identity & NO_SLOT) * SLOT_WORDS
        address: U64 = words[at + ADDRESS]
        size: int = words[at + SIZE]
        if words[at + IDENTITY] != identity or not words[at + ACCESS] & access:
            return BAD_PARAM
        if offset < 0 or offset + raw.size(local) > size:
            return BAD_PARAM
        process = words[endpoint.parked + PROCESS]
        try:
            if words[at + REGION] and self._copy_mapped(process, at, local, offset, access):
                return None
            if raw.size(local):
                self._ask_kernel(process, address + offset, local, access)
        except LinkError as problem:
            endpoint.copies = 0
            self._refuse(endpoint, str(problem))
            return 0
        return None

    @cfunc
    def _ask_kernel(self, process: int, address: U64, local: memoryview, access: int) -> None:
        copy: ProcessCopy | None = self._copy
        assert copy is not None, "the peer was probed"
        if access == REMOTE_READ:
            copy.read(process, address, local)
        else:
            copy.write(process, address, local)

    @cfunc
    def _copy_mapped(
        self, process: int, at: int, local: memoryview, offset: int, access: int
    ) -> bool:
        """Copy with registered memory of a region; false when it cannot be mapped."""
        words = self._words
        number = words[at + REGION]
        begin: int = words[at + OFFSET] + offset
        size: int = len(local)
        assert self._copy is not None, "the peer was probed"
        try:
            memory = self._copy.map(process, words[at + DESCRIPTOR], number)
        except LinkError as problem:  # the kernel still copies
            words[at + REGION] = 0
            self._note("NO_REGION", why=str(problem))
            return False
        if begin + size > len(memory):
            return False
        if access == REMOTE_READ:
            raw.copy(local, 0, memory, begin, size)
        else:
            raw.copy(memory, begin, local, 0, size)
        return True

    @ccall
    def may_copy(self, endpoint: SmEndpoint) -> bool:
        """Whether the kernel lets this rank copy with the peer; tried the first time."""
        if endpoint.copies < 0:
            endpoint.copies = int(self.single_copy and self._try(endpoint))
        return endpoint.copies > 0

    def _try(self, endpoint: SmEndpoint) -> bool:
        copy = self._open()
        assert isinstance(endpoint, SmEndpoint)
        line: int = endpoint.parked
        process, address = self._words[line + PROCESS], self._words[line + PROBE_ADDRESS]
        value = self._words[line + PROBE]
        if copy is None or not value:
            self._refuse(endpoint, "one of the two uses no cross-process copy")
            return False
        seen = memoryview(bytearray(8))
        try:
            copy.read(process, address, seen)
        except LinkError as problem:
            self._refuse(endpoint, str(problem))
            return False
        if int.from_bytes(seen, "little") != value:
            self._refuse(endpoint, f"process {process} is another one here")
            return False
        self._note("SINGLE_COPY", peer=endpoint.proc.rank)
        return True

    def _gone(self, endpoint: Endpoint) -> bool:
        """Whether a peer has ended, or its use of sm: it answers nothing then."""
        assert isinstance(endpoint, SmEndpoint)
        line: int = endpoint.parked
        return bool(endpoint.proc.departed or self._words[line + LEFT])

    def _refuse(self, endpoint: SmEndpoint | None, why: str) -> None:
        peer = -1 if endpoint is None else endpoint.proc.rank
        self._note("NO_SINGLE_COPY", peer=peer, why=why)

    def _note(self, event: str, **fields: object) -> None:
        trace = self._context.trace
        if trace.active:
            trace.record("btl.sm", event, **fields)

    def close(self) -> None:
        """Complete what is left badly, forget everything exposed; peers must not wait for us."""
        self._words[self._own_line + LEFT] = 1
        self._emulation.fail()
        if self._copy is not None:
            self._copy.forget(self._words[self._own_line + PROBE_ADDRESS])
