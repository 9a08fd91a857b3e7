"""The end of a job: all ranks learn the largest exit code, or the launcher ends them.

Source: seed gasnet (Exit protocol); reference gasnet.md 8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ompy.frameworks.context import RankContext

from ompy_components.conduit.gni.reduction import Reduction

if TYPE_CHECKING:
    from ompy.mca.parameter import Values

SECOND: Final = 1_000_000_000  # ns; reference gasnet.md 7: timeouts are seconds
UNANSWERED: Final = 1  # arbitrary: a job whose ranks had to be ended did not end well
SHORTEST: Final = 1_000  # ns between looks; arbitrary: about what a message takes
LONGEST: Final = 1_000_000  # arbitrary: nobody minds a millisecond at the end


def exit_timeout(values: Values, ranks: int) -> int:
    """How long ranks wait for each other, in nanoseconds."""
    computed = min(
        values.exittimeout_max, values.exittimeout_min + ranks * values.exittimeout_factor
    )
    return int((values.exittimeout or computed) * SECOND)


class Exit:
    """One rank's part in the end.

    Attributes:
        reduction: of the codes.
        asked: another rank has begun.
    """

    def __init__(
        self, context: RankContext, limit: int, tell: Callable[[int, int, int], object]
    ) -> None:
        """Take no part yet.

        Args:
            context: the rank.
            limit: how long to wait for others, ns.
            tell: sends a rank a round and a code.
        """
        self._engine = context.engine
        self._limit = limit
        self.reduction = Reduction(context.rank, context.size, tell)
        self.asked = False

    def code_arrived(self, shift: int, code: int) -> None:
        """What a peer has told."""
        self.asked = True
        self.reduction.round_arrived(shift, code)

    def run_exit(
        self,
        code: int,
        progress: Callable[[], int],
        pause: Callable[[int], object],
        limit: int | None = None,
    ) -> bool:
        """Take part, and return when all codes are known or the time is over.

        Args:
            code: this rank's.
            progress: sends and takes messages; returns how much there still is to be sent.
            pause: lets time go by, so many nanoseconds at most.
            limit: how long to wait for others, ns; None: as long as at other ends.

        Returns:
            Whether they are known.
        """
        self.reduction.begin_reduction(code)
        end = self._engine.now() + (self._limit if limit is None else limit)
        waited = SHORTEST
        while (progress() or not self.reduction.complete) and self._engine.now() < end:
            pause(waited)
            waited = min(2 * waited, LONGEST)
        return self.reduction.complete
