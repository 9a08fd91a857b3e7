"""Queue pairs: states, posting, failing, and what goes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from ompy.frameworks.nic.base import NicError
from ompy.frameworks.nic.verbs import (
    Completion,
    Destination,
    Opcode,
    ProtectionDomain,
    QueuePair,
    SendWork,
    Span,
    State,
    Status,
    Timing,
)
from ompy.net.base import Address

from ompy_components.nic.hca import headers, timing
from ompy_components.nic.hca.headers import SPACE, Answer, Operands, Packet, Remote
from ompy_components.nic.hca.receives import Buffer, HcaSharedQueue, ReceiveQueue
from ompy_components.nic.hca.requester import Requester
from ompy_components.nic.hca.responder import Responder
from ompy_components.nic.hca.states import RECEIVING, Step, step

if TYPE_CHECKING:
    from ompy_components.nic.hca.completions import HcaCompletionQueue
    from ompy_components.nic.hca.resources import Resources

_FIRST_PACKET_BYTES: Final = 3  # reference openmpi.md 5: packet numbers have 24 bits
_INLINE: Final = (Opcode.SEND, Opcode.RDMA_WRITE)
_NO_TIMING: Final = Timing(0, 0, 0, 0)


class HcaQueuePair(QueuePair):
    """One end of a connection.

    Attributes:
        send_queue, receive_queue: where it reports.
        timing: how long it tries, and lets the peer wait.
        there: the peer's end, once it is known.
        address: of the peer's device.
        peer: rank of the peer.
    """

    def __init__(
        self,
        resources: Resources,
        domain: ProtectionDomain,
        closed: Callable[[HcaQueuePair], None],
        number: int,
        queues: tuple[HcaCompletionQueue, HcaCompletionQueue],
        receives: ReceiveQueue | HcaSharedQueue,
        send_depth: int,
        inline_max: int,
    ) -> None:
        """In RESET.

        Args:
            resources: of the device.
            domain: whose memory it may use.
            closed: hears that it is.
            number: of it, on the device.
            queues: where it reports sends, and receives.
            receives: buffers for messages.
            send_depth: entries of its send queue.
            inline_max: bytes that can be posted with an entry.
        """
        self._resources = resources
        self._domain = domain
        self._tell_closed = closed
        self.number = number
        self.state = State.RESET
        self.send_depth = send_depth
        self.receive_depth = receives.depth if isinstance(receives, ReceiveQueue) else 0
        self.inline_max = inline_max
        self.send_queue, self.receive_queue = queues
        self.closed = False
        self._receives = receives
        for queue in queues:
            queue.pairs.add(self)
        self._begin()

    def _begin(self) -> None:
        """As a new one."""
        self._first = int.from_bytes(self._resources.network.entropy(_FIRST_PACKET_BYTES))
        self._taken = 0  # entries of the send queue
        self.timing = _NO_TIMING
        self.there: Destination | None = None
        self.address = Address("", 0)
        self.peer = -1
        self.requester = Requester(self, self._first, self._resources)
        self.responder = Responder(self, 0, self._resources)

    @property
    def sending(self) -> bool:
        """Whether requests go out and answers are taken."""
        return self.state is State.RTS

    @property
    def receiving(self) -> bool:
        """Whether requests are taken."""
        return self.state in RECEIVING

    def here(self) -> Destination:
        """This end."""
        lid, (host, port) = self._resources.lid, self._resources.port.address
        return Destination(lid, self.number, host, port, self._first)

    # -- states

    def modify(
        self, state: State, *, there: Destination | None = None, timing: Timing | None = None
    ) -> None:
        """Take it to another state."""
        self._usable()
        what = step(self.state, state)
        if what is Step.REFUSE:
            raise NicError(f"{self._name}: no way from {self.state.name} to {state.name}")
        if what is Step.FLUSH:
            self.fail()
            return
        if what is Step.FORGET:
            self._forget()
        elif what is Step.CONNECT:
            self._connect(there, timing)
        elif what in (Step.BEGIN, Step.RETIME):
            self._retime(timing, needed=what is Step.BEGIN)
        self.state = state
        self.note("STATE", state=state.name)

    def _forget(self) -> None:
        self.requester.stop()
        self.responder.forget()
        if isinstance(self._receives, ReceiveQueue):
            self._receives.empty()
        for queue in {self.send_queue, self.receive_queue}:
            queue.forget(self)
            queue.pairs.add(self)
        self._begin()

    def _connect(self, there: Destination | None, asked: Timing | None) -> None:
        if there is None or asked is None:
            raise NicError(f"{self._name}: RTR needs the peer's end and the timing")
        timing.check(asked)
        if not (0 < there.lid < 1 << 16 and 0 <= there.number < SPACE):
            raise NicError(f"{self._name}: {there} is no end of a connection")
        if not 0 <= there.first_packet < SPACE:
            raise NicError(f"{self._name}: {there.first_packet} has more than 24 bits")
        self.there = there
        self.address = Address(there.host, there.port)
        self.timing = asked
        self.peer = self._resources.introduce(there)
        self.responder = Responder(self, there.first_packet, self._resources)

    def _retime(self, asked: Timing | None, *, needed: bool) -> None:
        if asked is None:
            if needed:
                raise NicError(f"{self._name}: RTS needs the timing")
            return
        timing.check(asked)
        self.timing = self.requester.timing = asked

    @property
    def _name(self) -> str:
        return f"{self._resources.name}, queue pair {self.number:#x}"

    # -- work

    def post_send(self, work: SendWork) -> None:
        """Put an entry into the send queue, and begin with it."""
        self._usable()
        if self.state not in (State.RTS, State.ERR):
            raise NicError(f"{self._name}: nothing can be sent in {self.state.name}")
        if self._taken >= self.send_depth:
            raise NicError(f"{self._name}: the send queue is full: {self.send_depth} entries")
        if work.opcode is Opcode.RECEIVE:
            raise NicError(f"{self._name}: a receive is no work of a send queue")
        if work.inline:
            self._check_inline(work)
        self._taken += 1
        if self.state is State.ERR:
            done = Completion(work.opcode, Status.WR_FLUSH_ERR, work.context, 0, self.number)
            self.send_queue.add(done, self, 1)
            return
        self.requester.post(work)
        self.requester.transmit()
        self._resources.port.flush()

    def _check_inline(self, work: SendWork) -> None:
        size = sum(span.memory.nbytes for span in work.spans)
        if work.opcode not in _INLINE:
            raise NicError(f"{self._name}: {work.opcode.value} cannot be inline")
        if size > self.inline_max:
            raise NicError(f"{self._name}: {size} bytes inline, where {self.inline_max} have room")

    def released(self, count: int) -> None:
        """A completion has been polled: so many entries of the send queue are free again."""
        self._taken = max(0, self._taken - count)

    def post_receive(self, span: Span, context: object) -> None:
        """Put a buffer into the receive queue."""
        self._usable()
        if not isinstance(self._receives, ReceiveQueue):
            raise NicError(f"{self._name}: its buffers are posted to a shared queue")
        if self.state is State.RESET:
            raise NicError(f"{self._name}: nothing can be posted in RESET")
        if self.state is State.ERR:
            self._flush_receive(Buffer(span, context))
            return
        self._receives.add(span, context)

    def take_buffer(self) -> Buffer | None:
        """The buffer for a message that begins, or None."""
        return self._receives.take()

    def unsuitable(self, spans: Sequence[Span], access: int) -> str:
        """Why local memory may not be used; empty when it may."""
        return self._resources.regions.unsuitable(self._domain, spans, access)

    def reach(self, rkey: int, address: int, size: int, access: int) -> memoryview | None:
        """Memory the peer has named, or None if it may not be used so."""
        return self._resources.regions.reach(self._domain, rkey, address, size, access)

    # -- failing

    def fail(self) -> None:
        """Go to ERR: everything posted is flushed. Harmless when it is there already."""
        if self.state is State.ERR:
            return
        self.state = State.ERR
        self.note("STATE", state=self.state.name)
        self.requester.flush()
        self.responder.abandon(Status.WR_FLUSH_ERR)
        if isinstance(self._receives, ReceiveQueue):
            for buffer in self._receives.empty():
                self._flush_receive(buffer)

    def _flush_receive(self, buffer: Buffer) -> None:
        done = Completion(Opcode.RECEIVE, Status.WR_FLUSH_ERR, buffer.context, 0, self.number)
        self.receive_queue.add(done, self, 0)

    def close(self) -> None:
        """Destroy it; harmless the second time."""
        if self.closed:
            return
        self.closed = True
        self.requester.stop()
        self.responder.forget()
        self.state = State.RESET
        self.send_queue.forget(self)
        self.receive_queue.forget(self)
        self._tell_closed(self)

    def _usable(self) -> None:
        self._resources.usable()
        if self.closed:
            raise NicError(f"{self._name} is closed")

    # -- packets

    def send(
        self,
        opcode: int,
        number: int,
        round_: int,
        extension: Remote | Operands | Answer | None,
        payload: Sequence[memoryview],
        *,
        asks: bool = False,
        ready: int = 0,
    ) -> None:
        """Send a packet to the peer; the device has it at `ready`, ns."""
        assert self.there is not None
        there = self.there
        base = (asks, round_, there.lid, there.number, self.number, number % SPACE)
        self._resources.sender.send_packet(self.address, base, opcode, extension, payload, ready)

    def take(self, packet: Packet, sender: Address) -> None:
        """A packet for this queue pair has arrived."""
        there = self.there
        from_peer = there is not None and (packet.from_lid, packet.source) == there[:2]
        if packet.opcode in headers.REQUESTS:
            if from_peer and self.receiving:
                self.responder.request(packet)
            elif not (from_peer and self.state is State.ERR and self.responder.repeat(packet)):
                self._resources.sender.say_silent(packet, sender)
        elif from_peer and self.sending:
            if packet.opcode == headers.SILENT:
                self.requester.silent(for_good=packet.asks)
            elif packet.opcode != headers.NOP:
                self.requester.answer(packet)

    def go_on(self) -> None:
        """The socket takes something again."""
        if self.sending:
            self.requester.transmit()

    def acknowledge(self) -> None:
        """At the end of a round: say what has arrived."""
        if self.receiving:
            self.responder.acknowledge()

    @property
    def deadline(self) -> int | None:
        """When `expire` has something to do, or None."""
        mine, theirs = self.requester.deadline, self.responder.deadline
        if mine is None or theirs is None:
            return mine if theirs is None else theirs
        return min(mine, theirs)

    def expire(self, now: int) -> None:
        """Look at both timers."""
        self.responder.expire(now)
        if self.sending:
            self.requester.expire(now)

    def note(self, name: str, **fields: object) -> None:
        """Write an event of it into the trace."""
        trace = self._resources.trace
        if trace.active:
            trace.record("nic.hca", name, device=self._resources.name, pair=self.number, **fields)
