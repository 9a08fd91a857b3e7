"""The coll contract: collective operations of one communicator.

Every member calls the same operations in the same order with fitting arguments. Arguments are
checked by the MPI floor: roots exist, block counts equal the communicator's size, in-place
calls are turned into the forms below. Memory belongs to the user throughout.

A module offers an operation as a *schedule* (`collectives/schedule.py`; since API 2.1):
`schedule_barrier` and so on, which serves blocking and nonblocking calls. Or it offers the blocking
call alone, by the operation's own name: such calls block and progress, without the rank's lock,
which the PML takes for itself; nonblocking ones then come from the next module.

`send` is None where MPI says in place: the data are in `receive` already (for gather-like
calls: at the rank's own block of it). `receive` is None at ranks where it means nothing.

Between two groups (`Communicator.between`) ranks, counts and blocks are those of the other group,
no call is in place, and `root` is ROOT at the root, PROC_NULL at the other members of its group,
which have no buffers (`send` and `receive` are None, the message of a bcast is empty).

A module overrides what it does better; selection is per communicator and per operation, the
highest priority that offers an operation wins it (`collectives/coll_selection.py`). `coll_base` has
algorithms to choose from.

Each call of the API has a tag of its own (`collectives/call_order.py`), which members agree on by
counting, as all of them begin the same calls in the same order; it says which call that is, so that
no message of another one is taken. The tags here are for calls that no API has begun: one for each
operation, and one for each nonblocking call.

Source: reference openmpi.md 0.6 (COLL 2.0.0); the algorithms are the textbook ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, Self

from ompy.compiled import DECLARING, U64, ccall, cclass
from ompy.data.message import Blocks, Message
from ompy.data.operation import Operation
from ompy.data.request import Request
from ompy.frameworks.coll_base import neighbours as linear
from ompy.frameworks.collectives.call_order import TAG_CALLS
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.neighbours import Neighbours
from ompy.frameworks.collectives.patience import TAG_INQUIRY
from ompy.frameworks.collectives.schedule import Schedule, complete_schedule
from ompy.frameworks.collectives.unsized import UnsizedMessages
from ompy.frameworks.explanation import Branch, Choice
from ompy.mca.component import ApiVersion, Component
from ompy.trace.tag_names import name_tags, name_tags_by

if DECLARING:
    from ompy.frameworks.communicator import Communicator

# 2.0: reference openmpi.md 0.6; 2.1 adds schedules, and asks nothing new of a module made for 2.0;
# 2.2 has a component say why it has no module for a communicator, if it likes; 2.3 adds
# neighbourhoods, which the framework has steps for where no module has; 2.4 communicators between
# two groups, which a component is asked for that says so; 2.5 nonblocking calls without a schedule;
# 2.6 words that are exchanged without messages; 2.7 names and reasons of algorithms; 2.8 persistent
# requests that a module prepares; 2.9 one word that all compare, or hear of each other, and words
# that all share; 2.10 reasons of nonblocking calls without a schedule; 2.11 messages of any size;
# 2.12 calls that a member takes no part in
API: Final[ApiVersion] = (2, 12)

# answers of `compare_words`
UNKNOWN: Final = -1
DIFFERENT: Final = 0
ALIKE: Final = 1

# internal tags, one per operation, of calls made below the API; arbitrary, all below ANY_TAG (-1)
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
TAG_NEIGHBOR_ALLGATHER: Final = -21
TAG_NEIGHBOR_ALLTOALL: Final = -22
REDUCTIONS: Final = frozenset(range(TAG_REDUCE_SCATTER, TAG_REDUCE + 1))
TAG_SHARED_MEMORY: Final = -41  # agreement on memory that the members share
TAG_NONBLOCKING_MEMORY: Final = -42  # the same, in the background

# nonblocking operations below the API have the tags from here downwards, in turn; below wrappers'
TAG_NONBLOCKING: Final = -1000  # arbitrary: clear of all others
TAGS_IN_TURN: Final = 1 << 20  # arbitrary: more than anybody has under way in a communicator
assert TAG_NONBLOCKING - TAGS_IN_TURN > -TAG_CALLS, "tags of the API's calls are others"

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
# those of communicators with a topology; a module need not have them
NEIGHBOURHOODS: Final = ("neighbor_allgather", "neighbor_alltoall")

_UNKNOWN: Final = UNKNOWN  # of this module: a number in C where it is compiled

name_tags(
    {
        TAG_BARRIER: "a barrier",
        TAG_BCAST: "a bcast",
        TAG_SCATTER: "a scatter",
        TAG_GATHER: "a gather",
        TAG_ALLGATHER: "an allgather",
        TAG_ALLTOALL: "an alltoall",
        TAG_REDUCE: "a reduce",
        TAG_ALLREDUCE: "an allreduce",
        TAG_SCAN: "a scan",
        TAG_EXSCAN: "an exscan",
        TAG_REDUCE_SCATTER: "a reduce_scatter",
        TAG_NEIGHBOR_ALLGATHER: "a neighbor_allgather",
        TAG_NEIGHBOR_ALLTOALL: "a neighbor_alltoall",
        TAG_SHARED_MEMORY: "sharing memory",
        TAG_NONBLOCKING_MEMORY: "sharing memory",
        TAG_INQUIRY: "asking for collective calls",
    }
)
name_tags_by(
    lambda tag: "a nonblocking collective" if 0 <= TAG_NONBLOCKING - tag <= TAGS_IN_TURN else ""
)


@cclass
class PreparedCall:
    """A call that is started again and again, as a module has prepared it. Since API 2.8."""

    __slots__ = ()

    @ccall
    def start(self) -> Request | None:
        """Begin the call once more: what completes with it, or None, as of `CollModule.begin`."""
        raise NotImplementedError


@cclass
class CollModule:
    """Collectives of one communicator.

    Attributes:
        communicator: whose.
    """

    communicator: Communicator
    # a trace puts functions in front of an instance's methods
    __slots__ = (*__annotations__, "__dict__")

    def __init__(self, communicator: Communicator) -> None:
        self.communicator = communicator

    def __copy__(self) -> Self:
        """Another one of the same communicator, with the same attributes of its own."""
        made = type(self).__new__(type(self))
        made.communicator = self.communicator
        vars(made).update(vars(self))
        return made

    def barrier(self) -> None:
        """Return when every member has called it. A member that is alone waits for nobody."""
        communicator = self.communicator
        if communicator.size > 1 or communicator.between:
            self._complete(TAG_BARRIER, self.schedule_barrier)

    def bcast(self, message: Message, root: int) -> None:
        """Copy the root's message to every member."""
        self._complete(TAG_BCAST, self.schedule_bcast, message, root)

    def scatter(self, send: Blocks | None, receive: Message | None, root: int) -> None:
        """Block i of the root's `send` to member i. In place at the root: `receive` is None."""
        self._complete(TAG_SCATTER, self.schedule_scatter, send, receive, root)

    def gather(self, send: Message | None, receive: Blocks | None, root: int) -> None:
        """Each member's `send` to its block of the root's `receive`."""
        self._complete(TAG_GATHER, self.schedule_gather, send, receive, root)

    def allgather(self, send: Message | None, receive: Blocks) -> None:
        """Each member's `send` to its block of every member's `receive`."""
        self._complete(TAG_ALLGATHER, self.schedule_allgather, send, receive)

    def alltoall(self, send: Blocks | None, receive: Blocks) -> None:
        """Block j of member i's `send` to block i of member j's `receive`."""
        self._complete(TAG_ALLTOALL, self.schedule_alltoall, send, receive)

    def reduce(
        self, send: Message | None, receive: Message | None, operation: Operation, root: int
    ) -> None:
        """Combine all members' data in rank order into the root's `receive`."""
        self._complete(TAG_REDUCE, self.schedule_reduce, send, receive, operation, root)

    def allreduce(self, send: Message | None, receive: Message, operation: Operation) -> None:
        """Combine all members' data in rank order into every member's `receive`."""
        self._complete(TAG_ALLREDUCE, self.schedule_allreduce, send, receive, operation)

    def scan(self, send: Message | None, receive: Message, operation: Operation) -> None:
        """Combine the data of members 0 to i into member i's `receive`."""
        self._complete(TAG_SCAN, self.schedule_scan, send, receive, operation)

    def exscan(self, send: Message | None, receive: Message, operation: Operation) -> None:
        """Combine the data of members 0 to i-1 into member i's `receive`; 0's is left alone."""
        self._complete(TAG_EXSCAN, self.schedule_exscan, send, receive, operation)

    def reduce_scatter(
        self, send: Message | None, receive: Message, counts: list[int], operation: Operation
    ) -> None:
        """Combine all data, then give `counts[i]` elements of the result to member i.

        In place: each member's `receive` holds all the input and gets its result at its start.
        """
        self._complete(
            TAG_REDUCE_SCATTER, self.schedule_reduce_scatter, send, receive, counts, operation
        )

    def neighbor_allgather(self, send: Message, receive: Blocks, neighbours: Neighbours) -> None:
        """Each member's `send` to all its targets; block i from source i. Since API 2.3."""
        plan = self.schedule_neighbor_allgather
        self._complete(TAG_NEIGHBOR_ALLGATHER, plan, send, receive, neighbours)

    def neighbor_alltoall(self, send: Blocks, receive: Blocks, neighbours: Neighbours) -> None:
        """Block i of `send` to target i; block i from source i. Since API 2.3."""
        plan = self.schedule_neighbor_alltoall
        self._complete(TAG_NEIGHBOR_ALLTOALL, plan, send, receive, neighbours)

    def _complete(self, tag: int, plan: Callable[..., Schedule], *arguments: Any) -> None:
        """Run a schedule and wait for its end."""
        exchange = Exchange(self.communicator, self.communicator.order.tag() or tag)
        exchange.whole = tag in REDUCTIONS
        complete_schedule(exchange, plan(exchange, *arguments))

    # --- the same as schedules

    def schedule_barrier(self, exchange: Exchange) -> Schedule:
        """The steps of `barrier`."""
        raise NotImplementedError

    def schedule_bcast(self, exchange: Exchange, message: Message, root: int) -> Schedule:
        """The steps of `bcast`."""
        raise NotImplementedError

    def schedule_scatter(
        self, exchange: Exchange, send: Blocks | None, receive: Message | None, root: int
    ) -> Schedule:
        """The steps of `scatter`."""
        raise NotImplementedError

    def schedule_gather(
        self, exchange: Exchange, send: Message | None, receive: Blocks | None, root: int
    ) -> Schedule:
        """The steps of `gather`."""
        raise NotImplementedError

    def schedule_allgather(
        self, exchange: Exchange, send: Message | None, receive: Blocks
    ) -> Schedule:
        """The steps of `allgather`."""
        raise NotImplementedError

    def schedule_alltoall(
        self, exchange: Exchange, send: Blocks | None, receive: Blocks
    ) -> Schedule:
        """The steps of `alltoall`."""
        raise NotImplementedError

    def schedule_reduce(
        self,
        exchange: Exchange,
        send: Message | None,
        receive: Message | None,
        operation: Operation,
        root: int,
    ) -> Schedule:
        """The steps of `reduce`."""
        raise NotImplementedError

    def schedule_allreduce(
        self, exchange: Exchange, send: Message | None, receive: Message, operation: Operation
    ) -> Schedule:
        """The steps of `allreduce`."""
        raise NotImplementedError

    def schedule_scan(
        self, exchange: Exchange, send: Message | None, receive: Message, operation: Operation
    ) -> Schedule:
        """The steps of `scan`."""
        raise NotImplementedError

    def schedule_exscan(
        self, exchange: Exchange, send: Message | None, receive: Message, operation: Operation
    ) -> Schedule:
        """The steps of `exscan`."""
        raise NotImplementedError

    def schedule_reduce_scatter(
        self,
        exchange: Exchange,
        send: Message | None,
        receive: Message,
        counts: list[int],
        operation: Operation,
    ) -> Schedule:
        """The steps of `reduce_scatter`."""
        raise NotImplementedError

    def schedule_neighbor_allgather(
        self, exchange: Exchange, send: Message, receive: Blocks, neighbours: Neighbours
    ) -> Schedule:
        """The steps of `neighbor_allgather`: straight along the edges, if not overridden."""
        return linear.allgather(exchange, send, receive, neighbours)

    def schedule_neighbor_alltoall(
        self, exchange: Exchange, send: Blocks, receive: Blocks, neighbours: Neighbours
    ) -> Schedule:
        """The steps of `neighbor_alltoall`: straight along the edges, if not overridden."""
        return linear.alltoall(exchange, send, receive, neighbours)

    @ccall
    def begin(
        self, operation: str, arguments: tuple[Any, ...], tag: int, word: U64, kept: int
    ) -> Request | None:
        """Begin a nonblocking call in a way of the module's own. Since API 2.5.

        Args:
            operation: one for which `offers_begin` says so.
            arguments: as of the blocking call; the memory is in use until the request completes.
            tag: of messages of this call.
            word: of the call, as the communicator's order has it.
            kept: what `keep_call` gave for a call that is started again and again; else -1.

        Returns:
            What completes with the call, `problem` being what a user's function raised, or None;
            None, for all members alike, if the next module's schedule is to serve it.
        """
        raise NotImplementedError

    def keep_call(self, operation: str) -> int:
        """A call will be started again and again, by all members but in any order.

        All members ask for the same calls in the same order. Since API 2.5.
        """
        return -1

    def prepare_call(
        self, operation: str, arguments: tuple[Any, ...], tag: int, word: U64, kept: int
    ) -> PreparedCall | None:
        """What starts a persistent request in a way of the module's own. Since API 2.8.

        Args:
            operation: as of `begin`.
            arguments: as of `begin`, and the same with each start.
            tag: likewise.
            word: likewise.
            kept: what `keep_call` gave.

        Returns:
            What starts it; None if `begin` is to be called with each start.
        """
        return None

    @classmethod
    def offers_begin(cls, operation: str) -> bool:  # noqa: ARG003 - as it is asked
        """Whether the module begins nonblocking calls of an operation itself. Since API 2.5."""
        return False

    @ccall
    def exchange_words(self, said: bytes) -> list[bytes] | None:
        """What all members say, by rank, if that takes no messages; else None. Since API 2.6.

        Args:
            said: by this member; all say equally much. All call this together, and get None
                together.
        """
        return None

    @ccall
    def compare_words(self, word: U64) -> int:
        """Whether all members say the same word, if that takes no messages. Since API 2.9.

        Args:
            word: of this member, 63 bits. All call this together, and get the same answer.

        Returns:
            ALIKE or DIFFERENT; UNKNOWN where that would take messages.
        """
        return _UNKNOWN

    @ccall
    def unsized_messages(self) -> UnsizedMessages | None:
        """What carries objects without messages of the PML, or None. Since API 2.11.

        All members call this together before each collective call on objects, and get None
        together.
        """
        return None

    def hear_words(self, word: int) -> list[int] | None:
        """The word that each member says, by rank, if that takes no messages. Since API 2.9.

        Args:
            word: of this member, 63 bits. All call this together, and get None together.
        """
        return None

    def shared_words(self) -> memoryview | None:
        """Some words in memory that all members have mapped, if there is any. Since API 2.9.

        All members call this together, and get the same bytes, a few words of 8 that are 0 at
        first; or all get None. They are there until `close`.
        """
        return None

    def take_no_part(self) -> Request | None:
        """This member takes no part in the call that it has begun last. Since API 2.12.

        Its arguments are wrong. Others may be in it already, or come later: they get an error, and
        the next call goes on as if nothing had been. Who waits for messages is told by the API.

        Returns:
            What completes when the others can know it; None if they can.
        """
        return None

    def prompt_barrier(self) -> Callable[[], None] | None:
        """A barrier that every member leaves with an error when one has ended that has not come.

        In a barrier of messages only those notice that wait for the one, and who waits for them is
        left alone. All members call this together, and get one, or None.

        Raises:
            MPIError: a member has ended.
        """
        return None

    def name_algorithm(self, operation: str, exchange: Exchange, arguments: tuple[Any, ...]) -> str:
        """The algorithm that a call's schedule is of; by its function's name if not overridden.

        Asked for traces and explanations only. Since API 2.7.

        Args:
            operation: one that the module has as a schedule.
            exchange: of the call, or one of the same rank and size.
            arguments: of the schedule, behind the exchange.
        """
        plan = getattr(type(self), f"schedule_{operation}")
        schedule = plan(self, exchange, *arguments)
        name = str(schedule.__name__)  # which a compiled one forgets when it is closed
        schedule.close()
        return name.removeprefix("schedule_")

    def name_way(self, operation: str, arguments: tuple[Any, ...]) -> str:
        """How a blocking call goes that the module makes in a way of its own. Since API 2.7.

        Asked just before the call, for traces, and for explanations.

        Returns:
            A few words; none if it goes by a schedule, which then says so itself.
        """
        return "in a way of its own"

    def explain_choice(
        self, operation: str, exchange: Exchange, arguments: tuple[Any, ...]
    ) -> Choice:
        """Why a call takes the algorithm it takes. Since API 2.7."""
        name = self.name_algorithm(operation, exchange, arguments)
        return Choice((Branch(f"it has {name} for {operation}"),), (), ())

    def explain_begin(self, operation: str, arguments: tuple[Any, ...]) -> Choice:
        """Why a call that the module was asked to `begin` goes the way it goes. Since API 2.10."""
        return Choice((), (), ())

    def close(self) -> None:
        """The communicator is freed: give back what the module has of its own."""

    @classmethod
    def has(cls, name: str) -> bool:
        """Whether the module has a call: an operation's name, or that of its schedule."""
        operation = name.removeprefix("schedule_")
        return cls.offers(operation) if operation == name else cls.offers_schedule(operation)

    @classmethod
    def offers(cls, operation: str) -> bool:
        """Whether the module has this operation at all."""
        return cls.offers_schedule(operation) or _overridden(cls, operation)

    @classmethod
    def offers_schedule(cls, operation: str) -> bool:
        """Whether the module has this operation as a schedule."""
        return _overridden(cls, f"schedule_{operation}")


def _overridden(kind: type[CollModule], name: str) -> bool:
    return getattr(kind, name) is not getattr(CollModule, name)


class CollComponent(Component):
    """Base of coll components."""

    framework: ClassVar[str] = "coll"
    # it is asked for communicators between two groups, and for no others (since API 2.4)
    serves_groups: ClassVar[bool] = False

    def query(self, communicator: Communicator) -> CollModule | None:
        """A module for a communicator, or None when it has nothing to offer for it.

        Asked when the first collective of the communicator is called, which may be never.

        Raises:
            NotAvailable: it has nothing to offer, too; the text says why (since API 2.2).
        """
        raise NotImplementedError
