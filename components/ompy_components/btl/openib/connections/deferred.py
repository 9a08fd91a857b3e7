"""Endpoints whose path breaks with the next poll: not from within a call of the PML."""

from __future__ import annotations

from ompy_components.btl.openib.endpoint import OpenibEndpoint


class DeferredFailures:
    """Those of one module, each with the reason."""

    __slots__ = ("_reasons",)

    def __init__(self) -> None:
        self._reasons: dict[OpenibEndpoint, str] = {}

    def __bool__(self) -> bool:
        return bool(self._reasons)

    def defer_failure(self, endpoint: OpenibEndpoint, reason: str) -> None:
        """Have its path break; the first reason counts."""
        self._reasons.setdefault(endpoint, reason)

    def settle(self) -> int:
        """Break the paths. Returns how many."""
        events = 0
        while self._reasons:
            endpoint, reason = self._reasons.popitem()
            endpoint.path.broke(reason)
            events += 1
        return events

    def clear(self) -> None:
        """The module ends: they break no more."""
        self._reasons.clear()
