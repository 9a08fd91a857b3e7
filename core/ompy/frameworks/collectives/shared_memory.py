"""How the members of a communicator come to share memory: one message there, one back, one there.

Rank 0 has a region (`Network.region`), which the others map. All have to have succeeded: a member
that could not would wait for messages, while the others look at the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from struct import Struct
from typing import TYPE_CHECKING, Final

from ompy.frameworks.coll import TAG_SHARED_MEMORY
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import (
    CollectiveRequest,
    Progression,
    Schedule,
    complete_schedule,
)
from ompy.frameworks.communicator import Communicator
from ompy.net.base import LinkError, Network
from ompy.net.memory.process_copy import ProcessCopy, RegionLocks

if TYPE_CHECKING:
    from ompy.frameworks.context import RankContext
    from ompy.frameworks.proc import Proc

PLACE: Final = Struct("<QQQQQ")  # process, descriptor, number, offset, proof; all 0 for none
PAGE: Final = 4096  # bytes; x86 and most aarch64
PROOF_SIZE: Final = 8  # bytes at the beginning of the memory


class SharedMemory:
    """The memory of a communicator's members.

    Attributes:
        copy: between the members' processes; None where there is none.
        view: of it; None where they have none. It begins with `PROOF_SIZE` bytes that are taken.
    """

    __slots__ = ("_address", "_mapped", "_network", "_place", "copy", "view")

    def __init__(self, network: Network, copy: ProcessCopy | None) -> None:
        self._network = network
        self.copy = copy
        self._address = 0
        self._mapped: tuple[int, int] | None = None
        self._place = (0, 0, 0)
        self.view: memoryview | None = None

    def create_segment(self, copy: ProcessCopy, size: int) -> bytes:
        """Have the memory; where it is, for the others to map.

        Raises:
            LinkError: there is none.
        """
        view = self._network.region(-(-size // PAGE) * PAGE)
        place = copy.region_of(view)
        assert place is not None, "it is a region"
        from ompy.net.memory.vm import address_of

        self._address = address_of(view)
        self._place = copy.identity, place[0], place[1]
        proof = self._network.entropy(PROOF_SIZE)
        view[:PROOF_SIZE] = proof
        self.view = view
        return PLACE.pack(copy.identity, *place, int.from_bytes(proof, "little"))

    def map(self, copy: ProcessCopy, place: bytes) -> None:
        """Map what `create_segment` has told of.

        Raises:
            LinkError: it cannot be mapped, or is other memory.
        """
        process, descriptor, number, offset, proof = PLACE.unpack(place)
        if not process and not proof:
            raise LinkError("rank 0 has no memory to share")
        view = copy.map(process, descriptor, number)[offset:]
        self._mapped = process, number
        self._place = process, descriptor, number
        if int.from_bytes(view[:PROOF_SIZE], "little") != proof:
            raise LinkError("it is other memory")
        self.view = view

    def locks(self) -> RegionLocks:
        """Locks that all members have in common.

        Raises:
            LinkError: there are none.
        """
        assert self.copy is not None, "what is shared was mapped"
        return self.copy.locks(*self._place)

    def close(self) -> None:
        """Give it back; it goes with the last member that does, as others may still read it."""
        self.view = None
        if self._mapped is not None and self.copy is not None:
            self.copy.unmap(*self._mapped)
            self._mapped = None
        if self._address:
            self._network.release_region(self._address, pages=False)
            self._address = 0


def why_no_memory(context: RankContext, members: Iterable[Proc]) -> str:
    """Why processes are to share no memory for their collectives; empty where they may.

    Args:
        context: of this rank.
        members: the processes.
    """
    if context.recovery is not None:
        return "members may die, and those that wait in memory would not hear of it"
    hosts = len({proc.node for proc in members})
    if hosts > 1:
        return f"its members are on {hosts} hosts"
    if all(module.name != "sm" for module in context.btls):
        return "messages do not go through memory: btl sm is not used"
    return ""


def finds_proof(copy: ProcessCopy, process: int, address: int, proof: memoryview | bytes) -> bool:
    """Whether this process may copy from a member's, and has the right one.

    Args:
        copy: between them.
        process: the member's.
        address: where it has the memory.
        proof: what that begins with.
    """
    seen = memoryview(bytearray(len(proof)))
    try:
        copy.read(process, address, seen)
    except LinkError:
        return False
    return seen == proof


def share(
    communicator: Communicator,
    size: int,
    tag: int = TAG_SHARED_MEMORY,
    *,
    willing: bool = True,
    leave: Callable[[SharedMemory], object] | None = None,
) -> SharedMemory:
    """At least `size` bytes that all members share; or none, then for none of them.

    All members call it together. It is zero but for the proof at its beginning.

    Args:
        communicator: whose members share it.
        size: bytes.
        tag: of the messages. Of a collective call it is that call's: members that make other calls
            then share nothing, and try anew in the next one.
        willing: whether this member is to have any.
        leave: called with the memory if that fails here: others may have it by then.

    Raises:
        MPIError: a member has left, takes no part, or makes another call.
    """
    shared, copy = _prepare(communicator)
    exchange = Exchange(communicator, tag)
    plan = _offer if communicator.rank == 0 else _accept
    try:
        complete_schedule(exchange, plan(exchange, shared, copy if willing else None, size))
    except BaseException:
        if shared.view is not None and leave is not None:
            leave(shared)
        raise
    return shared


def begin_to_share(
    communicator: Communicator, size: int, tag: int
) -> tuple[SharedMemory, CollectiveRequest]:
    """The same in the background; the memory is there, or is not, when the request is complete.

    Args:
        communicator: whose members share it.
        size: bytes.
        tag: of the messages.
    """
    shared, copy = _prepare(communicator)
    exchange = Exchange(communicator, tag)
    plan = _offer if communicator.rank == 0 else _accept
    return shared, Progression(exchange, plan(exchange, shared, copy, size)).begin()


def _prepare(communicator: Communicator) -> tuple[SharedMemory, ProcessCopy | None]:
    network = communicator.context.network
    with communicator.context.engine.lock:
        copy = network.process_copy()
        shared = SharedMemory(network, copy)
        network.doorbell(communicator.context.me.local_rank)  # arms it as what wakes this rank
    return shared, copy


def _offer(
    exchange: Exchange, shared: SharedMemory, copy: ProcessCopy | None, size: int
) -> Schedule:
    place = bytes(PLACE.size)
    try:
        if copy is not None:
            place = shared.create_segment(copy, size)
    except LinkError as problem:
        _note(exchange, str(problem))
    others = range(1, exchange.size)
    answers = [memoryview(bytearray(1)) for _ in others]
    for rank, answer in zip(others, answers, strict=True):
        exchange.receive(answer, rank)
        exchange.send(memoryview(place), rank)
    yield
    verdict = bytes((shared.view is not None and all(answer[0] for answer in answers),))
    for rank in others:
        exchange.send(memoryview(verdict), rank)
    yield
    if not verdict[0]:
        shared.close()


def _accept(
    exchange: Exchange, shared: SharedMemory, copy: ProcessCopy | None, size: int
) -> Schedule:
    place, verdict = memoryview(bytearray(PLACE.size)), memoryview(bytearray(1))
    exchange.receive(place, 0)
    yield
    try:
        if copy is not None:
            shared.map(copy, bytes(place))
            if shared.view is not None and len(shared.view) < size:
                raise LinkError(f"it has {len(shared.view)} bytes, not {size}")
    except LinkError as problem:
        shared.close()
        _note(exchange, str(problem))
    exchange.receive(verdict, 0)
    exchange.send(memoryview(bytes((shared.view is not None,))), 0)
    yield
    if not verdict[0]:
        shared.close()


def _note(exchange: Exchange, why: str) -> None:
    trace = exchange.communicator.context.trace
    if trace.active:
        trace.record("memory", "NO_SHARED_MEMORY", why=why)
