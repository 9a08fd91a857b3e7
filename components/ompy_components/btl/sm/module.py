"""sm for one rank: rings for small fragments, a pool of blocks for large ones, one doorbell.

A small fragment is copied into a record of the ring to its receiver and done with that. A large
one lies in a block of the sender's pool; the record only names it. The receiver reads it where
it is and marks the block free, and that completes the fragment: a block counts as delivered
when the peer has it. What is lent (`lending.py`) is read in the sender's own memory.
A rank that is about to sleep says so in its parked word; whoever has news for it rings its
doorbell then, and only then.
Puts and gets are in `remote.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ompy import raw
from ompy.compiled import DECLARING, U64, Shown, U64View, ccall, cclass, cfunc
from ompy.data.convertor import Convertor
from ompy.data.request import Request
from ompy.frameworks.btl import (
    BTL_OWNERSHIP,
    COMPLETED,
    FAILOVER_SUPPORT,
    GET,
    NOT_AVAILABLE,
    PUT,
    QUEUED,
    RDMA_COMPLETION,
    SEND,
    SEND_ALWAYS_CALLBACK,
    SIZE_MAX,
    UNREACHABLE,
    Descriptor,
    Endpoint,
)
from ompy.frameworks.btl_base.lent_payload import LentPayload
from ompy.frameworks.btl_base.registration import HANDLE_SIZE, identity_of
from ompy.frameworks.btl_base.transfers import RdmaModule, is_unsuitable
from ompy.frameworks.context import RankContext
from ompy.frameworks.proc import Proc
from ompy.mca.parameter import Values
from ompy.net.memory.ring import CACHE_LINE, RingReader, RingWriter
from ompy.net.memory.streaming import Streaming

from ompy_components.btl.sm.component import SINGLE_COPY
from ompy_components.btl.sm.endpoint import SmDescriptor, SmEndpoint, descriptor_of
from ompy_components.btl.sm.inbox import Inbox
from ompy_components.btl.sm.layout import (
    AWAKE,
    BLOCK,
    FREE,
    INLINE,
    LENT_HEADER,
    LENT_RECORD,
    PARKED,
    READ_FOR,
    TAKEN,
    WAITS_FOR_ROOM,
    SharedLayout,
    slots_of_ring,
)
from ompy_components.btl.sm.lending import Lending
from ompy_components.btl.sm.pool import BlockPool
from ompy_components.btl.sm.remote import RemoteMemory

if DECLARING:
    from ompy.data.request import Waitable
    from ompy.engine.base import Engine
    from ompy.frameworks.btl import ReceiveCallback

DRAIN_MAX: Final = 16  # arbitrary: bounded work a poll, so that no peer starves the others
SPARES_MAX: Final = 8  # arbitrary: control messages have few sizes
QUEUE_MAX: Final = 64  # arbitrary: beyond this the PML keeps what it wants to send


@cclass
class SmModule(RdmaModule):
    """The way to the other ranks of this host.

    Attributes:
        lending: messages that peers read where they are.
        remote: registered memory, puts and gets.
    """

    _block_room: int
    _endpoints: dict[int, SmEndpoint]
    _engine: Engine
    _handlers: list[ReceiveCallback | None]
    _in_flight: list[SmDescriptor]
    _inboxes: list[Inbox]
    _layout: SharedLayout
    _memory: memoryview[int]
    _name: str
    _own_parked: int
    _place: int
    _pool: Shown[BlockPool]
    _spares: dict[int, SmDescriptor]
    _waiting: int
    _words: U64View
    lending: Lending
    remote: RemoteMemory
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        context: RankContext,
        values: Values,
        name: str,
        members: Sequence[Proc],
        peers: Sequence[Proc],
    ) -> None:
        """Map the segment; whoever comes first finds it zeroed.

        Args:
            context: the rank.
            values: of the parameters.
            name: of the segment.
            members: whom it is for, this rank among them: the same in each.
            peers: those that are reached through it.

        Raises:
            LinkError: there is no such memory.
        """
        mechanism = values.single_copy_mechanism
        rdma = PUT | GET | RDMA_COMPLETION if mechanism != SINGLE_COPY["none"] else 0
        super().__init__("sm", context, values, SEND | rdma)
        self.registration_handle_size = HANDLE_SIZE
        self.local_registration_threshold = SIZE_MAX
        self.split_least = values.split_least
        blocks = values.free_list_max
        self._block_room = max(self.eager_limit, self.max_send_size)
        inline_max = min(values.inline_max, self._block_room)
        slots = slots_of_ring(values.ring_slots, len(members), inline_max)
        self._layout = SharedLayout(len(members), slots, inline_max, blocks, self._block_room)
        self._memory = context.network.segment(name, self._layout.size)
        self._words = self._memory.cast("Q")
        places = {proc.rank: place for place, proc in enumerate(members)}
        self._place = places[context.rank]
        self._name = name
        self._own_parked = self._layout.parked_word(self._place)
        self._handlers = context.active_messages.handlers
        self._pool = BlockPool(self._words, self._layout, self._place, blocks)
        self._in_flight, self._waiting = [], 0
        self._spares = {}  # sent ones in private memory, by size
        self._endpoints, self._inboxes = {}, []
        self._engine = context.engine
        for proc in peers:
            if proc is not context.me:
                self._connect(proc, places[proc.rank], slots, values.stream_least or SIZE_MAX)
        single_copy = mechanism == SINGLE_COPY["cma"]
        if not single_copy:  # fragments are copied by both ranks as it is
            self.split_least = 0
        self.remote = RemoteMemory(
            self, self._layout, self._memory.cast("Q"), self._place, single_copy=single_copy
        )
        self.lending = Lending(self, self._memory, self._pool, values.lend_patience)
        self.lend_least = self.lending.least(values.lend_least)
        context.network.doorbell(context.me.local_rank)  # arms it as what wakes this rank

    @cfunc
    def _connect(self, proc: Proc, there: int, slots: int, stream_least: int) -> None:
        layout, size, here = self._layout, self._layout.slot_size, self._place
        writer = RingWriter(self._memory, layout.ring(there, here), slots, size)
        parked, table = layout.parked_word(there), layout.table(there)
        endpoint = SmEndpoint(self, proc, writer, parked, table, Streaming(stream_least))
        self._endpoints[proc.rank] = endpoint
        reader = RingReader(self._memory, layout.ring(here, there), slots, size)
        self._inboxes.append(Inbox(endpoint, reader, self._memory))

    @ccall
    def begin_failover(self) -> bool:
        """What is complete lies in memory of this host: the peer has it, or the peer has ended."""
        self.flags |= FAILOVER_SUPPORT
        return True

    @ccall
    def counters(self) -> dict[str, int]:
        """What the rings have carried, and what waits for them."""
        endpoint: SmEndpoint
        inbox: Inbox
        sent = received = 0
        for endpoint in self._endpoints.values():
            sent += endpoint.writer.records_written()
        for inbox in self._inboxes:
            received += inbox.reader.records_read()
        return {
            "fragments_sent": sent,
            "fragments_received": received,
            "fragments_waiting": self._waiting,
        }

    @ccall
    def reach(self, proc: Proc) -> SmEndpoint | None:
        """The ranks of this host that use sm too."""
        endpoint = self._endpoints.get(proc.rank)
        if endpoint is None or "btl.sm" not in self.context.modex(proc):
            return None
        return endpoint

    @ccall
    def alloc(self, endpoint: Endpoint, order: int, size: int, flags: int) -> Descriptor | None:
        """Private memory for what fits a record, else a block."""
        assert isinstance(endpoint, SmEndpoint)
        return self._descriptor(endpoint, size, flags, order)

    @cfunc
    def _descriptor(
        self, endpoint: SmEndpoint, size: int, flags: int, order: int
    ) -> SmDescriptor | None:
        if len(endpoint.queue) >= QUEUE_MAX:
            self._pool.starved = True
            return None
        if size <= endpoint.writer.room:
            spare: SmDescriptor | None = self._spares.pop(size, None)
            if spare is None:
                return descriptor_of(memoryview(bytearray(size)), flags, order, -1)
            spare.prepare(spare.segment, flags, order)
            return spare
        block = self._pool.take_block()
        if block < 0:
            return None
        start = self._pool.place_of(block) + CACHE_LINE
        return descriptor_of(self._memory[start : start + size], flags, order, block)

    @ccall
    def free(self, descriptor: Descriptor) -> None:
        """Give an unsent block back."""
        assert isinstance(descriptor, SmDescriptor)
        if descriptor.block >= 0:
            self._pool.give_block(descriptor.block)
            descriptor.block = -1

    @ccall
    def prepare_src(
        self,
        endpoint: Endpoint,
        convertor: Convertor,
        offset: int,
        order: int,
        reserve: int,
        size: int,
        flags: int,
    ) -> Descriptor | None:
        """Pack the payload behind the header's room."""
        assert isinstance(endpoint, SmEndpoint)
        size = min(size, convertor.size - offset, self._block_room - reserve)
        descriptor = self._descriptor(endpoint, reserve + size, flags, order)
        if descriptor is not None and size > 0:
            endpoint.streaming.pack_part(convertor, offset, descriptor.segment, reserve, size)
            descriptor.payload_size = size
        return descriptor

    @ccall
    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:
        """Put the fragment into the ring, or queue it behind those that found it full."""
        assert isinstance(endpoint, SmEndpoint)
        assert isinstance(descriptor, SmDescriptor)
        return self._send(endpoint, descriptor, tag)

    @cfunc
    def _send(self, endpoint: SmEndpoint, descriptor: SmDescriptor, tag: int) -> int:
        descriptor.tag = tag
        descriptor.endpoint = endpoint
        if (self._waiting and endpoint.queue) or not self._push(endpoint, descriptor):
            endpoint.queue.append(descriptor)
            self._waiting += 1
            return QUEUED
        if descriptor.block >= 0:
            return QUEUED
        if descriptor.flags & SEND_ALWAYS_CALLBACK:
            if descriptor.callback is not None:
                descriptor.callback.completed(self, endpoint, descriptor, 0)
        elif descriptor.flags & BTL_OWNERSHIP and len(self._spares) < SPARES_MAX:
            descriptor.context = None  # a spare would keep the request, and its user's memory
            self._spares[len(descriptor.segment)] = descriptor
        return COMPLETED

    @ccall
    def sendi(
        self,
        endpoint: Endpoint,
        convertor: Convertor,
        header: bytes,
        payload_size: int,
        order: int,
        flags: int,
        tag: int,
    ) -> int:
        """Write header and payload straight into a record, or a block when they are long."""
        assert isinstance(endpoint, SmEndpoint)
        there: SmEndpoint = endpoint
        writer: RingWriter = there.writer
        begin: int = len(header)
        total: int = begin + payload_size
        if total > self._block_room or (self._waiting and there.queue):
            return NOT_AVAILABLE
        in_block = total > writer.room
        at: int = writer.reserve(0 if in_block else total)
        if at < 0:
            return NOT_AVAILABLE
        if in_block:
            return self._send_block(there, convertor, header, payload_size, tag)
        raw.copy(self._memory, at, header, 0, begin)
        if payload_size:
            there.streaming.pack(convertor, self._memory, at + begin, payload_size)
        writer.publish(total, tag, INLINE, 0)
        if self._words[there.parked]:
            self._ring(there)
        return COMPLETED

    @cfunc
    def _send_block(
        self, endpoint: SmEndpoint, convertor: Convertor, header: bytes, payload_size: int, tag: int
    ) -> int:
        block: int = self._pool.take_block()
        if block < 0:
            return NOT_AVAILABLE
        start: int = self._pool.place_of(block)
        at: int = start + CACHE_LINE
        begin: int = len(header)
        raw.copy(self._memory, at, header, 0, begin)
        if payload_size < self.lend_least:
            endpoint.streaming.pack(convertor, self._memory, at + begin, payload_size)
            self._pool.leave_block(endpoint, block, 0, 0)
        else:
            began: int = self._engine.now()
            endpoint.streaming.pack(convertor, self._memory, at + begin, payload_size)
            self._pool.leave_block(endpoint, block, payload_size, self._engine.now() - began)
        endpoint.writer.publish(begin + payload_size, tag, BLOCK, start)
        if self._words[endpoint.parked]:
            self._ring(endpoint)
        return COMPLETED

    @ccall
    def lend(
        self, endpoint: Endpoint, memory: memoryview, header: bytes, tag: int
    ) -> Request | None:
        """A record names the memory; the peer reads it there, or finds a copy of it in a block."""
        assert isinstance(endpoint, SmEndpoint)
        there: SmEndpoint = endpoint
        total: int = len(header) + raw.size(memory)
        if total > self._block_room or (self._waiting and there.queue):
            return None
        if not there.lends or there.writer.reserve(0) < 0 or not there.choice.next():
            return None
        loan = self.lending.lend(there, memory, header)
        if loan is None:
            return None
        there.writer.publish(total, tag, LENT_RECORD, self._pool.place_of(loan.block))
        if self._words[there.parked]:
            self._ring(there)
        return loan

    @ccall
    def get_now(
        self, endpoint: Endpoint, local: memoryview, remote_address: U64, remote_handle: bytes
    ) -> int:
        """One copy by the kernel, or of memory that this rank has mapped."""
        assert isinstance(endpoint, SmEndpoint)
        there: SmEndpoint = endpoint
        identity: U64 = identity_of(remote_handle, there.proc.rank)
        if not identity or is_unsuitable(raw.size(local), remote_address, self.get_limit, 1):
            return NOT_AVAILABLE
        return self.remote.copy_now(there, local, identity, remote_address)

    def transfer(
        self, access: int, endpoint: Endpoint, descriptor: Descriptor, identity: int, offset: int
    ) -> int:
        """Copy, or have the peer copy."""
        assert isinstance(endpoint, SmEndpoint)
        return self.remote.move(endpoint, descriptor, identity, offset, access)

    def register_mem(self, endpoint: Endpoint | None, memory: memoryview, flags: int) -> object:
        """Let peers reach the memory."""
        return self.remote.register(memory, flags)

    def deregister_mem(self, handle: object) -> None:
        """Let them no longer."""
        self.remote.deregister(handle)

    @cfunc
    def _push(self, endpoint: SmEndpoint, descriptor: SmDescriptor) -> bool:
        size: int = len(descriptor.segment)
        at: int = endpoint.writer.reserve(size if descriptor.block < 0 else 0)
        if at < 0:
            return False
        if descriptor.block >= 0:
            start: int = self._pool.place_of(descriptor.block)
            self._words[start >> 3] = TAKEN
            self._in_flight.append(descriptor)
            endpoint.writer.publish(size, descriptor.tag, BLOCK, start)
        else:
            raw.copy(self._memory, at, descriptor.segment, 0, size)
            endpoint.writer.publish(size, descriptor.tag, INLINE, 0)
        if self._words[endpoint.parked]:
            self._ring(endpoint)
        return True

    @cfunc
    def _ring(self, endpoint: SmEndpoint) -> None:
        # one ring is enough: whoever comes next finds the word at AWAKE
        self._words[endpoint.parked] = AWAKE
        if endpoint.bell is None:
            endpoint.bell = self.context.network.doorbell(endpoint.proc.local_rank)
        endpoint.bell.ring()

    @ccall
    def poll(self) -> int:
        """Take in what has arrived, complete what was read, send what was queued."""
        events: int = 0
        inbox: Inbox
        for inbox in self._inboxes:
            if inbox.reader.pending():
                events += self._drain(inbox)
        if self._in_flight:
            events += self._reap()
        if self._waiting:
            events += self._flush()
        if self.lending.loans is not None:
            events += self.lending.settle_loans()
        return events

    @cfunc
    def _drain(self, inbox: Inbox) -> int:
        reader: RingReader = inbox.reader
        awaited: Waitable | None = self._engine.awaited
        count: int = 0
        while count < DRAIN_MAX and reader.peek():
            handler: ReceiveCallback | None = self._handlers[reader.tag]
            assert handler is not None, f"nobody registered for tag {reader.tag}"
            if reader.kind == INLINE:
                data = inbox.payload(self._memory, reader.payload, reader.length)
                try:
                    handler.received(self, inbox.peer, reader.tag, data)
                finally:
                    reader.release()
            elif not self._take_block_in(inbox, handler):
                break
            count += 1
            if awaited is not None and awaited.complete:
                break  # what follows would have to be kept until somebody asks for it
        if self._words[inbox.peer.parked] == WAITS_FOR_ROOM:
            self._ring(inbox.peer)
        return count

    @cfunc
    def _take_block_in(self, inbox: Inbox, handler: ReceiveCallback) -> bool:
        """Take in a fragment that a record names; false if its sender copies it just now."""
        reader: RingReader = inbox.reader
        block: int = reader.reference >> 3
        at: int = reader.reference + CACHE_LINE
        length: int = reader.length
        lent: LentPayload | None = None
        if reader.kind == LENT_RECORD and self._words[block] != TAKEN:
            lent = self.lending.claim(inbox.peer, reader.reference)
            if lent is None:
                gone: bool = inbox.peer.proc.departed != ""
                if gone:
                    reader.release()  # nobody will copy it
                return gone
            length -= lent.size
            at = reader.reference + LENT_HEADER
        data = inbox.payload(self._memory, at, length)
        timed: bool = reader.length >= self.lend_least
        began: int = self._engine.now() if timed else 0
        try:
            if lent is None:
                handler.received(self, inbox.peer, reader.tag, data)
            else:
                handler.lent(self, inbox.peer, reader.tag, data, lent)
        finally:
            if timed:
                self._words[block + READ_FOR] = self._engine.now() - began
            self._words[block] = FREE
            reader.release()
        return True

    @cfunc
    def _reap(self) -> int:
        """Complete the fragments whose blocks the peers have read."""
        done = [
            descriptor for descriptor in self._in_flight if self._pool.is_read(descriptor.block)
        ]
        if not done:
            return 0
        self._in_flight = [other for other in self._in_flight if other not in done]
        for descriptor in done:
            self._pool.give_block(descriptor.block)
            descriptor.block = -1
        for descriptor in done:
            endpoint = descriptor.endpoint
            if descriptor.callback is not None and endpoint is not None:
                descriptor.callback.completed(self, endpoint, descriptor, 0)
        return len(done)

    @cfunc
    def _flush(self) -> int:
        """Send what found a ring full."""
        count = 0
        for endpoint in self._endpoints.values():
            while endpoint.queue and self._push(endpoint, endpoint.queue[0]):
                descriptor = endpoint.queue.popleft()
                self._waiting -= 1
                count += 1
                if descriptor.block < 0 and descriptor.callback is not None:
                    descriptor.callback.completed(self, endpoint, descriptor, 0)
        if count:
            self._pool.starved = False
        return count

    @ccall
    def arm(self) -> bool:
        """Say that we sleep, then look once more."""
        wants_room = (
            self._waiting or self._in_flight or self._pool.starved or self.lending.loans is not None
        )
        self._words[self._own_parked] = WAITS_FOR_ROOM if wants_room else PARKED
        inbox: Inbox
        for inbox in self._inboxes:
            if inbox.reader.pending():
                return False
        for descriptor in self._in_flight:
            if self._pool.is_read(descriptor.block):
                return False
        if self._pool.starved and self._pool.any_read():
            return False
        if self.lending.loans is not None and not self.lending.may_sleep():
            return False
        return not (self._waiting and self._room_for_waiting())

    @cfunc
    def _room_for_waiting(self) -> bool:
        for endpoint in self._endpoints.values():
            if endpoint.queue and endpoint.writer.reserve(0) >= 0:
                return True
        return False

    @ccall
    def disarm(self) -> None:
        """Say that we are awake."""
        self._words[self._own_parked] = AWAKE

    @ccall
    def finalize(self) -> None:
        """Get what is queued into the rings, and complete everything.

        The memory outlives this process: a peer that has not read a block yet still will. What
        is for a peer that has departed fails.
        """
        engine = self.context.engine
        engine.wait_until(self._flushed)
        while self._in_flight:  # a completion may send
            descriptor = self._in_flight.pop(0)
            receiver = descriptor.endpoint
            assert receiver is not None, "it was sent"
            lost = receiver.proc.departed and not self._pool.is_read(descriptor.block)
            self._end(receiver, descriptor, UNREACHABLE if lost else 0)
            engine.wait_until(self._flushed)
        for endpoint in self._endpoints.values():
            while endpoint.queue:
                self._waiting -= 1
                self._end(endpoint, endpoint.queue.popleft(), UNREACHABLE)
        self.remote.close()
        for endpoint in self._endpoints.values():
            if self._words[endpoint.parked]:
                self._ring(endpoint)  # it may be waiting for an answer that will not come
        ended: list[int] = []
        for endpoint in self._endpoints.values():
            if endpoint.proc.departed:
                ended.append(endpoint.proc.local_rank)
        if len(ended) == len(self._endpoints):
            self.context.network.release_segment(self._name, ended)

    @cfunc
    def _end(self, endpoint: SmEndpoint, descriptor: SmDescriptor, status: int) -> None:
        """Complete a fragment at the end of the module. Its block is nobody's else until read."""
        if (
            descriptor.block >= 0
            and self._words[self._pool.place_of(descriptor.block) >> 3] == TAKEN
        ):
            self._pool.leave_block(endpoint, descriptor.block, 0, 0)
        else:
            self.free(descriptor)
        if descriptor.callback is not None:
            descriptor.callback.completed(self, endpoint, descriptor, status)

    @ccall
    def _flushed(self) -> bool:
        for endpoint in self._endpoints.values():
            if endpoint.queue and not endpoint.proc.departed:
                return False
        return self.remote.idle and self.lending.loans is None
