"""A network of the virtual world, and what it is to a device that has a link of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ompy.net.base import Link

NS: Final = 8_000  # ns of a byte at 1 Mbit/s; reference: eight bits, a microsecond each
WINDOW: Final = 65_536  # bytes; arbitrary: what a stream holds, a kernel's buffer


@dataclass(frozen=True, slots=True)
class Rail:
    """One network all hosts are on.

    Attributes:
        name: interface name on every host.
        latency: ns from end to end.
        jitter: ns added at random, up to this.
        bandwidth: Mbit/s of each rank's link to it.
        window: bytes a stream holds that the receiver has not read.
        mtu: bytes of the largest packet the interfaces say they take; nothing cuts longer ones.
        chosen: somebody asked for this latency and bandwidth: no device has a link of its own.
        buffer, per_packet: of a device's port, as `Link` has them.
    """

    name: str
    latency: int = 10_000
    jitter: int = 5_000
    bandwidth: int = 10_000
    window: int = WINDOW
    mtu: int = 1_500
    chosen: bool = True
    buffer: int = 0
    per_packet: int = 0

    def passing(self, size: int) -> int:
        """Nanoseconds that so many bytes take on a link; none where it has no bound."""
        return size * NS // self.bandwidth if self.bandwidth else 0

    def through(self, link: Link | None) -> Rail:
        """The rail as a device with this link of its own sees it: no steadier than it is."""
        if link is None or self.chosen:
            return self
        jitter = link.latency * self.jitter // max(self.latency, 1)
        return replace(self, jitter=jitter, **link._asdict())
