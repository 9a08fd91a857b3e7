"""BTL udpkept: udplite with the failover obligations, which is what this file adds to it.

Each datagram says in which generation of its path it was sent. A fragment is complete when the peer
has acknowledged it. A path on which nothing gets through is given up, and taken back, when
`ompy.frameworks.paths.path_keeper` says so: this file says what it sees, and does what is decided.
"""

from __future__ import annotations

from struct import Struct

from ompy.frameworks import btl
from ompy.frameworks.capabilities import Capabilities
from ompy.frameworks.context import RankContext
from ompy.frameworks.paths.path_keeper import PathKeeper, PathUser
from ompy.frameworks.paths.path_life import Opening, Stage
from ompy.frameworks.proc import Proc
from ompy.mca.parameter import Values

from ompy_btl_udplite.component import BYE, HEADER, PAUSE, Peer, UdpLite, UdpLiteModule

GENERATION = Struct("<I")  # in front of the header
WORD = BYE + 1  # tag of a word; the number says the stage
MS = 1_000_000  # ns; Linux counts so
# arbitrary: an unanswered word is said again after 20 ms, then later; silence of 100 ms is a doubt
OPENING = Opening(connects=False, repeat=20 * MS, repeat_max=320 * MS, tries=8)
SILENCE = 100 * MS


class KeptPeer(Peer, PathUser):
    """A peer whose path may break, and be taken back."""

    def __init__(self, module: KeptModule, proc: Proc) -> None:
        super().__init__(module, proc)
        self.descriptors: dict[int, btl.Descriptor] = {}  # not acknowledged, by number
        self.heard = 0
        self.keeper_path = module.keeper.keep(self, self, number=1)

    def ends(self) -> tuple[str, str, str]:
        """As the socket has them."""
        assert isinstance(self.module, KeptModule)
        return self.module.socket.ends(self.proc)

    def progress(self) -> object:
        """Datagrams that have come."""
        return self.heard

    def open_ended(self) -> bool:
        """Somebody waits for a completion."""
        return bool(self.descriptors)

    def stop(self, reason: str) -> None:
        """What was kept is not sent again."""
        self.kept.clear()
        self.early.clear()

    def fail_open(self) -> None:
        """All that was not acknowledged."""
        failed, self.descriptors = self.descriptors, {}
        for descriptor in failed.values():
            self.complete(descriptor, btl.UNREACHABLE)

    def renew(self, number: int) -> None:
        """Count from 0 again."""
        self.next = self.expected = 0

    def say(self, number: int, stage: Stage) -> None:
        """A datagram without a fragment."""
        assert isinstance(self.module, KeptModule)
        self.module.transmit(self, stage.value, WORD)

    def acknowledge(self, expected: int) -> None:
        """Those below it are there."""
        for number in [number for number in self.descriptors if number < expected]:
            if number in self.descriptors:  # still
                self.complete(self.descriptors.pop(number), 0)

    def complete(self, descriptor: btl.Descriptor, status: int) -> None:
        """Tell who waits for it."""
        if descriptor.callback is not None:
            descriptor.callback.completed(self.module, self, descriptor, status)


class KeptModule(UdpLiteModule):
    """As the module it is made of, with the obligations."""

    def __init__(self, context: RankContext, values: Values) -> None:
        super().__init__(context, values, "udpkept")
        self.flags |= btl.FAILOVER_SUPPORT
        self.keeper = PathKeeper(self, OPENING, SILENCE)

    def begin_failover(self) -> bool:
        """From now on broken paths are not the end."""
        self.keeper.begun = True
        return True

    def peer_gave_up(self, proc: Proc, path: bytes, number: int) -> None:
        """A notice."""
        self.keeper.gave_up(proc, path, number)

    def reach(self, proc: Proc) -> KeptPeer | None:
        """Every rank that has published an address."""
        if proc.rank not in self.peers and self.socket.reaches(proc):
            self.peers[proc.rank] = KeptPeer(self, proc)
        found = self.peers.get(proc.rank)
        assert found is None or isinstance(found, KeptPeer)
        return found

    def kept_peers(self) -> list[KeptPeer]:
        """All of them."""
        return [peer for peer in self.peers.values() if isinstance(peer, KeptPeer)]

    def send(self, endpoint: btl.Endpoint, descriptor: btl.Descriptor, tag: int) -> int:
        """Complete when it is acknowledged; before the end of a job nobody waits for that."""
        peer = self.reach(endpoint.proc)
        if peer is None or not peer.keeper_path.up or peer.left or peer.proc.departed:
            return btl.UNREACHABLE
        descriptor.tag = tag
        number = peer.next
        super().send(endpoint, btl.Descriptor(descriptor.segment, 0, btl.NO_ORDER), tag)
        peer.descriptors[number] = descriptor
        peer.keeper_path.waiting()
        return btl.QUEUED

    def transmit(self, peer: Peer, number: int, tag: int, fragment: bytes = b"") -> None:
        """With the generation in front."""
        assert isinstance(peer, KeptPeer)
        generation = GENERATION.pack(peer.keeper_path.life.number)
        self.socket.send(peer.proc, generation, HEADER.pack(tag, number, peer.expected), fragment)
        if not self.timer.pending:
            self.timer = self.context.engine.call_later(PAUSE, self.resend)

    def take(self, peer: Peer, packet: memoryview) -> None:
        """Only what belongs to the generation that the path is in; words may be of another one."""
        assert isinstance(peer, KeptPeer)
        path = peer.keeper_path
        (generation,) = GENERATION.unpack_from(packet)
        packet = packet[GENERATION.size :]
        tag, number, expected = HEADER.unpack_from(packet)
        if tag == WORD:
            path.word(generation, Stage(number))
        elif generation == path.life.number:
            path.data()
            if path.up:
                peer.heard += 1
                peer.acknowledge(expected)
            if path.up:  # still: who was told of a completion may have broken it
                super().take(peer, packet)
        if peer.left:
            path.left()

    def finalize(self) -> None:
        """As without, once all is acknowledged, or broken for good."""
        self.keeper.ending()
        self.context.engine.wait_until(lambda: not any(p.open_ended() for p in self.kept_peers()))
        super().finalize()
        self.keeper.close()


class UdpKept(UdpLite):
    """Used as udplite is, under a PML that fails over."""

    name = "udpkept"
    capabilities = Capabilities(reach="network", wire="datagram", checksum=True, heals=True)

    def init(self, context: RankContext) -> list[btl.BtlModule]:
        """One module."""
        return [KeptModule(context, self.values)] if context.size > 1 else []


COMPONENT = UdpKept()
