"""How fragments, messages of our own, puts and gets get into queue pairs, and out of them.

A fragment takes the first queue it fits. It needs a work entry and room in the completion queue;
then a slot of the peer's ring, or a credit (`P`) or token (`S`) of its queue. What finds these
missing waits in the endpoint's lists, behind what waits there already.
"""

from __future__ import annotations

from collections import Counter

from ompy.frameworks.btl import BTL_OWNERSHIP, NO_ORDER
from ompy.frameworks.nic.base import LinkState, NicError
from ompy.frameworks.nic.verbs import Completion, Opcode, SendWork, Span, Status, VerbsNic
from ompy.frameworks.paths.path_life import Life

from ompy_components.btl.openib import coalescing
from ompy_components.btl.openib.connections.deferred import DeferredFailures
from ompy_components.btl.openib.endpoint import OpenibEndpoint, Queue
from ompy_components.btl.openib.fragments import OpenibFragment, Outgoing, Transfer
from ompy_components.btl.openib.headers import (
    CONTROL,
    CREDITS_MASK,
    FOOTER_SIZE,
    HEADER_SIZE,
    NOTHING,
    Given,
    pack_credits,
    pack_footer,
    pack_header,
)
from ompy_components.btl.openib.memory.free_lists import FreeLists


class SendEngine:
    """The sending half of a module.

    Attributes:
        waiting: endpoints that have something pending, those served longest ago first.
        counted: what it has counted, by name.
    """

    def __init__(
        self, lists: FreeLists, nic: VerbsNic, deferred: DeferredFailures, *, coalesce: bool
    ) -> None:
        """Begin with nothing.

        Args:
            lists: what fragments and messages of our own are taken from.
            nic: the device.
            deferred: takes endpoints that cannot be connected.
            coalesce: fragments that wait go together as one.
        """
        self._lists = lists
        self._nic = nic
        self._deferred = deferred
        self._coalesce = coalesce
        self._serial = 0
        self.waiting: dict[OpenibEndpoint, None] = {}
        self.counted: Counter[str] = Counter()

    # -- accepting

    def accept(self, endpoint: OpenibEndpoint, one: Outgoing) -> None:
        """Send it now, or when its turn comes. The endpoint is usable, or the message our own."""
        self._serial += 1
        one.serial = self._serial
        if not endpoint.path.up:
            endpoint.lazy.append(one)
            self._want(endpoint)
        else:
            self._submit(endpoint, one)

    def _want(self, endpoint: OpenibEndpoint) -> None:
        """Something is to be sent: connect, unless that is under way."""
        nic = self._nic
        fresh = endpoint.path.life.life is Life.FRESH
        if fresh and (nic.gone or (nic.link is LinkState.DOWN and nic.failover)):
            self._deferred.defer_failure(endpoint, nic.gone or "the port is down")
        else:
            endpoint.path.want()

    def connected(self, endpoint: OpenibEndpoint) -> None:
        """The connection is up: send what has waited for it, in order."""
        while endpoint.lazy and endpoint.path.up:
            self._submit(endpoint, endpoint.lazy.popleft())

    def send_control(self, endpoint: OpenibEndpoint, message: bytes) -> None:
        """Send a control message, of high priority."""
        self.accept(endpoint, self._lists.message(message, self._lists.queue_for(len(message))))

    def _submit(self, endpoint: OpenibEndpoint, one: Outgoing) -> None:
        if isinstance(one, Transfer):
            if endpoint.transfers or not self._post_transfer(endpoint, one):
                endpoint.transfers.append(one)
                self.waiting.setdefault(endpoint)
            return
        waits = endpoint.pending.waits(one.queue, high=one.high) and not one.reserved
        if waits or not self._post(endpoint, one):
            self._suspend(endpoint, one)

    def _suspend(self, endpoint: OpenibEndpoint, fragment: OpenibFragment) -> None:
        """Have a fragment wait, in the last one that waits if it fits there."""
        self.counted["pending"] += 1
        if not (self._coalesce and self._merge(endpoint, fragment)):
            endpoint.pending.append_item(fragment.queue, fragment, high=fragment.high)
        self.waiting.setdefault(endpoint)

    # -- coalescing

    def _merge(self, endpoint: OpenibEndpoint, fragment: OpenibFragment) -> bool:
        """Add a fragment to the last one of its list, or join the two in a COALESCED one."""
        last = endpoint.pending.last(fragment.queue, high=fragment.high)
        if last is None or last.own or fragment.own:
            return False
        used = len(last.segment) if last.parts else 1 + coalescing.room_for(len(last.segment))
        size = used + coalescing.room_for(len(fragment.segment))
        if size > self._lists.largest(fragment.queue):
            return False
        bundle = last if last.parts else self._bundle(endpoint, last)
        if bundle is None:
            return False
        assert bundle.buffer is not None
        message = bundle.buffer.memory[HEADER_SIZE : HEADER_SIZE + size]
        coalescing.append_fragment(message, used, fragment.tag, fragment.segment)
        bundle.segment = message
        bundle.parts.append(fragment)
        self.counted["coalesced"] += 1
        return True

    def _bundle(self, endpoint: OpenibEndpoint, first: OpenibFragment) -> OpenibFragment | None:
        """A COALESCED fragment in the place of the one that waits last, which it carries."""
        size = 1 + coalescing.room_for(len(first.segment))
        bundle = self._lists.allocate_fragment(
            first.queue, size, first.flags | BTL_OWNERSHIP, NO_ORDER
        )
        if bundle is None:
            return None
        used = coalescing.begin_coalesced(bundle.segment)
        coalescing.append_fragment(bundle.segment, used, first.tag, first.segment)
        bundle.tag = CONTROL
        bundle.serial = first.serial
        bundle.parts.append(first)
        endpoint.pending.replace_last(first.queue, bundle, high=first.high)
        self.counted["coalesced"] += 1
        return bundle

    # -- posting

    def _post(self, endpoint: OpenibEndpoint, fragment: OpenibFragment) -> bool:
        """Give a fragment to the device, if there is all it needs."""
        queue = endpoint.queues[fragment.queue]
        if not queue.entries or not queue.room.room:
            return False
        place = None
        if endpoint.outgoing is not None and not fragment.reserved:
            place = endpoint.outgoing.take_slot(fragment.size)
        if place is None and not self._admit(queue, fragment):
            return False
        assert fragment.buffer is not None
        memory = fragment.buffer.memory
        memory[:HEADER_SIZE] = pack_header(fragment.tag, self._give(endpoint, fragment))
        if place is None:
            self._hand_over(endpoint, fragment, Opcode.SEND, fragment.size)
            return True
        fragment.number, address = place
        size = fragment.size
        memory[size : size + FOOTER_SIZE] = pack_footer(size)
        self.counted["eager_rdma"] += 1
        assert endpoint.outgoing is not None
        rkey = endpoint.outgoing.offer.rkey
        self._hand_over(
            endpoint, fragment, Opcode.RDMA_WRITE, size + FOOTER_SIZE, address=address, rkey=rkey
        )
        return True

    def _admit(self, queue: Queue, fragment: OpenibFragment) -> bool:
        """Spend the credit or token that a send through this queue takes."""
        if queue.credits is not None:
            return (
                queue.credits.take_reserve() if fragment.reserved else queue.credits.spend_credit()
            )
        assert queue.tokens is not None
        fragment.token = queue.tokens.spend_token()
        return fragment.token

    def _give(self, endpoint: OpenibEndpoint, fragment: OpenibFragment) -> Given:
        """The credits that go with a fragment: of the ring, else of a queue that owes some."""
        own = endpoint.queues[fragment.queue].credits
        index = fragment.queue
        if own is None or not (own.owed or own.seen):
            for other, queue in enumerate(endpoint.queues):
                if queue.credits is not None and (queue.credits.owed or queue.credits.seen):
                    index, own = other, queue.credits
                    break
        ring = endpoint.incoming
        if ring is not None and ring.owed and not (fragment.reserved and own is not None):
            return Given(0, ring.give(CREDITS_MASK), 0, ring=True)
        if own is None:
            return NOTHING
        count, seen = own.give()
        return Given(index, count, seen, ring=False)

    def _hand_over(
        self,
        endpoint: OpenibEndpoint,
        fragment: OpenibFragment,
        opcode: Opcode,
        size: int,
        *,
        address: int = 0,
        rkey: int = 0,
    ) -> None:
        queue = endpoint.queues[fragment.queue]
        assert fragment.buffer is not None
        self._take(endpoint, queue, fragment)
        self.counted["sends"] += 1
        inline = size <= queue.pair.inline_max
        work = SendWork(
            opcode,
            (fragment.buffer.span(size),),
            (endpoint, fragment),
            inline=inline,
            remote_address=address,
            rkey=rkey,
        )
        self._put_to_work(queue, work)

    def _post_transfer(self, endpoint: OpenibEndpoint, one: Transfer) -> bool:
        queue = endpoint.queues[endpoint.asking]
        reading = one.opcode is Opcode.RDMA_READ
        if endpoint.renewal.under_way or not queue.entries or not queue.room.room:
            return False
        if reading and not endpoint.reads:
            return False
        endpoint.reads -= reading
        one.queue = endpoint.asking
        self._take(endpoint, queue, one)
        self.counted["gets" if reading else "puts"] += 1
        spans = (Span(one.segment, one.lkey),)
        work = SendWork(
            one.opcode, spans, (endpoint, one), remote_address=one.address, rkey=one.rkey
        )
        self._put_to_work(queue, work)
        return True

    def _put_to_work(self, queue: Queue, work: SendWork) -> None:
        """Post it. A device that has gone since the last poll takes nothing; the next fails it."""
        try:
            queue.pair.post_send(work)
        except NicError:
            if not self._nic.gone:
                raise

    @staticmethod
    def _take(endpoint: OpenibEndpoint, queue: Queue, one: Outgoing) -> None:
        queue.entries -= 1
        queue.room.reserve_entry()
        endpoint.posted[one] = None

    # -- done

    def reported(self, completion: Completion) -> Outgoing | None:
        """The device says what has become of something that was posted.

        Returns:
            What has failed; None: it is complete.
        """
        context = completion.context
        assert isinstance(context, tuple)
        endpoint, one = context
        queue = endpoint.queues[one.queue]
        queue.entries += 1
        del endpoint.posted[one]
        if isinstance(one, Transfer):
            endpoint.reads += one.opcode is Opcode.RDMA_READ
        elif one.token:
            one.token = False
            assert queue.tokens is not None
            queue.tokens.give_back()
        if completion.status is Status.SUCCESS:
            self.complete(endpoint, one, 0)
            return None
        failed: Outgoing = one
        return failed

    def complete(self, endpoint: OpenibEndpoint, one: Outgoing, status: int) -> None:
        """Tell who wants to know, each fragment by itself; what is the module's is given back.

        What `sendi` took is not looked at here when it ends badly.
        """
        if isinstance(one, OpenibFragment):
            for part in one.parts:
                self.complete(endpoint, part, status)
        if one.callback is not None:
            one.callback.completed(endpoint.module, endpoint, one, status)
        if isinstance(one, OpenibFragment) and one.flags & BTL_OWNERSHIP:
            one.release()

    # -- what waits

    def resume(self, endpoint: OpenibEndpoint) -> None:
        """Something of it may be posted that was not posted before."""
        self.waiting.setdefault(endpoint)

    def forget(self, endpoint: OpenibEndpoint) -> None:
        """Its connection is over."""
        self.waiting.pop(endpoint, None)

    def serve(self) -> int:
        """Post what can be posted by now. Returns how much that is."""
        events = 0
        for endpoint in list(self.waiting):
            if not endpoint.path.up:
                del self.waiting[endpoint]
                continue
            served = self._serve(endpoint)
            events += served
            if not (endpoint.pending or endpoint.transfers):
                del self.waiting[endpoint]
            elif served:  # the others first, next time
                del self.waiting[endpoint]
                self.waiting[endpoint] = None
        return events

    def _serve(self, endpoint: OpenibEndpoint) -> int:
        served = 0
        for queue in range(endpoint.pending.queues):
            while (first := endpoint.pending.first(queue)) is not None:
                if not self._post(endpoint, first):
                    break
                endpoint.pending.pop(queue)
                served += 1
        while endpoint.transfers and self._post_transfer(endpoint, endpoint.transfers[0]):
            endpoint.transfers.popleft()
            served += 1
        return served

    def return_credits(self, endpoint: OpenibEndpoint) -> None:
        """Send the CREDITS messages that are worth it. What waits takes credits along by itself."""
        if not endpoint.path.up or endpoint.broken:
            return
        for index, queue in enumerate(endpoint.queues):
            if queue.credits is not None and queue.credits.pressing:
                self._return_reserved(endpoint, index)
        ring = endpoint.incoming
        if ring is not None and ring.pressing and not endpoint.pending:
            self.counted["credit_messages"] += 1
            self.send_control(endpoint, pack_credits(0, reserved=False))

    def _return_reserved(self, endpoint: OpenibEndpoint, index: int) -> None:
        fragment = self._lists.message(pack_credits(index, reserved=True), index)
        fragment.reserved = True
        self._serial += 1
        fragment.serial = self._serial
        if self._post(endpoint, fragment):
            self.counted["credit_messages"] += 1
        else:
            fragment.release()  # no work entry: another round
