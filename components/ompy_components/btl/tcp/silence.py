"""Notices when the way to a peer on another host dies without a word, where nothing fails over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ompy.engine.base import Engine
    from ompy.engine.timers import Timer

    from ompy_components.btl.tcp.endpoint import TcpEndpoint

LOOKS: Final = 5  # arbitrary: how often within `silence_ms` it is looked whether there is one


class SilenceWatch:
    """Looks at the peers of one module now and then.

    Attributes:
        limit: ns without an acknowledgement after which a path is given up; 0: it never is.
    """

    __slots__ = ("_endpoints", "_engine", "_node", "_timer", "limit")

    def __init__(
        self, engine: Engine, limit: int, node: int, endpoints: Mapping[int, TcpEndpoint]
    ) -> None:
        """Watch `endpoints`, to which the module adds, from a rank on `node`."""
        self.limit = limit
        self._engine = engine
        self._node = node
        self._endpoints = endpoints
        self._timer: Timer | None = None

    def look_after(self, endpoint: TcpEndpoint) -> None:
        """A connection begins: look after it if it leads to another host."""
        elsewhere = endpoint.proc.node != self._node
        watched = bool(self.limit) and elsewhere and endpoint.ask_when_idle()
        if watched and self._timer is None:
            self._look_again()

    def _look_again(self) -> None:
        self._timer = self._engine.call_later(self.limit // LOOKS, self._look)

    def _look(self) -> None:
        now = self._engine.now()
        connected = [endpoint.look(now) for endpoint in list(self._endpoints.values())]
        self._timer = None
        if any(connected):
            self._look_again()

    def close(self) -> None:
        """The module ends."""
        if self._timer is not None:
            self._timer.cancel()
