"""Collective calls of a rank where they wait for all members, as each of them may.

A collective call may end before other members have made it, if the rank needs nothing of them; or
it may wait until all have (MPI 4.1, 6.1 and 6.14). In the mode in which standard sends wait, calls
wait so, too. Then a program that goes on only if a call has ended early ends in a deadlock. What
waits for fewer members waits no longer than that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ompy.data.request import Request
from ompy.frameworks.coll import OPERATIONS
from ompy.frameworks.collectives.call_order import call_of_tag
from ompy.frameworks.needs import COLLECTIVE, Need, Needing

if TYPE_CHECKING:
    from ompy.frameworks.collectives.coll_selection import SelectedColl
    from ompy.frameworks.communicator import Communicator
    from ompy.frameworks.direct import Whole

# these wait for all members by their messages
_ALL: Final = frozenset({"barrier", "allgather", "allreduce"})
WAITING: Final = tuple(name for name in OPERATIONS if name not in _ALL)
Meet = Callable[["Communicator", tuple[int, ...]], "Whole"]


class _Members(Needing):
    """That all members make the call that the rank is in."""

    __slots__ = ("_communicator", "_word")

    def __init__(self, communicator: Communicator) -> None:
        self._communicator = communicator
        self._word = communicator.order.word

    def need(self) -> Need:
        """All others."""
        communicator = self._communicator
        others = tuple(rank for rank in range(communicator.size) if rank != communicator.rank)
        return Need(COLLECTIVE, communicator, others, word=self._word)


class Meetings:
    """Of one rank."""

    def __init__(self, meet: Meet) -> None:
        """None yet.

        Args:
            meet: says to the world that the rank has come to a call; what it gives is complete when
                all members have.
        """
        self._meet = meet
        self._entered: dict[tuple[int, int], int] = {}  # how often, by context id and tag

    def watch_calls(self, coll: SelectedColl) -> None:
        """Have blocking calls wait for all members before they do anything."""
        communicator = coll.communicator
        if not _waits(communicator):
            return
        bound = vars(coll)
        for operation in WAITING:
            if operation in bound:
                bound[operation] = partial(self._call, communicator, bound[operation])

    def enter_call(self, communicator: Communicator) -> None:
        """The same of a call that has no module: of objects."""
        name = call_of_tag(communicator.order.tag()).lower()
        if _waits(communicator) and name not in _ALL and "neighbor" not in name:
            communicator.context.engine.wait(self._enter(communicator, 0))

    def _call(self, communicator: Communicator, call: Callable[..., Any], *given: Any) -> Any:
        communicator.context.engine.wait(self._enter(communicator, 0))
        return call(*given)

    def begin_call(self, communicator: Communicator, tag: int) -> Whole | None:
        """A nonblocking call begins, or one is started again: what its end has to wait for, too.

        Args:
            communicator: whose call it is.
            tag: of its messages.
        """
        name = call_of_tag(tag).lower()
        if not _waits(communicator) or "neighbor" in name or "barrier" in name:
            return None
        return self._enter(communicator, tag)

    def _enter(self, communicator: Communicator, tag: int) -> Whole:
        place = communicator.context_id, tag
        times = self._entered[place] = self._entered.get(place, 0) + 1
        # groups that have no member in common may have one context id: their first members differ
        made = self._meet(communicator, (communicator.procs[0].rank, *place, times))
        made.of = _Members(communicator)
        return made


def _waits(communicator: Communicator) -> bool:
    """Whether there are others, in one group, and it is a program's."""
    return communicator.size > 1 and not communicator.between and not communicator.served


def both_complete(request: Request, whole: Whole | None, then: Callable[[], object]) -> None:
    """Call `then` when both are."""
    if whole is None:
        request.notify(then)
    else:
        request.notify(partial(whole.notify, then))
