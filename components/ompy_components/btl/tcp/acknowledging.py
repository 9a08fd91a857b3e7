"""Connections that acknowledge: a fragment is complete when the peer's callbacks have taken it.

README.md, "Failover", says how. DATA frames are counted; how many more have been taken goes in the
two bytes of a frame's header that are 0 otherwise, or in a frame of its own. The highest bit of
these two bytes says that somebody waits for the acknowledgement of this frame.

    ACK     header with size = how many; nothing follows
"""

from __future__ import annotations

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

    from ompy_components.btl.tcp.kept import Entry
    from ompy_components.btl.tcp.resources import Resources

if DECLARING:
    from ompy.engine.base import Engine
    from ompy.frameworks.btl import BtlModule

FRAMES_MAX: Final = 64  # arbitrary: an ACK frame costs little beside so many frames


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
    """

    _engine: Engine
    bytes_max: int
    delay: int
    owing: Fifo
    __slots__ = tuple(__annotations__)

    def __init__(self, engine: Engine, delay: int, bytes_max: int) -> None:
        self._engine = engine
        self.owing = Fifo()  # of endpoints
        self.delay = delay
        self.bytes_max = bytes_max

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
        news: how often something has come from the peer.
        owes: it is on the acknowledger's list.
    """

    _acknowledger: Shown[Acknowledger]
    _counting: Shown[AcknowledgingReader | None]
    _due: Shown[int]
    _told: Shown[int]
    _told_bytes: Shown[int]
    news: int
    owes: bool
    __slots__ = tuple(__annotations__)

    def __init__(
        self, module: BtlModule, proc: Proc, resources: Resources, acknowledger: Acknowledger
    ) -> None:
        super().__init__(module, proc, resources)
        self._acknowledger = acknowledger
        self.news = 0
        self.owes = False
        self._counting = None  # the reader, by its own name
        self._due = 0  # when an ACK has to go; 0 while nobody has looked at the clock
        self._told = self._told_bytes = 0  # of what the reader has handed out

    # -- sending

    @ccall
    def carry(self, descriptor: Descriptor | None, size: int) -> int:
        """The fragments that the next frame acknowledges, and whether its own is waited for."""
        if descriptor is None:
            return 0 if self.bulk else self._count()  # it may have to wait behind that
        if not descriptor.payload_size or descriptor.flags & UNHURRIED:
            return self._count()
        # the message's request waits for what is not complete at once
        return self._count() | (0 if _complete_at_once(descriptor, size) else ASKS)

    @cfunc
    def _send_framed(
        self, pieces: list[memoryview], descriptor: Descriptor | None, size: int
    ) -> int:
        """Send a fragment's frame, or queue it, and keep it until the peer has taken it."""
        frame: memoryview = pieces[0]
        if self.up and not self.queue:
            pieces = self._write(pieces)
            if not self.up:
                return UNREACHABLE
        copied: bool = descriptor is None or _complete_at_once(descriptor, size)
        entry: Entry = frame if descriptor is None or copied else descriptor
        self.kept.keep_sent(entry, size)
        if not self.watched:
            self.expect()
        if pieces:
            self._enqueue(Outgoing(pieces, None))
        if descriptor is None or not copied:
            return QUEUED
        return self.module.finish(self, descriptor)

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
    def _received(self) -> None:
        """Look at what was acknowledged, and at what is owed."""
        self.news += 1
        reader: AcknowledgingReader | None = self._counting
        if not self.up or reader is None:
            return
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

    @cfunc
    def _take_acknowledgements(self, reader: AcknowledgingReader) -> None:
        """Complete what the peer has taken."""
        count: int = reader.acknowledged
        reader.acknowledged = 0
        if count > self.kept.count:
            reader.closed = True
            self.lose(f"{self.describe()}: the peer acknowledges what was never sent")
            return
        self.kept.complete_oldest(self, count)

    # -- connections

    def new_reader(self) -> FrameReader:
        """For a new connection, whose fragments are counted from the first."""
        self._told = self._told_bytes = 0
        largest = max(self.module.eager_limit, self.module.max_send_size)
        self._counting = AcknowledgingReader(largest)
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

    @cfunc
    def _peer_left(self) -> None:
        """The peer has said BYE: what it has taken by then it acknowledges before it goes."""
        reader = self._counting
        if reader is not None and reader.acknowledged:
            self._take_acknowledgements(reader)
        if not self.up:
            return
        self.leaving = True
        self.path.left()
        if not self.kept.count and self.remote.idle:
            self.acknowledge()
            # compiled, `super()` does not find a C function
            TcpEndpoint._peer_left(self)  # noqa: SLF001


@cfunc
def _complete_at_once(descriptor: Descriptor, size: int) -> bool:
    """Whether a fragment's sender does not wait: its frame is a copy, which may be given back."""
    return bool(descriptor.flags & RETURNABLE) and size < JOIN_MAX


assert FRAMES_MAX <= COUNT_MAX
