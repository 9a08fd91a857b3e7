"""`MPI.Comm`, and the null communicator."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from typing import Any, ClassVar, Final, Self

from ompy.mpi.collectives.collectives import Collectives
from ompy.mpi.collectives.nonblocking_collectives import NonblockingCollectives
from ompy.mpi.collectives.object_collectives import ObjectCollectives
from ompy.mpi.collectives.persistent_collectives import PersistentCollectives
from ompy.mpi.communicators.communicators import Communicators
from ompy.mpi.handles import handle_for, made_plainly
from ompy.mpi.point_to_point.object_messages import ObjectMessages
from ompy.mpi.point_to_point.point_to_point import PointToPoint


@made_plainly
class Comm(
    PointToPoint,
    ObjectMessages,
    Collectives,
    NonblockingCollectives,
    PersistentCollectives,
    ObjectCollectives,
    Communicators,
):
    """A group of processes that talk to each other apart from all others."""

    __slots__ = ()
    _kind: ClassVar[str] = "Comm"

    def __new__(cls, comm: Comm | None = None) -> Self:
        """A null handle, or another one for the same communicator."""
        made: Self = handle_for(cls, comm)
        return made

    @classmethod
    def _wrap(cls, state: Any) -> Any:
        return state.api._adopt(state)


COMM_NULL: Final = Comm()._constant("COMM_NULL")
