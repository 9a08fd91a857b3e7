"""basic for one communicator: which algorithm an operation takes.

The choice depends only on what all members know: sizes that MPI wants equal, the operation,
the size of the communicator, the parameters.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Final

from ompy.data.message import Blocks, Message
from ompy.data.operation import Operation
from ompy.frameworks.coll import CollModule
from ompy.frameworks.coll_base import (
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
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Schedule
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.explanation import Branch, Change, Choice, Limit
from ompy.mca.parameter import Values
from ompy.trace.amounts import byte_count

MOST: Final = 1 << 62  # bytes; arbitrary: more than any message has
# what decides between two algorithms of an operation: a parameter, its unit as people say it
LIMITS: Final = {
    "allgather": ("allgather_small_max", "all blocks together"),
    "alltoall": ("alltoall_small_max", "a block"),
    "allreduce": ("allreduce_small_max", "the data"),
    "reduce_scatter": ("reduce_scatter_small_max", "all data"),
}


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

    def name_algorithm(self, operation: str, exchange: Exchange, arguments: tuple[Any, ...]) -> str:
        """The name of the schedule; the root and the others have one each in scatter and gather."""
        if operation in ("scatter", "gather"):
            return "binomial"
        return super().name_algorithm(operation, exchange, arguments)

    def explain_choice(
        self, operation: str, exchange: Exchange, arguments: tuple[Any, ...]
    ) -> Choice:
        """The limit that decided, if there is one; the call is asked about with another."""
        now = self.name_algorithm(operation, exchange, arguments)
        if operation not in LIMITS:
            limits: tuple[Limit, ...] = ()
            if now == "binomial" and operation != "bcast":
                text = f"blocks of more than {byte_count(self._tree_block_max)} go straight"
                limits = (Limit(text, ("coll_basic_tree_block_max",)),)
            return Choice((Branch(f"it has {now} alone for {operation}"),), limits, ())
        name, what = LIMITS[operation]
        full, changes = f"coll_basic_{name}", []
        for value, text in ((0, "less than this"), (MOST, "this or more")):
            probe = copy(self)
            setattr(probe, f"_{name}", value)
            then = probe.name_algorithm(operation, exchange, arguments)
            if then != now:
                changes.append(Change(f"a limit of {text}", then, (full,)))
        small = any("less" in change.text for change in changes)
        compared = "has no more than" if small else "has more than, or may not be up to,"
        branch = Branch(f"{what} {compared} the limit: {now}", (full,))
        return Choice((branch,), (), tuple(changes))

    def schedule_barrier(self, exchange: Exchange) -> Schedule:
        """Dissemination."""
        return barrier.dissemination(exchange)

    def schedule_bcast(self, exchange: Exchange, message: Message, root: int) -> Schedule:
        """Binomial tree."""
        return broadcast.binomial(exchange, message, root)

    def schedule_scatter(
        self, exchange: Exchange, send: Blocks | None, receive: Message | None, root: int
    ) -> Schedule:
        """Binomial tree for small blocks, straight from the root for large ones."""
        if exchange.rank == root:
            assert send is not None, "the root has something to scatter"
            return scatter.from_root(exchange, send, receive, self._tree_block_max)
        else:
            assert receive is not None, "only the root's data may be in place"
            return scatter.to_member(exchange, receive, root, self._tree_block_max)

    def schedule_gather(
        self, exchange: Exchange, send: Message | None, receive: Blocks | None, root: int
    ) -> Schedule:
        """Binomial tree for small blocks, straight to the root for large ones."""
        if exchange.rank == root:
            assert receive is not None, "the root has room for what is gathered"
            return gather.to_root(exchange, send, receive, self._tree_block_max)
        else:
            assert send is not None, "only the root's data may be in place"
            return gather.from_member(exchange, send, root, self._tree_block_max)

    def schedule_allgather(
        self, exchange: Exchange, send: Message | None, receive: Blocks
    ) -> Schedule:
        """Bruck for little data, a ring for much."""
        sizes = [receive[rank].size for rank in range(len(receive))]
        if sum(sizes) <= self._allgather_small_max:
            return allgather.bruck(exchange, send, receive)
        else:
            return allgather.ring(exchange, send, receive)

    def schedule_alltoall(
        self, exchange: Exchange, send: Blocks | None, receive: Blocks
    ) -> Schedule:
        """Bruck for small regular blocks, pairwise exchange for all others.

        Bruck relies on `regular` being the same in all members, which no vector call can know.
        """
        regular = receive.regular and (send is None or send.regular)
        if regular and 0 < receive[0].size <= self._alltoall_small_max:
            return alltoall.bruck(exchange, send, receive)
        elif send is None:
            return alltoall.pairwise_in_place(exchange, receive)
        else:
            return alltoall.pairwise(exchange, send, receive, self._alltoall_window)

    def schedule_reduce(
        self,
        exchange: Exchange,
        send: Message | None,
        receive: Message | None,
        operation: Operation,
        root: int,
    ) -> Schedule:
        """Binomial tree; from rank 0 up, then on to the root, when order matters."""
        return reduction.reduce(exchange, send, receive, operation, root)

    def schedule_allreduce(
        self, exchange: Exchange, send: Message | None, receive: Message, operation: Operation
    ) -> Schedule:
        """Recursive doubling for little data; a ring, or reduce and bcast, for much."""
        if receive.size <= self._allreduce_small_max:
            return reduction.allreduce_doubling(exchange, send, receive, operation)
        elif operation.commutative:
            return reduction.allreduce_ring(exchange, send, receive, operation)
        else:
            return reduction.allreduce_over_root(exchange, send, receive, operation)

    def schedule_scan(
        self, exchange: Exchange, send: Message | None, receive: Message, operation: Operation
    ) -> Schedule:
        """Recursive doubling of the distance."""
        return scan.inclusive(exchange, send, receive, operation)

    def schedule_exscan(
        self, exchange: Exchange, send: Message | None, receive: Message, operation: Operation
    ) -> Schedule:
        """A shift by one rank, then as scan."""
        return scan.exclusive(exchange, send, receive, operation)

    def schedule_reduce_scatter(
        self,
        exchange: Exchange,
        send: Message | None,
        receive: Message,
        counts: list[int],
        operation: Operation,
    ) -> Schedule:
        """Recursive doubling of everything for little data, pairwise exchange for much."""
        if sum(counts) * receive.layout.size <= self._reduce_scatter_small_max:
            return reduce_scatter.recursive_doubling(exchange, send, receive, counts, operation)
        else:
            return reduce_scatter.pairwise(exchange, send, receive, counts, operation)
