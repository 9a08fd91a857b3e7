"""COMM_WORLD and COMM_SELF of a rank."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.mpi.communicators.communicators import WORLD_ID
from ompy.mpi.communicators.intracomm import Intracomm
from ompy.mpi.errhandler import RETURN, ErrhandlerState
from ompy.mpi.state import CommState, World
from ompy.runtime.ranks.process import RankProcess

if TYPE_CHECKING:
    from ompy.mpi.processes.sessions import Session

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
        (WORLD_ID, process.context.world, "MPI_COMM_WORLD"),
        (SELF_ID, [process.context.me], "MPI_COMM_SELF"),
    ):
        communicator = process.communicator(number, procs, name)
        communicator.collectives()  # what is wrong with the selection is said at once
        state = CommState(world, communicator, Intracomm)
        state.predefined = True
        made.append(state)
    return made[0], made[1]


def world_of(process: RankProcess) -> Intracomm:
    """COMM_WORLD of a rank: for programs in the virtual world.

    Two calls give equal handles.
    """
    return Intracomm._adopt(_both(process)[0])


def self_of(process: RankProcess) -> Intracomm:
    """COMM_SELF of a rank: for programs in the virtual world."""
    return Intracomm._adopt(_both(process)[1])


def session_of(process: RankProcess) -> Session:
    """A new session of a rank: for programs in the virtual world."""
    from ompy.mpi.processes.sessions import begin_session

    return begin_session(_both(process)[0].world)


def _both(process: RankProcess) -> tuple[CommState, CommState]:
    # with the process, for a table of processes would keep each world that has ever been
    if process.api is None:
        process.api = communicators(process)
    made: tuple[CommState, CommState] = process.api
    return made
