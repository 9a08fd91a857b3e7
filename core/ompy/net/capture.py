"""Keeps what a traced rank sends, packet by packet: what `ompy trace --pcapng` makes packets of.

A middleware that changes nothing. It is installed first, so that it lies below any fault: what a
fault swallows was not sent. It is there only where `trace_base_wire` asks for it.

    FLOW    flow, protocol, via (`datagram` or `stream`), rail, host, port; of a stream peer, to
            and to_port: its other end
    SENT    flow, size, data; of a datagram peer, to and to_port; of a stream `offset` of the first
            byte, and `heard`: bytes that had been read from it by then

`data` are the first bytes, in base64. What one call writes to a connection is several SENT where it
is more than a TCP segment may hold.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ompy.net.base import Address, Datagram, Middleware, Network, Stream
from ompy.net.faults.wrapped import WrappedStream

if TYPE_CHECKING:
    from ompy.trace.sink import Trace

LAYER: Final = "wire"
# bytes; reference RFC 791, 8200, 9293: a packet of 65535 with both headers
SEGMENT_MAX: Final = 65_480
DATAGRAM: Final = "datagram"
STREAM: Final = "stream"


class Capture(Middleware):
    """What one rank keeps."""

    def __init__(self, network: Network, trace: Trace, most: int) -> None:
        """Make it; it still has to be installed in the rank's network.

        Args:
            network: of the rank.
            trace: where events go.
            most: bytes to keep of each packet.
        """
        self.network = network
        self.trace = trace
        self.most = most
        self._flows = 0

    def next_flow(self) -> int:
        """A number for what comes from one socket."""
        self._flows += 1
        return self._flows

    def stream(self, stream: Stream, peer: Address) -> Stream:
        """Keep what the connection takes."""
        return CapturedStream(self, stream, peer)

    def datagram(self, datagram: Datagram) -> Datagram:
        """Keep what the socket takes."""
        return CapturedDatagram(self, datagram)

    def write_packet(
        self, time: int, data: Sequence[memoryview], size: int, **fields: object
    ) -> None:
        """Write a packet.

        Args:
            time: when it was handed over: before that, as an answer may be here right behind it.
            data: its bytes, or more than those that are kept.
            size: of the packet.
            fields: of the event.
        """
        kept = beginning(data, min(self.most, size))
        text = b2a_base64(kept, newline=False).decode()
        self.trace.record_at(time, LAYER, "SENT", **fields, size=size, data=text)


def beginning(pieces: Sequence[memoryview], most: int) -> bytes:
    """The first bytes of pieces, `most` at most."""
    found = bytearray()
    for piece in pieces:
        if len(found) >= most:
            break
        found += piece[: most - len(found)]
    return bytes(found)


def _behind(pieces: Sequence[memoryview], count: int) -> list[memoryview]:
    """Pieces without their first bytes."""
    left: list[memoryview] = []
    for piece in pieces:
        if count < len(piece):
            left.append(piece[count:])
        count = max(count - len(piece), 0)
    return left


class CapturedStream(WrappedStream):
    """A connection whose bytes are kept."""

    __slots__ = ("_capture", "_flow", "_heard", "_peer", "_protocol", "_rank", "_sent")

    def __init__(self, capture: Capture, inner: Stream, peer: Address) -> None:
        super().__init__(inner)
        self._capture = capture
        self._peer = peer
        self._rank = capture.network.rank_at(peer)
        self._protocol = ""
        self._flow = 0
        self._sent = 0
        self._heard = 0

    def carries(self, protocol: str) -> None:
        """From now on it is known what goes over it."""
        self._protocol = protocol

    def belongs_to(self, rank: int) -> None:
        """From now on it is known who is at the other end."""
        self._rank = rank
        self.inner.belongs_to(rank)

    def send(self, pieces: Sequence[memoryview]) -> int:
        """As the stream below; what it takes is kept."""
        time = self._capture.trace.clock()
        taken = self.inner.send(pieces)
        if taken and self._capture.trace.active:
            self._keep(time, pieces, taken)
        return taken

    def _keep(self, time: int, pieces: Sequence[memoryview], taken: int) -> None:
        if not self._flow:
            self._begin(time)
        flow, heard = self._flow, self._heard
        left = list(pieces)
        while taken:
            size = min(taken, SEGMENT_MAX)
            where = {"flow": flow, "offset": self._sent, "heard": heard}
            self._capture.write_packet(time, left, size, **where)
            self._sent += size
            taken -= size
            left = _behind(left, size) if taken else []

    def _begin(self, time: int) -> None:
        capture = self._capture
        self._flow = capture.next_flow()
        own, peer = self.own_address(), self._peer
        rail = capture.network.rail_to(peer.host)
        about = {"flow": self._flow, "protocol": self._protocol, "via": STREAM, "rail": rail}
        ends = {"host": own.host, "port": own.port, "to": peer.host, "to_port": peer.port}
        capture.trace.record_at(time, LAYER, "FLOW", **about, **ends, peer=self._rank)

    def receive_into(self, view: memoryview) -> int:
        """As the stream below, counted."""
        count = self.inner.receive_into(view)
        if count > 0:
            self._heard += count
        return count


class CapturedDatagram(Datagram):
    """A datagram socket whose packets are kept.

    Attributes:
        inner: the socket it wraps.
    """

    __slots__ = ("_capture", "_flow", "_protocol", "address", "inner")

    def __init__(self, capture: Capture, inner: Datagram) -> None:
        self._capture = capture
        self._protocol = ""
        self._flow = 0
        self.inner = inner
        self.address = inner.address

    def carries(self, protocol: str) -> None:
        """From now on it is known what goes over it."""
        self._protocol = protocol

    def _keep(self, time: int, packet: memoryview, address: Address) -> None:
        capture = self._capture
        if not capture.trace.active:
            return
        if not self._flow:
            self._flow = capture.next_flow()
            rail = capture.network.rail_to(self.address.host)
            about = {"flow": self._flow, "protocol": self._protocol, "via": DATAGRAM, "rail": rail}
            own = {"host": self.address.host, "port": self.address.port}
            capture.trace.record_at(time, LAYER, "FLOW", **about, **own)
        to = {"to": address.host, "to_port": address.port}
        peer = capture.network.rank_at(address)
        capture.write_packet(time, (packet,), len(packet), flow=self._flow, peer=peer, **to)

    def send(self, packet: memoryview, address: Address) -> bool:
        """As the socket below; what it takes is kept."""
        time = self._capture.trace.clock()
        taken = self.inner.send(packet, address)
        if taken:
            self._keep(time, packet, address)
        return taken

    def receive_into(self, view: memoryview) -> tuple[int, Address] | None:
        """As the socket below."""
        return self.inner.receive_into(view)

    def send_run(self, packets: Sequence[memoryview], address: Address) -> int:
        """As the socket below; the packets it takes are kept."""
        time = self._capture.trace.clock()
        taken = self.inner.send_run(packets, address)
        for packet in packets[:taken]:
            self._keep(time, packet, address)
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
