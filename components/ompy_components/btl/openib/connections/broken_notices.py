"""EP_BROKEN and EP_EAGER_RDMA_ERROR: what is said of a port's connection over another port.

Source: reference openmpi.md 5.7.
"""

from __future__ import annotations

from ompy.frameworks.nic.verbs import VerbsNic
from ompy.frameworks.paths.path_keeper import PathKeeper

from ompy_components.btl.openib.endpoint import OpenibEndpoint
from ompy_components.btl.openib.headers import BadFragment, Broken, pack_broken, unpack_broken
from ompy_components.btl.openib.modex import PortRecord
from ompy_components.btl.openib.sending import SendEngine


class BrokenNotices:
    """Those about the connections of one port.

    Attributes:
        record: the port.
        endpoints: of the port, by rank.
        sending: sends over the port.
        keeper: of its paths.
        ports: all of the rank, this one included.
        told: messages sent.
    """

    def __init__(
        self,
        nic: VerbsNic,
        rank: int,
        record: PortRecord,
        endpoints: dict[int, OpenibEndpoint],
        sending: SendEngine,
    ) -> None:
        self._nic = nic
        self._rank = rank
        self.record = record
        self.endpoints = endpoints
        self.sending = sending
        self.keeper: PathKeeper
        self.ports: list[BrokenNotices] = [self]
        self.told = 0

    def notify(self, endpoint: OpenibEndpoint, kind: int, number: int = 0) -> bool:
        """Tell the peer over an endpoint of another module, if there is one that works."""
        rank, failover = endpoint.proc.rank, self._nic.failover
        for port in self.ports:
            there = port.endpoints.get(rank) if port is not self else None
            if there is not None and there.usable and (there.path.up or failover):
                generation = endpoint.path.life.number
                broken = Broken(self.record.lid, self.record.subnet, self._rank, generation, number)
                port.sending.send_control(there, pack_broken(kind, broken))
                self.told += 1
                return True
        return False

    def _meant(self, broken: Broken) -> tuple[BrokenNotices, OpenibEndpoint] | None:
        """The endpoint whose connection a peer's message is about, unless that is over."""
        for port in self.ports:
            endpoint = port.endpoints.get(broken.rank)
            if (
                endpoint is not None
                and endpoint.record.lid == broken.lid
                and endpoint.record.subnet == broken.subnet
                and (not self._nic.failover or endpoint.path.life.number == broken.connection)
            ):
                return port, endpoint
        return None

    def told_broken(self, endpoint: OpenibEndpoint, message: memoryview) -> None:
        """EP_BROKEN: the peer's end of a connection has failed. Raises BadFragment."""
        broken = _said(endpoint, message)
        meant = self._meant(broken)
        if meant is not None:
            port, its = meant
            port.keeper.given_up(its.path, broken.connection)

    def told_missing(self, endpoint: OpenibEndpoint, message: memoryview) -> None:
        """EP_EAGER_RDMA_ERROR: a write to our ring will never come. Raises BadFragment."""
        broken = _said(endpoint, message)
        meant = self._meant(broken)
        if meant is not None and meant[1].incoming is not None:
            meant[1].incoming.failed(broken.number)


def _said(endpoint: OpenibEndpoint, message: memoryview) -> Broken:
    """What a peer says about a connection of its own."""
    said = unpack_broken(message)
    if said.rank != endpoint.proc.rank:
        raise BadFragment(f"{endpoint.proc} speaks for rank {said.rank}")
    return said
