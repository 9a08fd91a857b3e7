"""The connections of one module, as its readiness set knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ompy.engine.base import Engine, Poller
    from ompy.net.base import Readiness, Stream


class Sockets:
    """Of one module.

    Attributes:
        readiness: the set; the listener is in it, too.
        count: connections that are served.
    """

    __slots__ = ("_engine", "_poller", "count", "readiness")

    def __init__(self, readiness: Readiness, engine: Engine, poller: Poller) -> None:
        """While there are any the engine calls `poller` in each of its rounds."""
        self.readiness = readiness
        self.count = 0
        self._engine = engine
        self._poller = poller

    def watch(self, stream: Stream, owner: object) -> None:
        """Serve a connection from now on."""
        self.readiness.add(stream, owner)
        self.count += 1
        self._engine.poll_seldom(self._poller, seldom=False)

    def unwatch(self, stream: Stream) -> None:
        """Serve it no longer. With none left the module asks to be called seldom."""
        self.readiness.remove(stream)
        self.count -= 1
