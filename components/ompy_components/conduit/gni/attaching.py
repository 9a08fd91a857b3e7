"""How a rank comes by its NIC, its endpoints and its mailboxes.

Source: seed gasnet (Overview, Initialization); reference gasnet.md 4.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from ompy.data.errors import ERR_INTERN, ERR_NO_MEM, MPIError
from ompy.frameworks.conduit import ThreadMode
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import NicError
from ompy.frameworks.nic.gni import GniNic, MemoryHandle, ReturnCode, SmsgAttributes
from ompy.mca.component import NotAvailable
from ompy.net.base import LinkError

from ompy_components.conduit.gni import segment
from ompy_components.conduit.gni.bootstrap import Bootstrap, node_map
from ompy_components.conduit.gni.locking import queue_lock
from ompy_components.conduit.gni.mailboxes import MailboxTransport
from ompy_components.conduit.gni.pshm import PshmTransport
from ompy_components.conduit.gni.resources import Resources
from ompy_components.conduit.gni.smsg import MESSAGE_SIZE, SmsgTransport, WorkQueue
from ompy_components.conduit.gni.transport import Transport

if TYPE_CHECKING:
    from collections.abc import Sequence

# address of the NIC, first rank of the host, handle of the mailboxes, most bytes of a segment
RECORD: Final = Struct("<QIQQQ")
SPARE_EVENTS: Final = 2  # reference gasnet.md 5.3: of the local queue


class Joined(NamedTuple):
    """What a rank knows when all have joined.

    Attributes:
        transport: of active messages by the NIC.
        limits: bytes of the largest segment this rank, and every rank, could have.
        hosts: ranks of each host.
    """

    transport: Transport
    limits: tuple[int, int]
    hosts: list[list[int]]


def find_nic(context: RankContext, generation: str) -> GniNic:
    """The NIC of that generation, open.

    Raises:
        NotAvailable: there is none, or it cannot be used.
    """
    for nic in context.find_nics(GniNic):
        if nic.generation == generation:
            try:
                nic.open()
            except NicError as problem:
                raise NotAvailable(str(problem)) from problem
            return nic
    raise NotAvailable(f"there is no {generation} NIC: it needs the component nic/gni")


def peers_of(context: RankContext, rank: int, *, past_neighbours: bool) -> list[int]:
    """The ranks that `rank` reaches by its NIC, by rank."""
    node = context.procs[rank].node
    return [
        proc.rank
        for proc in context.procs
        if proc.rank != rank and not (past_neighbours and proc.node == node)
    ]


def join_all(
    resources: Resources, bootstrap: Bootstrap, mode: ThreadMode, *, past_neighbours: bool
) -> Joined:
    """Make queues, endpoints and mailboxes, with all other ranks.

    Args:
        resources: of the rank, which get them.
        bootstrap: of the job.
        mode: threads that may call.
        past_neighbours: ranks of this host are not reached by the NIC.

    Raises:
        MPIError: something cannot be had, or a rank has ended.
        NotAvailable: the NIC does not reach a rank.
    """
    context, values, domain = resources.context, resources.parameters, resources.domain
    ranks_here = len(context.local_procs())
    peers = peers_of(context, context.rank, past_neighbours=past_neighbours)
    depth = values.networkdepth
    resources.local_queue = domain.completion_queue(values.num_pd + depth + SPARE_EVENTS)
    made = _Smsg(resources, peers, mode) if values.messages == "smsg" else _Own(resources, peers)
    most = _limit(resources, ranks_here, made.size)
    first = context.local_procs()[0].rank
    handle = made.handle
    mine = RECORD.pack(resources.nic.address, first, handle.qword1, handle.qword2, most)
    records = [RECORD.unpack(record) for record in bootstrap.allgather(mine)]
    for place, node in enumerate(peers):
        address, _, *words, _ = records[node]
        _bind(resources, node, address)
        theirs = peers_of(context, node, past_neighbours=past_neighbours)
        made.connect(node, MemoryHandle(*words), theirs.index(context.rank), place)
    smallest = min(record[-1] for record in records)
    return Joined(made.transport, (most, smallest), node_map([record[1] for record in records]))


def neighbourhood(resources: Resources, name: str) -> PshmTransport | None:
    """What carries messages to the other ranks of this host past the NIC; None: nothing does.

    Raises:
        MPIError: there is no memory to share.
    """
    context, values = resources.context, resources.parameters
    if not values.pshm or len(context.local_procs()) == 1:
        return None
    try:
        return PshmTransport(
            context,
            resources.lock,
            name=f"conduit_{name}",
            message=MESSAGE_SIZE,
            depth=values.pshm_network_depth,
            burst=values.smsg_burst,
        )
    except LinkError as problem:
        raise MPIError(ERR_NO_MEM, f"shared memory of the conduit {name}: {problem}") from None


def _bind(resources: Resources, node: int, address: int) -> None:
    endpoint = resources.domain.endpoint(resources.local_queue)
    code = endpoint.bind(address, node)
    if code is not ReturnCode.SUCCESS:
        raise NotAvailable(f"the NIC does not reach {resources.context.procs[node]}: {code.value}")
    resources.endpoints[node] = endpoint


def _limit(resources: Resources, ranks_here: int, for_messages: int) -> int:
    values, network = resources.parameters, resources.context.network
    most = segment.segment_limit(
        network.memory_size(),
        values.physmem_pinnable_ratio,
        values.physmem_max,
        ranks_here,
        for_messages,
    )
    if values.max_segsize:
        most = min(most, segment.whole_pages(values.max_segsize))
    return most if values.physmem_noprobe else segment.probe_segment(network, most)


class _Smsg:
    """Mailboxes of the NIC's short messages (variant S)."""

    def __init__(self, resources: Resources, peers: Sequence[int], mode: ThreadMode) -> None:
        values, domain, size = resources.parameters, resources.domain, resources.context.size
        self._resources = resources
        # two messages a credit: the request, and what answers it; one for each round of the exit
        self._credit = 2 * values.networkdepth + size.bit_length()
        self._each = domain.smsg_mailbox_size(self._credit, MESSAGE_SIZE)
        self.size = max(1, len(peers)) * self._each
        # reference gasnet.md 5.3
        depth = values.message_events or size * 2 * values.networkdepth * 2
        resources.message_queue = domain.completion_queue(depth)
        domain.mailbox_queue(resources.message_queue)
        self.handle = segment.register_segment(
            domain, memoryview(bytearray(self.size)), resources.ordering
        )
        work = WorkQueue(size, queue_lock(mode))
        self.transport = SmsgTransport(
            resources, resources.message_queue, work, values.smsg_burst, values.smsg_peer_burst
        )

    def connect(self, node: int, handle: MemoryHandle, place: int, here: int) -> None:
        """Say where both mailboxes are."""
        own = SmsgAttributes(self.handle, here * self._each, self._credit, MESSAGE_SIZE)
        theirs = SmsgAttributes(handle, place * self._each, self._credit, MESSAGE_SIZE)
        endpoint = self._resources.endpoints[node]
        assert endpoint is not None, "it was bound"
        code = endpoint.smsg_init(own, theirs)
        if code is not ReturnCode.SUCCESS:
            raise MPIError(ERR_INTERN, f"mailboxes with rank {node}: {code.value}")


class _Own:
    """Mailboxes of the conduit's own (variant M)."""

    def __init__(self, resources: Resources, peers: Sequence[int]) -> None:
        values = resources.parameters
        self.transport = MailboxTransport(resources, peers, values.networkdepth, values.smsg_burst)
        self.size = self.transport.size
        self.handle = self.transport.handle
        self.connect = self.transport.connect
