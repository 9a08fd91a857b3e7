"""Counts what a rank's rails carry, by peer and interface: for who watches them.

A middleware that changes nothing. It is installed first, so that it lies below any fault: what a
fault swallows is not counted. Where nobody watches there is none, and nothing is counted.
"""

from __future__ import annotations

from collections.abc import Sequence

from ompy.net.base import Address, Datagram, Middleware, Network, Stream
from ompy.net.faults.wrapped import WrappedStream

Key = tuple[int, str]  # rank at the other end, -1 before that is known; interface


class Meter(Middleware):
    """The counts of one rank.

    Attributes:
        gone: bytes of packets, and of connections that are closed.
        open: the connections that are not.
    """

    def __init__(self, network: Network) -> None:
        """Make it; it still has to be installed in the rank's network."""
        self.gone: dict[Key, int] = {}
        self.open: set[MeteredStream] = set()
        self._network = network

    def stream(self, stream: Stream, peer: Address) -> Stream:
        """Count what the connection takes."""
        rail = self._network.rail_to(peer.host)
        made = MeteredStream(self, stream, self._network.rank_at(peer), rail)
        self.open.add(made)
        return made

    def datagram(self, datagram: Datagram) -> Datagram:
        """Count what the socket takes."""
        rail = self._network.rail_to(datagram.address.host)
        return MeteredDatagram(self, datagram, self._network, rail)

    def carried(self) -> dict[Key, int]:
        """Bytes sent so far, by rank at the other end and name of the interface.

        Of connections those that the other host's kernel has, as far as ours can tell: it takes
        far more at once than a rail carries. Headers of IP and below are not counted.
        """
        found = dict(self.gone)
        for stream in self.open:
            found[stream.key] = found.get(stream.key, 0) + stream.carried()
        return found


class MeteredStream(WrappedStream):
    """A connection whose bytes are counted.

    Attributes:
        key: whom it leads to, and over which interface.
    """

    __slots__ = ("_meter", "_taken", "key")

    def __init__(self, meter: Meter, inner: Stream, peer: int, rail: str) -> None:
        self._meter = meter
        self._taken = 0
        self.key: Key = (peer, rail)
        super().__init__(inner)

    def carried(self) -> int:
        """Bytes that have got to the other host."""
        return self._taken - self.inner.unacknowledged()

    def belongs_to(self, rank: int) -> None:
        """From now on it is known who is at the other end."""
        self.key = (rank, self.key[1])
        self.inner.belongs_to(rank)

    def send(self, pieces: Sequence[memoryview]) -> int:
        """As the stream below; what it takes counts."""
        taken = self.inner.send(pieces)
        self._taken += taken
        return taken

    def close(self) -> None:
        """As the stream below; what it carried has been carried."""
        if self in self._meter.open:
            self._meter.open.remove(self)
            gone = self._meter.gone
            gone[self.key] = gone.get(self.key, 0) + self.carried()
        self.inner.close()


class MeteredDatagram(Datagram):
    """A datagram socket whose packets are counted.

    Attributes:
        inner: the socket it wraps.
    """

    __slots__ = ("_gone", "_network", "_rail", "address", "inner")

    def __init__(self, meter: Meter, inner: Datagram, network: Network, rail: str) -> None:
        self._gone = meter.gone
        self._network = network
        self._rail = rail
        self.inner = inner
        self.address = inner.address

    def _count(self, address: Address, size: int) -> None:
        key = (self._network.rank_at(address), self._rail)
        self._gone[key] = self._gone.get(key, 0) + size

    def send(self, packet: memoryview, address: Address) -> bool:
        """As the socket below; what it takes counts."""
        taken = self.inner.send(packet, address)
        if taken:
            self._count(address, len(packet))
        return taken

    def receive_into(self, view: memoryview) -> tuple[int, Address] | None:
        """As the socket below."""
        return self.inner.receive_into(view)

    def send_run(self, packets: Sequence[memoryview], address: Address) -> int:
        """As the socket below; the packets it takes count."""
        taken = self.inner.send_run(packets, address)
        if taken:
            self._count(address, sum(len(packet) for packet in packets[:taken]))
        return taken

    def receive_run_into(self, view: memoryview) -> tuple[int, int, Address] | None:
        """As the socket below."""
        return self.inner.receive_run_into(view)

    def overrun(self) -> int:
        """As the socket below."""
        return self.inner.overrun()

    def close(self) -> None:
        """As the socket below."""
        self.inner.close()
