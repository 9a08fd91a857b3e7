"""Peers that have not answered for a while: whether that is the path's fault.

The agents of both hosts, which never compute, are asked to try the path
(`ompy.frameworks.paths.path_watch`) until something comes from the peer. A peer that is only busy
keeps its link.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Protocol

from ompy.frameworks.paths.path_watch import PathVerdict, PathWatch

if TYPE_CHECKING:
    from ompy.engine.timers import Timer
    from ompy.net.base import Address

    from ompy_components.nic.ofi_emulated.resources import Resources


class Waiting(Protocol):
    """A way to a peer, over which something may be under way.

    Attributes:
        rank: of the peer.
        listener: where it listens.
        heard: when something came from it last, ns.
    """

    rank: int
    listener: Address
    heard: int

    @property
    def waits(self) -> bool:
        """Whether an answer of the peer is due."""

    def broken(self, number: int, why: str) -> None:
        """None will come."""


class Doubts:
    """Of one domain.

    Attributes:
        pressing: a verdict has come.
    """

    def __init__(
        self,
        resources: Resources,
        patience: int,
        failover: Callable[[], bool],
        links: Collection[Waiting],
    ) -> None:
        """None yet.

        Args:
            resources: of the domain.
            patience: ns without a word before the agents are asked; 0: they never are.
            failover: whether the device's user goes on over another rail when a path is dead.
            links: that there are, at any time.
        """
        self.pressing = False
        self._context = resources.context
        self._interface = resources.interface
        self._wake_in = resources.wake_in
        self._patience = patience
        self._failover = failover
        self._links = links
        self._watches: dict[Waiting, PathWatch] = {}
        self._timer: Timer | None = None
        self._due = False

    def begin(self) -> None:
        """Something waits: look again when patience is at its end."""
        if self._timer is None and self._patience:
            self._timer = self._context.engine.call_later(self._patience, self._expired)

    def _expired(self) -> None:
        self._timer = None
        self._due = self.pressing = True

    def look(self) -> None:
        """Ask about who has been silent for too long, forget who has not, act on verdicts."""
        if not self.pressing:
            return
        self.pressing = False
        now = self._context.engine.now()
        for link in list(self._links):
            silent = link.waits and now - link.heard >= self._patience
            watch = self._watches.get(link)
            if not silent:
                self.settle(link)
            elif watch is None:
                self._watches[link] = self._watch(link)
            elif watch.verdict is PathVerdict.DEAD:
                link.broken(errno.EHOSTUNREACH, watch.why)
        if any(link.waits for link in self._links):
            self.begin()

    def _watch(self, link: Waiting) -> PathWatch:
        return self._context.paths.watch(
            self._context.procs[link.rank],
            self._interface.address,
            link.listener.host,
            self._interface.name,
            self._changed,
            failover=self._failover(),
        )

    def _changed(self) -> None:
        """A verdict is another one. It is acted on when a completion queue is read."""
        self.pressing = True
        self._wake_in(0)

    def settle(self, link: Waiting) -> None:
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
