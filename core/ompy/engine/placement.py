"""Which core a rank is on.

The kernel balances loads, not waiting: two ranks that wait for each other on one core look to it
like one busy process, and beside a busy process on the other core they may stay there for good.
Each message then takes as long as the other rank spins, 56 us in place of 1.4 (measured with two
busy processes beside two ranks on two cores). Binding, as Open MPI does, would put the ranks of two
jobs on the same core for good. So a rank only *moves* to a core of its own, and stays free to be
moved.

More ranks than cores are spread in the same way: while the others sleep, two that wait for each
other stay on one core as well (four ranks on two cores, two of them at work: a message to and fro
took 5.2 us in place of 1.4).
"""

from __future__ import annotations

import contextlib
import os
from typing import Final

MOVE_EVERY: Final = 100_000_000  # ns; arbitrary: two system calls in that time cost nothing
SHARED_YIELD: Final = 5_000  # ns; arbitrary: a yield to nobody takes a tenth of this
SHARED_YIELDS: Final = 16  # arbitrary: one may be chance


class Placement:
    """A rank's own core among those that the process may run on."""

    def __init__(self, place: int) -> None:
        """Nothing is moved yet.

        Args:
            place: this rank's among the ranks of its host.
        """
        self._place = place
        self._yields = 0
        self._moved = 0

    def yielded(self, begun: int, ended: int) -> bool:
        """A waiting rank has given its core away, in vain or not; move if it often was not.

        Args:
            begun: before the yield, in ns.
            ended: after it.

        Returns:
            Whether another process has had the core meanwhile.
        """
        if ended - begun < SHARED_YIELD:
            return False
        self._yields += 1
        if self._yields >= SHARED_YIELDS and ended - self._moved >= MOVE_EVERY:
            self._yields, self._moved = 0, ended
            self.move_home()
        return True

    def move_home(self) -> None:
        """Go to the own core, and stay free to be moved on. Only the calling thread moves."""
        with contextlib.suppress(OSError):  # a core that has gone, or a host that forbids it
            allowed = os.sched_getaffinity(0)
            own = sorted(allowed)[self._place % len(allowed)]
            if len(allowed) > 1:
                try:
                    os.sched_setaffinity(0, {own})
                finally:
                    os.sched_setaffinity(0, allowed)
