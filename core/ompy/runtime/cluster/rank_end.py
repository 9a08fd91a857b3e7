"""A rank's end of a described cluster: in its process, before and behind the line to the world."""

from __future__ import annotations

import time
from collections.abc import Sequence
from random import Random
from typing import Any, ClassVar, Final

from ompy.frameworks.pml import BUFFERED, SYNCHRONOUS
from ompy.runtime.cluster.model import Cluster
from ompy.runtime.exploration.rank_line import DirectEngine, RankLine
from ompy.runtime.simulation.conducted import Conducted
from ompy.runtime.simulation.line import Line

# ns of virtual time that a look at a clock takes; arbitrary: what it takes Python, about
LOOK: Final = 100
# ns of processor time between two calls that are ompy's own work and no computing of the program;
# measured: 73 to 84 us, interpreted
OWN: Final = 100_000
USED: Final = time.CLOCK_PROCESS_CPUTIME_ID  # a clock that is nobody's stand-in


class MeteredWorld(Conducted):
    """A line to the world that says how long the rank has computed since the last answer."""

    def __init__(self, line: Line, scale: float) -> None:
        """Measure from the first answer on.

        Args:
            line: to the world.
            scale: virtual time for each ns of the processor's.
        """
        super().__init__(line)
        self._scale = scale
        self._since = -1

    def answer(self) -> Any:
        """Wait for the scheduler."""
        try:
            return super().answer()
        finally:
            self._since = time.clock_gettime_ns(USED)

    def _say(self, batch: list[tuple[Any, ...]]) -> None:
        if self._since >= 0:
            used = time.clock_gettime_ns(USED) - self._since - OWN
            if used > 0:
                batch = [("spend", round(used * self._scale)), *batch]
        super()._say(batch)


class TimedLine(RankLine):
    """Speaks of messages: a send is complete at once unless its bytes wait for the receiver."""

    explores: ClassVar[bool] = False

    def __init__(self, world: Conducted, cluster: Cluster, hosts: Sequence[int], rank: int) -> None:
        """Nothing is under way.

        Args:
            world: the rank's line to it.
            cluster: says which messages wait.
            hosts: of all ranks.
            rank: the own one.
        """
        super().__init__(world, buffers=True)
        self._cluster = cluster
        self._hosts = hosts
        self._rank = rank

    def send(
        self, to: tuple[int, int], source: int, tag: int, data: bytes, mode: int, *, served: bool
    ) -> int:
        """Send."""
        number, target = self.new_number(), to[1]
        near = self._hosts[target] == self._hosts[self._rank]
        way = self._cluster.memory if near else self._cluster.network
        synchronous = mode == SYNCHRONOUS
        waited = synchronous or (mode != BUFFERED and way.costs(len(data)).rendezvous)
        how = synchronous, served, waited, ""
        self._world.later("direct_send", number, to, source, tag, data, *how)
        return number if waited else 0

    def cancel(self, number: int) -> bool:
        """Cancel a receive, unless its message has come."""
        done: bool = self._world.call("direct_cancel", 0, number, "")
        return done


class TimedEngine(DirectEngine):
    """Drives a rank whose messages take the time that a cluster file says."""

    __slots__ = ()

    look_cost = LOOK

    def __init__(self, world: Conducted, line: RankLine, random: Random) -> None:
        """Drive it; nothing gets in between two polls, so nothing is drawn."""
        super().__init__(world, line, random, random)
        self._settle = 0
