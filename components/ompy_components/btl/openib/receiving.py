"""What comes in: fragments through queues and rings, credits, messages of our own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ompy.frameworks.nic.base import NicError
from ompy.frameworks.nic.verbs import Access, Completion, ProtectionDomain, Status

from ompy_components.btl.openib import coalescing
from ompy_components.btl.openib.endpoint import OpenibEndpoint
from ompy_components.btl.openib.headers import (
    BYE,
    COALESCED,
    CONTROL,
    CREDITS,
    HEADER_SIZE,
    MARGIN,
    RDMA,
    BadFragment,
    Given,
    RingOffer,
    control_type,
    pack_ring,
    took_reserve,
    unpack_header,
    unpack_ring,
)
from ompy_components.btl.openib.memory.buffers import Slab
from ompy_components.btl.openib.memory.eager_ring import ReceiveRing, SendRing
from ompy_components.btl.openib.memory.receive_buffers import PeerBuffers, ReceiveBuffer
from ompy_components.btl.openib.queues.queue_pairs import QueuePairs
from ompy_components.btl.openib.sending import SendEngine
from ompy_components.btl.openib.timing import RingLimits


class ReceiveEngine:
    """The receiving half of a module.

    Attributes:
        rings: endpoints whose peers write to a ring of ours.
    """

    def __init__(
        self,
        pairs: QueuePairs,
        sending: SendEngine,
        domain: ProtectionDomain,
        eager_limit: int,
        limits: RingLimits,
        handlers: Mapping[int, Callable[[OpenibEndpoint, memoryview], None]],
    ) -> None:
        """Begin with nothing.

        Args:
            pairs: say of whom a completion is.
            sending: sends what the receiver has to say.
            domain: of the module.
            eager_limit: of the module.
            limits: of eager RDMA.
            handlers: of control messages of other parts, by type. They may raise BadFragment.
        """
        self._pairs = pairs
        self._sending = sending
        self._domain = domain
        self._eager_limit = eager_limit
        self._limits = limits
        self._handlers = handlers
        self.rings: dict[OpenibEndpoint, None] = {}
        self._touched: dict[OpenibEndpoint, None] = {}

    # -- queues

    def reported(self, completion: Completion) -> None:
        """A receive is done."""
        one = completion.context
        assert isinstance(one, ReceiveBuffer)
        found = self._pairs.by_number.get(completion.number)
        own = isinstance(one.owner, PeerBuffers)
        if completion.status is not Status.SUCCESS:
            one.owner.used(one)
            if own and found is not None:  # a shared one says nothing about a path
                found[0].path.broke(f"{completion.opcode.value}: {completion.status.value}")
            return
        if found is None:
            one.owner.used(one)  # of a connection that has been cleared away
            return
        endpoint, index = found
        if not endpoint.path.up:
            endpoint.path.data()
        self._touched.setdefault(endpoint)
        message = self._take(endpoint, one.buffer.memory[: completion.size])
        reserved = message is not None and took_reserve(message)
        self._given_back(endpoint, index, one, reserved=own and reserved)
        self._count_eager(endpoint, completion.size)

    def _given_back(
        self, endpoint: OpenibEndpoint, index: int, one: ReceiveBuffer, *, reserved: bool
    ) -> None:
        """A buffer has been read: post it again, now or with others."""
        one.owner.used(one)
        if not isinstance(one.owner, PeerBuffers):
            return
        account = endpoint.queues[index].credits
        assert account is not None
        count = 1 if reserved else account.used()
        if reserved:
            account.seen += 1
        if count and endpoint.path.up:
            one.owner.repost(count)

    # -- fragments

    def _take(self, endpoint: OpenibEndpoint, data: memoryview) -> memoryview | None:
        """Handle what one send or write has brought.

        Returns:
            A control message, or None.
        """
        try:
            tag, given = unpack_header(data)
            self._gained(endpoint, given)
            body = data[HEADER_SIZE:]
            if tag != CONTROL:
                endpoint.module.dispatch(endpoint, tag, body)
                return None
            self._control(endpoint, body)
        except BadFragment as problem:
            # the adapter has checked that the bytes are as the peer sent them
            endpoint.path.broke(f"the peer does not speak our protocol: {problem}")
            return None
        return body

    def _gained(self, endpoint: OpenibEndpoint, given: Given) -> None:
        """Credits came with a header."""
        if not endpoint.path.up:
            return
        if given.ring:
            if endpoint.outgoing is not None:
                endpoint.outgoing.gained(given.credits)
        elif given.credits or given.seen:
            if given.queue >= len(endpoint.queues):
                raise BadFragment(f"credits for queue {given.queue}")
            account = endpoint.queues[given.queue].credits
            if account is None:
                raise BadFragment(f"credits for queue {given.queue}, which is shared")
            account.gained(given.credits, given.seen)

    def _control(self, endpoint: OpenibEndpoint, message: memoryview) -> None:
        kind = control_type(message)
        if kind == COALESCED:
            for tag, fragment in coalescing.split_coalesced(message):
                endpoint.module.dispatch(endpoint, tag, fragment)
        elif kind == RDMA:
            endpoint.outgoing = SendRing(unpack_ring(message))
        elif kind == BYE:
            endpoint.left = True
        elif kind in self._handlers:
            self._handlers[kind](endpoint, message)
        elif kind != CREDITS:
            raise BadFragment(f"a control message of type {kind}")

    # -- eager RDMA

    def _count_eager(self, endpoint: OpenibEndpoint, size: int) -> None:
        """After enough eager fragments of a peer, offer it a ring."""
        limits = self._limits
        if not limits.use or endpoint.incoming is not None or not endpoint.path.up:
            return
        if size > self._eager_limit + HEADER_SIZE or endpoint.broken:
            return
        endpoint.eager_seen += 1
        if endpoint.eager_seen < limits.threshold or len(self.rings) >= limits.peers:
            return
        slot = -(-(self._eager_limit + MARGIN) // 8) * 8
        slots = limits.slots + 1
        try:
            memory = Slab(self._domain, slot * slots, 1, Access.LOCAL_WRITE | Access.REMOTE_WRITE)
        except NicError:
            endpoint.eager_seen = 0  # no room for it now
            return
        endpoint.ring_memory = memory
        endpoint.incoming = ReceiveRing(memory.buffers[0].memory, slots)
        self.rings[endpoint] = None
        region = memory.region
        offer = RingOffer(slots, region.rkey, region.address, slot)
        self._sending.send_control(endpoint, pack_ring(offer))

    def poll_rings(self, most: int) -> int:
        """Read what lies in the rings, up to `most` fragments, from each peer in turn."""
        events = 0
        for endpoint in list(self.rings):
            while events < most and self._read_slot(endpoint):
                events += 1
        return events

    def _read_slot(self, endpoint: OpenibEndpoint) -> bool:
        ring = endpoint.incoming
        if ring is None:
            return False
        try:
            data = ring.take_fragment()
        except BadFragment as problem:
            endpoint.path.broke(f"the peer does not speak our protocol: {problem}")
            self.rings.pop(endpoint, None)
            return False
        if data is None:
            return False
        if not endpoint.path.up:
            endpoint.path.data()
        self._touched.setdefault(endpoint)
        self._take(endpoint, data)
        ring.done()
        return True

    def rings_ready(self) -> bool:
        """Whether a ring has something to read."""
        return any(
            endpoint.incoming is not None and endpoint.incoming.full for endpoint in self.rings
        )

    def sweep(self, endpoint: OpenibEndpoint) -> None:
        """The connection is over: deliver what still lies in its ring, behind empty slots too."""
        ring, memory = endpoint.incoming, endpoint.ring_memory
        endpoint.incoming = endpoint.ring_memory = None
        self.rings.pop(endpoint, None)
        if ring is not None:
            for data in ring.rest():
                self._take(endpoint, data)
        if memory is not None:
            memory.close()

    def return_credits(self) -> None:
        """After a round: tell those peers who need to know that buffers and slots are free."""
        if self._touched:
            touched, self._touched = self._touched, {}
            for endpoint in touched:
                self._sending.return_credits(endpoint)
