"""`MPI.Comm`, `MPI.Intercomm`, and the null communicator."""

# ruff: noqa: SLF001, ARG003 - states are private to users only; what is not there ignores all

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, Self

from ompy.mpi.collectives import Collectives
from ompy.mpi.communicators import Communicators
from ompy.mpi.info import INFO_NULL, Info
from ompy.mpi.nonblocking_collectives import NonblockingCollectives
from ompy.mpi.object_collectives import ObjectCollectives
from ompy.mpi.object_messages import ObjectMessages
from ompy.mpi.persistent_collectives import PersistentCollectives
from ompy.mpi.point_to_point import PointToPoint
from ompy.mpi.unsupported import not_available

if TYPE_CHECKING:
    from ompy.mpi.errhandler import Errhandler
    from ompy.mpi.group import Group


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
        return cls._make(comm)

    @classmethod
    def _wrap(cls, state: Any) -> Any:
        return state.api._adopt(state)


class Intercomm(Comm):
    """A communicator between two groups. Not available: only null handles exist."""

    __slots__ = ()

    def __new__(cls, comm: Comm | None = None) -> Self:
        """A null handle."""
        return cls._make(comm)

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return False

    def _missing(self, name: str) -> NoReturn:
        self._state()
        raise not_available(f"Intercomm.{name}", "intercommunicators")

    def Get_remote_group(self) -> Any:
        """The other group."""
        self._missing("Get_remote_group")

    def Get_remote_size(self) -> int:
        """How many members the other group has."""
        self._missing("Get_remote_size")

    @property
    def remote_group(self) -> Any:
        """The other group."""
        return self.Get_remote_group()

    @property
    def remote_size(self) -> int:
        """How many members the other group has."""
        return self.Get_remote_size()

    def Merge(self, high: bool = False) -> Any:
        """A communicator of both groups."""
        self._missing("Merge")

    @classmethod
    def Create_from_groups(
        cls,
        local_group: Group,
        local_leader: int,
        remote_group: Group,
        remote_leader: int,
        stringtag: str = "org.mpi4py",
        info: Info = INFO_NULL,
        errhandler: Errhandler | None = None,
    ) -> Intercomm:
        """A communicator between two groups. Not available."""
        raise not_available("Intercomm.Create_from_groups", "intercommunicators")


COMM_NULL: Final = Comm()._constant("COMM_NULL")
