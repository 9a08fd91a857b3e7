"""`MPI.Intercomm`: a communicator between two groups.

Point-to-point, nonblocking and persistent collective calls are those of every communicator. What
has a short way for one group (`collective_calls.py`) is made the general way here.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from typing import Any, Self

from ompy.mpi.buffers.spec import even_blocks
from ompy.mpi.collectives import collective_calls as calls
from ompy.mpi.collectives import reduction_calls as reductions
from ompy.mpi.collectives.collective_requests import completed
from ompy.mpi.collectives.operation import SUM, Op
from ompy.mpi.collectives.refusals import root_of, see_kind, told_to_all
from ompy.mpi.communicators.comm import Comm
from ompy.mpi.communicators.group import Group
from ompy.mpi.communicators.group_state import GroupState
from ompy.mpi.communicators.intercomm_objects import InterObjectCollectives
from ompy.mpi.communicators.intracomm import Intracomm
from ompy.mpi.errhandler import Errhandler
from ompy.mpi.handles import handle_for, made_plainly
from ompy.mpi.info import INFO_NULL, Info
from ompy.mpi.kinds import check_kind
from ompy.mpi.point_to_point.peers import own_size


@made_plainly
class Intercomm(InterObjectCollectives, Comm):
    """A communicator between two groups: ranks name processes of the other one."""

    __slots__ = ()

    def __new__(cls, comm: Comm | None = None) -> Self:
        """A null handle, or another one for the same communicator."""
        made: Self = handle_for(cls, comm)
        return made

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return super()._takes(state) and state.communicator.between

    # --- who is in it

    def Get_size(self) -> int:
        """How many members this process's group has."""
        return own_size(self._state())

    @property
    def size(self) -> int:
        """How many members this process's group has."""
        return own_size(self._state())

    def Get_remote_group(self) -> Group:
        """The other group."""
        state = self._state()
        return Group._adopt(
            GroupState(state.communicator.procs, state.world.context.me, state.world)
        )

    @property
    def remote_group(self) -> Group:
        """The other group."""
        return self.Get_remote_group()

    def Get_remote_size(self) -> int:
        """How many members the other group has."""
        return self._state().size

    @property
    def remote_size(self) -> int:
        """How many members the other group has."""
        return self.Get_remote_size()

    # --- making others

    @told_to_all("Create")
    def Create(self, group: Group) -> Intercomm:
        """A communicator between some members of each group; all of both call this.

        Args:
            group: of this process's own group; the same in each of its members.

        Returns:
            COMM_NULL in those that are not in it, and everywhere if one group gives an empty one.
        """
        check_kind(group, "Group", "group")
        from ompy.mpi.communicators.between import subset

        made = subset(self._enter("Create"), group)
        return Intercomm() if made is None else Intercomm._adopt(made)

    @told_to_all("Merge")
    def Merge(self, high: bool = False) -> Intracomm:
        """A communicator of both groups.

        Args:
            high: this group's ranks come after the other's; the same in each of its members.
        """
        from ompy.mpi.communicators.between import merge

        return Intracomm._adopt(merge(self._enter("Merge"), bool(high)))

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
        """A communicator between two groups of COMM_WORLD's processes; only they call this.

        Args:
            local_group: this process's.
            local_leader: rank in it.
            remote_group: the other.
            remote_leader: rank in that.
            stringtag: keeps calls of several threads apart.
            info: hints.
            errhandler: of the new communicator.
        """
        from ompy.mpi.communicators import between_groups

        given = between_groups.Given(
            local_group, local_leader, remote_group, remote_leader, stringtag, info, errhandler
        )
        made: Intercomm = between_groups.create(given)
        return made

    # --- collective calls with a short way for one group

    def Bcast(self, buf: Any, root: int = 0) -> None:
        """Copy the root's buffer to those of the other group."""
        if type(root) is not int:
            root = root_of(self, "Bcast", root)
        completed(calls.bcast(self._enter("Bcast", root), buf, root))

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Gather equal parts of the other group at the root."""
        if type(root) is not int:
            root = root_of(self, "Gather", root)
        completed(calls.gather(self._enter("Gather", root), sendbuf, recvbuf, root, even_blocks))

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Hand out equal parts of the root's buffer to the other group."""
        if type(root) is not int:
            root = root_of(self, "Scatter", root)
        completed(calls.scatter(self._enter("Scatter", root), sendbuf, recvbuf, root, even_blocks))

    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        """Gather equal parts of the other group at every member."""
        completed(calls.allgather(self._enter("Allgather"), sendbuf, recvbuf, even_blocks))

    def Alltoall(self, sendbuf: Any, recvbuf: Any) -> None:
        """Send an equal part to every member of the other group."""
        completed(calls.alltoall(self._enter("Alltoall"), sendbuf, recvbuf, even_blocks))

    def Reduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM, root: int = 0) -> None:
        """Combine the buffers of the other group at the root."""
        if type(op) is not Op:
            see_kind(self, "Reduce", op, "Op", "op")
        if type(root) is not int:
            root = root_of(self, "Reduce", root)
        completed(reductions.reduce(self._enter("Reduce", root), sendbuf, recvbuf, op, root))

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        """Combine the buffers of the other group at every member."""
        if type(op) is not Op:
            see_kind(self, "Allreduce", op, "Op", "op")
        completed(reductions.reduction(self._enter("Allreduce"), "allreduce", sendbuf, recvbuf, op))

    def Reduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        """Combine the buffers of the other group and hand out equal parts of the result here."""
        if type(op) is not Op:
            see_kind(self, "Reduce_scatter_block", op, "Op", "op")
        state = self._enter("Reduce_scatter_block")
        completed(reductions.reduce_scatter_block(state, sendbuf, recvbuf, op))
