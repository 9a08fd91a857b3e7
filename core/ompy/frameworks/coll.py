"""The coll contract: collective operations of one communicator.

Every member calls the same operations in the same order with fitting arguments. Calls block
and progress; they run without the rank's lock, which the PML takes for itself. Arguments are
checked by the MPI floor: roots exist, block counts equal the communicator's size, in-place
calls are turned into the forms below. Memory belongs to the user throughout.

`send` is None where MPI says in place: the data are in `receive` already (for gather-like
calls: at the rank's own block of it). `receive` is None at ranks where it means nothing.

A module overrides what it does better; selection is per communicator and per operation, the
highest priority that offers an operation wins it.

Source: reference openmpi.md 0.6 (COLL 2.0.0); the algorithms are the textbook ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from ompy.data.message import Blocks, Message
from ompy.data.operation import Operation
from ompy.mca.component import ApiVersion, Component

if TYPE_CHECKING:
    from ompy.frameworks.communicator import Communicator

API: Final[ApiVersion] = (2, 0)  # reference openmpi.md 0.6

# internal tags, one per operation so that a mismatch hangs visibly instead of mixing data;
# arbitrary, all below ANY_TAG (-1)
TAG_BARRIER: Final = -10
TAG_BCAST: Final = -11
TAG_SCATTER: Final = -12
TAG_GATHER: Final = -13
TAG_ALLGATHER: Final = -14
TAG_ALLTOALL: Final = -15
TAG_REDUCE: Final = -16
TAG_ALLREDUCE: Final = -17
TAG_SCAN: Final = -18
TAG_EXSCAN: Final = -19
TAG_REDUCE_SCATTER: Final = -20
TAG_OBJECT: Final = -30  # collectives of pickled objects, above coll
TAG_CREATE: Final = -40  # agreement on context ids

OPERATIONS: Final = (
    "barrier",
    "bcast",
    "scatter",
    "gather",
    "allgather",
    "alltoall",
    "reduce",
    "allreduce",
    "scan",
    "exscan",
    "reduce_scatter",
)


class CollModule:
    """Collectives of one communicator.

    Attributes:
        communicator: whose.
    """

    def __init__(self, communicator: Communicator) -> None:
        self.communicator = communicator

    def barrier(self) -> None:
        """Return when every member has called it."""
        raise NotImplementedError

    def bcast(self, message: Message, root: int) -> None:
        """Copy the root's message to every member."""
        raise NotImplementedError

    def scatter(self, send: Blocks | None, receive: Message | None, root: int) -> None:
        """Block i of the root's `send` to member i. In place at the root: `receive` is None."""
        raise NotImplementedError

    def gather(self, send: Message | None, receive: Blocks | None, root: int) -> None:
        """Each member's `send` to its block of the root's `receive`."""
        raise NotImplementedError

    def allgather(self, send: Message | None, receive: Blocks) -> None:
        """Each member's `send` to its block of every member's `receive`."""
        raise NotImplementedError

    def alltoall(self, send: Blocks | None, receive: Blocks) -> None:
        """Block j of member i's `send` to block i of member j's `receive`."""
        raise NotImplementedError

    def reduce(
        self, send: Message | None, receive: Message | None, operation: Operation, root: int
    ) -> None:
        """Combine all members' data in rank order into the root's `receive`."""
        raise NotImplementedError

    def allreduce(self, send: Message | None, receive: Message, operation: Operation) -> None:
        """Combine all members' data in rank order into every member's `receive`."""
        raise NotImplementedError

    def scan(self, send: Message | None, receive: Message, operation: Operation) -> None:
        """Combine the data of members 0 to i into member i's `receive`."""
        raise NotImplementedError

    def exscan(self, send: Message | None, receive: Message, operation: Operation) -> None:
        """Combine the data of members 0 to i-1 into member i's `receive`; 0's is left alone."""
        raise NotImplementedError

    def reduce_scatter(
        self, send: Message | None, receive: Message, counts: list[int], operation: Operation
    ) -> None:
        """Combine all data, then give `counts[i]` elements of the result to member i.

        In place: each member's `receive` holds all the input and gets its result at its start.
        """
        raise NotImplementedError


class CollComponent(Component):
    """Base of coll components."""

    framework: ClassVar[str] = "coll"

    def query(self, communicator: Communicator) -> CollModule | None:
        """A module for a new communicator, or None when it has nothing to offer for it."""
        raise NotImplementedError


class SelectedColl(CollModule):
    """The collectives a communicator uses: each operation bound to the module that won it."""

    def __init__(self, communicator: Communicator, modules: list[CollModule]) -> None:
        """Bind the operations; `modules` come with the best priority first."""
        super().__init__(communicator)
        for operation in OPERATIONS:
            for module in modules:
                if getattr(type(module), operation) is not getattr(CollModule, operation):
                    setattr(self, operation, getattr(module, operation))
                    break
