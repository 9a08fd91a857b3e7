"""Faults as middleware: what a wire does to packets and connections, in both worlds.

One class per fault. A fault is installed in the network of the rank whose sending it disturbs
(`network.install(Drop(engine, counter, rate=0.1))`); several may be installed at a time, the last
is the outermost. Chance and time come from the rank's engine, so in the virtual world the seed
decides. Each fault that hits something is counted as delivered, and traced: a test that meant to
disturb and did not is not passed (`FaultCounter.require`).

All faults act on the sending side. What arrives is never held back behind a socket that says it
is readable: a rank that sleeps until something is readable would spin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from ompy.net.base import Address, Datagram, LinkError, Middleware, Stream
from ompy.net.faults.wrapped import WrappedStream

if TYPE_CHECKING:
    from ompy.engine.base import Engine
    from ompy.trace.sink import Trace

PUSH_PAUSE: Final = 100_000  # ns; arbitrary: between attempts to hand on what was held


class NothingDelivered(AssertionError):
    """A fault that was installed never hit anything."""


class FaultCounter:
    """How often each kind of fault was delivered; one for all ranks of a job."""

    __slots__ = ("delivered",)

    def __init__(self) -> None:
        self.delivered: Counter[str] = Counter()

    def require(self, *kinds: str) -> None:
        """See that each of `kinds` was delivered.

        Raises:
            NothingDelivered: one was not; the text names it and what was.
        """
        missing = [kind for kind in kinds if not self.delivered[kind]]
        if missing:
            raise NothingDelivered(
                f"no fault of kind {', '.join(missing)} was delivered; delivered were "
                f"{dict(self.delivered) or 'none'}: send more, or raise the rate"
            )


class Fault(Middleware):
    """Base of the faults: counts and traces what is delivered.

    Attributes:
        kind: what it is called in counters, traces and scripts.
        engine: of the rank it sits at.
        counter: common to the job.
    """

    kind: ClassVar[str]

    def __init__(
        self, engine: Engine, counter: FaultCounter, *, trace: Trace | None = None
    ) -> None:
        self.engine = engine
        self.counter = counter
        self._trace = trace

    def delivered(self, **fields: object) -> None:
        """Count one, and say so in the trace."""
        self.counter.delivered[self.kind] += 1
        if self._trace is not None and self._trace.active:
            self._trace.record("net.faults", self.kind.upper(), **fields)

    def draws_fault(self, rate: float) -> bool:
        """Draw whether this packet is hit; `rate` is between 0 and 1."""
        return self.engine.random.random() < rate


class FaultyDatagram(Datagram):
    """A datagram socket whose packets pass a fault.

    Attributes:
        inner: the socket it wraps.
    """

    __slots__ = ("_fault", "address", "inner")

    def __init__(self, fault: DatagramFault, inner: Datagram) -> None:
        self._fault = fault
        self.inner = inner
        self.address = inner.address

    def send(self, packet: memoryview, address: Address) -> bool:
        """Send as the fault has it."""
        return self._fault.transmit(self.inner, packet, address)

    def receive_into(self, view: memoryview) -> tuple[int, Address] | None:
        """What the inner socket has."""
        return self.inner.receive_into(view)

    def overrun(self) -> int:
        """As the inner socket."""
        return self.inner.overrun()

    def close(self) -> None:
        """Close the inner socket."""
        self.inner.close()


class DatagramFault(Fault):
    """A fault of packets; streams pass."""

    def datagram(self, datagram: Datagram) -> Datagram:
        """Wrap the socket."""
        return FaultyDatagram(self, datagram)

    def transmit(self, inner: Datagram, packet: memoryview, address: Address) -> bool:
        """Send `packet` through `inner`, or do to it what this fault does."""
        raise NotImplementedError


class PacketFault(DatagramFault):
    """A fault that strikes single packets at random.

    Attributes:
        rate: share of the packets it strikes, 0 to 1.
    """

    def __init__(
        self, engine: Engine, counter: FaultCounter, *, rate: float, trace: Trace | None = None
    ) -> None:
        super().__init__(engine, counter, trace=trace)
        self.rate = rate


class Drop(PacketFault):
    """Loses packets."""

    kind: ClassVar[str] = "drop"

    def transmit(self, inner: Datagram, packet: memoryview, address: Address) -> bool:
        """Lose it, or send it."""
        if self.draws_fault(self.rate):
            self.delivered(size=len(packet), to=address)
            return True
        return inner.send(packet, address)


class Duplicate(PacketFault):
    """Sends packets twice."""

    kind: ClassVar[str] = "duplicate"

    def transmit(self, inner: Datagram, packet: memoryview, address: Address) -> bool:
        """Send it, and perhaps again."""
        sent = inner.send(packet, address)
        if sent and self.draws_fault(self.rate):
            self.delivered(size=len(packet), to=address)
            inner.send(packet, address)
        return sent


class Reorder(PacketFault):
    """Holds packets back, so that later ones overtake them."""

    kind: ClassVar[str] = "reorder"

    def __init__(
        self,
        engine: Engine,
        counter: FaultCounter,
        *,
        rate: float,
        delay: int,
        trace: Trace | None = None,
    ) -> None:
        """Hold the share `rate` of all packets back for up to `delay` ns each."""
        super().__init__(engine, counter, rate=rate, trace=trace)
        self.delay = delay

    def transmit(self, inner: Datagram, packet: memoryview, address: Address) -> bool:
        """Send it now or later."""
        if not self.draws_fault(self.rate):
            return inner.send(packet, address)
        delay = self.engine.random.randint(1, self.delay)
        self.delivered(size=len(packet), to=address, delay=delay)
        self.engine.call_later(delay, partial(_send_late, inner, bytes(packet), address))
        return True


def _send_late(inner: Datagram, packet: bytes, address: Address) -> None:
    with suppress(LinkError):  # the socket has been closed meanwhile: the packet is lost
        inner.send(memoryview(packet), address)


class Corrupt(PacketFault):
    """Flips one bit of packets."""

    kind: ClassVar[str] = "corrupt"

    def transmit(self, inner: Datagram, packet: memoryview, address: Address) -> bool:
        """Send it, perhaps altered. The sender's own memory stays as it is."""
        if not len(packet) or not self.draws_fault(self.rate):
            return inner.send(packet, address)
        copy = bytearray(packet)
        bit = self.engine.random.randrange(8 * len(copy))
        copy[bit // 8] ^= 1 << bit % 8
        self.delivered(size=len(packet), to=address, bit=bit)
        return inner.send(memoryview(copy), address)


class FaultyStream(WrappedStream):
    """A connection under a fault of connections.

    Attributes:
        held: bytes taken from the sender that have not been handed on.
        broken: why every use fails; empty while it works.
    """

    __slots__ = ("_fault", "broken", "held")

    def __init__(self, fault: LinkFault, inner: Stream) -> None:
        self._fault = fault
        super().__init__(inner)
        self.held = bytearray()
        self.broken = ""

    def send(self, pieces: Sequence[memoryview]) -> int:
        """Send as the fault has it."""
        self._check()
        return self._fault.write(self, pieces)

    def receive_into(self, view: memoryview) -> int:
        """What has arrived, until the connection is broken."""
        self._check()
        return self.inner.receive_into(view)

    def close(self) -> None:
        """Close the inner stream; what is held is lost."""
        self.held.clear()
        self._fault.streams.pop(self, None)
        self.inner.close()

    def fail(self, why: str) -> None:
        """Break the connection: it is ready from now on, and every use raises LinkError."""
        self.broken = why
        self.held.clear()
        self.inner.fail(why)

    def push(self) -> None:
        """Hand on what is held, in order, as the inner stream takes it."""
        if not self.held or self.broken:
            return
        try:
            taken = self.inner.send([memoryview(bytes(self.held))])
        except LinkError:
            return  # the module finds out in its next use
        del self.held[:taken]
        if self.held:
            self._fault.engine.call_later(PUSH_PAUSE, self.push)

    def _check(self) -> None:
        if self.broken:
            raise LinkError(self.broken)


class LinkFault(DatagramFault):
    """A fault of everything that crosses a link: packets and connections.

    Attributes:
        streams: the connections made through it that are open, in the order they were made.
    """

    def __init__(
        self, engine: Engine, counter: FaultCounter, *, trace: Trace | None = None
    ) -> None:
        super().__init__(engine, counter, trace=trace)
        self.streams: dict[FaultyStream, None] = {}

    def stream(self, stream: Stream, peer: Address) -> Stream:
        """Wrap a connection."""
        wrapped = FaultyStream(self, stream)
        self.streams[wrapped] = None
        return wrapped

    def write(self, stream: FaultyStream, pieces: Sequence[memoryview]) -> int:
        """Send `pieces` through `stream.inner`, or do to them what this fault does."""
        raise NotImplementedError


class Cut(LinkFault):
    """Takes the interface down: connections are reset, packets cannot be sent.

    The rank it sits at is told by its own socket; its peers see connections end.

    Attributes:
        down: whether it is down now.
    """

    kind: ClassVar[str] = "cut"

    def __init__(
        self,
        engine: Engine,
        counter: FaultCounter,
        *,
        after: int | None = None,
        trace: Trace | None = None,
    ) -> None:
        """Cut when `after` bytes have been sent; None leaves it to `cut`."""
        super().__init__(engine, counter, trace=trace)
        self.down = False
        self._left = after

    def cut(self) -> None:
        """Take it down now. What is under way arrives."""
        self.down = True
        self._left = None
        for stream in list(self.streams):
            self.delivered(connection=True)
            stream.fail("connection reset: the interface is down")

    def restore(self) -> None:
        """Up again: new connections can be made, packets sent."""
        self.down = False

    def blocks_sending(self, receiver: int, rail: str) -> bool:
        """While it is down."""
        return self.down

    def stream(self, stream: Stream, peer: Address) -> Stream:
        """Wrap a connection; one made while the interface is down is broken at once."""
        wrapped = super().stream(stream, peer)
        if self.down:
            self.delivered(connection=True)
            wrapped.fail("the interface is down")
        return wrapped

    def write(self, stream: FaultyStream, pieces: Sequence[memoryview]) -> int:
        """Send, up to the byte that takes the interface down."""
        if self._left is not None:
            pieces = [memoryview(b"".join(pieces))[: self._left]]
        taken = stream.inner.send(pieces)
        self._spend(taken)
        return taken

    def transmit(self, inner: Datagram, packet: memoryview, address: Address) -> bool:
        """Send, or say what the system says of an interface that is down."""
        if self.down:
            self.delivered(size=len(packet), to=address)
            raise LinkError("the network is down")
        sent = inner.send(packet, address)
        self._spend(len(packet))
        return sent

    def _spend(self, count: int) -> None:
        if self._left is not None:
            self._left = max(0, self._left - count)
            if not self._left:
                self.cut()


class BlackHole(LinkFault):
    """Nothing this rank sends gets anywhere, and nobody is told.

    Packets are lost. The bytes of connections wait, as in a kernel that sends them again and again:
    they arrive when the hole has closed, or the connection fails when the system has tried
    for `gives_up` ns.

    Attributes:
        active: whether it swallows now.
    """

    kind: ClassVar[str] = "black hole"

    def __init__(
        self,
        engine: Engine,
        counter: FaultCounter,
        *,
        gives_up: int,
        active: bool = False,
        trace: Trace | None = None,
    ) -> None:
        super().__init__(engine, counter, trace=trace)
        self.active = active
        self._gives_up = gives_up

    def open(self) -> None:
        """Swallow from now on."""
        self.active = True

    def close(self) -> None:
        """Let through again, what connections held first."""
        self.active = False
        for stream in list(self.streams):
            stream.push()

    def blocks_sending(self, receiver: int, rail: str) -> bool:
        """While the hole is open."""
        return self.active

    def write(self, stream: FaultyStream, pieces: Sequence[memoryview]) -> int:
        """Hold the bytes while the hole is open and while older ones are held."""
        if not self.active and not stream.held:
            return stream.inner.send(pieces)
        data = b"".join(pieces)
        if self.active and data:
            if not stream.held:
                self.engine.call_later(self._gives_up, partial(self._give_up, stream))
            self.delivered(size=len(data))
        stream.held += data
        return len(data)

    def _give_up(self, stream: FaultyStream) -> None:
        if self.active and stream.held:
            stream.fail("connection timed out")

    def transmit(self, inner: Datagram, packet: memoryview, address: Address) -> bool:
        """Lose the packet while the hole is open."""
        if self.active:
            self.delivered(size=len(packet), to=address)
            return True
        return inner.send(packet, address)
