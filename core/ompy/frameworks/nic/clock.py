"""The clock of an emulated device: what its work takes, in the virtual world.

Software that stands in for a device takes the time of its code, which says nothing of the device.
In the virtual world code takes no time, so the device's can be modelled: a `Stage` is a part of it
that does one thing after another (the processor's stores to it, its engine for block transfers, its
receiving side), and a `Cost` is what one thing takes there. What has gone through the last stage
happens when the clock says so, by `Engine.device_later`: also while the rank's program computes.
In the real world there is no model: what can be done is done at once.

Between hosts the link is part of the device, too: its sockets are made with a `Link`.

This is the LogGP model with a station for each of its resources: overhead is the cost of the
processor's stage, gap and gap per byte the cost of the others, latency what the link adds.

Source: Alexandrov et al., LogGP: incorporating long messages into the LogP model, 1995.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ompy.engine.base import Engine
    from ompy.net.base import Network


@dataclass(frozen=True, slots=True)
class Cost:
    """What one piece of work takes in a stage.

    Attributes:
        fixed: ns, whatever its size.
        rate: MB/s (10^6 bytes) at which it passes its bytes; 0: they take no time.
        per_packet: ns for each packet that its bytes are cut into.
        packet: bytes of those; 0: it is not cut.
    """

    fixed: int
    rate: int = 0
    per_packet: int = 0
    packet: int = 0

    def of(self, size: int) -> int:
        """Nanoseconds for `size` bytes."""
        packets = max(1, -(-size // self.packet)) if self.packet else 1
        passing = size * 1_000 // self.rate if self.rate else 0  # a byte takes 1000 ns at 1 MB/s
        return self.fixed + packets * self.per_packet + passing


class Stage:
    """A part of a device that does one thing after another.

    Attributes:
        free: ns of the clock at which it has done all it was given.
        busy: ns for which it was at work, all in all.
    """

    __slots__ = ("busy", "free")

    def __init__(self) -> None:
        self.free = 0
        self.busy = 0

    def schedule_work(self, since: int, duration: int) -> int:
        """Give it work that is there at `since`. Returns when it is done."""
        self.free = max(self.free, since) + duration
        self.busy += duration
        return self.free


class DeviceClock:
    """When the effects of one device happen.

    Attributes:
        runs: time is modelled. Otherwise all happens at once.
    """

    __slots__ = ("_engine", "runs")

    def __init__(self, engine: Engine, network: Network, *, wanted: bool) -> None:
        """A clock that runs in the virtual world, if it is wanted."""
        self._engine = engine
        self.runs = wanted and network.virtual

    def now(self) -> int:
        """Nanoseconds of the rank's clock."""
        return self._engine.now()

    def at(self, when: int, effect: Callable[[], object]) -> None:
        """Have something happen at `when`; at once where that is past, or no clock runs.

        Effects of the same moment happen in the order in which they were given.
        """
        delay = when - self._engine.now() if self.runs else 0
        if delay > 0:
            self._engine.device_later(delay, effect)
        else:
            effect()
