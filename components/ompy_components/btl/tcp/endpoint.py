"""A peer over one interface: its connection, what waits to be sent, what has arrived in part."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final

from ompy.engine.timers import Timer
from ompy.frameworks.btl import (
    COMPLETED,
    QUEUED,
    SEND_ALWAYS_CALLBACK,
    UNREACHABLE,
    Descriptor,
    Endpoint,
)
from ompy.frameworks.proc import Proc
from ompy.frameworks.sealing import seal_level
from ompy.net.base import WOULD_BLOCK, Address, LinkError, Stream
from ompy.net.handshake import HandshakeError, Initiator, Outcome
from ompy.net.pieces import without
from ompy.net.proving import hear, say, sealed

from ompy_components.btl.tcp.framing import BYE, DATA, FRAME_SIZE, JOIN_MAX, FrameReader, frame_word
from ompy_components.btl.tcp.remote import RemoteMemory

if TYPE_CHECKING:
    from ompy_components.btl.tcp.module import TcpModule

READS_PER_POLL: Final = 4  # arbitrary: bounded work a poll, so that no peer starves the others
FIRST_PAUSE: Final = 20_000_000  # ns; arbitrary: before the second attempt, doubled each time
PAUSE_MAX: Final = 4_000_000_000  # ns; arbitrary


class State(Enum):
    """Of a connection."""

    CLOSED = "closed"  # none yet, or between two attempts
    CONNECTING = "connecting"  # handshake under way, as initiator
    CONNECTED = "connected"
    LEFT = "left"  # the peer has said BYE
    FAILED = "failed"


# finding a member of an enumeration takes longer than all else of a message here
CLOSED: Final = State.CLOSED
CONNECTING: Final = State.CONNECTING
CONNECTED: Final = State.CONNECTED
LEFT: Final = State.LEFT
FAILED: Final = State.FAILED


class Outgoing:
    """A frame that the kernel has not taken whole.

    Attributes:
        pieces: what is left of it.
        descriptor: completed when all is taken; None for frames nobody waits for.
    """

    __slots__ = ("descriptor", "pieces")

    def __init__(self, pieces: list[memoryview], descriptor: Descriptor | None) -> None:
        self.pieces = pieces
        self.descriptor = descriptor


class TcpEndpoint(Endpoint):
    """The way to one peer over one interface.

    Attributes:
        state: of the connection.
        address: where the peer listens.
        queue: frames waiting to be sent, in order.
        landing: the module's.
        remote: its puts and gets, and the peer's.
    """

    __slots__ = (
        "_attempts",
        "_initiator",
        "_owner",
        "_reader",
        "_said_bye",
        "_silent_since",
        "_stream",
        "_timer",
        "address",
        "landing",
        "queue",
        "remote",
        "state",
    )

    def __init__(self, module: TcpModule, proc: Proc, address: Address | None) -> None:
        super().__init__(module, proc)
        self._owner = module
        self._stream: Stream | None = None
        self._initiator: Initiator | None = None
        self._reader: FrameReader | None = None
        self._attempts = 0
        self._said_bye = False
        self._silent_since = 0  # ns; 0 while all is acknowledged
        self._timer: Timer | None = None  # of the attempt to connect, or of the pause before it
        self.address = address
        self.queue: deque[Outgoing] = deque()
        self.landing = module.landing
        self.remote = RemoteMemory(self, module.registered)
        self.state = CLOSED

    def describe(self) -> str:
        """Interface and addresses."""
        own, there = self._owner.interface, self.address
        return f"tcp {own.name} {own.address} - {there.host if there else 'no address'}"

    def ends(self) -> tuple[str, str, str]:
        """Interface and addresses."""
        own, there = self._owner.interface, self.address
        return own.name, own.address, there.host if there is not None else ""

    def ask_when_idle(self) -> bool:
        """Have the kernel ask whether the peer's host is there while nothing is sent."""
        return self._stream is not None and self._stream.ask_when_idle()

    def look(self, now: int) -> bool:
        """Give the path up when nothing has been acknowledged for long. Whether it is watched."""
        if self.state is not CONNECTED or self._stream is None:
            return False
        if not self._stream.sends_again():
            self._silent_since = 0
        elif not self._silent_since:
            self._silent_since = now
        elif now - self._silent_since >= self._owner.silence:
            ms = self._owner.silence // 1_000_000
            host, way = self.proc.hostname, self.describe().removeprefix("tcp ")
            self._broken(f"host {host} acknowledges nothing over {way} for {ms} ms")
        return self.state is CONNECTED

    # -- sending

    def send(self, descriptor: Descriptor, tag: int) -> int:
        """Send a fragment, or queue it; opens the connection if there is none."""
        if self.state in (FAILED, LEFT):
            return UNREACHABLE
        descriptor.tag = tag
        payload = descriptor.payload
        size = len(descriptor.segment) + (len(payload) if payload is not None else 0)
        pieces = self._framed(frame_word(tag, DATA, 0, size), descriptor, size)
        if self.state is CONNECTED and not self.queue:
            pieces = self._write(pieces)
            if self.state is not CONNECTED:
                return UNREACHABLE
            if not pieces:
                if descriptor.flags & SEND_ALWAYS_CALLBACK and descriptor.callback is not None:
                    descriptor.callback.completed(self.module, self, descriptor, 0)
                return COMPLETED
        self._enqueue(Outgoing(pieces, descriptor))
        return QUEUED

    def _framed(self, header: bytes, descriptor: Descriptor, size: int) -> list[memoryview]:
        """What a fragment of `size` bytes is on the wire, in pieces; a small one is copied."""
        payload = descriptor.payload
        if size < JOIN_MAX:
            return [memoryview(b"".join((header, descriptor.segment, payload or b"")))]
        pieces = [memoryview(header), descriptor.segment]
        if payload is not None:
            pieces.append(payload)
        return pieces

    def send_now(self, tag: int, header: bytes, payload: memoryview) -> bool:
        """Send a small fragment at once, copying; false when the connection is not ready."""
        if self.state is not CONNECTED or self.queue:
            return False
        frame = frame_word(tag, DATA, 0, len(header) + len(payload))
        self._owner.warm = self
        left = self._write([memoryview(b"".join((frame, header, payload)))])
        if left:
            self._enqueue(Outgoing(left, None))
        return self.state is CONNECTED

    def transmit(self, pieces: list[memoryview]) -> None:
        """Send a frame that no descriptor waits for, from where its bytes lie, or queue it."""
        if self.state is CONNECTED and not self.queue:
            pieces = self._write(pieces)
        if pieces and not self.lost():
            self._enqueue(Outgoing(pieces, None))

    def trickle(self, frames: list[list[memoryview]]) -> None:
        """Send frames that nobody waits for, one behind the other."""
        for pieces in frames:
            self.transmit(pieces)

    def chunk(self) -> int:
        """Bytes of a put that go in one frame; 0 for all."""
        return 0

    def carry(self) -> int:
        """What the next frame's header says beside what the frame is: nothing here."""
        return 0

    def lost(self) -> bool:
        """Nothing can be sent any more."""
        return self.state in (FAILED, LEFT)

    def has_window(self) -> bool:
        """One more fragment may be sent: nothing is kept here."""
        return True

    def has_room(self) -> bool:
        """One more frame may wait to be sent."""
        return self._owner.has_room(self)

    def _enqueue(self, outgoing: Outgoing) -> None:
        self.queue.append(outgoing)
        self._owner.queued += 1
        if self.state is CONNECTED:
            self._want_write(True)
        else:
            self.open()

    def _write(self, pieces: list[memoryview]) -> list[memoryview]:
        """Offer `pieces` to the stream. Returns what it did not take; fails the path on errors."""
        assert self._stream is not None
        try:
            taken = self._stream.send(pieces)
        except LinkError as problem:
            self._broken(f"{self.describe()}: {problem}")
            return pieces
        return without(pieces, taken)

    def _flush(self) -> int:
        """Send what is queued while the stream takes it. Returns frames completed."""
        done = 0
        while self.queue and self.state is CONNECTED:
            outgoing = self.queue[0]
            offered = outgoing.pieces
            outgoing.pieces = self._write(offered)
            if self.state is not CONNECTED or outgoing.pieces is offered:
                break
            if outgoing.pieces:
                continue  # it took a part: it may take more
            self.queue.popleft()
            self._owner.queued -= 1
            done += 1
            descriptor = outgoing.descriptor
            if descriptor is not None and descriptor.callback is not None:
                descriptor.callback.completed(self.module, self, descriptor, 0)
        if not self.queue and self.state is CONNECTED:
            self._want_write(False)
        return done

    # -- connecting

    def open(self) -> None:
        """Begin to connect if that was never tried."""
        if self.state is CLOSED and self._attempts == 0:
            self.connect()

    def connect(self) -> None:
        """Begin an attempt to connect."""
        if self.state is not CLOSED or self.address is None:
            return
        self._attempts += 1
        self.state = CONNECTING
        context = self._owner.context
        try:
            self._stream = context.network.connect(self.address, self._owner.interface.address)
        except LinkError as problem:
            self._retry(str(problem))
            return
        self._stream.belongs_to(self.proc.rank)
        nonce = self._nonce()
        rank, target = context.rank, self.proc.rank
        seal = seal_level(context, self.proc)
        self._initiator = Initiator(context.job_key, context.job_id, rank, target, nonce, seal=seal)
        self._owner.watch(self._stream, self)
        self._want_write(True)
        self._later(self._owner.handshake_timeout, partial(self._not_taken, "no answer"))

    def _nonce(self) -> bytes:
        from ompy.net.handshake import NONCE_SIZE

        return self._owner.context.network.entropy(NONCE_SIZE)

    def _later(self, delay: int, callback: Callable[[], None]) -> None:
        """Call `callback` after `delay` ns; there is one such call at a time."""
        self._no_timer()
        self._timer = self._owner.context.engine.call_later(delay, callback)

    def _no_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _shake(self) -> None:
        """Go on with the handshake."""
        stream, initiator = self._stream, self._initiator
        assert stream is not None
        assert initiator is not None
        try:
            if initiator.outgoing:
                say(initiator, stream)
                if not initiator.outgoing:
                    # The peer's kernel has it. A rank that computes answers when it polls, and a
                    # connection it may have taken by then must not be given up.
                    self._no_timer()
            while initiator.outcome is Outcome.UNDER_WAY:
                count = hear(initiator, stream)
                if count == WOULD_BLOCK:
                    break
                if count == 0:
                    self._not_taken("the peer closed the connection during the handshake")
                    return
                say(initiator, stream)
        except (LinkError, HandshakeError) as problem:
            self._not_taken(str(problem))
            return
        if initiator.outcome is Outcome.TAKEN:
            owner = self._owner
            self._stream = sealed(initiator, owner.context.job_key, stream, owner.readiness)
            self._connected()
        elif initiator.outcome is Outcome.REFUSED:
            self._retry("the peer is connecting to us at the same time")
        else:
            self._want_write(bool(initiator.outgoing))

    def take(self, stream: Stream, nonce: bytes) -> None:
        """Use a proven connection that the peer opened; ours, if one is under way, is dropped.

        Args:
            stream: the connection, sealed as agreed.
            nonce: of the peer, as the handshake had it.
        """
        self._drop_stream()
        self._stream = stream
        stream.belongs_to(self.proc.rank)
        self._owner.watch(stream, self)
        self._connected()

    def prefers_own(self, nonce: bytes) -> bool:
        """Whether a connection the peer opened is refused: ours stays, or exists already."""
        if self.state is CONNECTING:
            return self._owner.context.rank < self.proc.rank
        return self.state is not CLOSED

    def _connected(self) -> None:
        self._no_timer()
        self.state = CONNECTED
        self._initiator = None
        self._reader = self._new_reader()
        self._note("CONNECTED")
        self._owner.look_after(self)
        self._want_write(bool(self.queue))
        self._flush()

    def _new_reader(self) -> FrameReader:
        return FrameReader(self._owner.max_send_size)

    def _not_taken(self, why: str) -> None:
        """An attempt failed. One that was only to say BYE is not made again."""
        if self._said_bye:
            self.close()
        else:
            self._retry(why)

    def _retry(self, why: str) -> None:
        """An attempt failed: try again after a pause, or give the path up."""
        self._drop_stream()
        self.state = CLOSED
        if self._attempts >= self._owner.connect_tries or self.proc.departed:
            if self.flushed():
                self._attempts = 0  # nobody needs it: who does finds out then
                return
            own, there = self._owner.interface, self.address
            assert there is not None
            self._broken(
                f"cannot connect to {there.host} from {own.name} ({own.address}): {why}; "
                "btl_tcp_if_include names the interfaces to use"
            )
            return
        pause = min(FIRST_PAUSE << (self._attempts - 1), PAUSE_MAX)
        self._note("RETRY", why=why, pause=pause)
        self._later(pause, self.connect)

    # -- receiving

    def glance(self) -> int:
        """Try to send what is queued, and to receive. Returns events handled."""
        if self.state is not CONNECTED:
            return 0
        events = self._flush() if self.queue else 0
        return events + self._receive() if self.state is CONNECTED else events

    def ready(self, readable: bool, writable: bool) -> int:
        """The stream can be used. Returns events handled."""
        if self.state is CONNECTING:
            self._shake()
            return 1
        events = 0
        if writable and self.state is CONNECTED:
            events += self._flush()
        if readable and self.state is CONNECTED:
            events += self._receive()
        return events

    def _receive(self) -> int:
        """Read what is here, a bounded amount, and hand the fragments out."""
        stream, reader = self._stream, self._reader
        assert stream is not None
        assert reader is not None
        events = 0
        try:
            for _ in range(READS_PER_POLL):
                room = reader.room()
                count = stream.receive_into(room)
                if count == WOULD_BLOCK:
                    break
                if count == 0:
                    self._broken("the peer closed the connection without a word")
                    return events
                reader.received(count)
                events += 1
                self._owner.warm = self
                while reader.next():
                    if reader.kind == DATA:
                        self._owner.deliver(self, reader.tag, reader.fragment)
                    elif reader.kind == BYE:
                        self._peer_left()
                        return events
                    else:
                        self.remote.arrived(reader)
                if count < len(room) or self.state is not CONNECTED:
                    break
        except LinkError as problem:
            self._broken(f"{self.describe()}: {problem}")
        return events

    # -- ending

    def say_bye(self) -> None:
        """Tell the peer, behind everything queued, that nothing more will come.

        Also over a connection that is still being made: the peer may have taken it already.
        """
        if self._said_bye or self.state not in (CONNECTED, CONNECTING):
            return
        self._said_bye = True
        frame = [memoryview(frame_word(0, BYE, 0, 0))]
        self._enqueue(Outgoing(frame, None))
        self._flush()

    def _peer_left(self) -> None:
        """The peer has ended its use of MPI: answer, and close when all is said."""
        self._note("BYE")
        self.say_bye()
        self._flush()
        self._drop_stream()
        self.state = LEFT
        self._fail_queue()

    def settled(self) -> bool:
        """Nothing is left to send or to wait for."""
        if self.state is CONNECTED:
            return False
        return self.state in (LEFT, FAILED) or not self.queue

    def flushed(self) -> bool:
        """Everything queued was taken by the kernel, or never will be."""
        return self.lost() or (not self.queue and self.remote.idle)

    def close(self) -> None:
        """Close the connection, whatever its state."""
        self._drop_stream()
        if self.state is not FAILED:
            self.state = LEFT
        self._fail_queue()

    def _broken(self, why: str) -> None:
        """The path is gone: tell the PML first, then fail what was queued."""
        self._drop_stream()
        self.state = FAILED
        self._note("FAILED", why=why)
        self._owner.path_failed(self, why)
        self._fail_queue()

    def _fail_queue(self) -> None:
        while self.queue:
            outgoing = self.queue.popleft()
            self._owner.queued -= 1
            descriptor = outgoing.descriptor
            if descriptor is not None and descriptor.callback is not None:
                descriptor.callback.completed(self.module, self, descriptor, UNREACHABLE)
        self.remote.fail()

    def _drop_stream(self) -> None:
        self._no_timer()
        if self._owner.warm is self:
            self._owner.warm = None
        if self._stream is not None:
            self._owner.unwatch(self._stream)
            self._stream.close()
            self._stream = None
        self._initiator = None

    def _want_write(self, wanted: bool) -> None:
        if self._stream is not None:
            self._owner.readiness.want_write(self._stream, wanted=wanted)

    def _note(self, event: str, **fields: object) -> None:
        trace = self._owner.context.trace
        if trace.active:
            trace.record("btl.tcp", event, peer=self.proc.rank, **fields)


assert FRAME_SIZE < JOIN_MAX
