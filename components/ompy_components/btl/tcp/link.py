"""Whether the link of a module's interface is up, as the kernel says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.net.base import LinkNews

if TYPE_CHECKING:
    from collections.abc import Callable

    from ompy.net.base import Interface, Network, Readiness


class Link:
    """Of one module; a loopback has no news."""

    __slots__ = ("_down", "_news", "_readiness")

    def __init__(
        self,
        network: Network,
        interface: Interface,
        readiness: Readiness,
        down: Callable[[], None],
    ) -> None:
        """Call `down` when there is news, and the link is down."""
        self._readiness = readiness
        self._down = down
        self._news: LinkNews | None = None
        if not interface.loopback:
            self._news = network.link_news(interface.name)
        if self._news is not None:
            readiness.add(self._news, self)

    def ready(self, readable: bool, writable: bool) -> int:
        """There is news of some link; without ours every path has failed, as the NIC says."""
        if not self.unplugged():
            return 0
        self._down()
        return 1

    def unplugged(self) -> bool:
        """Whether the interface is known to be down or without a carrier."""
        return self._news is not None and self._news.down()

    def close(self) -> None:
        """Every endpoint is closed."""
        if self._news is not None:
            self._readiness.remove(self._news)
            self._news.close()
