"""Calls of all members whose arguments are wrong at this one before it has begun them.

It has to count the call, as the others do, and they are not to wait for it: so the call is begun
here, and refused (`collective_calls.py`). Nothing of this is on the way of a call that is right.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from ompy.frameworks.collectives.call_kinds import KINDS
from ompy.frameworks.collectives.call_order import detail_of
from ompy.mpi.collectives.collective_calls import refuse
from ompy.mpi.handles import Handle
from ompy.mpi.integers import whole_number
from ompy.mpi.kinds import check_kind
from ompy.mpi.point_to_point.peers import check_root
from ompy.mpi.state import CommState, state_of_comm

Function = TypeVar("Function", bound=Callable[..., Any])


def refuse_unbegun(state: CommState | None, name: str, problem: Exception, root: Any = 0) -> None:
    """Begin a call, and tell the others that this member takes no part in it.

    Args:
        state: of the communicator; None of one that is null, whose members nobody knows.
        name: of the call, as `call_kinds.py` has it.
        problem: what is wrong.
        root: as the user gave it.
    """
    if state is not None:
        state.communicator.order.begin(KINDS[name], detail_of(root))
        refuse(state, problem)


def root_of(comm: Handle, name: str, root: Any) -> int:
    """An integer of a root that is none, as `whole_number` has it.

    Raises:
        TypeError, OverflowError: as that; the others are told.
    """
    try:
        return whole_number(root)
    except (TypeError, ValueError, OverflowError) as problem:
        refuse_unbegun(comm._inner, name, problem)
        raise


def see_root(comm: Handle, name: str, root: int) -> None:
    """See that a root exists.

    Raises:
        MPIException: ERR_ROOT, it does not; the others are told.
    """
    state = state_of_comm(comm)
    try:
        check_root(state, root)
    except Exception as problem:
        refuse_unbegun(state, name, problem, root)
        raise


def see_kind(comm: Handle, name: str, value: Any, kind: str, parameter: str) -> None:
    """See that an argument is a handle of some kind, as `check_kind`.

    Raises:
        TypeError: it is something else; the others are told.
    """
    try:
        check_kind(value, kind, parameter)
    except TypeError as problem:
        refuse_unbegun(comm._inner, name, problem)
        raise


def told_to_all(name: str, parameter: str = "self") -> Callable[[Function], Function]:
    """Have the others told where a call fails at this member alone; for calls that take long.

    Args:
        name: of the call, as `call_kinds.py` has it.
        parameter: that has the communicator, or a file.
    """

    def decorate(function: Function) -> Function:
        code = getattr(function, "__wrapped__", function).__code__
        place = code.co_varnames.index(parameter)

        @wraps(function)
        def called(*positional: Any, **named: Any) -> Any:
            given = positional[place] if place < len(positional) else named.get(parameter)
            state = _communicator_of(given)
            before = 0 if state is None else state.communicator.order.number
            try:
                return function(*positional, **named)
            except Exception as problem:
                if state is not None:
                    tell_of_failure(state, name, before, problem)
                raise

        return called  # type: ignore[return-value]

    return decorate


def _communicator_of(given: Any) -> CommState | None:
    """The communicator of a handle, or of a file's; None of one that is null, and of all else."""
    inner = given._inner if isinstance(given, Handle) else None
    if inner is None or isinstance(inner, CommState):
        return inner
    found: CommState | None = getattr(inner, "comm", None)
    return found


def tell_of_failure(state: CommState, name: str, before: int, problem: Exception) -> None:
    """A call has failed: begin it if it has not, and tell the others if nobody has.

    Args:
        state: of the communicator.
        name: of the call, as `call_kinds.py` has it.
        before: number of the call before.
        problem: what it failed with.
    """
    order = state.communicator.order
    if not state.size:
        return  # it was freed
    if order.number == before:
        refuse_unbegun(state, name, problem)
    elif not order.has_given_up(order.number):
        refuse(state, problem)
