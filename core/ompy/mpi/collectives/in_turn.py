"""Collective calls of several messages: one at a time, and whose failure the others are told of."""

from __future__ import annotations

import _thread
from collections.abc import Callable, Hashable
from typing import Any

from ompy.compiled import ccall
from ompy.data.errors import MPIError
from ompy.frameworks.collectives.call_kinds import KINDS
from ompy.frameworks.collectives.call_order import detail_of
from ompy.frameworks.collectives.patience import abandon, explained
from ompy.mpi.state import CommState


@ccall
def lock_table(state: CommState) -> dict[Any, Any]:
    """The locks of a communicator, by name."""
    if state.locks is None:
        state.locks = {}
    return state.locks


@ccall
def comm_lock(state: CommState, key: Hashable = None) -> Any:
    """A lock of a communicator: calls of several messages each do not mix between threads."""
    table = lock_table(state)
    found = table.get(key)
    if found is None:
        found = table.setdefault(key, _thread.allocate_lock())
    return found


def together(
    state: CommState, name: str, root: Any, function: Callable[..., Any], *arguments: Any
) -> Any:
    """Run a collective, one at a time of its name.

    Args:
        state: the communicator.
        name: of the call, as `call_kinds.py` has it.
        root: of the call; 0 where there is none.
        function: what is called with the communicator and the arguments.
        arguments: what else it gets.

    Raises:
        MPIException: it failed.
    """
    with comm_lock(state, name):
        communicator = state.communicator
        communicator.order.begin(KINDS[name], detail_of(root))
        if communicator.context.direct is not None:
            communicator.context.direct.enter_call(communicator)
        try:
            return function(state, *arguments)
        except Exception as problem:
            tell_failure(state, problem)
            raise


def tell_failure(state: CommState, problem: Exception) -> None:
    """This member's part in a call has failed: tell the others.

    Raises:
        MPIException: what the problem is to the user, where it is one of MPI.
    """
    communicator, order = state.communicator, state.communicator.order
    abandon(communicator, order.tag(), problem)
    if isinstance(problem, MPIError):
        found = explained(communicator, order.word, problem)
        raise state.raised(found) from found.__cause__
