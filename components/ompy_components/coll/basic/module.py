"""basic for one communicator: which algorithm an operation takes.

The choice depends only on what all members know: sizes that MPI wants equal, the operation,
the size of the communicator, the parameters.
"""

from __future__ import annotations

from ompy.data.message import Blocks, Message
from ompy.data.operation import Operation
from ompy.frameworks.coll import CollModule
from ompy.frameworks.communicator import Communicator
from ompy.mca.parameter import Values

from ompy_components.coll.basic import (
    allgather,
    alltoall,
    barrier,
    broadcast,
    gather,
    reduce_scatter,
    reduction,
    scan,
    scatter,
)


class Basic(CollModule):
    """All operations of one communicator."""

    def __init__(self, communicator: Communicator, values: Values) -> None:
        super().__init__(communicator)
        self._tree_block_max: int = values.tree_block_max
        self._allgather_small_max: int = values.allgather_small_max
        self._alltoall_small_max: int = values.alltoall_small_max
        self._alltoall_window: int = values.alltoall_window
        self._allreduce_small_max: int = values.allreduce_small_max
        self._reduce_scatter_small_max: int = values.reduce_scatter_small_max

    def barrier(self) -> None:
        """Dissemination."""
        barrier.dissemination(self.communicator)

    def bcast(self, message: Message, root: int) -> None:
        """Binomial tree."""
        broadcast.binomial(self.communicator, message, root)

    def scatter(self, send: Blocks | None, receive: Message | None, root: int) -> None:
        """Binomial tree for small blocks, straight from the root for large ones."""
        if self.communicator.rank == root:
            assert send is not None, "the root has something to scatter"
            scatter.from_root(self.communicator, send, receive, self._tree_block_max)
        else:
            assert receive is not None, "only the root's data may be in place"
            scatter.to_member(self.communicator, receive, root, self._tree_block_max)

    def gather(self, send: Message | None, receive: Blocks | None, root: int) -> None:
        """Binomial tree for small blocks, straight to the root for large ones."""
        if self.communicator.rank == root:
            assert receive is not None, "the root has room for what is gathered"
            gather.to_root(self.communicator, send, receive, self._tree_block_max)
        else:
            assert send is not None, "only the root's data may be in place"
            gather.from_member(self.communicator, send, root, self._tree_block_max)

    def allgather(self, send: Message | None, receive: Blocks) -> None:
        """Bruck for little data, a ring for much."""
        sizes = [receive[rank].size for rank in range(len(receive))]
        if sum(sizes) <= self._allgather_small_max:
            allgather.bruck(self.communicator, send, receive)
        else:
            allgather.ring(self.communicator, send, receive)

    def alltoall(self, send: Blocks | None, receive: Blocks) -> None:
        """Bruck for small regular blocks, pairwise exchange for all others.

        Bruck relies on `regular` being the same in all members, which no vector call can know.
        """
        regular = receive.regular and (send is None or send.regular)
        if regular and 0 < receive[0].size <= self._alltoall_small_max:
            alltoall.bruck(self.communicator, send, receive)
        elif send is None:
            alltoall.pairwise_in_place(self.communicator, receive)
        else:
            alltoall.pairwise(self.communicator, send, receive, self._alltoall_window)

    def reduce(
        self, send: Message | None, receive: Message | None, operation: Operation, root: int
    ) -> None:
        """Binomial tree; from rank 0 up, then on to the root, when order matters."""
        reduction.reduce(self.communicator, send, receive, operation, root)

    def allreduce(self, send: Message | None, receive: Message, operation: Operation) -> None:
        """Recursive doubling for little data; a ring, or reduce and bcast, for much."""
        if receive.size <= self._allreduce_small_max:
            reduction.allreduce_doubling(self.communicator, send, receive, operation)
        elif operation.commutative:
            reduction.allreduce_ring(self.communicator, send, receive, operation)
        else:
            reduction.reduce(self.communicator, send, receive, operation, 0)
            broadcast.binomial(self.communicator, receive, 0)

    def scan(self, send: Message | None, receive: Message, operation: Operation) -> None:
        """Recursive doubling of the distance."""
        scan.inclusive(self.communicator, send, receive, operation)

    def exscan(self, send: Message | None, receive: Message, operation: Operation) -> None:
        """A shift by one rank, then as scan."""
        scan.exclusive(self.communicator, send, receive, operation)

    def reduce_scatter(
        self, send: Message | None, receive: Message, counts: list[int], operation: Operation
    ) -> None:
        """Recursive doubling of everything for little data, pairwise exchange for much."""
        if sum(counts) * receive.layout.size <= self._reduce_scatter_small_max:
            reduce_scatter.recursive_doubling(self.communicator, send, receive, counts, operation)
        else:
            reduce_scatter.pairwise(self.communicator, send, receive, counts, operation)
