"""Registered memory, one's own and that of peers of the host.

A registration stands in its owner's table in the shared segment while it lasts. Who wants to read
or write looks there first: a handle that was given back, or guessed, and bytes outside of it end
the post badly before anything is touched.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ompy import raw
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import NicError
from ompy.frameworks.nic.fabric import MemoryRegion
from ompy.frameworks.nic.gni import CompletionQueue, MemoryHandle, Ordering, ReturnCode
from ompy.frameworks.proc import Proc
from ompy.net.base import LinkError
from ompy.net.memory.kernel_copy import address_of
from ompy.net.memory.process_copy import ProcessCopy

from ompy_components.nic.gni.far import FarWire, Told
from ompy_components.nic.gni.host import HostWire
from ompy_components.nic.gni.layout import (
    ADDRESS,
    DESCRIPTOR,
    GONE,
    IDENTITY,
    JOB,
    OFFSET,
    PROBE,
    PROBE_ADDRESS,
    PROCESS,
    REGION,
    SIZE,
    Layout,
)

ORDERINGS = tuple(Ordering)
# a handle's first word: rank, ordering, slot
ORDERING_AT: Final = 24  # arbitrary: leaves room for more slots than there are
SLOTS: Final = (1 << ORDERING_AT) - 1
ADDRESSES: Final = 1 << 63  # arbitrary: no memory has an offset that a frame cannot carry
PLACES_MAX: Final = 256  # arbitrary: of registrations of one peer that are remembered
# members of an enum are slow to find
SUCCESS, PERMISSION_ERROR = ReturnCode.SUCCESS, ReturnCode.PERMISSION_ERROR
TRANSACTION_ERROR = ReturnCode.TRANSACTION_ERROR


def slot_of(handle: MemoryHandle) -> int:
    """Of its owner's table."""
    return handle.qword1 & SLOTS


def ordering_of(handle: MemoryHandle) -> Ordering:
    """In which order bytes become visible there."""
    number = handle.qword1 >> ORDERING_AT & 0xFF
    return ORDERINGS[number] if number < len(ORDERINGS) else Ordering.RELAXED


class Registered(NamedTuple):
    """Memory of this rank.

    Attributes:
        memory: which, the caller's.
        handle: for peers.
        queue: told of what peers do to it.
        region: what ranks of other hosts reach it by.
    """

    memory: memoryview
    handle: MemoryHandle
    queue: CompletionQueue | None
    region: MemoryRegion | None

    def has(self, view: memoryview) -> bool:
        """Whether all of `view` lies in it."""
        if not len(view):
            return True
        begin = address_of(view) - address_of(self.memory)
        return begin >= 0 and begin + len(view) <= len(self.memory)


class OwnMemory:
    """What this rank has registered."""

    def __init__(
        self, context: RankContext, wire: HostWire, far: FarWire | None, copy: ProcessCopy
    ) -> None:
        layout, words, slots = wire.layout, wire.words, wire.layout.registrations
        self._context = context
        self._far = far
        self._layout = layout
        self._words = words
        self._copy = copy
        self._rank = context.me.local_rank
        self._free = list(reversed(range(slots)))
        self._used: dict[int, Registered] = {}

    def __len__(self) -> int:
        return len(self._used)

    def register_memory(
        self, memory: memoryview, ordering: Ordering, queue: CompletionQueue | None
    ) -> MemoryHandle | None:
        """Register memory, if a slot is left."""
        if not self._free:
            return None
        memory = raw.flat(memory)
        identity = int.from_bytes(self._context.network.entropy(8), "little") | 1
        first = self._context.rank << 32 | ORDERINGS.index(ordering) << ORDERING_AT
        handle = MemoryHandle(first | self._free[-1], identity)
        region = None
        if self._far is not None:
            region = self._far.register(memory, handle)
            if region is None:
                return None
        slot = self._free.pop()
        words, at = self._words, self._layout.slot(self._rank, slot)
        words[at + ADDRESS] = self._copy.address_of(memory)
        words[at + SIZE] = len(memory)
        place = self._copy.region_of(memory)
        words[at + REGION] = 0
        if place is not None:
            words[at + DESCRIPTOR], words[at + REGION], words[at + OFFSET] = place
        words[at + IDENTITY] = identity  # last: from now on it counts
        self._used[slot] = Registered(memory, handle, queue, region)
        return handle

    def remove(self, handle: MemoryHandle) -> bool:
        """Take memory back; false when it is not registered."""
        found = self.find(handle)
        if found is None:
            return False
        slot = slot_of(handle)
        at = self._layout.slot(self._rank, slot)
        self._words[at + IDENTITY] = 0
        if found.region is not None:
            found.region.close()
        self._copy.forget(self._words[at + ADDRESS])
        del self._used[slot]
        self._free.append(slot)
        return True

    def find(self, handle: MemoryHandle | None) -> Registered | None:
        """What a handle of this rank names now."""
        if handle is None or handle.qword1 >> 32 != self._context.rank:
            return None
        found = self._used.get(slot_of(handle))
        return found if found is not None and found.handle == handle else None

    def queue_of(self, slot: int) -> CompletionQueue | None:
        """Who is told of what peers do to the memory in a slot."""
        known = self._used.get(slot)
        return known.queue if known is not None else None

    def close(self) -> None:
        """Take everything back."""
        for known in list(self._used.values()):
            self.remove(known.handle)


