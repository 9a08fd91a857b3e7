"""A peer over one interface: what waits to be sent to it, what has arrived in part.

Where its connections come from, and what becomes of a path without one, is decided elsewhere: this
file says what it sees to `path` (`ompy.frameworks.paths.path_keeper`), which has `path.py` do the
rest.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from ompy.compiled import DECLARING, Shown, ccall, cclass, cfunc
from ompy.frameworks.btl import (
    COMPLETED,
    QUEUED,
    SEND_ALWAYS_CALLBACK,
    UNREACHABLE,
    Descriptor,
    Endpoint,
)
from ompy.frameworks.paths.path_life import IN_USE, TRYING
from ompy.frameworks.proc import Proc
from ompy.net.base import WOULD_BLOCK, Address, LinkError, Stream
from ompy.net.pieces import without
from ompy.net.totals import NOTHING, Totals

from ompy_components.btl.tcp.framing import BYE, DATA, FRAME_SIZE, JOIN_MAX, FrameReader, frame_word
from ompy_components.btl.tcp.kept import Kept
from ompy_components.btl.tcp.path import connections
from ompy_components.btl.tcp.remote import RemoteMemory

if TYPE_CHECKING:
    from ompy.frameworks.paths.path_keeper import KeptPath

    from ompy_components.btl.tcp.resources import Resources
    from ompy_components.btl.tcp.silence import SilenceWatch
    from ompy_components.btl.tcp.sockets import Sockets

if DECLARING:
    from ompy.frameworks.btl import BtlModule, ReceiveCallback
    from ompy.net.base import Interface, Readiness

    from ompy_components.btl.tcp.traffic import Traffic

READS_PER_POLL: Final = 4  # arbitrary: bounded work a poll, so that no peer starves the others
MEETS: Final = IN_USE | TRYING  # where a path has a connection, or may soon have


@cclass
class Outgoing:
    """A frame that the kernel has not taken whole.

    Attributes:
        pieces: what is left of it.
        descriptor: completed when all is taken; None for frames nobody waits for.
    """

    descriptor: Descriptor | None
    pieces: list[memoryview[int]]
    __slots__ = tuple(__annotations__)

    def __init__(self, pieces: list[memoryview], descriptor: Descriptor | None) -> None:
        self.pieces = pieces
        self.descriptor = descriptor


@cclass
class TcpEndpoint(Endpoint):
    """The way to one peer over one interface.

    Here a fragment is complete when the kernel has taken it. An endpoint whose peer acknowledges
    says otherwise in four places: `carry`, what a header says beside what its frame is;
    `_send_framed`, when a fragment is complete; `_received`, what follows from what has come;
    `_peer_left`, when a peer that leaves needs nothing more.

    Attributes:
        path: its life; the module makes both.
        up: there is a connection, and frames may go.
        said_bye: nothing more will be said.
        leaving: the peer has said BYE, and the connection is still of use.
        address: where the peer listens.
        queue: frames waiting to be sent, in order.
        bulk: frames that all others go before. While there are any, and a connection, something is
            in the queue: the one that is being sent.
        kept: what the peer has not acknowledged.
        watched: it is looked now and then whether the peer still answers.
        landing: those of the module that are in the middle of receiving.
        remote: its puts and gets, and the peer's.
    """

    _closed: Totals
    _handlers: list[ReceiveCallback | None]
    _interface: Interface
    _reader: Shown[FrameReader | None]
    _readiness: Readiness
    _silence: SilenceWatch
    _silent_since: Shown[int]
    _sockets: Sockets
    _stream: Shown[Stream | None]
    _traffic: Shown[Traffic]
    address: Address | None
    bulk: deque[list[memoryview[int]]]
    kept: Kept
    landing: set[RemoteMemory]
    leaving: bool
    path: KeptPath
    queue: deque[Outgoing]
    remote: RemoteMemory
    said_bye: bool
    up: bool
    watched: bool
    __slots__ = tuple(__annotations__)

    def __init__(self, module: BtlModule, proc: Proc, resources: Resources) -> None:
        super().__init__(module, proc)
        self._interface = resources.interface
        self._sockets = resources.sockets
        self._readiness = resources.sockets.readiness
        self._traffic = resources.traffic
        self._handlers = resources.handlers
        self._silence = resources.silence
        self._stream = None
        self._closed = NOTHING
        self._reader = None
        self._silent_since = 0  # ns; 0 while all is acknowledged
        self.path: KeptPath
        self.up = self.said_bye = self.leaving = self.watched = False
        self.address = None
        self.queue = deque()
        self.bulk = deque()
        self.kept = Kept(resources.kept_max)
        self.landing = resources.landing
        self.remote = RemoteMemory(self, resources.registered)

    def describe(self) -> str:
        """Interface and addresses."""
        own, there = self._interface, self.address
        return f"tcp {own.name} {own.address} - {there.host if there else 'no address'}"

    @ccall
    def ends(self) -> tuple[str, str, str]:
        """Interface and addresses."""
        own, there = self._interface, self.address
        return own.name, own.address, there.host if there is not None else ""

    def ask_when_idle(self) -> bool:
        """Have the kernel ask whether the peer's host is there while nothing is sent."""
        return self._stream is not None and self._stream.ask_when_idle()

    def totals(self) -> Totals:
        """What its connections have carried, the open one and those before."""
        past = self._closed
        if self._stream is None:
            return past
        now = self._stream.totals()
        return Totals(past.sent + now.sent, past.received + now.received, past.again + now.again)

    def is_open(self) -> bool:
        """There is a connection."""
        return self._stream is not None

    def look(self, now: int) -> bool:
        """Give the path up when nothing has been acknowledged for long. Whether it is watched."""
        if not self.up or self._stream is None:
            return False
        if not self._stream.sends_again():
            self._silent_since = 0
        elif not self._silent_since:
            self._silent_since = now
        elif now - self._silent_since >= self._silence.limit:
            ms = self._silence.limit // 1_000_000
            host, way = self.proc.hostname, self.describe().removeprefix("tcp ")
            self.lose(f"host {host} acknowledges nothing over {way} for {ms} ms")
        return self.up

    # -- sending

    @ccall
    def send(self, descriptor: Descriptor, tag: int) -> int:
        """Send a fragment, or queue it; opens the connection if there is none."""
        if self.leaving or (not self.up and self._unreachable()):
            return UNREACHABLE
        descriptor.tag = tag
        payload = descriptor.payload
        size: int = len(descriptor.segment) + (len(payload) if payload is not None else 0)
        header: bytes = frame_word(tag, DATA, self.carry(descriptor, size), size)
        return self._send_framed(self._framed(header, descriptor, size), descriptor, size)

    @cfunc
    def _send_framed(
        self, pieces: list[memoryview], descriptor: Descriptor | None, size: int
    ) -> int:
        """Send a fragment's frame, or queue it. Returns as `send`: when it is complete.

        Without a descriptor nobody waits for it, and `pieces` is one copy that nobody else has.
        """
        if self.up and not self.queue:
            pieces = self._write(pieces)
            if not self.up:
                return UNREACHABLE
            if not pieces:
                if descriptor is None or not descriptor.flags & SEND_ALWAYS_CALLBACK:
                    return COMPLETED
                if descriptor.callback is not None:
                    descriptor.callback.completed(self.module, self, descriptor, 0)
                return COMPLETED
        self._enqueue(Outgoing(pieces, descriptor))
        return QUEUED

    @cfunc
    def _framed(self, header: bytes, descriptor: Descriptor, size: int) -> list[memoryview]:
        """What a fragment of `size` bytes is on the wire, in pieces; a small one is copied."""
        payload = descriptor.payload
        if size < JOIN_MAX:
            return [memoryview(b"".join((header, descriptor.segment, payload or b"")))]
        pieces: list[memoryview[int]] = [memoryview(header), descriptor.segment]
        if payload is not None:
            pieces.append(payload)
        return pieces

    @ccall
    def send_now(self, tag: int, header: bytes, payload: memoryview) -> bool:
        """Send a small fragment at once, copying; false when the connection is not ready."""
        if not self.up or self.leaving or self.queue or not self.kept.has_room():
            return False
        size: int = len(header) + len(payload)
        frame: bytes = frame_word(tag, DATA, self.carry(None, size), size)
        self._traffic.used(self)
        joined = memoryview(b"".join((frame, header, payload)))
        return self._send_framed([joined], None, size) != UNREACHABLE

    @ccall
    def send_put(self, pieces: list[memoryview], descriptor: Descriptor) -> int:
        """Send a put that is complete when the kernel has taken it, or queue it."""
        return self._send_framed(pieces, descriptor, 0)

    @ccall
    def transmit(self, pieces: list[memoryview]) -> None:
        """Send a frame that no descriptor waits for, from where its bytes lie, or queue it.

        Also to a peer that has said BYE.
        """
        if self.up and not self.queue:
            pieces = self._write(pieces)
        if pieces and (self.up or not self.lost()):
            self._enqueue(Outgoing(pieces, None))

    @ccall
    def carry(self, descriptor: Descriptor | None, size: int) -> int:
        """What the next frame's header says beside what the frame is: nothing here.

        Args:
            descriptor: of the fragment that is in it; None: nobody waits for what is in it.
            size: bytes of that fragment.
        """
        return 0

    @ccall
    def lost(self) -> bool:
        """Nothing can be sent any more, or not now."""
        return self.leaving or (not self.up and self._unreachable())

    @cfunc
    def _unreachable(self) -> bool:
        return bool(self.path.broken) or self.path.life.parting

    @ccall
    def expect(self) -> None:
        """An answer of the peer is due: have the keeper look, if it does, whether it comes."""
        if not self.watched:
            self.watched = True
            self.path.waiting()

    def waits(self) -> bool:
        """Whether one still is. Nobody looks any more once it is not."""
        self.watched = bool(self.kept) or not self.remote.idle
        return self.watched

    @ccall
    def has_window(self) -> bool:
        """One more fragment may be sent, and kept until it is acknowledged."""
        return self.kept.has_room()

    @ccall
    def has_room(self) -> bool:
        """One more frame may wait to be sent."""
        return self.module.has_room(self)

    def _enqueue(self, outgoing: Outgoing) -> None:
        self.queue.append(outgoing)
        self._traffic.joined()
        if self.up:
            self._want_write(True)
        else:
            self.open()

    @cfunc
    def _write(self, pieces: list[memoryview]) -> list[memoryview]:
        """Offer `pieces` to the stream. Returns what it did not take; fails the path on errors."""
        assert self._stream is not None
        try:
            taken: int = self._stream.send(pieces)
        except LinkError as problem:
            self.lose(f"{self.describe()}: {problem}")
            return pieces
        return without(pieces, taken)

    @cfunc
    def _flush(self) -> int:
        """Send what is queued while the stream takes it, bulk last. Returns frames completed."""
        done: int = 0
        while self.queue and self.up:
            outgoing: Outgoing = self.queue[0]
            offered: list[memoryview[int]] = outgoing.pieces
            outgoing.pieces = self._write(offered)
            if not self.up or outgoing.pieces is offered:
                break
            if outgoing.pieces:
                continue  # it took a part: it may take more
            self.queue.popleft()
            self._traffic.left(1)
            done += 1
            descriptor: Descriptor | None = outgoing.descriptor
            if descriptor is not None and descriptor.callback is not None:
                descriptor.callback.completed(self.module, self, descriptor, 0)
        if not self.queue and self.up:
            self._want_write(False)
            if self.bulk:
                self._begin_bulk()
                done += 1
        return done

    def trickle(self, frames: list[list[memoryview]]) -> None:
        """Send frames that all others may go before."""
        if not self.up:
            for pieces in frames:
                self._enqueue(Outgoing(pieces, None))
            return
        self.bulk.extend(frames)
        self._begin_bulk()

    @cfunc
    def _begin_bulk(self) -> None:
        """Begin with it while nothing else waits and the stream takes it."""
        while self.bulk and not self.queue and self.up:
            left: list[memoryview[int]] = self._write(self.bulk.popleft())
            if left and self.up:
                self._enqueue(Outgoing(left, None))

    # -- connections

    def open(self) -> None:
        """Begin to connect if that was never tried."""
        if not self.up:
            self.path.want()

    def begin(self, stream: Stream, reader: FrameReader) -> None:
        """Use a connection that both ends are in; `reader` takes its frames apart."""
        self._stream = stream
        self._reader = reader
        self.up = True
        self._sockets.watch(stream, self)
        self.note("CONNECTED")
        self._silence.look_after(self)
        self._want_write(bool(self.queue))
        self._flush()

    # -- receiving

    @ccall
    def glance(self) -> int:
        """Try to send what is queued, and to receive. Returns events handled."""
        if not self.up:
            return 0
        events: int = self._flush() if self.queue else 0
        return events + self._receive() if self.up else events

    @ccall
    def ready(self, readable: bool, writable: bool) -> int:
        """The stream can be used. Returns events handled."""
        events: int = 0
        if writable and self.up:
            events += self._flush()
        if readable and self.up:
            events += self._receive()
        return events

    @cfunc
    def _receive(self) -> int:
        """Read what is here. Returns how often something was."""
        events: int = self._read_frames()
        if events:
            self._received()
        return events

    @cfunc
    def _received(self) -> None:
        """Something has come, and was handed out: nothing follows here."""

    @cfunc
    def _read_frames(self) -> int:
        """Read a bounded amount, and hand the fragments out."""
        stream = self._stream
        reader: FrameReader | None = self._reader
        assert stream is not None
        assert reader is not None
        events: int = 0
        try:
            for _ in range(READS_PER_POLL):
                room = reader.room()
                count: int = stream.receive_into(room)
                if count == WOULD_BLOCK:
                    break
                if count == 0:
                    self.lose("the peer closed the connection without a word")
                    return events
                reader.received(count)
                events += 1
                self._traffic.used(self)
                while reader.next():
                    if reader.kind == DATA:
                        self._deliver(reader.tag, reader.fragment)
                    elif reader.kind == BYE:
                        self._peer_left()
                        return events
                    else:
                        self.remote.arrived(reader)
                if count < len(room) or not self.up:
                    break
        except LinkError as problem:
            self.lose(f"{self.describe()}: {problem}")
        return events

    @cfunc
    def _deliver(self, tag: int, fragment: memoryview) -> None:
        """Hand a fragment to whoever registered for its tag."""
        handler: ReceiveCallback | None = self._handlers[tag]
        assert handler is not None, f"nobody registered for tag {tag}"
        handler.received(self.module, self, tag, fragment)

    # -- ending

    def say_bye(self) -> None:
        """Tell the peer, behind everything queued, that nothing more will come.

        Also over a connection that is still being made: the peer may have taken it already.
        """
        if self.said_bye or self.proc.departed or self.path.life.life not in MEETS:
            return
        self.said_bye = True
        frame = [memoryview(frame_word(0, BYE, self.carry(None, 0), 0))]
        self._enqueue(Outgoing(frame, None))
        self._flush()

    @cfunc
    def _peer_left(self) -> None:
        """The peer has ended its use of MPI: answer, and close when all is said."""
        self.note("BYE")
        self.say_bye()
        self._flush()
        if self.up:
            self.path.left()
            self.path.broke("the peer has left", told=True)

    def settled(self) -> bool:
        """Nothing is left to send or to wait for."""
        if self.proc.departed:
            return True
        life = self.path.life.life
        if life in IN_USE:
            return False
        # of a path that is taken back, what the peer may have taken already is to end by a BYE
        return life not in TRYING if self.lost() else not self.queue

    def unsaid(self) -> bool:
        """Something is left to be said that is no BYE."""
        return not self.said_bye and self.unfinished()

    def flushed(self) -> bool:
        """Everything queued was taken by the kernel, or never will be.

        A host that has gone without a word never answers, nor does the kernel give it up soon.
        """
        return bool(self.proc.departed) or self.lost() or not self.unfinished()

    def unfinished(self) -> bool:
        """Something accepted is not complete."""
        return bool(self.queue) or bool(self.kept) or not self.remote.idle

    def close(self) -> None:
        """Close the connection, whatever there is of it: this rank uses it no more."""
        self.path.broken = self.path.broken or "this rank has ended"
        connections(self.path).close()
        self.fail_queue()

    def lose(self, why: str) -> None:
        """The connection is of no use any more."""
        self.path.broke(why)

    def fail_queue(self) -> None:
        """Complete badly, or give back, what waits for the peer or is kept, oldest first."""
        while self.queue:
            outgoing = self.queue.popleft()
            self._traffic.left(1)
            descriptor = outgoing.descriptor
            if descriptor is not None and descriptor.callback is not None:
                descriptor.callback.completed(self.module, self, descriptor, UNREACHABLE)
        self.bulk.clear()
        self.kept.fail_all(self)
        self.remote.fail()

    def drop_stream(self) -> None:
        """Close the connection, if there is one."""
        self.up = False
        self._traffic.closed(self)
        if self._stream is not None:
            self._sockets.unwatch(self._stream)
            self._closed = self.totals()
            self._stream.close()
            self._stream = None

    @cfunc
    def _want_write(self, wanted: bool) -> None:
        if self._stream is not None:
            self._readiness.want_write(self._stream, wanted=wanted)

    def note(self, event: str, **fields: object) -> None:
        """Record what happens to the path."""
        trace = self.module.context.trace
        if trace.active:
            trace.record("btl.tcp", event, peer=self.proc.rank, **fields)


assert FRAME_SIZE < JOIN_MAX
