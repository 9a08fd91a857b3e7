"""Communicators: collective operations to be started again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ompy.mpi.buffers.spec import even_blocks, vector_blocks
from ompy.mpi.collectives import collective_calls as calls
from ompy.mpi.collectives import reduction_calls as reductions
from ompy.mpi.collectives.collective_requests import prepared
from ompy.mpi.collectives.operation import SUM, Op
from ompy.mpi.collectives.refusals import root_of, see_kind
from ompy.mpi.info import INFO_NULL, Info
from ompy.mpi.point_to_point.request import Prequest
from ompy.mpi.state import CommBase


class PersistentCollectives(CommBase):
    """Collective operations on buffers, as requests to be started.

    All members make them in the same order and start each equally often. `info` has no effect.
    """

    __slots__ = ()

    def Barrier_init(self, info: Info = INFO_NULL) -> Prequest:
        """A request for what `Barrier` does."""
        see_kind(self, "Barrier_init", info, "Info", "info")
        return prepared(calls.call_of(self._enter("Barrier_init"), "barrier"))

    def Bcast_init(self, buf: Any, root: int = 0, info: Info = INFO_NULL) -> Prequest:
        """A request for what `Bcast` does."""
        if type(root) is not int:
            root = root_of(self, "Bcast_init", root)
        see_kind(self, "Bcast_init", info, "Info", "info")
        return prepared(calls.bcast(self._enter("Bcast_init", root), buf, root))

    def Gather_init(
        self, sendbuf: Any, recvbuf: Any, root: int = 0, info: Info = INFO_NULL
    ) -> Prequest:
        """A request for what `Gather` does."""
        if type(root) is not int:
            root = root_of(self, "Gather_init", root)
        see_kind(self, "Gather_init", info, "Info", "info")
        return prepared(
            calls.gather(self._enter("Gather_init", root), sendbuf, recvbuf, root, even_blocks)
        )

    def Gatherv_init(
        self, sendbuf: Any, recvbuf: Any, root: int = 0, info: Info = INFO_NULL
    ) -> Prequest:
        """A request for what `Gatherv` does."""
        if type(root) is not int:
            root = root_of(self, "Gatherv_init", root)
        see_kind(self, "Gatherv_init", info, "Info", "info")
        return prepared(
            calls.gather(self._enter("Gatherv_init", root), sendbuf, recvbuf, root, vector_blocks)
        )

    def Scatter_init(
        self, sendbuf: Any, recvbuf: Any, root: int = 0, info: Info = INFO_NULL
    ) -> Prequest:
        """A request for what `Scatter` does."""
        if type(root) is not int:
            root = root_of(self, "Scatter_init", root)
        see_kind(self, "Scatter_init", info, "Info", "info")
        return prepared(
            calls.scatter(self._enter("Scatter_init", root), sendbuf, recvbuf, root, even_blocks)
        )

    def Scatterv_init(
        self, sendbuf: Any, recvbuf: Any, root: int = 0, info: Info = INFO_NULL
    ) -> Prequest:
        """A request for what `Scatterv` does."""
        if type(root) is not int:
            root = root_of(self, "Scatterv_init", root)
        see_kind(self, "Scatterv_init", info, "Info", "info")
        return prepared(
            calls.scatter(self._enter("Scatterv_init", root), sendbuf, recvbuf, root, vector_blocks)
        )

    def Allgather_init(self, sendbuf: Any, recvbuf: Any, info: Info = INFO_NULL) -> Prequest:
        """A request for what `Allgather` does."""
        see_kind(self, "Allgather_init", info, "Info", "info")
        return prepared(
            calls.allgather(self._enter("Allgather_init"), sendbuf, recvbuf, even_blocks)
        )

    def Allgatherv_init(self, sendbuf: Any, recvbuf: Any, info: Info = INFO_NULL) -> Prequest:
        """A request for what `Allgatherv` does."""
        see_kind(self, "Allgatherv_init", info, "Info", "info")
        return prepared(
            calls.allgather(self._enter("Allgatherv_init"), sendbuf, recvbuf, vector_blocks)
        )

    def Alltoall_init(self, sendbuf: Any, recvbuf: Any, info: Info = INFO_NULL) -> Prequest:
        """A request for what `Alltoall` does."""
        see_kind(self, "Alltoall_init", info, "Info", "info")
        return prepared(calls.alltoall(self._enter("Alltoall_init"), sendbuf, recvbuf, even_blocks))

    def Alltoallv_init(self, sendbuf: Any, recvbuf: Any, info: Info = INFO_NULL) -> Prequest:
        """A request for what `Alltoallv` does."""
        see_kind(self, "Alltoallv_init", info, "Info", "info")
        return prepared(
            calls.alltoall(self._enter("Alltoallv_init"), sendbuf, recvbuf, vector_blocks)
        )

    def Alltoallw_init(self, sendbuf: Any, recvbuf: Any, info: Info = INFO_NULL) -> Prequest:
        """A request for what `Alltoallw` does."""
        see_kind(self, "Alltoallw_init", info, "Info", "info")
        return prepared(calls.alltoallw(self._enter("Alltoallw_init"), sendbuf, recvbuf))

    def Reduce_init(
        self, sendbuf: Any, recvbuf: Any, op: Op = SUM, root: int = 0, info: Info = INFO_NULL
    ) -> Prequest:
        """A request for what `Reduce` does."""
        if type(op) is not Op:
            see_kind(self, "Reduce_init", op, "Op", "op")
        if type(root) is not int:
            root = root_of(self, "Reduce_init", root)
        see_kind(self, "Reduce_init", info, "Info", "info")
        return prepared(
            reductions.reduce(self._enter("Reduce_init", root), sendbuf, recvbuf, op, root)
        )

    def Allreduce_init(
        self, sendbuf: Any, recvbuf: Any, op: Op = SUM, info: Info = INFO_NULL
    ) -> Prequest:
        """A request for what `Allreduce` does."""
        if type(op) is not Op:
            see_kind(self, "Allreduce_init", op, "Op", "op")
        see_kind(self, "Allreduce_init", info, "Info", "info")
        return prepared(
            reductions.reduction(self._enter("Allreduce_init"), "allreduce", sendbuf, recvbuf, op)
        )

    def Reduce_scatter_block_init(
        self, sendbuf: Any, recvbuf: Any, op: Op = SUM, info: Info = INFO_NULL
    ) -> Prequest:
        """A request for what `Reduce_scatter_block` does."""
        if type(op) is not Op:
            see_kind(self, "Reduce_scatter_block_init", op, "Op", "op")
        see_kind(self, "Reduce_scatter_block_init", info, "Info", "info")
        return prepared(
            reductions.reduce_scatter_block(
                self._enter("Reduce_scatter_block_init"), sendbuf, recvbuf, op
            )
        )

    def Reduce_scatter_init(
        self,
        sendbuf: Any,
        recvbuf: Any,
        recvcounts: Sequence[int] | None = None,
        op: Op = SUM,
        info: Info = INFO_NULL,
    ) -> Prequest:
        """A request for what `Reduce_scatter` does."""
        if type(op) is not Op:
            see_kind(self, "Reduce_scatter_init", op, "Op", "op")
        see_kind(self, "Reduce_scatter_init", info, "Info", "info")
        return prepared(
            reductions.reduce_scatter(
                self._enter("Reduce_scatter_init"), sendbuf, recvbuf, recvcounts, op
            )
        )
