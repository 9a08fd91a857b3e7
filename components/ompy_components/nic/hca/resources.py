"""What the queue pairs of one device share, beside the device itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ompy.frameworks.nic.base import EventKind
    from ompy.frameworks.nic.stations import Stations
    from ompy.frameworks.nic.verbs import Destination
    from ompy.net.base import Network
    from ompy.trace.sink import Trace

    from ompy_components.nic.hca.doubts import Doubts
    from ompy_components.nic.hca.memory import Regions
    from ompy_components.nic.hca.port import Port
    from ompy_components.nic.hca.schedule import Schedule
    from ompy_components.nic.hca.sender import PacketSender


class Resources(NamedTuple):
    """Of one device while it is open.

    Attributes:
        name: of the device, for people.
        lid: the device's.
        network: of the rank.
        trace: of the rank.
        regions: memory that may be used.
        schedule: when there is something to do.
        port: its socket.
        sender: of packets.
        doubts: peers that do not answer.
        stations: what its work takes in simulated worlds.
        mtu: bytes of a packet.
        window: packets of one queue pair under way at most.
        reads_max: reads and atomics of one under way at most.
        reordering: ns that an early packet waits for those before it.
        depth_max: entries of a queue at most.
        inline_max: bytes that are posted with an entry at most.
        usable: raises NicError unless the device is open and there.
        report: tells whoever uses the device of an event: what it is, a sentence, what it is of.
        introduce: makes the other end of a connection known to the network; whose it is.
    """

    name: str
    lid: int
    network: Network
    trace: Trace
    regions: Regions
    schedule: Schedule
    port: Port
    sender: PacketSender
    doubts: Doubts
    stations: Stations
    mtu: int
    window: int
    reads_max: int
    reordering: int
    depth_max: int
    inline_max: int
    usable: Callable[[], None]
    report: Callable[[EventKind, str, object], None]
    introduce: Callable[[Destination], int]
