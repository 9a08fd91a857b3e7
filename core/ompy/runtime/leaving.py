"""News of ranks that finalize, as agents pass them on: collected for a moment, then told at once.

Most jobs end with all ranks finalizing together. Told at once, each would tell each of the others,
which are on their way out as well. So an agent waits a little, and then tells only those of its
ranks that have not finalized by then: mostly there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ompy.engine.reactor import Loop
from ompy.frameworks.departures import in_ranges

# s; arbitrary: longer than ranks that end together are apart, short for who waits in vain
COLLECTING: Final = 0.02

# of each rank: which, whether it is done with finalizing, and the ranges of ranks it has sent
# something to and told so itself; None where it did not say
News = list[tuple[int, bool, Sequence[Sequence[int]] | None]]


class LeavingNews:
    """What the ranks of one host have said about their leaving and nobody was told yet."""

    def __init__(self, loop: Loop, tell: Callable[[News], object]) -> None:
        """Collect.

        Args:
            loop: knows when the moment is over.
            tell: called then.
        """
        self._loop = loop
        self._tell = tell
        self._told: dict[int, Any] = {}
        self._finalized: dict[int, bool] = {}

    def begun(self, rank: int, told: Sequence[Sequence[int]]) -> None:
        """A rank has begun to finalize, and has told these ranges of ranks what it sent them."""
        self._told[rank] = told
        self._add(rank, False)

    def finalized(self, rank: int) -> None:
        """A rank is done with finalizing."""
        self._add(rank, True)

    def _add(self, rank: int, finalized: bool) -> None:
        if not self._finalized:
            self._loop.call_later(COLLECTING, self._flush)
        self._finalized[rank] = finalized

    def _flush(self) -> None:
        finalized, self._finalized = self._finalized, {}
        self._tell([(rank, done, self._told.get(rank)) for rank, done in finalized.items()])


def for_rank(news: News, receiver: int) -> list[tuple[int, bool, bool]]:
    """What one rank is told: of each rank whether it is done, and never sent this one anything."""
    return [
        (rank, done, told is not None and not in_ranges(receiver, told))
        for rank, done, told in news
        if rank != receiver
    ]
