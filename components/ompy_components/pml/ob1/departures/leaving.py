"""LEAVE: what a rank that finalizes says to those it has talked to, and how that is taken in.

A LEAVE names, for each communicator, how many messages the rank has sent to this peer and how many
of the peer's it has taken in their order, and the peer's large or synchronous messages that it
never received. With these numbers nobody has to guess whether something is still under way
(README.md, "Ranks that leave").
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from ompy.data.errors import ERR_INTERN, MPIError
from ompy.data.header_layout import HeaderLayout
from ompy.frameworks.bml import BmlEndpoint
from ompy.frameworks.btl import BtlModule, Endpoint, ReceiveCallback
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.context import RankContext

from ompy_components.pml.ob1.departures.abandoning import ABANDON
from ompy_components.pml.ob1.headers import LEAVE, SEQUENCE_MASK, parse
from ompy_components.pml.ob1.matching import Matching

if TYPE_CHECKING:
    from ompy_components.pml.ob1.module import Ob1

# `what` is 0 (`abandoning.py` has another), `records` are of all of a rank's LEAVEs to this peer;
# they follow, as many as fit an eager fragment
LEAVE_LAYOUT: Final = HeaderLayout("ob1.leave", "type u8, what u8, pad 2, rank i32, records u64")
LEAVE_HEADER: Final = LEAVE_LAYOUT.struct
assert LEAVE_HEADER.size == 16
# number of the last message sent, of the last one taken in its order; or UNRECEIVED, the peer's
# send request, 0
LEAVE_RECORD_LAYOUT: Final = HeaderLayout("ob1.record", "context u64, sent u64, taken u64")
LEAVE_RECORD: Final = LEAVE_RECORD_LAYOUT.struct
assert LEAVE_RECORD.size == 24
UNRECEIVED: Final = 1 << 32  # arbitrary: beyond every context id


class Traffic(NamedTuple):
    """What has gone between two ranks in one communicator.

    Attributes:
        sent: number of the last message sent to the peer.
        taken: number of the peer's last message that was taken in its order.
    """

    sent: int = 0
    taken: int = 0


class Records:
    """What a rank that leaves says to one peer.

    Attributes:
        traffic: by context id.
        unreceived: send requests of the peer that will never be answered.
    """

    __slots__ = ("traffic", "unreceived")

    def __init__(self) -> None:
        self.traffic: dict[int, Traffic] = {}
        self.unreceived: set[int] = set()

    def __len__(self) -> int:
        return len(self.traffic) + len(self.unreceived)

    def packed(self) -> list[bytes]:
        """Each as it goes over the wire."""
        pack = LEAVE_RECORD.pack
        found = [pack(context_id, *traffic) for context_id, traffic in self.traffic.items()]
        return found + [pack(UNRECEIVED, number, 0) for number in self.unreceived]

    def take(self, body: memoryview) -> None:
        """Add what is packed in `body`."""
        for context_id, first, second in LEAVE_RECORD.iter_unpack(body):
            if context_id == UNRECEIVED:
                self.unreceived.add(first)
            else:
                self.traffic[context_id] = Traffic(first, second)


class Leaving(ReceiveCallback):
    """Says LEAVE, and collects those of others.

    A peer's records may come in several LEAVEs, in any order, and a PML that sends again what a
    rail has lost may say one twice.

    Attributes:
        freed: what has gone in communicators that are gone, by rank and context id.
    """

    __slots__ = ("_begun", "_context", "_ob1", "_parts", "_said", "_tell", "freed")

    def __init__(
        self, ob1: Ob1, context: RankContext, tell: Callable[[int, Records], object]
    ) -> None:
        """Begin.

        Args:
            ob1: whose.
            context: the rank.
            tell: called with a rank and its records when all of them are here.
        """
        self._ob1 = ob1
        self._context = context
        self._tell = tell
        self._parts: dict[int, Records] = {}
        self._said: set[int] = set()
        self._begun = False  # this rank has said it
        self.freed: dict[int, dict[int, Traffic]] = {}

    # --- saying it

    def keep(self, matching: Matching) -> None:
        """A communicator goes: its peer may still look for messages in it."""
        context_id = matching.communicator.context_id
        for rank, traffic in self._traffic(matching):
            self.freed.setdefault(rank, {})[context_id] = traffic

    def forget(self, communicator: Communicator) -> None:
        """A communicator is made: its members have none of an earlier one with its number."""
        for proc in communicator.procs:
            freed = self.freed.get(proc.rank)
            if freed is not None:
                freed.pop(communicator.context_id, None)

    def say(self) -> None:
        """Say LEAVE to all that this rank has sent something to, once, and have the rest told."""
        with self._context.engine.lock:
            if not self._begun:
                self._begun = True
                self._context.wireup.leaving(self._say_to_all())

    def _say_to_all(self) -> list[int]:
        """The ranks in the world that it was said to."""
        every: dict[int, Records] = defaultdict(Records)
        for rank, freed in self.freed.items():
            every[rank].traffic.update(freed)
        for matching in self._ob1.matchings():
            communicator = matching.communicator
            for rank, traffic in self._traffic(matching):
                every[rank].traffic[communicator.context_id] = traffic
            for fragment in matching.unmatched():
                if fragment.sender_request:
                    rank = communicator.procs[fragment.source].rank
                    every[rank].unreceived.add(fragment.sender_request)
        told = []
        procs = self._context.procs
        for rank, records in sorted(every.items()):
            endpoint = procs[rank].bml_endpoint
            if isinstance(endpoint, BmlEndpoint) and not procs[rank].departed:
                told.append(rank)
                self._say_to(endpoint, records)
        return told

    def _traffic(self, matching: Matching) -> Iterator[tuple[int, Traffic]]:
        """What has gone between this rank and others in a communicator, by rank in the world."""
        communicator = matching.communicator
        for place, proc in enumerate(communicator.procs):
            queue = matching.known_peer(place)
            if queue is None or proc is self._context.me:
                continue
            traffic = Traffic(queue.sent, (queue.expected - 1) & SEQUENCE_MASK)
            if any(traffic):
                yield proc.rank, traffic

    def _say_to(self, endpoint: BmlEndpoint, records: Records) -> None:
        rails = endpoint.eager.rails
        if not rails:
            return
        room = min(rail.module.eager_limit for rail in rails) - LEAVE_HEADER.size
        most = max(1, room // LEAVE_RECORD.size)
        packed = records.packed()
        header = LEAVE_HEADER.pack(LEAVE, 0, self._context.rank, len(packed))
        for first in range(0, len(packed), most) or (0,):
            message = header + b"".join(packed[first : first + most])
            self._ob1.control.send(endpoint, message, LEAVE)

    def deliver(self) -> None:
        """Send what is pending, and wait until no other rank needs more: it has it, or has left.

        That is of the program's messages. Whoever sends others (negative tags) has waited for them,
        or has given them up. Who has not said LEAVE, as it may have failed, has patience only: its
        exit code is to come.
        """
        self._ob1.send_pending()
        timeout = -1 if self._context.leaves else self._ob1.gone.patience
        self._context.engine.wait_until(self._has_delivered, timeout)

    def _has_delivered(self) -> bool:
        me = self._context.me
        requests = self._ob1.sending.requests.values()
        return all(request.endpoint.proc is me or request.tag < 0 for request in requests)

    # --- hearing it

    def received(self, module: BtlModule, endpoint: Endpoint, tag: int, data: memoryview) -> None:
        """Take in a LEAVE. Raises MPIError ERR_INTERN when it is none."""
        _, kind, rank, total = parse(LEAVE_HEADER, LEAVE, data)
        if kind == ABANDON:
            self._ob1.gone.gave_up_collective(data)
            return
        body = data[LEAVE_HEADER.size :]
        if len(body) % LEAVE_RECORD.size or not 0 <= rank < len(self._context.procs):
            detail = f"ob1: a LEAVE of rank {rank} with {len(body)} bytes of records"
            raise MPIError(ERR_INTERN, detail)
        if self._ob1.trace.noting:
            self._ob1.trace.note("< LEAVE", -1, rank, 0, 0, len(data))
        if rank in self._said:
            return
        records = self._parts.setdefault(rank, Records())
        records.take(body)
        if len(records) >= total:
            del self._parts[rank]
            self._said.add(rank)
            self._tell(rank, records)
