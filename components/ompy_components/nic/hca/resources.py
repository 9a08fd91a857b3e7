"""What the queue pairs of one device share, beside the device itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ompy.frameworks.nic.stations import Stations

    from ompy_components.nic.hca.doubts import Doubts
    from ompy_components.nic.hca.port import Port
    from ompy_components.nic.hca.schedule import Schedule


class Resources(NamedTuple):
    """Of one device while it is open.

    Attributes:
        schedule: when there is something to do.
        port: its socket.
        doubts: peers that do not answer.
        stations: what its work takes in simulated worlds.
        mtu: bytes of a packet.
        window: packets of one queue pair under way at most.
        reads_max: reads and atomics of one under way at most.
        reordering: ns that an early packet waits for those before it.
    """

    schedule: Schedule
    port: Port
    doubts: Doubts
    stations: Stations
    mtu: int
    window: int
    reads_max: int
    reordering: int
