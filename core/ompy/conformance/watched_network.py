"""A rank's network, watched: what it carried, and which sockets are still open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from zlib import crc32

from ompy.engine.base import Engine
from ompy.net.base import (
    WOULD_BLOCK,
    Address,
    Datagram,
    Doorbell,
    Interface,
    Link,
    Listener,
    Middleware,
    Network,
    Readiness,
    Ready,
    Source,
    Stream,
)
from ompy.net.faults.work import Work
from ompy.net.faults.wrapped import WrappedStream
from ompy.net.memory.process_copy import ProcessCopy


class Carried(NamedTuple):
    """One use of a socket.

    Attributes:
        time: ns.
        what: `packet` or `bytes`, sent or taken in.
        size: bytes.
        check: CRC-32 of them.
    """

    time: int
    what: str
    size: int
    check: int


class Wire(Network):
    """Passes everything on to the network it watches.

    Attributes:
        recording: whether to remember what it carries.
        carried: every use of a stream or datagram socket while it was recording, in order.
        sources: streams, listeners and datagram sockets that are open.
        watches: readiness sets that are open.
    """

    def __init__(self, inner: Network, engine: Engine) -> None:
        super().__init__()
        self.virtual = inner.virtual
        self._inner = inner
        self._engine = engine
        self.recording = False
        self.carried: list[Carried] = []
        self.sources: dict[Source, str] = {}
        self.watches: list[WatchedReadiness] = []
        inner.install(_Tap(self))

    def note(self, what: str, data: bytes) -> None:
        """Remember one use."""
        self.carried.append(Carried(self._engine.now(), what, len(data), crc32(data)))

    def vanish(self) -> None:
        """Close every socket, as the kernel does for a process that was killed."""
        for source in list(self.sources):
            source.close()

    def install(self, middleware: Middleware) -> None:
        """Install in the network below."""
        self._inner.install(middleware)

    def interfaces(self) -> list[Interface]:
        """Of the network below, as everything that follows."""
        return self._inner.interfaces()

    def answers(self, address: Address, source: str, timeout_ms: int) -> bool:
        """As the network says."""
        return self._inner.answers(address, source, timeout_ms)

    def leads_to(self, interface: Interface, host: str) -> bool:
        """As the network below."""
        return self._inner.leads_to(interface, host)

    def in_network(self, address: str, network: str) -> bool:
        """Passed on."""
        return self._inner.in_network(address, network)

    def introduce(self, rank: int, addresses: Iterable[Address]) -> None:
        """Passed on."""
        self._inner.introduce(rank, addresses)

    def rank_at(self, address: Address) -> int:
        """Passed on."""
        return self._inner.rank_at(address)

    @property
    def disturbed(self) -> bool:
        """As the network below."""
        return self._inner.disturbed

    def work(self, receiver: int, rail: str, *, retries: bool = False) -> Work:
        """As the network below."""
        return self._inner.work(receiver, rail, retries=retries)

    def listen(
        self, host: str, ports: Iterable[int] = (0,), *, link: Link | None = None
    ) -> Listener:
        """Passed on; the listener is watched."""
        return WatchedListener(self, self._inner.listen(host, ports, link=link))

    def connect(self, address: Address, source: str = "", *, link: Link | None = None) -> Stream:
        """Passed on; the tap watches the stream."""
        return self._inner.connect(address, source, link=link)

    def datagram(self, host: str, port: int = 0, *, link: Link | None = None) -> Datagram:
        """Passed on; the tap watches the socket."""
        return self._inner.datagram(host, port, link=link)

    def readiness(self) -> Readiness:
        """Passed on; the set is watched."""
        return WatchedReadiness(self, self._inner.readiness())

    def segment(self, name: str, size: int) -> memoryview:
        """Passed on."""
        return self._inner.segment(name, size)

    def region(self, size: int) -> memoryview:
        """Passed on."""
        return self._inner.region(size)

    def release_region(self, address: int, *, pages: bool = True) -> None:
        """Passed on."""
        self._inner.release_region(address, pages=pages)

    def doorbell(self, local_rank: int) -> Doorbell:
        """Passed on."""
        return self._inner.doorbell(local_rank)

    def process_copy(self) -> ProcessCopy | None:
        """Passed on."""
        return self._inner.process_copy()

    def entropy(self, count: int) -> bytes:
        """Passed on."""
        return self._inner.entropy(count)

    def close(self) -> None:
        """Passed on."""
        self._inner.close()


class _Tap(Middleware):
    """Sits next to the wire, below every fault."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def stream(self, stream: Stream, peer: Address) -> Stream:
        """Watch a connection."""
        return WatchedStream(self._wire, stream)

    def datagram(self, datagram: Datagram) -> Datagram:
        """Watch a datagram socket."""
        return WatchedDatagram(self._wire, datagram)


