"""Connections that acknowledge: a fragment is complete when the peer's callbacks have taken it.

README.md, "Failover", says how. DATA frames are counted; how many more have been taken goes in the
two bytes of a frame's header that are 0 otherwise, or in a frame of its own. The highest bit of
these two bytes says that somebody waits for the acknowledgement of this frame.

    ACK     header with size = how many; nothing follows
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from ompy import raw
from ompy.compiled import DECLARING, U64, Shown, ccall, cclass, cfunc
from ompy.engine.base import Poller
from ompy.frameworks.btl import QUEUED, RETURNABLE, UNHURRIED, UNREACHABLE, Descriptor

from ompy_components.btl.tcp.endpoint import Outgoing, TcpEndpoint
from ompy_components.btl.tcp.fifo import Fifo
from ompy_components.btl.tcp.framing import (
    ACK,
    ASKS,
    COUNT_MAX,
    DATA,
    FRAME_SIZE,
    JOIN_MAX,
    PUT,
    FrameReader,
    frame_word,
)

if TYPE_CHECKING:
    from typing import Any

    from ompy.frameworks.proc import Proc

    from ompy_components.btl.tcp.pacing import Pacing
    from ompy_components.btl.tcp.resources import Resources

if DECLARING:
    from ompy.engine.base import Engine
    from ompy.frameworks.btl import BtlModule

Entry = Descriptor | bytes  # what is kept: of a frame of `sendi` there are only the bytes

FRAMES_MAX: Final = 64  # arbitrary: an ACK frame costs little beside so many frames
KEPT_OVERHEAD: Final = 256  # bytes; arbitrary: about what an object takes beside its bytes


@cclass
class AcknowledgingReader(FrameReader):
    """A reader that takes acknowledgements out of the stream, and counts what it hands out.

    Attributes:
        acknowledged: fragments the peer says it has taken, and nobody has looked at yet.
        taken: DATA frames handed out; each is done with when `next` is called again.
        taken_bytes: of them.
        closed: nothing more is handed out, whatever has been read.
        wanted: the sender waits for the acknowledgement of one of them; whoever says it clears it.
    """

    _asks: bool
    _counted: bool
    acknowledged: int
    closed: bool
    taken: int
    taken_bytes: int
    wanted: bool
    __slots__ = tuple(__annotations__)

    def __init__(self, largest: int) -> None:
        super().__init__(largest)
        self.acknowledged = self.taken = self.taken_bytes = 0
        self.closed = self.wanted = False
        self._asks = False  # the frame does whose header was seen last
        self._counted = False  # what that header acknowledges, while its frame is not whole

    @ccall
    def presses(self) -> bool:
        """Whether the sender waits; not while a put comes in, whose answer will carry it."""
        return self.wanted and not (self._landing and self.kind == PUT)

    @ccall
    def next(self) -> bool:
        """As in the base; frames ACK are not among what it finds.

        Raises:
            LinkError: a header that no peer of ours writes.
        """
        if self.closed:
            return False
        while self._end - self._begin >= FRAME_SIZE:
            word: U64 = raw.word(self._memory, self._begin)  # the fields of FRAME
            if word & 65535 == ACK << 8:
                self.acknowledged += word >> 32
                self._begin += FRAME_SIZE
                continue
            if not self._counted:
                counted: U64 = word >> 16 & 65535
                self.acknowledged += counted & COUNT_MAX
                self._asks = counted >= ASKS
            uncounting: U64 = word & 65535 | word >> 32 << 32
            self._counted = not self._framed(uncounting, self._end - self._begin)
            if self._counted:
                return False
            if self.kind == DATA:
                self.taken += 1
                self.taken_bytes += len(self.fragment)
                self.wanted = self.wanted or self._asks
            return True
        return FrameReader.next(self)  # what has landed


@cclass
class Acknowledger(Poller):
    """Sends the acknowledgements that no frame has carried.

    Attributes:
        owing: endpoints that may owe one.
        delay: ns one that nobody waits for may wait for company.
        bytes_max: of fragments that are acknowledged at once.
        kept_max: bytes that are kept for one peer at most.
    """

    _engine: Engine
    bytes_max: int
    delay: int
    kept_max: int
    owing: Fifo
    __slots__ = tuple(__annotations__)

    def __init__(self, engine: Engine, delay: int, bytes_max: int, kept_max: int) -> None:
        self._engine = engine
        self.owing = Fifo()  # of endpoints
        self.delay = delay
        self.bytes_max = bytes_max
        self.kept_max = kept_max

    @ccall
    def poll(self) -> int:
        """Send those whose time has come. None is sent in the round that has made it due."""
        paid: int = 0
        for _ in range(self.owing.count):
            endpoint: FailoverEndpoint = self.owing.popleft()
            if endpoint.pay():
                paid += 1
            else:
                self.owing.append(endpoint)
        return paid

    @cfunc
    def now(self) -> int:
        """The rank's clock, ns."""
        return self._engine.now()

    @ccall
    def arm(self) -> bool:
        """Before the rank sleeps everything is said that its peers may wait for."""
        owing: list[Any] = self.owing.take_all()
        endpoint: FailoverEndpoint
        for endpoint in owing:
            endpoint.owes = False
            endpoint.acknowledge()
        return not owing  # saying it may have broken a path, and whoever heard of that has work


