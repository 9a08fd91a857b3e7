"""Communicators: collective operations on buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ompy.mpi.buffers.spec import even_blocks, vector_blocks
from ompy.mpi.collectives import collective_calls as calls
from ompy.mpi.collectives import reduction_calls as reductions
from ompy.mpi.collectives.collective_calls import (
    allgathered,
    barrier,
    broadcast,
    exchanged,
    exchanged_typed,
    gathered,
    scattered,
)
from ompy.mpi.collectives.collective_requests import completed
from ompy.mpi.collectives.operation import SUM, Op
from ompy.mpi.collectives.reduction_calls import reduced, reduced_in_parts, scanned
from ompy.mpi.collectives.refusals import root_of, see_kind
from ompy.mpi.state import CommBase, state_of_comm


class Collectives(CommBase):
    """Collective operations on buffers. All members call them in the same order."""

    __slots__ = ()

    def Barrier(self) -> None:
        """Return when every member has called it."""
        barrier(state_of_comm(self))

    def Bcast(self, buf: Any, root: int = 0) -> None:
        """Copy the root's buffer to every member's."""
        if type(root) is not int:
            root = root_of(self, "Bcast", root)
        state = state_of_comm(self)
        if not broadcast(state, buf, root):
            completed(calls.bcast(state, buf, root))

    # --- gather and scatter

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Gather equal parts from every member at the root."""
        if type(root) is not int:
            root = root_of(self, "Gather", root)
        state = state_of_comm(self)
        if not gathered(state, sendbuf, recvbuf, root, False):
            completed(calls.gather(state, sendbuf, recvbuf, root, even_blocks))

    def Gatherv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Gather parts of any size from every member at the root."""
        if type(root) is not int:
            root = root_of(self, "Gatherv", root)
        state = state_of_comm(self)
        if not gathered(state, sendbuf, recvbuf, root, True):
            completed(calls.gather(state, sendbuf, recvbuf, root, vector_blocks))

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Hand out equal parts of the root's buffer."""
        if type(root) is not int:
            root = root_of(self, "Scatter", root)
        state = state_of_comm(self)
        if not scattered(state, sendbuf, recvbuf, root, False):
            completed(calls.scatter(state, sendbuf, recvbuf, root, even_blocks))

    def Scatterv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Hand out parts of any size of the root's buffer."""
        if type(root) is not int:
            root = root_of(self, "Scatterv", root)
        state = state_of_comm(self)
        if not scattered(state, sendbuf, recvbuf, root, True):
            completed(calls.scatter(state, sendbuf, recvbuf, root, vector_blocks))

    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        """Gather equal parts from every member at every member."""
        state = state_of_comm(self)
        if not allgathered(state, sendbuf, recvbuf, False):
            completed(calls.allgather(state, sendbuf, recvbuf, even_blocks))

    def Allgatherv(self, sendbuf: Any, recvbuf: Any) -> None:
        """Gather parts of any size from every member at every member."""
        state = state_of_comm(self)
        if not allgathered(state, sendbuf, recvbuf, True):
            completed(calls.allgather(state, sendbuf, recvbuf, vector_blocks))

    def Alltoall(self, sendbuf: Any, recvbuf: Any) -> None:
        """Send an equal part to every member."""
        state = state_of_comm(self)
        if not exchanged(state, sendbuf, recvbuf, False):
            completed(calls.alltoall(state, sendbuf, recvbuf, even_blocks))

    def Alltoallv(self, sendbuf: Any, recvbuf: Any) -> None:
        """Send a part of any size to every member."""
        state = state_of_comm(self)
        if not exchanged(state, sendbuf, recvbuf, True):
            completed(calls.alltoall(state, sendbuf, recvbuf, vector_blocks))

    def Alltoallw(self, sendbuf: Any, recvbuf: Any) -> None:
        """Send a part of any size and datatype to every member."""
        exchanged_typed(state_of_comm(self), sendbuf, recvbuf)

    # --- reductions

    def Reduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM, root: int = 0) -> None:
        """Combine every member's buffer at the root."""
        if type(op) is not Op:
            see_kind(self, "Reduce", op, "Op", "op")
        if type(root) is not int:
            root = root_of(self, "Reduce", root)
        state = state_of_comm(self)
        if not reduced(state, sendbuf, recvbuf, op, root):
            completed(reductions.reduce(state, sendbuf, recvbuf, op, root))

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        """Combine every member's buffer at every member."""
        if type(op) is not Op:
            see_kind(self, "Allreduce", op, "Op", "op")
        state = state_of_comm(self)
        if not reduced(state, sendbuf, recvbuf, op, None):
            completed(reductions.reduction(state, "allreduce", sendbuf, recvbuf, op))

    def Reduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        """Combine every member's buffer and hand out equal parts of the result."""
        if type(op) is not Op:
            see_kind(self, "Reduce_scatter_block", op, "Op", "op")
        state = state_of_comm(self)
        if not reduced_in_parts(state, sendbuf, recvbuf, None, op, True):
            completed(reductions.reduce_scatter_block(state, sendbuf, recvbuf, op))

    def Reduce_scatter(
        self,
        sendbuf: Any,
        recvbuf: Any,
        recvcounts: Sequence[int] | None = None,
        op: Op = SUM,
    ) -> None:
        """Combine every member's buffer and hand out parts of the result.

        Args:
            sendbuf: this member's data, or IN_PLACE.
            recvbuf: for this member's part of the result; all the data when in place.
            recvcounts: elements of every member's part; if None they are asked for, and when
                in place shared out evenly.
            op: the operation.
        """
        if type(op) is not Op:
            see_kind(self, "Reduce_scatter", op, "Op", "op")
        state = state_of_comm(self)
        if not reduced_in_parts(state, sendbuf, recvbuf, recvcounts, op, False):
            completed(reductions.reduce_scatter(state, sendbuf, recvbuf, recvcounts, op))


class Prefixes(CommBase):
    """Reductions of the members up to this one: in communicators of one group only."""

    __slots__ = ()

    def Scan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        """Combine the buffers of members 0 to this one."""
        if type(op) is not Op:
            see_kind(self, "Scan", op, "Op", "op")
        state = state_of_comm(self)
        if not scanned(state, sendbuf, recvbuf, op, True):
            completed(reductions.reduction(state, "scan", sendbuf, recvbuf, op))

    def Exscan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        """Combine the buffers of the members before this one; the first's is left alone."""
        if type(op) is not Op:
            see_kind(self, "Exscan", op, "Op", "op")
        state = state_of_comm(self)
        if not scanned(state, sendbuf, recvbuf, op, False):
            completed(reductions.reduction(state, "exscan", sendbuf, recvbuf, op))
