"""A peer as one openib module reaches it."""

from __future__ import annotations

from collections import deque

from ompy.frameworks.btl import BtlModule, Endpoint
from ompy.frameworks.nic.base import Identity
from ompy.frameworks.nic.verbs import Destination, QueuePair
from ompy.frameworks.paths.path_keeper import KeptPath
from ompy.frameworks.proc import Proc

from ompy_components.btl.openib.fragments import OpenibFragment, Outgoing, Transfer
from ompy_components.btl.openib.memory.buffers import Slab
from ompy_components.btl.openib.memory.eager_ring import ReceiveRing, SendRing
from ompy_components.btl.openib.memory.receive_buffers import PeerBuffers
from ompy_components.btl.openib.modex import PortRecord
from ompy_components.btl.openib.queues.completions import CompletionRoom
from ompy_components.btl.openib.queues.credits import PeerCredits, Tokens
from ompy_components.btl.openib.queues.pending import Pending


class Queue:
    """One queue pair of an endpoint.

    Attributes:
        pair: the device's.
        entries: work entries of its send queue that are free.
        room: where its work is reported.
        credits: with a queue of its own buffers, else None.
        buffers: these; None with shared ones.
        tokens: with shared buffers, those of the module; else None.
    """

    __slots__ = ("buffers", "credits", "entries", "pair", "room", "tokens")

    def __init__(self, pair: QueuePair, room: CompletionRoom) -> None:
        self.pair = pair
        self.entries = pair.send_depth
        self.room = room
        self.credits: PeerCredits | None = None
        self.buffers: PeerBuffers | None = None
        self.tokens: Tokens | None = None


class Renewal:
    """The renewals of one endpoint's own queue pair.

    Attributes:
        number: of the last one begun.
        under_way: nothing can be posted meanwhile.
        flushed: what goes again, in order.
    """

    __slots__ = ("flushed", "number", "under_way")

    def __init__(self) -> None:
        self.number = 0
        self.under_way = False
        self.flushed: list[Transfer] = []


class OpenibEndpoint(Endpoint):
    """Both directions of the traffic with one peer.

    Attributes:
        identity: of the module's device.
        record: the peer's port.
        path: where it is in its life.
        pairs: the peer's queue pairs.
        queues: one for each entry of `receive_queues`, then one for puts and gets of the end with
            the lower rank, and one for those of the other.
        lazy: what waits for the connection, in order.
        pending: fragments that wait for a work entry, a credit or a token.
        transfers: puts and gets that wait for a work entry.
        asking, answering: index of the queue for puts and gets of this end, and of the peer.
        renewal: of the queue pair for these.
        reads: RDMA reads that may be begun.
        posted: what the device has and has not reported, in order.
        failed_work: what has failed of a broken connection, and is to be completed so.
        outgoing: the peer's ring that we write to, or None.
        incoming: the ring of ours the peer writes to, or None.
        ring_memory: of that.
        eager_seen: eager fragments of the peer that came through queues.
        left: the peer needs nothing more of us.
        parted: we have told it so.
    """

    __slots__ = (
        "answering",
        "asking",
        "eager_seen",
        "failed_work",
        "identity",
        "incoming",
        "lazy",
        "left",
        "outgoing",
        "pairs",
        "parted",
        "path",
        "pending",
        "posted",
        "queues",
        "reads",
        "record",
        "renewal",
        "ring_memory",
        "transfers",
    )

    def __init__(
        self,
        module: BtlModule,
        identity: Identity,
        proc: Proc,
        record: PortRecord,
        queues: int,
        reads: int,
    ) -> None:
        super().__init__(module, proc)
        self.identity = identity
        self.record = record
        self.path: KeptPath  # of the module, which makes both
        self.pairs: tuple[Destination, ...] = ()
        self.queues: list[Queue] = []
        self.lazy: deque[Outgoing] = deque()
        self.pending: Pending[OpenibFragment] = Pending(queues)
        self.transfers: deque[Transfer] = deque()
        higher = module.context.rank > proc.rank
        self.asking, self.answering = queues + higher, queues + (not higher)
        self.renewal = Renewal()
        self.reads = reads
        self.posted: dict[Outgoing, None] = {}
        self.failed_work: list[Outgoing] = []
        self.outgoing: SendRing | None = None
        self.incoming: ReceiveRing | None = None
        self.ring_memory: Slab | None = None
        self.eager_seen = 0
        self.left = self.parted = False

    def describe(self) -> str:
        """Interface and addresses, as for `btl/tcp`."""
        own = self.identity
        return f"openib {own.interface} {own.address} - {self.record.host}"

    def ends(self) -> tuple[str, str, str]:
        """Interface and addresses."""
        own = self.identity
        return own.interface, own.address, self.record.host

    @property
    def broken(self) -> str:
        """Why nothing can be sent; empty while it can."""
        return self.path.broken

    @property
    def waiting(self) -> bool:
        """Something accepted has not been posted yet."""
        return bool(self.lazy or self.transfers or self.pending)

    @property
    def busy(self) -> bool:
        """Something accepted is not completed."""
        return bool(self.posted or self.failed_work or self.waiting or self.renewal.flushed)

    @property
    def usable(self) -> bool:
        """What is offered for it is taken."""
        return not (self.broken or self.left or self.proc.departed)
