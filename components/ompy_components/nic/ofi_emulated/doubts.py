"""Peers that have not answered for a while: whether that is the path's fault.

The agents of both hosts, which never compute, are asked to try the path (`ompy.frameworks.paths`)
until something comes from the peer. A peer that is only busy keeps its link.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from ompy.frameworks.paths import PathVerdict, PathWatch

if TYPE_CHECKING:
    from ompy.engine.timers import Timer

    from ompy_components.nic.ofi_emulated.domain import EmulatedDomain
    from ompy_components.nic.ofi_emulated.link import Link


class Doubts:
    """Of one domain.

    Attributes:
        pressing: a verdict has come.
    """

    def __init__(self, domain: EmulatedDomain, patience: int) -> None:
        """None yet.

        Args:
            domain: whose links.
            patience: ns without a word before the agents are asked; 0: they never are.
        """
        self.pressing = False
        self._domain = domain
        self._patience = patience
        self._watches: dict[Link, PathWatch] = {}
        self._timer: Timer | None = None
        self._due = False

    def begin(self) -> None:
        """Something waits: look again when patience is at its end."""
        if self._timer is None and self._patience:
            self._timer = self._domain.engine.call_later(self._patience, self._expired)

    def _expired(self) -> None:
        self._timer = None
        self._due = self.pressing = True

    def look(self) -> None:
        """Ask about who has been silent for too long, forget who has not, act on verdicts."""
        if not self.pressing:
            return
        self.pressing = False
        now = self._domain.engine.now()
        for link in self._domain.links:
            silent = link.waits and now - link.heard >= self._patience
            watch = self._watches.get(link)
            if not silent:
                self.settle(link)
            elif watch is None:
                self._watches[link] = self._watch(link)
            elif watch.verdict is PathVerdict.DEAD:
                link.broken(errno.EHOSTUNREACH, watch.why)
        if any(link.waits for link in self._domain.links):
            self.begin()

    def _watch(self, link: Link) -> PathWatch:
        domain = self._domain
        return domain.context.paths.watch(
            domain.context.procs[link.rank],
            domain.interface.address,
            link.listener.host,
            domain.interface.name,
            self._changed,
            failover=domain.failover,
        )

    def _changed(self) -> None:
        """A verdict is another one. It is acted on when a completion queue is read."""
        self.pressing = True
        self._domain.wake_in(0)

    def settle(self, link: Link) -> None:
        """Nobody has to know any more."""
        watch = self._watches.pop(link, None)
        if watch is not None:
            watch.end()

    def close(self) -> None:
        """Nothing is asked any more."""
        for link in list(self._watches):
            self.settle(link)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
