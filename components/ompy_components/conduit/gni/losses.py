"""Ranks the way to which has broken under something that was sent.

The NIC loses nothing, but its wire to another host may. What was lost may be a message that
somebody waits for, so it is an error, once; and nothing is asked of that rank any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.data.errors import ERR_PROC_FAILED, MPIError

if TYPE_CHECKING:
    from ompy.frameworks.context import RankContext

# arbitrary: the launcher says sooner that a rank has ended, and its end is the better reason
GRACE: Final = 1_000_000_000  # ns


class Losses:
    """What one rank has lost.

    Args of the constructor: the rank, and `CommunicationDomain.losses`.
    """

    def __init__(self, context: RankContext, news: list[tuple[int, str]]) -> None:
        self._context = context
        self._news = news
        self._due: dict[int, int] = {}
        self._why: dict[int, str] = {}

    @property
    def pressing(self) -> bool:
        """Whether `collect_losses` has something to take in."""
        return bool(self._news)

    def why(self, node: int) -> str:
        """Why nothing can be asked of a rank; empty if it can."""
        return self._why.get(node, "")

    def collect_losses(self) -> None:
        """Take in what is new.

        Raises:
            MPIError: something that was sent to a rank is lost, and the rank has not ended.
        """
        engine = self._context.engine
        while self._news:
            node, why = self._news.pop(0)
            if node not in self._why:
                self._why[node] = why
                self._due[node] = engine.now() + GRACE
                engine.call_later(GRACE, _nothing)
        if not self._due:
            return
        for node, due in list(self._due.items()):
            proc = self._context.procs[node]
            if proc.departed or engine.now() >= due:
                del self._due[node]
                if not proc.departed:
                    raise MPIError(ERR_PROC_FAILED, f"{proc} cannot be reached: {self._why[node]}")


def _nothing() -> None:
    """The rank is awake; its poll looks."""
