"""HELLOs over the port's interface, and the queue pairs of a connection.

The datagrams go over the interface of the port itself, so a rail that carries none gets no
connection. When a HELLO goes, and when there were enough without an answer, is decided by
`ompy.frameworks.path_life`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.frameworks.datagrams import JobDatagrams
from ompy.frameworks.nic.base import LinkState, NicError
from ompy.frameworks.nic.verbs import QueuePair
from ompy.frameworks.nic.verbs import State as PairState
from ompy.frameworks.path_life import Stage

from ompy_components.btl.openib.credits import PeerCredits
from ompy_components.btl.openib.endpoint import Queue
from ompy_components.btl.openib.headers import MARGIN
from ompy_components.btl.openib.hello import BadHello, Hello, pack, unpack
from ompy_components.btl.openib.receive_buffers import PeerBuffers
from ompy_components.btl.openib.receive_queues import PerPeer

if TYPE_CHECKING:
    from ompy_components.btl.openib.endpoint import OpenibEndpoint
    from ompy_components.btl.openib.module import OpenibModule

TRANSFERS: Final = 64  # arbitrary: puts and gets of one endpoint in the device's hands


class ConnectionManager:
    """What connects the endpoints of one module.

    Attributes:
        sent, read: HELLOs.
    """

    def __init__(self, module: OpenibModule, name: str) -> None:
        """Open the socket.

        Args:
            module: whose.
            name: of the sockets that hear each other: the same at both ends of a pair of ports.
        """
        self._module = module
        self._socket = JobDatagrams(module.context, name, module.nic.identity.address)
        self.sent = self.read = 0

    # -- HELLOs

    def poll(self) -> int:
        """Read the HELLOs that are here."""
        arrived = self._socket.arrived()
        for proc, data in arrived:
            endpoint = self._module.reach(proc)
            if endpoint is None:
                continue
            try:
                said = unpack(data)
            except BadHello as problem:
                self._module.note("BAD_HELLO", peer=proc.rank, reason=str(problem))
                continue
            self.read += 1
            self._hello(endpoint, said)
        return len(arrived)

    def _hello(self, endpoint: OpenibEndpoint, said: Hello) -> None:
        nic = self._module.nic
        useless = not endpoint.queues and (nic.gone or nic.link is LinkState.DOWN)
        if not (useless or endpoint.proc.departed or endpoint.left):
            endpoint.path.word(said.generation, said.stage, said.pairs)

    def say(self, endpoint: OpenibEndpoint, generation: int, stage: Stage) -> None:
        """Send a HELLO, where queue pairs could be made."""
        pairs = tuple(queue.pair.here() for queue in endpoint.queues)
        if pairs:
            self.sent += 1
            self._socket.send(endpoint.proc, pack(Hello(generation, stage, pairs)))

    @property
    def replayed(self) -> int:
        """Datagrams that were here before, or came too late to tell: dropped unread."""
        return self._socket.replayed

    def ready(self) -> bool:
        """Whether a HELLO is here."""
        return self._socket.ready()

    def close(self) -> None:
        """Give the socket back."""
        self._socket.close()

    # -- queue pairs

    def make(self, endpoint: OpenibEndpoint) -> None:
        """The queue pairs of an endpoint, in INIT and with their buffers.

        Raises:
            NicError: the device has no room for them, or is gone.
        """
        module = self._module
        assert not endpoint.queues
        for index, entry in enumerate(module.entries):
            size, room = entry.size + MARGIN, module.rooms[index]
            shared = module.shared[index]
            depth = entry.num + entry.rsv if isinstance(entry, PerPeer) else entry.sd_max
            pair = module.domain.queue_pair(
                room.queue,
                room.queue,
                send_depth=depth,
                receive_depth=depth if shared is None else 0,
                shared=shared.queue if shared is not None else None,
                inline_max=module.inline_max,
            )
            queue = Queue(pair, room)
            endpoint.queues.append(queue)
            module.receiving.by_number[pair.number] = endpoint, index
            pair.modify(PairState.INIT)
            queue.tokens = module.tokens[index]
            if isinstance(entry, PerPeer):
                queue.credits = PeerCredits(entry)
                queue.buffers = PeerBuffers(module.domain, entry, size, room, pair)
        for index in (len(module.entries), len(module.entries) + 1):
            queue = Queue(self.transfer_pair(endpoint, index), module.rooms[-1])
            endpoint.queues.append(queue)

    def transfer_pair(self, endpoint: OpenibEndpoint, index: int) -> QueuePair:
        """A queue pair for puts and gets of one end, in INIT.

        Raises:
            NicError: the device has no room for it, or is gone.
        """
        module = self._module
        queue = module.rooms[-1].queue
        pair = module.domain.queue_pair(queue, queue, send_depth=TRANSFERS)
        module.receiving.by_number[pair.number] = endpoint, index
        pair.modify(PairState.INIT)
        return pair

    def connect(self, endpoint: OpenibEndpoint) -> None:
        """Connect ours to the peer's.

        Raises:
            NicError: they do not match, or the device is gone.
        """
        theirs = endpoint.pairs
        if len(theirs) != len(endpoint.queues):
            raise NicError(f"the peer has {len(theirs)} queue pairs, we {len(endpoint.queues)}")
        limits = self._module.limits
        for queue, there in zip(endpoint.queues, theirs, strict=True):
            timing = limits.timing(shared=queue.credits is None)
            queue.pair.modify(PairState.RTR, there=there, timing=timing)
            queue.pair.modify(PairState.RTS, timing=timing)
