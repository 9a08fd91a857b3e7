"""`Agree` and `Shrink` where the death of a rank ends the job: all members live, or nobody does.

Programs that may survive a death call them all the same. What they do where it is survived is in
`survival.py`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Any, Final

from ompy.data.request import Request as Operation
from ompy.frameworks.collectives.call_kinds import KINDS
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.communicator import Communicator
from ompy.mpi.collectives.collective_requests import collective_state
from ompy.mpi.communicators.between import duplicate as duplicate_between
from ompy.mpi.communicators.context_agreement import members_in_steps
from ompy.mpi.communicators.duplicates import begin_communicator
from ompy.mpi.communicators.making import make_communicator
from ompy.mpi.communicators.uniting import asking
from ompy.mpi.handles import plain_handle
from ompy.mpi.point_to_point.request import Request
from ompy.mpi.state import CommState

INT: Final = "i"  # a flag is a C int, as the standard has it


def agree_on_flag(state: CommState, flag: int) -> int:
    """The AND of the flags of all members; all call it."""
    communicator = _begin(state, "Agree")
    return _all_of(state.call(asking(communicator), array(INT, [flag]).tobytes()))


def begin_to_agree(state: CommState, flag: memoryview) -> Request:
    """Begin what `agree_on_flag` does; the buffer has the flag, and then the result."""
    communicator = _begin(state, "Iagree")
    exchange = Exchange(communicator, communicator.order.tag())
    begin = partial(state.collectives().begin_schedule, exchange, _agree_in_steps(exchange, flag))
    line = communicator.context.direct
    if line is not None:  # it may be the world that says when the program is told
        begin = partial(line.watch, communicator, communicator.order.tag(), begin)
    started: Operation = state.call(begin)
    made: Request = plain_handle(Request, collective_state(state, started, flag))
    return made


def _agree_in_steps(exchange: Exchange, flag: memoryview) -> Generator[None, None, None]:
    flag[0] = _all_of((yield from members_in_steps(exchange, flag.tobytes())))


def _all_of(values: Iterable[bytes]) -> int:
    found = -1
    for value in values:
        found &= array(INT, value)[0]
    return found


def shrink_state(state: CommState, api: Any) -> CommState:
    """A communicator of the same members, which all call it.

    Args:
        state: the communicator.
        api: class of the new one's handles.
    """
    communicator = _begin(state, "Shrink")
    if communicator.between:
        return duplicate_between(state)
    return make_communicator(state, range(state.size), communicator.order.tag(), api)


def begin_to_shrink(state: CommState, api: Any, give: Callable[[CommState], object]) -> Request:
    """Begin what `shrink_state` does.

    Args:
        state: the communicator.
        api: as there.
        give: called with the new one before the request is complete.
    """
    _begin(state, "Ishrink")

    def give_plain(made: CommState) -> None:
        made.api = api
        give(made)

    return begin_communicator(state, give_plain)


def _begin(state: CommState, name: str) -> Communicator:
    """All members make a call together."""
    state.communicator.order.begin(KINDS[name], 0)
    return state.communicator
