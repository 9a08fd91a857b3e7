"""Who goes on in a world of processes, and until when."""

from __future__ import annotations

import time
from collections.abc import Sequence
from random import Random
from typing import Final

from ompy.engine.virtual_engine import Scheduler, VirtualEngine
from ompy.runtime.exploration.fence import Fence

INTERRUPTED_TWICE_S: Final = 1.0  # arbitrary: as fast as fingers do it on purpose


class SeededScheduler(Scheduler):
    """A scheduler that ends a world which goes on for too long, or is interrupted.

    Each kind of decision at each place has a generator of its own, made of the seed and its name.
    So what a fault adds to one flow, or takes from it, changes no draw of another, and a world
    without that fault is otherwise the same until its effects are felt.

    Attributes:
        interrupted: SIGINT has come. The exception alone may come where it is lost, as in what is
            done when an object dies.
        debugged: a debugger asks the user: SIGINT is for it, unless it comes twice.
        fence: who goes on when no rank has its turn, in a world that is explored.
        in_turn: ranks go on in the order in which they could; nothing is drawn.
    """

    def __init__(self, seed: int, limit: int) -> None:
        super().__init__(seed)
        self._limit = limit
        self._streams: dict[tuple[object, ...], Random] = {}
        self._turns: dict[int, float] = {}
        self.interrupted = self.debugged = False
        self._asked_at = -INTERRUPTED_TWICE_S
        self.in_turn = False
        self.fence: Fence | None = None

    def stream(self, *decision: object) -> Random:
        """One for each."""
        found = self._streams.get(decision)
        if found is None:
            name = "/".join(map(str, (self.seed, *decision)))
            found = self._streams[decision] = Random(name)  # noqa: S311 - chance is the point
        return found

    def choose(self, ready: Sequence[VirtualEngine]) -> int:
        """The one with the lowest number, which each draws once for each turn it is to have."""
        if self.in_turn:
            return 0
        for engine in ready:
            if engine.rank not in self._turns:
                self._turns[engine.rank] = self.stream("turn", engine.rank).random()
        chosen = min(range(len(ready)), key=lambda index: self._turns[ready[index].rank])
        del self._turns[ready[chosen].rank]
        return chosen

    def interrupt(self, *_: object) -> None:
        """The handler of SIGINT."""
        before, self._asked_at = self._asked_at, time.monotonic()
        if self.debugged and self._asked_at - before > INTERRUPTED_TWICE_S:
            return
        self.interrupted = True
        raise KeyboardInterrupt

    def _step(self) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        if self.fence is not None and not self._ready and self.fence.pass_turn():
            return
        super()._step()
        if self.time > self._limit:
            raise TimeoutError(f"no end after {self._limit / 1e9:g} s of virtual time")
