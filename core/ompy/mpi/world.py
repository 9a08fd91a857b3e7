"""COMM_WORLD and COMM_SELF of a rank."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from typing import Any, Final

from ompy.mpi.errhandler import RETURN, ErrhandlerState
from ompy.mpi.intracomm import Intracomm
from ompy.mpi.state import CommState, World
from ompy.runtime.process import RankProcess

WORLD_ID: Final = 0  # context id; reference: every rank knows it without agreement
SELF_ID: Final = 1  # context id; reference: every rank knows it without agreement


def communicators(
    process: RankProcess, errors: ErrhandlerState = RETURN, *, fast_reduce: bool = True
) -> tuple[CommState, CommState]:
    """Make COMM_WORLD and COMM_SELF of a rank: call once for each.

    Args:
        process: the rank.
        errors: error handler of new communicators.
        fast_reduce: objects are reduced along a tree.
    """
    world = World(process, errors, fast_reduce=fast_reduce)
    made = []
    for number, procs, name in (
        (WORLD_ID, process.context.procs, "MPI_COMM_WORLD"),
        (SELF_ID, [process.context.me], "MPI_COMM_SELF"),
    ):
        state = CommState(world, process.communicator(number, procs, name), Intracomm)
        state.predefined = True
        made.append(state)
    return made[0], made[1]


_known: Any = None


def world_of(process: RankProcess) -> Intracomm:
    """COMM_WORLD of a rank: for programs in the virtual world.

    Two calls give equal handles.
    """
    global _known  # noqa: PLW0603 - made on first use, since weakref is not worth its import
    if _known is None:
        from weakref import WeakKeyDictionary

        _known = WeakKeyDictionary()
    states = _known.get(process)
    if states is None:
        states = _known[process] = communicators(process)
    return Intracomm._adopt(states[0])


def self_of(process: RankProcess) -> Intracomm:
    """COMM_SELF of a rank: for programs in the virtual world."""
    world_of(process)
    return Intracomm._adopt(_known[process][1])
