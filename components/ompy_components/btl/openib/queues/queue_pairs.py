"""The queue pairs of one module's connections: made, connected, renewed, given back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ompy.frameworks.nic.base import NicError
from ompy.frameworks.nic.verbs import Destination, ProtectionDomain, QueuePair
from ompy.frameworks.nic.verbs import State as PairState

from ompy_components.btl.openib.endpoint import OpenibEndpoint, Queue
from ompy_components.btl.openib.headers import MARGIN
from ompy_components.btl.openib.memory.receive_buffers import PeerBuffers, SharedBuffers
from ompy_components.btl.openib.queues.completions import CompletionRoom
from ompy_components.btl.openib.queues.credits import PeerCredits, Tokens
from ompy_components.btl.openib.queues.receive_queues import Entry, PerPeer
from ompy_components.btl.openib.timing import Limits

TRANSFERS: Final = 64  # arbitrary: puts and gets of one endpoint in the device's hands


class QueuePairs:
    """What makes them.

    Attributes:
        by_number: endpoint and index of the queue, by the number of the queue pair.
    """

    def __init__(
        self,
        domain: ProtectionDomain,
        entries: Sequence[Entry],
        rooms: Sequence[CompletionRoom],
        shared: Sequence[SharedBuffers | None],
        tokens: Sequence[Tokens | None],
        limits: Limits,
        inline_max: int,
    ) -> None:
        """Begin with none.

        Args:
            domain: of the module.
            entries: of `receive_queues`.
            rooms: completion queues, of each entry's queue and of the one for put and get.
            shared: buffers of each entry, None for `P`.
            tokens: of each entry, None for `P`.
            limits: the `ib_` parameters.
            inline_max: bytes that are sent inline.
        """
        self._domain = domain
        self._entries = entries
        self._rooms = rooms
        self._shared = shared
        self._tokens = tokens
        self._limits = limits
        self._inline_max = inline_max
        self.by_number: dict[int, tuple[OpenibEndpoint, int]] = {}

    def make_queue_pairs(self, endpoint: OpenibEndpoint) -> None:
        """The queue pairs of an endpoint, in INIT and with their buffers.

        Raises:
            NicError: the device has no room for them, or is gone.
        """
        assert not endpoint.queues
        for index, entry in enumerate(self._entries):
            size, room = entry.size + MARGIN, self._rooms[index]
            shared = self._shared[index]
            depth = entry.num + entry.rsv if isinstance(entry, PerPeer) else entry.sd_max
            pair = self._domain.queue_pair(
                room.queue,
                room.queue,
                send_depth=depth,
                receive_depth=depth if shared is None else 0,
                shared=shared.queue if shared is not None else None,
                inline_max=self._inline_max,
            )
            queue = Queue(pair, room)
            endpoint.queues.append(queue)
            self.by_number[pair.number] = endpoint, index
            pair.modify(PairState.INIT)
            queue.tokens = self._tokens[index]
            if isinstance(entry, PerPeer):
                queue.credits = PeerCredits(entry)
                queue.buffers = PeerBuffers(self._domain, entry, size, room, pair)
        for index in (len(self._entries), len(self._entries) + 1):
            queue = Queue(self._transfer_pair(endpoint, index), self._rooms[-1])
            endpoint.queues.append(queue)

    def _transfer_pair(self, endpoint: OpenibEndpoint, index: int) -> QueuePair:
        """A queue pair for puts and gets of one end, in INIT.

        Raises:
            NicError: the device has no room for it, or is gone.
        """
        queue = self._rooms[-1].queue
        pair = self._domain.queue_pair(queue, queue, send_depth=TRANSFERS)
        self.by_number[pair.number] = endpoint, index
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
        for queue, there in zip(endpoint.queues, theirs, strict=True):
            self._join(queue, there)

    def _join(self, queue: Queue, there: Destination) -> None:
        timing = self._limits.timing(shared=queue.credits is None)
        queue.pair.modify(PairState.RTR, there=there, timing=timing)
        queue.pair.modify(PairState.RTS, timing=timing)

    def renew(self, endpoint: OpenibEndpoint, index: int) -> Destination:
        """Have a new queue pair for puts and gets instead of one. Returns how the peer names it.

        Raises:
            NicError: the device has no room for it, or is gone.
        """
        queue = endpoint.queues[index]
        self.by_number.pop(queue.pair.number, None)
        queue.pair.close()
        queue.pair = self._transfer_pair(endpoint, index)
        return queue.pair.here()

    def join(self, endpoint: OpenibEndpoint, index: int, there: Destination) -> None:
        """Connect a new queue pair for puts and gets to the peer's.

        Raises:
            NicError: the device is gone.
        """
        pair, timing = endpoint.queues[index].pair, self._limits.timing(shared=False)
        pair.modify(PairState.RTR, there=there, timing=timing)
        pair.modify(PairState.RTS, timing=timing)

    def give_back(self, endpoint: OpenibEndpoint) -> None:
        """Close the queue pairs of an endpoint."""
        queues, endpoint.queues = endpoint.queues, []
        for queue in queues:
            self.by_number.pop(queue.pair.number, None)
            taken = queue.pair.send_depth - queue.entries
            for _ in range(taken):  # of a device that is gone, and reports nothing
                queue.room.give_back()
            queue.pair.close()
            if queue.buffers is not None:
                queue.buffers.close()
