"""The port of a device of the virtual world, through which its packets come, whoever sent them.

Each sender's packets have passed that sender's link one after another. Where several send to one
receiver they meet in front of its port: in the switch, which passes one packet after another at the
link's bandwidth and holds so many bytes of those that wait. What finds no room is lost. A
packet passes while it arrives, so one that nothing is in front of is not late; but the device takes
in only so many packets a second, however short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ompy.engine.virtual_engine import Scheduler
    from ompy.net.virtual.virtual_rail import Rail


class Port:
    """A rank's end of a device's link."""

    __slots__ = ("_free", "_longest", "_rail")

    def __init__(self, rail: Rail) -> None:
        """With the rail's bandwidth, bytes that may wait, and least time of a packet."""
        self._rail = rail
        self._longest = rail.passing(rail.buffer)  # that a packet waits
        self._free = 0

    def passed(self, now: int, size: int) -> int | None:
        """When a packet has passed whose last byte would be here now; None: it is lost."""
        passing = max(self._rail.per_packet, self._rail.passing(size))
        waits = max(0, self._free - (now - passing))
        if waits > self._longest and self._rail.bandwidth:
            return None
        self._free = now + waits
        return self._free

    def takes(self, scheduler: Scheduler, size: int, effect: Callable[[], None]) -> bool:
        """Have a packet that arrives now take effect when it has passed. False: it is lost."""
        now = scheduler.time
        passed = self.passed(now, size)
        if passed is None:
            return False
        if passed > now:
            scheduler.after(passed - now, effect)
        else:
            effect()
        return True


class Ports:
    """Of all ranks, by the rail as their devices' links have it."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[tuple[int, Rail], Port] = {}

    def of(self, rank: int, rail: Rail) -> Port | None:
        """Where datagrams for a rank come in; None where that is not modelled."""
        if not rail.buffer:
            return None
        if (rank, rail) not in self._made:
            self._made[rank, rail] = Port(rail)
        return self._made[rank, rail]