class FarMemory:
    """What one peer of another host has registered."""

    def __init__(self, far: FarWire, rank: int) -> None:
        self._far = far
        self._rank = rank

    def check(self, handle: MemoryHandle | None, offset: int, size: int) -> ReturnCode:
        """What can be said from here; the peer says the rest."""
        mine = handle is not None and handle.qword1 >> 32 == self._rank
        mine = mine and 0 <= offset < ADDRESSES
        return ReturnCode.SUCCESS if mine else ReturnCode.PERMISSION_ERROR

    def write(self, handle: MemoryHandle, offset: int, data: memoryview, told: Told) -> None:
        """Have bytes written there."""
        self._far.write(self._rank, handle, offset, data, told)

    def read(self, handle: MemoryHandle, offset: int, into: memoryview, told: Told) -> None:
        """Have bytes read there."""
        self._far.read(self._rank, handle, offset, into, told)


class _Place(NamedTuple):
    """Where a registration of a peer lies, as long as its slot has the same identity.

    Attributes:
        at: its slot in the table, in words.
        size: bytes.
        address: in the peer's process.
        there: the region it is in, mapped here; None where it is in none.
        begin: its offset in that.
    """

    at: int
    size: int
    address: int
    there: memoryview | None
    begin: int


class PeerMemory:
    """What one peer of the host has registered."""

    def __init__(
        self, proc: Proc, layout: Layout, words: memoryview, copy: ProcessCopy, job: int
    ) -> None:
        local_rank = proc.local_rank
        self._proc = proc
        self._rank = proc.rank
        self._local_rank = local_rank
        self._job = job
        self._layout = layout
        self._words = words
        self._copy = copy
        self._line = layout.line(local_rank)
        self._job_at = self._line + JOB
        self._process = -1  # once it is known to be the one that is meant
        self._places: dict[MemoryHandle, _Place] = {}

    def check(self, handle: MemoryHandle | None, offset: int, size: int) -> ReturnCode:
        """Whether these bytes are registered there now."""
        if handle is None or handle.qword1 >> 32 != self._rank:
            return PERMISSION_ERROR
        slot = handle.qword1 & SLOTS
        at = self._layout.slot(self._local_rank, slot)
        if slot >= self._layout.registrations or self._words[at + IDENTITY] != handle.qword2:
            return PERMISSION_ERROR
        inside = offset >= 0 and offset + size <= self._words[at + SIZE]
        return SUCCESS if inside else PERMISSION_ERROR

    def write(self, handle: MemoryHandle, offset: int, data: memoryview, told: Told) -> None:
        """Copy bytes there."""
        told(self.move(handle, offset, data, True))

    def read(self, handle: MemoryHandle, offset: int, into: memoryview, told: Told) -> None:
        """Copy bytes from there."""
        told(self.move(handle, offset, into, False))

    def move(self, handle: MemoryHandle, offset: int, local: memoryview, put: bool) -> ReturnCode:
        """Copy bytes one way or the other, at once, unless they are not registered."""
        size, words = len(local), self._words
        if self._proc.departed:
            return TRANSACTION_ERROR
        try:
            place = self._places.get(handle) or self._find(handle)
            if (
                place is None
                or words[place.at] != handle.qword2
                or words[self._job_at] != self._job
                or offset < 0
                or offset + size > place.size
            ):
                gone = words[self._job_at] == GONE
                return TRANSACTION_ERROR if gone else PERMISSION_ERROR
            if not size:
                return SUCCESS
            there = place.there
            if there is None and put:
                self._copy.write(self._process, place.address + offset, local)
            elif there is None:
                self._copy.read(self._process, place.address + offset, local)
            elif put:
                raw.copy(there, place.begin + offset, local, 0, size)
            else:
                raw.copy(local, 0, there, place.begin + offset, size)
        except LinkError:
            return TRANSACTION_ERROR
        return SUCCESS

    def _find(self, handle: MemoryHandle) -> _Place | None:
        """Look a handle up in the peer's table; None: it is not there."""
        if self.check(handle, 0, 0) is not SUCCESS:
            return None
        if self._process < 0:
            self._try()
        words, at = self._words, self._layout.slot(self._local_rank, handle.qword1 & SLOTS)
        there, begin = None, 0
        if words[at + REGION]:
            there = self._copy.map(self._process, words[at + DESCRIPTOR], words[at + REGION])
            begin = words[at + OFFSET]
        if len(self._places) >= PLACES_MAX:
            self._places.clear()
        place = _Place(at + IDENTITY, words[at + SIZE], words[at + ADDRESS], there, begin)
        self._places[handle] = place
        return place

    def _try(self) -> None:
        """See that the kernel copies, and with the process that is meant; the first time only."""
        words, seen = self._words, memoryview(bytearray(8))
        process = words[self._line + PROCESS]
        self._copy.read(process, words[self._line + PROBE_ADDRESS], seen)
        if int.from_bytes(seen, "little") != words[self._line + PROBE]:
            raise LinkError(f"process {process} is another one here")
        self._process = process


def show_probe(
    context: RankContext, layout: Layout, words: memoryview, copy: ProcessCopy
) -> memoryview:
    """Put a word of this process's memory where peers find it. The caller keeps it alive."""
    probe = memoryview(bytearray(context.network.entropy(8)))
    probe[0] |= 1
    line = layout.line(context.me.local_rank)
    words[line + PROCESS] = copy.identity
    words[line + PROBE_ADDRESS] = copy.address_of(probe)
    words[line + PROBE] = int.from_bytes(probe, "little")
    return probe


def copy_of(context: RankContext) -> ProcessCopy:
    """The kernel's copy between processes.

    Raises:
        NicError: this system has none.
    """
    copy = context.network.process_copy()
    if copy is None:
        raise NicError("gni: this system has no cross-process copy")
    return copy
