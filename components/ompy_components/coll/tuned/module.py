"""tuned for one communicator: an algorithm for each call.

The choice depends only on what all members know: sizes that MPI wants equal, the operation, the
size of the communicator, the parameters.
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
    rabenseifner,
    reduce_scatter,
    reduction,
    scan,
    scatter,
)
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Schedule
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.explanation import Choice, Limit
from ompy.mca.parameter import Values
from ompy.trace.amounts import byte_count

from ompy_components.coll.tuned.choosing import Asked, reasons
from ompy_components.coll.tuned.decision import ALGORITHMS, decide, possible

KNOWN: Final = 256  # arbitrary: most programs have a few sizes
BARRIERS = {
    "linear": barrier.linear,
    "recursive_doubling": barrier.recursive_doubling,
    "bruck": barrier.dissemination,
    "tree": barrier.tree,
}
ALLGATHERS = {
    "linear": allgather.linear,
    "bruck": allgather.bruck,
    "recursive_doubling": allgather.recursive_doubling,
    "ring": allgather.ring,
}
REDUCES = {
    "linear": reduction.reduce_linear,
    "binomial": reduction.reduce,
    "rabenseifner": rabenseifner.reduce,
}
ALLREDUCES = {
    "basic_linear": reduction.allreduce_linear,
    "nonoverlapping": reduction.allreduce_over_root,
    "recursive_doubling": reduction.allreduce_doubling,
    "ring": reduction.allreduce_ring,
    "rabenseifner": rabenseifner.allreduce,
}
SCANS = {"linear": scan.inclusive_linear, "recursive_doubling": scan.inclusive}
EXSCANS = {"linear": scan.exclusive_linear, "recursive_doubling": scan.exclusive}
REDUCE_SCATTERS = {
    "recursive_halving": reduce_scatter.recursive_halving,
    "pairwise": reduce_scatter.pairwise,
    "recursive_doubling": reduce_scatter.recursive_doubling,
}


class Tuned(CollModule):
    """All operations of one communicator."""

    def __init__(self, communicator: Communicator, values: Values) -> None:
        super().__init__(communicator)
        self._sharing: bool = communicator.context.oversubscribed
        self._segment: int = values.bcast_algorithm_segmentsize
        self._window: int = values.alltoall_max_requests
        self._tree_block_max: int = values.tree_block_max
        self._values = values
        self._forced: dict[str, str] | None = None
        self._known: dict[tuple[str, int, bool, bool], str] = {}  # what was decided before

    def algorithm(
        self, operation: str, size: int, *, commutative: bool = True, regular: bool = True
    ) -> str:
        """The word of the algorithm for `size` bytes, as Open MPI counts them.

        Args:
            operation: its name.
            size: bytes.
            commutative: whether the operands may be exchanged.
            regular: whether all blocks are equal.
        """
        known = self._known
        asked = (operation, size, commutative, regular)
        word = known.get(asked)
        if word is None:
            if len(known) == KNOWN:
                known.clear()
            word = known[asked] = self._decide(operation, size, commutative, regular)
        return word

    def _decide(self, operation: str, size: int, commutative: bool, regular: bool) -> str:
        ranks = self.communicator.size
        if self._forced is None:
            self._forced = _forced_by(self._values)
        word = self._forced.get(operation)
        if word is None:
            word = decide(operation, size, ranks, sharing=self._sharing)
        return possible(operation, word, ranks, commutative=commutative, regular=regular)

    def name_algorithm(self, operation: str, exchange: Exchange, arguments: tuple[Any, ...]) -> str:
        """The word of the algorithm."""
        if operation not in ALGORITHMS:
            return super().name_algorithm(operation, exchange, arguments)
        return self._asked(operation, exchange, arguments).word

    def explain_choice(
        self, operation: str, exchange: Exchange, arguments: tuple[Any, ...]
    ) -> Choice:
        """The rule that decided, and what other rules there are."""
        if operation not in ALGORITHMS:
            return super().explain_choice(operation, exchange, arguments)
        about = self._asked(operation, exchange, arguments)
        found = reasons(about, self.communicator.size, self._sharing, self._forced or {})
        return found._replace(limits=self._limits(operation, about.word))

    def _limits(self, operation: str, word: str) -> tuple[Limit, ...]:
        """Numbers that shape an algorithm."""
        if operation in ("scatter", "gather") and word == "binomial":
            text = f"blocks of more than {byte_count(self._tree_block_max)} go straight"
            return (Limit(text, ("coll_tuned_tree_block_max",)),)
        if operation == "bcast" and word == "pipeline":
            text = f"{byte_count(self._segment)} are passed on at a time"
            return (Limit(text, ("coll_tuned_bcast_algorithm_segmentsize",)),)
        if operation == "alltoall" and word == "linear_sync":
            text = f"a rank exchanges blocks with {self._window} others at a time"
            return (Limit(text, ("coll_tuned_alltoall_max_requests",)),)
        return ()

    def _asked(self, operation: str, exchange: Exchange, arguments: tuple[Any, ...]) -> Asked:
        """What a schedule asks `algorithm`, and the answer."""
        probe, found = copy(self), []

        def note(
            operation: str, size: int, *, commutative: bool = True, regular: bool = True
        ) -> str:
            word = self.algorithm(operation, size, commutative=commutative, regular=regular)
            found.append(Asked(operation, size, commutative, regular, word))
            return word

        vars(probe)["algorithm"] = note
        getattr(type(self), f"schedule_{operation}")(probe, exchange, *arguments).close()
        return found[0]

    def schedule_barrier(self, exchange: Exchange) -> Schedule:
        """The steps of `barrier`."""
        return BARRIERS[self.algorithm("barrier", 0)](exchange)

    def schedule_bcast(self, exchange: Exchange, message: Message, root: int) -> Schedule:
        """The steps of `bcast`."""
        word = self.algorithm("bcast", message.size)
        if word == "basic_linear":
            return broadcast.linear(exchange, message, root)
        if word == "pipeline":
            return broadcast.pipeline(exchange, message, root, self._segment)
        if word == "scatter_allgather_ring":
            return broadcast.scatter_ring(exchange, message, root)
        return broadcast.binomial(exchange, message, root)

    def schedule_scatter(
        self, exchange: Exchange, send: Blocks | None, receive: Message | None, root: int
    ) -> Schedule:
        """The steps of `scatter`; only the root knows the sizes, so none decides."""
        linear = self.algorithm("scatter", 0) == "basic_linear"
        if exchange.rank == root:
            assert send is not None, "the root has something to scatter"
            if linear:
                return scatter.linear_from_root(exchange, send, receive)
            return scatter.from_root(exchange, send, receive, self._tree_block_max)
        assert receive is not None, "only the root's data may be in place"
        if linear:
            return scatter.linear_to_member(exchange, receive, root)
        return scatter.to_member(exchange, receive, root, self._tree_block_max)

    def schedule_gather(
        self, exchange: Exchange, send: Message | None, receive: Blocks | None, root: int
    ) -> Schedule:
        """The steps of `gather`; only the root knows the sizes, so none decides."""
        linear = self.algorithm("gather", 0) == "basic_linear"
        if exchange.rank == root:
            assert receive is not None, "the root has room for what is gathered"
            if linear:
                return gather.linear_to_root(exchange, send, receive)
            return gather.to_root(exchange, send, receive, self._tree_block_max)
        assert send is not None, "only the root's data may be in place"
        if linear:
            return gather.linear_from_member(exchange, send, root)
        return gather.from_member(exchange, send, root, self._tree_block_max)

    def schedule_allgather(
        self, exchange: Exchange, send: Message | None, receive: Blocks
    ) -> Schedule:
        """The steps of `allgather`."""
        ranks = exchange.size
        if receive.regular:
            size = receive.room(0) * ranks
        else:
            size = sum(receive.room(rank) for rank in range(ranks))
        return ALLGATHERS[self.algorithm("allgather", size)](exchange, send, receive)

    def schedule_alltoall(
        self, exchange: Exchange, send: Blocks | None, receive: Blocks
    ) -> Schedule:
        """The steps of `alltoall`: whether calls are regular, all members say alike."""
        regular = receive.regular and (send is None or send.regular)
        size = receive.room(0) * exchange.size if regular else 0
        word = self.algorithm("alltoall", size, regular=regular)
        if word == "modified_bruck":
            return alltoall.bruck(exchange, send, receive)
        if send is None:
            return alltoall.pairwise_in_place(exchange, receive)
        window = {"pairwise": 1, "linear": exchange.size, "linear_sync": self._window}[word]
        return alltoall.pairwise(exchange, send, receive, window)

    def schedule_reduce(
        self,
        exchange: Exchange,
        send: Message | None,
        receive: Message | None,
        operation: Operation,
        root: int,
    ) -> Schedule:
        """The steps of `reduce`."""
        mine = send if send is not None else receive
        assert mine is not None, "every member has data"
        word = self.algorithm("reduce", mine.size, commutative=operation.commutative)
        return REDUCES[word](exchange, send, receive, operation, root)

    def schedule_allreduce(
        self, exchange: Exchange, send: Message | None, receive: Message, operation: Operation
    ) -> Schedule:
        """The steps of `allreduce`."""
        word = self.algorithm("allreduce", receive.size, commutative=operation.commutative)
        return ALLREDUCES[word](exchange, send, receive, operation)

    def schedule_scan(
        self, exchange: Exchange, send: Message | None, receive: Message, operation: Operation
    ) -> Schedule:
        """The steps of `scan`."""
        return SCANS[self.algorithm("scan", receive.size)](exchange, send, receive, operation)

    def schedule_exscan(
        self, exchange: Exchange, send: Message | None, receive: Message, operation: Operation
    ) -> Schedule:
        """The steps of `exscan`."""
        return EXSCANS[self.algorithm("exscan", receive.size)](exchange, send, receive, operation)

    def schedule_reduce_scatter(
        self,
        exchange: Exchange,
        send: Message | None,
        receive: Message,
        counts: list[int],
        operation: Operation,
    ) -> Schedule:
        """The steps of `reduce_scatter`."""
        size = sum(counts) * receive.layout.size
        word = self.algorithm("reduce_scatter", size, commutative=operation.commutative)
        return REDUCE_SCATTERS[word](exchange, send, receive, counts, operation)


def _forced_by(values: Values) -> dict[str, str]:
    """The algorithms that parameters name, by operation."""
    if not values.use_dynamic_rules:
        return {}
    found = {}
    for operation, words in ALGORITHMS.items():
        number = getattr(values, f"{operation}_algorithm")
        if number:
            found[operation] = next(word for word in words if words[word] == number)
    return found