class WatchedStream(WrappedStream):
    """A connection that notes what goes through it."""

    def __init__(self, wire: Wire, inner: Stream) -> None:
        self._wire = wire
        super().__init__(inner)
        wire.sources[self] = "connection"

    def send(self, pieces: Sequence[memoryview]) -> int:
        """Pass on."""
        taken = self.inner.send(pieces)
        if taken and self._wire.recording:
            self._wire.note("bytes sent", b"".join(pieces)[:taken])
        return taken

    def receive_into(self, view: memoryview) -> int:
        """Pass on."""
        count = self.inner.receive_into(view)
        if count != WOULD_BLOCK and self._wire.recording:
            self._wire.note("bytes received", bytes(view[:count]))
        return count

    def close(self) -> None:
        """Pass on."""
        self._wire.sources.pop(self, None)
        self.inner.close()


class WatchedDatagram(Datagram):
    """A datagram socket that notes what goes through it."""

    def __init__(self, wire: Wire, inner: Datagram) -> None:
        self._wire = wire
        self.inner = inner
        self.address = inner.address
        wire.sources[self] = f"datagram socket at {inner.address}"

    def send(self, packet: memoryview, address: Address) -> bool:
        """Pass on."""
        sent = self.inner.send(packet, address)
        if sent and self._wire.recording:
            self._wire.note("packet sent", bytes(packet))
        return sent

    def receive_into(self, view: memoryview) -> tuple[int, Address] | None:
        """Pass on."""
        found = self.inner.receive_into(view)
        if found is not None and self._wire.recording:
            self._wire.note("packet received", bytes(view[: found[0]]))
        return found

    def overrun(self) -> int:
        """Pass on."""
        return self.inner.overrun()

    def close(self) -> None:
        """Pass on."""
        self._wire.sources.pop(self, None)
        self.inner.close()


class WatchedListener(Listener):
    """A listener that says whether it is open."""

    def __init__(self, wire: Wire, inner: Listener) -> None:
        self._wire = wire
        self.inner = inner
        self.address = inner.address
        wire.sources[self] = f"listener at {inner.address}"

    def accept(self) -> Stream | None:
        """Pass on."""
        return self.inner.accept()

    def close(self) -> None:
        """Pass on."""
        self._wire.sources.pop(self, None)
        self.inner.close()


class WatchedReadiness(Readiness):
    """A readiness set that says whether it is open."""

    def __init__(self, wire: Wire, inner: Readiness) -> None:
        self._wire = wire
        self._inner = inner
        wire.watches.append(self)

    def add(self, source: Source, owner: object) -> None:
        """Pass on."""
        self._inner.add(source, owner)

    def want_write(self, source: Source, *, wanted: bool) -> None:
        """Pass on."""
        self._inner.want_write(source, wanted=wanted)

    def hold(self, source: Stream, *, held: bool) -> None:
        """Pass on."""
        self._inner.hold(source, held=held)

    def remove(self, source: Source) -> None:
        """Pass on."""
        self._inner.remove(source)

    def poll(self) -> list[Ready]:
        """Pass on."""
        return self._inner.poll()

    def close(self) -> None:
        """Pass on."""
        if self in self._wire.watches:
            self._wire.watches.remove(self)
        self._inner.close()
