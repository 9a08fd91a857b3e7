"""Communicators: collective operations that go on while the program does something else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ompy.mpi.buffers.spec import even_blocks, vector_blocks
from ompy.mpi.collectives import collective_calls as calls
from ompy.mpi.collectives import reduction_calls as reductions
from ompy.mpi.collectives.collective_requests import begun
from ompy.mpi.collectives.operation import SUM, Op
from ompy.mpi.collectives.refusals import root_of, see_kind
from ompy.mpi.point_to_point.request import Request
from ompy.mpi.state import CommBase, begin_call


class NonblockingCollectives(CommBase):
    """Collective operations on buffers, as requests.

    All members begin them in the same order, together with the blocking ones; they may complete
    in any. A buffer belongs to the operation until the request is complete.
    """

    __slots__ = ()

    def Ibarrier(self) -> Request:
        """Begin what `Barrier` does."""
        return begun(calls.call_of(begin_call(self, "Ibarrier"), "barrier"))

    def Ibcast(self, buf: Any, root: int = 0) -> Request:
        """Begin what `Bcast` does."""
        if type(root) is not int:
            root = root_of(self, "Ibcast", root)
        return begun(calls.bcast(begin_call(self, "Ibcast", root), buf, root))

    def Igather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Request:
        """Begin what `Gather` does."""
        if type(root) is not int:
            root = root_of(self, "Igather", root)
        return begun(
            calls.gather(begin_call(self, "Igather", root), sendbuf, recvbuf, root, even_blocks)
        )

    def Igatherv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Request:
        """Begin what `Gatherv` does."""
        if type(root) is not int:
            root = root_of(self, "Igatherv", root)
        return begun(
            calls.gather(begin_call(self, "Igatherv", root), sendbuf, recvbuf, root, vector_blocks)
        )

    def Iscatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Request:
        """Begin what `Scatter` does."""
        if type(root) is not int:
            root = root_of(self, "Iscatter", root)
        return begun(
            calls.scatter(begin_call(self, "Iscatter", root), sendbuf, recvbuf, root, even_blocks)
        )

    def Iscatterv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Request:
        """Begin what `Scatterv` does."""
        if type(root) is not int:
            root = root_of(self, "Iscatterv", root)
        return begun(
            calls.scatter(
                begin_call(self, "Iscatterv", root), sendbuf, recvbuf, root, vector_blocks
            )
        )

    def Iallgather(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin what `Allgather` does."""
        return begun(calls.allgather(begin_call(self, "Iallgather"), sendbuf, recvbuf, even_blocks))

    def Iallgatherv(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin what `Allgatherv` does."""
        return begun(
            calls.allgather(begin_call(self, "Iallgatherv"), sendbuf, recvbuf, vector_blocks)
        )

    def Ialltoall(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin what `Alltoall` does."""
        return begun(calls.alltoall(begin_call(self, "Ialltoall"), sendbuf, recvbuf, even_blocks))

    def Ialltoallv(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin what `Alltoallv` does."""
        return begun(
            calls.alltoall(begin_call(self, "Ialltoallv"), sendbuf, recvbuf, vector_blocks)
        )

    def Ialltoallw(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin what `Alltoallw` does."""
        return begun(calls.alltoallw(begin_call(self, "Ialltoallw"), sendbuf, recvbuf))

    def Ireduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM, root: int = 0) -> Request:
        """Begin what `Reduce` does."""
        if type(op) is not Op:
            see_kind(self, "Ireduce", op, "Op", "op")
        if type(root) is not int:
            root = root_of(self, "Ireduce", root)
        return begun(
            reductions.reduce(begin_call(self, "Ireduce", root), sendbuf, recvbuf, op, root)
        )

    def Iallreduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Request:
        """Begin what `Allreduce` does."""
        if type(op) is not Op:
            see_kind(self, "Iallreduce", op, "Op", "op")
        return begun(
            reductions.reduction(begin_call(self, "Iallreduce"), "allreduce", sendbuf, recvbuf, op)
        )

    def Ireduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Request:
        """Begin what `Reduce_scatter_block` does."""
        if type(op) is not Op:
            see_kind(self, "Ireduce_scatter_block", op, "Op", "op")
        return begun(
            reductions.reduce_scatter_block(
                begin_call(self, "Ireduce_scatter_block"), sendbuf, recvbuf, op
            )
        )

    def Ireduce_scatter(
        self, sendbuf: Any, recvbuf: Any, recvcounts: Sequence[int] | None = None, op: Op = SUM
    ) -> Request:
        """Begin what `Reduce_scatter` does."""
        if type(op) is not Op:
            see_kind(self, "Ireduce_scatter", op, "Op", "op")
        return begun(
            reductions.reduce_scatter(
                begin_call(self, "Ireduce_scatter"), sendbuf, recvbuf, recvcounts, op
            )
        )


class NonblockingPrefixes(CommBase):
    """Reductions of the members up to this one, as requests: in communicators of one group only."""

    __slots__ = ()

    def Iscan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Request:
        """Begin what `Scan` does."""
        if type(op) is not Op:
            see_kind(self, "Iscan", op, "Op", "op")
        return begun(reductions.reduction(begin_call(self, "Iscan"), "scan", sendbuf, recvbuf, op))

    def Iexscan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Request:
        """Begin what `Exscan` does."""
        if type(op) is not Op:
            see_kind(self, "Iexscan", op, "Op", "op")
        return begun(
            reductions.reduction(begin_call(self, "Iexscan"), "exscan", sendbuf, recvbuf, op)
        )
