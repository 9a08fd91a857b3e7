"""BTL udplite: fragments over UDP, made reliable by a sliding window.

The fragments to a peer are numbered from 0. The sender keeps each until the peer acknowledges it,
and takes new ones from the PML while it keeps fewer than a window of them. Now and then it sends
all it keeps once more. The receiver answers each datagram with the number it waits for, which
acknowledges all below it; what comes early it puts aside. A peer that computes answers nobody, so
no peer is ever given up.
"""

from __future__ import annotations

from struct import Struct
from typing import cast

from ompy.frameworks import btl
from ompy.frameworks.btl_base.btl_parameters import common_parameters
from ompy.frameworks.capabilities import Capabilities
from ompy.frameworks.context import RankContext
from ompy.frameworks.datagrams import JobDatagrams
from ompy.frameworks.proc import Proc
from ompy.mca.parameter import Parameter, Values

HEADER = Struct("<HQQ")  # tag, number, and the number the sender expects next from the receiver
ACK, BYE = btl.TAGS, btl.TAGS + 1  # tags beside those of fragments
PAUSE = 50_000_000  # ns; arbitrary: longer than a rank waits for its turn on a full host
# arbitrary: three peers that send four each at once just fill a socket
WINDOW = Parameter("window", "int", 4, "Fragments under way.", level=5, unit="fragments", minimum=1)


class Peer(btl.Endpoint):
    """A peer, and where the two streams of fragments, to it and from it, have got to."""

    def __init__(self, module: btl.BtlModule, proc: Proc) -> None:
        super().__init__(module, proc)
        self.next = self.expected = 0  # numbers of the next fragment to it and from it
        self.kept: dict[int, tuple[int, bytes]] = {}  # sent and not acknowledged, by number
        self.early: dict[int, tuple[int, memoryview]] = {}  # here before their turn, by number
        self.left = False  # it has said that it needs nothing more


class UdpLiteModule(btl.BtlModule):
    """The way to every rank that has udplite too."""

    def __init__(self, context: RankContext, values: Values, name: str = "udplite") -> None:
        super().__init__(name, context, values)
        self.window: int = values.window
        self.peers: dict[int, Peer] = {}
        self.socket = JobDatagrams(context, f"btl.{name}")
        self.timer = context.engine.call_later(0, self.resend)

    def reach(self, proc: Proc) -> Peer | None:
        """Every rank that has published an address."""
        if proc.rank not in self.peers and self.socket.reaches(proc):
            self.peers[proc.rank] = Peer(self, proc)
        return self.peers.get(proc.rank)

    def has_room(self, endpoint: btl.Endpoint) -> bool:
        """Take fragments while the window is open; those to a peer that is gone, to refuse them."""
        peer = self.peers[endpoint.proc.rank]
        return len(peer.kept) < self.window or peer not in self.waiting()

    def send(self, endpoint: btl.Endpoint, descriptor: btl.Descriptor, tag: int) -> int:
        """Keep a copy and send it: that is all the PML has to wait for."""
        peer = self.peers[endpoint.proc.rank]
        if peer.left or peer.proc.departed:
            return btl.UNREACHABLE
        fragment = peer.kept[peer.next] = tag, bytes(descriptor.segment)
        self.transmit(peer, peer.next, *fragment)
        peer.next += 1
        return self.finish(endpoint, descriptor)

    def transmit(self, peer: Peer, number: int, tag: int, fragment: bytes = b"") -> None:
        """Send one datagram; what comes of it shows when the timer runs out."""
        self.socket.send(peer.proc, HEADER.pack(tag, number, peer.expected), fragment)
        if not self.timer.pending:
            self.timer = self.context.engine.call_later(PAUSE, self.resend)

    def resend(self) -> None:
        """Send everything again that is not acknowledged."""
        for peer in self.waiting():
            for number, (tag, fragment) in peer.kept.items():
                self.transmit(peer, number, tag, fragment)

    def waiting(self) -> list[Peer]:
        """The peers that have something to acknowledge, and may still do so."""
        return [p for p in self.peers.values() if p.kept and not (p.left or p.proc.departed)]

    def poll(self) -> int:
        """Take in what has arrived."""
        arrived = self.socket.arrived()
        for proc, packet in arrived:
            self.take(cast("Peer", self.reach(proc)), packet)  # who sends has published an address
        return len(arrived)

    def take(self, peer: Peer, packet: memoryview) -> None:
        """Drop what is acknowledged, hand out the fragments whose turn it is, answer."""
        tag, number, expected = HEADER.unpack_from(packet)
        peer.kept = {n: fragment for n, fragment in peer.kept.items() if n >= expected}
        if tag == ACK:
            return
        if number >= peer.expected:
            peer.early[number] = tag, packet[HEADER.size :]
        while peer.expected in peer.early:
            tag, fragment = peer.early.pop(peer.expected)
            peer.expected += 1
            peer.left = tag == BYE
            if not peer.left:
                self.dispatch(peer, tag, fragment)
        self.transmit(peer, 0, ACK)

    def arm(self) -> bool:
        """Sleep only when no datagram is here; one that comes later ends the sleep."""
        return not self.socket.ready()

    def finalize(self) -> None:
        """Wait until the peers have everything, then tell them that nothing more is needed."""
        self.context.engine.wait_until(lambda: not self.waiting())
        for peer in self.peers.values():
            self.send(peer, btl.Descriptor(memoryview(b""), 0, btl.NO_ORDER), BYE)
        # arbitrary: twenty tries, and then leave: nothing that was sent depends on the answer
        self.context.engine.wait_until(lambda: not self.waiting(), 20 * PAUSE)
        self.timer.cancel()
        self.socket.close()


class UdpLite(btl.BtlComponent):
    """Used where nothing better reaches a peer, or when it is asked for."""

    name = "udplite"
    version = "0.1.0"
    api = (3, 1)
    capabilities = Capabilities(reach="network", wire="datagram", checksum=True)
    # exclusivity below tcp's; measured: twelve datagrams of 16 KiB fit a socket's buffer on Linux
    parameters = (*common_parameters(exclusivity=10, eager_limit=16 * 1024), WINDOW)

    def init(self, context: RankContext) -> list[btl.BtlModule]:
        """One module."""
        return [UdpLiteModule(context, self.values)] if context.size > 1 else []


COMPONENT = UdpLite()