@cclass
class FailoverEndpoint(TcpEndpoint):
    """A peer whose connection keeps the failover obligations.

    Attributes:
        kept: what the peer has not acknowledged, oldest first: descriptors, and the bytes of
            frames that `sendi` has made.
        kept_bytes: how much that is.
        acked: fragments the peer has acknowledged so far, over all connections.
        news: how often something has come from the peer.
        owes: it is on the acknowledger's list.
        watched: it is looked now and then whether the peer still answers.
        bulk: frames of puts that all others go before. While there are any, and a connection,
            something is in the queue: the one that is being sent.
    """

    _acknowledger: Shown[Acknowledger]
    _counting: Shown[AcknowledgingReader | None]
    _due: Shown[int]
    _pacing: Pacing
    _told: Shown[int]
    _told_bytes: Shown[int]
    acked: int
    bulk: deque[list[memoryview[int]]]
    kept: Fifo
    kept_bytes: int
    news: int
    owes: bool
    watched: bool
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        module: BtlModule,
        proc: Proc,
        resources: Resources,
        acknowledger: Acknowledger,
        pacing: Pacing,
    ) -> None:
        super().__init__(module, proc, resources)
        self._acknowledger = acknowledger
        self._pacing = pacing
        self.remote.parts = self
        self.bulk = deque()
        self.kept = Fifo()
        self.kept_bytes = self.acked = self.news = 0
        self.owes = self.watched = False
        self._counting = None  # the reader, by its own name
        self._due = 0  # when an ACK has to go; 0 while nobody has looked at the clock
        self._told = self._told_bytes = 0  # of what the reader has handed out

    # -- sending

    @ccall
    def send(self, descriptor: Descriptor, tag: int) -> int:
        """Send a fragment, or queue it; it is complete when the peer has taken it."""
        if self.leaving or (not self.up and self._unreachable()):
            return UNREACHABLE
        descriptor.tag = tag
        payload = descriptor.payload
        size: int = len(descriptor.segment) + (len(payload) if payload is not None else 0)
        if descriptor.flags & RETURNABLE and size < JOIN_MAX:
            header: bytes = frame_word(tag, DATA, self._count(), size)
            joined: bytes = b"".join((header, descriptor.segment, payload or b""))
            if not self._put_out([memoryview(joined)], joined, size):
                return UNREACHABLE
            return self.module.finish(self, descriptor)
        # the message's request waits for it
        asks: int = 0 if not descriptor.payload_size or descriptor.flags & UNHURRIED else ASKS
        header = frame_word(tag, DATA, self._count() | asks, size)
        if not self._put_out(self._framed(header, descriptor, size), descriptor, size):
            return UNREACHABLE
        return QUEUED

    @cfunc
    def _put_out(self, pieces: list[memoryview], entry: Entry, size: int) -> bool:
        """Send a frame, or queue what the stream does not take, and keep it; false: it broke."""
        if self.up and not self.queue:
            pieces = self._write(pieces)
            if not self.up:
                return False
        self._keep(entry, size)
        if pieces:
            self._enqueue(Outgoing(pieces, None))
        return True

    @ccall
    def send_now(self, tag: int, header: bytes, payload: memoryview) -> bool:
        """Send a small fragment at once, copying; false when the connection is not ready."""
        if not self.up or self.queue or self.leaving or not self.has_window():
            return False
        size: int = len(header) + len(payload)
        joined: bytes = b"".join((frame_word(tag, DATA, self._count(), size), header, payload))
        self._traffic.used(self)
        return self._put_out([memoryview(joined)], joined, size)

    @ccall
    def carry(self) -> int:
        """The fragments that the next frame acknowledges, unless it has to wait behind puts."""
        return 0 if self.bulk else self._count()

    def chunk(self) -> int:
        """Bytes of a put that go in one frame: where another path is left to tell of failures."""
        return self._pacing.chunk_for(self.proc)

    def trickle(self, frames: list[list[memoryview]]) -> None:
        """Send frames that all others may go before."""
        if not self.up:
            for pieces in frames:
                self._enqueue(Outgoing(pieces, None))
            return
        self.bulk.extend(frames)
        self._more_bulk()

    @cfunc
    def _more_bulk(self) -> None:
        """Begin frames of puts while nothing else waits and the stream takes them."""
        while self.bulk and not self.queue and self.up:
            left: list[memoryview[int]] = self._write(self.bulk.popleft())
            if left and self.up:
                self._enqueue(Outgoing(left, None))

    @cfunc
    def _flush(self) -> int:
        """Send what is queued while the stream takes it, puts last. Returns frames completed."""
        # compiled, `super()` does not find a C function
        done: int = TcpEndpoint._flush(self)  # noqa: SLF001
        if self.bulk and not self.queue:
            self._more_bulk()
            done += 1
        return done

    @ccall
    def has_window(self) -> bool:
        """One more fragment may be kept."""
        return self.kept_bytes < self._acknowledger.kept_max

    @cfunc
    def _keep(self, entry: Entry, size: int) -> None:
        self.kept.append(entry)
        self.kept_bytes += size + KEPT_OVERHEAD
        if not self.watched:
            self.expect()

    @ccall
    def expect(self) -> None:
        """An answer of the peer is due: look now and then whether it comes."""
        if not self.watched:
            self.watched = True
            self.path.waiting()

    def waits(self) -> bool:
        """Whether one still is. Nobody looks any more once it is not."""
        self.watched = bool(self.kept) or not self.remote.idle
        return self.watched

    # -- acknowledging

    @cfunc
    def _count(self) -> int:
        """How many fragments the next frame acknowledges; they count as told."""
        reader: AcknowledgingReader | None = self._counting
        if reader is None or not self.up:
            return 0
        owed: int = min(reader.taken - self._told, COUNT_MAX)
        if owed:
            self._told += owed
            self._told_bytes = reader.taken_bytes
            reader.wanted = False
        return owed

    @ccall
    def acknowledge(self) -> None:
        """Say what has been taken, in a frame of its own."""
        reader: AcknowledgingReader | None = self._counting
        if reader is None or not self.up:
            return
        owed: int = reader.taken - self._told
        if owed:
            self._told = reader.taken
            self._told_bytes = reader.taken_bytes
            reader.wanted = False
            self.transmit([memoryview(frame_word(0, ACK, 0, owed))])

    @cfunc
    def pay(self) -> bool:
        """Acknowledge if it is time. Whether nothing is owed any more."""
        reader: AcknowledgingReader | None = self._counting
        if reader is not None and self.up and reader.taken != self._told:
            if not self._due:
                self._due = self._acknowledger.now() + self._acknowledger.delay
                return False
            if not reader.presses() and self._acknowledger.now() < self._due:
                return False
            self.acknowledge()
        self.owes = False
        return True

    @cfunc
    def _receive(self) -> int:
        """Read what is here; then look at what was acknowledged, and at what is owed."""
        # compiled, `super()` does not find a C function
        events: int = TcpEndpoint._receive(self)  # noqa: SLF001
        if not events:
            return 0
        self.news += 1
        reader: AcknowledgingReader | None = self._counting
        if not self.up or reader is None:
            return events
        if reader.acknowledged:
            self._take_acknowledgements(reader)
        owed: int = reader.taken - self._told
        if owed and self.up:
            much: bool = reader.taken_bytes - self._told_bytes >= self._acknowledger.bytes_max
            if much or owed >= FRAMES_MAX:
                self.acknowledge()
            elif not self.owes:
                self.owes = True
                self._due = 0
                self._acknowledger.owing.append(self)
        if self.leaving and self.up:
            self._peer_left()
        return events

    @cfunc
    def _take_acknowledgements(self, reader: AcknowledgingReader) -> None:
        """Complete what the peer has taken."""
        count: int = reader.acknowledged
        reader.acknowledged = 0
        if count > self.kept.count:
            reader.closed = True
            self.lose(f"{self.describe()}: the peer acknowledges what was never sent")
            return
        self.acked += count
        if count == 1:
            self._complete(self.kept.popleft())
            return
        done: list[Any] = [
            self.kept.popleft() for _ in range(count)
        ]  # a completion may break the path
        for entry in done:
            self._complete(entry)

    @cfunc
    def _complete(self, entry: Entry) -> None:
        """The peer has taken it."""
        if isinstance(entry, bytes):
            self.kept_bytes -= len(entry) - FRAME_SIZE + KEPT_OVERHEAD
            return
        descriptor: Descriptor = entry
        payload = descriptor.payload
        size: int = len(descriptor.segment) + (len(payload) if payload is not None else 0)
        self.kept_bytes -= size + KEPT_OVERHEAD
        if descriptor.callback is not None:
            descriptor.callback.completed(self.module, self, descriptor, 0)

    # -- connections

    def _new_reader(self) -> FrameReader:
        self._told = self._told_bytes = 0
        self._counting = AcknowledgingReader(self.module.max_send_size)
        return self._counting

    def last_words(self) -> None:
        """Take what the peer has acknowledged; nothing else of the connection is used."""
        reader = self._counting
        if reader is not None:
            if reader.acknowledged and not reader.closed:
                self._take_acknowledgements(reader)
            reader.closed = True

    def abandon_stream(self, *, mute: bool) -> None:
        """Of a path that was given up: its kernel is not to go on with it, nor to say so."""
        if self._stream is not None:
            if mute:
                self._stream.block_output()
            self._stream.abandon()

    # -- ending

    def say_bye(self) -> None:
        """Tell the peer, behind everything, what has been taken and that nothing more will come."""
        self.acknowledge()
        TcpEndpoint.say_bye(self)

    def _peer_left(self) -> None:
        """The peer has said BYE: what it has taken by then it acknowledges before it goes."""
        reader = self._counting
        if reader is not None and reader.acknowledged:
            self._take_acknowledgements(reader)
        if not self.up:
            return
        self.leaving = True
        self.path.left()
        if not self.kept and self.remote.idle:
            TcpEndpoint._peer_left(self)  # noqa: SLF001

    def unfinished(self) -> bool:
        """Something sent or asked for was not acknowledged."""
        return bool(self.kept) or TcpEndpoint.unfinished(self)

    def fail_queue(self) -> None:
        """Complete badly, or give back, what the peer has not acknowledged, oldest first."""
        self._traffic.left(len(self.queue))
        self.queue.clear()
        self.bulk.clear()
        kept: list[Entry] = self.kept.take_all()
        self.kept_bytes = 0
        errors = self.module.error_callback
        for entry in kept:
            if not isinstance(entry, bytes):
                if entry.callback is not None:
                    entry.callback.completed(self.module, self, entry, UNREACHABLE)
            elif errors is not None:
                errors.returned(self.module, self.proc, entry[0], memoryview(entry)[FRAME_SIZE:])
        self.remote.fail()


assert FRAMES_MAX <= COUNT_MAX
