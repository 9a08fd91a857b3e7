"""Messages without a wire: what `pml/direct` needs of who conducts a world that is explored.

The rank says what it begins and what it waits for; the world matches messages and receives, and
says what is complete (`runtime/exploration`). Numbers are those of the rank's own operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from ompy.compiled import cclass
from ompy.data.request import AnyOf, Request
from ompy.frameworks.coll import TAG_BARRIER, TAG_NEIGHBOR_ALLTOALL
from ompy.frameworks.collectives.call_kinds import NAMES
from ompy.frameworks.collectives.call_order import TAG_CALLS, call_of_tag
from ompy.frameworks.needs import Need, Needing

if TYPE_CHECKING:
    from ompy.data.request import Waitable
    from ompy.frameworks.collectives.coll_selection import SelectedColl
    from ompy.frameworks.communicator import Communicator

# what ranks share beside messages and windows
FILE: Final = "file"
NAME: Final = "name"
# what `note_untried` is told
DEATHS: Final = "when deaths are noticed"
AGREED: Final = "when agreements end"
STORED: Final = "what files have"
EXPOSURE: Final = -2  # in place of a tag: ends of an exposure epoch; arbitrary: no message has it
# tags of partitions of messages, from the first on downwards, and not down to those of calls;
# arbitrary: clear of all other internal ones
TAG_PARTITIONS: Final = -(1 << 21)
# in place of tags: requests that no tag names, from the first on downwards; arbitrary: no message
# has one
REQUESTS: Final = -(1 << 40)
# calls of communicators that return when they are done: no nonblocking or persistent ones
BLOCKING: Final = frozenset(
    name
    for name in NAMES
    if "." not in name
    and not name.endswith("_init")
    and not (name[:1] == "I" and name[1].islower())
) - {"", "Spawn", "Accept", "Connect"}
# those whose request a program tests, or starts
TESTED: Final = frozenset(
    name
    for name in NAMES
    if name.endswith("_init") or (name[:1] == "I" and name[1].islower() and name != "Idup")
)


@cclass
class DirectRequest(Request):
    """A send or receive under way, which the world will say is complete.

    Attributes:
        number: of the operation, among the rank's.
    """

    number: Any  # of the world's, beyond 64 bits
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        Request.__init__(self)
        self.number = 0


class Whole(DirectRequest, Needing):
    """What several messages do together. The world says when the program is told of its end.

    Attributes:
        of: what they are: it completes with the last of them, or says what they need.
        meeting: of all members of a collective call: it waits for that, too; None if it does not.
        problem: what a user's reduction function raised, or None.
    """

    __slots__ = ("meeting", "of", "problem")

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.meeting: Whole | None = None
        self.of: Request | Needing | None = None
        self.problem: Exception | None = None

    def need(self) -> Need | Waitable | None:
        """What the messages need, or the call."""
        meeting = self.meeting
        if meeting is not None and not meeting.complete:
            return meeting.need()
        return self.of.need() if isinstance(self.of, Needing) else self.of

    def finish(self) -> None:
        """The program is told: of how the messages have ended."""
        of = self.of
        if isinstance(of, Request):
            self.source, self.tag = of.source, of.tag
            self.received, self.length = of.received, of.length
            self.error, self.detail = of.error, of.detail
            self.problem = getattr(of, "problem", None)
        super().finish()


class Arrival(NamedTuple):
    """A message that came, or that a probe has found.

    Attributes:
        source: rank in the communicator.
        tag: of it.
        length: bytes.
        data: these; None if they are still to be received.
    """

    source: int
    tag: int
    length: int
    data: bytes | None


class DirectLine:
    """What a rank says to the world, and hears from it.

    Attributes:
        explores: the world tries all orders of what ranks do to one another, and to themselves.
    """

    explores: ClassVar[bool] = False

    def send(
        self, to: tuple[int, int], source: int, tag: int, data: bytes, mode: int, *, served: bool
    ) -> int:
        """Send; returns the number of an operation that is complete later, 0 when it is already.

        Args:
            to: context id, and the receiver's rank in the job.
            source: the own rank in the communicator.
            tag: of the message.
            data: all of it.
            mode: of sending, as the PML has it.
            served: of the communicator.
        """
        raise NotImplementedError

    def receive(self, context: int, source: int, tag: int, *, served: bool) -> int:
        """Post a receive; returns its number."""
        raise NotImplementedError

    def cancel(self, number: int) -> bool:
        """Cancel a receive; whether that was in time."""
        raise NotImplementedError

    def look(
        self, context: int, source: int, tag: int, *, takes: bool, waits: bool
    ) -> Arrival | None:
        """A message that a receive would get; None if there is none and it is not waited for.

        Args:
            context: id of the communicator.
            source: as of a receive.
            tag: likewise.
            takes: the message is taken, and comes with its data.
            waits: until there is one.
        """
        raise NotImplementedError

    def forget(self, context: int) -> None:
        """The communicator is freed."""
        raise NotImplementedError

    def record_call(self, event: tuple[Any, ...]) -> None:
        """An entry of the record of calls, for who conducts the world."""
        raise NotImplementedError

    def begin_whole(
        self, context: int, tag: int, parts: Sequence[int] = (), *, kept: bool = False
    ) -> Whole:
        """Messages with a tag are one operation from now on, until `end_whole`.

        Args:
            context: id of their communicator.
            tag: theirs.
            parts: numbers of receives that belong to it, whatever their tags are.
            kept: others may depend on these later, too (`add_parts`).
        """
        raise NotImplementedError

    def begin_parts(
        self, context: int, of: Request, *, kept: bool = False, asked: bool = False
    ) -> Whole:
        """Messages of which `add_parts` will tell are one operation from now on.

        Args:
            context: id of their communicator.
            of: it is complete with the last of them.
            kept: as for `begin_whole`.
            asked: only `look_for` finds it, and no test of something else.
        """
        raise NotImplementedError

    def add_parts(
        self, whole: Whole, numbers: Sequence[int], *, of: Whole | None = None, now: bool = False
    ) -> None:
        """These messages belong to an operation, too.

        Args:
            whole: the operation.
            numbers: of the messages among the rank's operations.
            of: they belong to that one, and may have come already.
            now: the program makes them now, and they depend on all that it knows.
        """
        raise NotImplementedError

    def note_access(
        self, kind: str, what: str, runs: Sequence[tuple[int, int]], *, writes: bool
    ) -> int:
        """The program accesses something that others may, too. Returns a number for it.

        Args:
            kind: FILE or NAME.
            what: which.
            runs: bytes of it, first and one behind the last, in order.
            writes: it changes them.
        """
        raise NotImplementedError

    def extend_access(self, number: int) -> None:
        """That goes on, until `end_access`."""
        raise NotImplementedError

    def end_access(self, number: int) -> None:
        """The program has been told that it has ended."""
        raise NotImplementedError

    def note_never_loaded(self, context: int) -> None:
        """No rank loads from its own part of a window, whatever others do to it.

        Args:
            context: id of the window's communicator.
        """
        raise NotImplementedError

    def ask_turn(self, name: str, *, changes: bool) -> Whole:
        """Complete when it is the rank's turn at something that has one order for all ranks.

        Args:
            name: of it. The rank accesses it as soon as this is complete.
            changes: the rank changes what others find.
        """
        raise NotImplementedError

    def note_untried(self, what: str) -> None:
        """Something matters now of which not all orders are tried (`DEATHS`)."""
        raise NotImplementedError

    def stepping(self, whole: Whole) -> AbstractContextManager[None]:
        """What is begun within follows from the messages of an operation alone."""
        raise NotImplementedError

    def look_for(self, whole: Whole) -> bool:
        """Whether an operation is complete, as the world says."""
        raise NotImplementedError

    def end_whole(self, whole: Whole) -> None:
        """The last of them is complete."""
        raise NotImplementedError

    def watch_calls(self, coll: SelectedColl) -> None:
        """The world says when a program is told of the end of nonblocking collective calls."""
        raise NotImplementedError

    def enter_call(self, communicator: Communicator) -> None:
        """A rank has begun a blocking collective call; it may have to wait for all members."""

    def watch(self, communicator: Communicator, tag: int, begin: Callable[[], Request]) -> Request:
        """Begin an operation of which the program is told when the world says so.

        Args:
            communicator: of its messages.
            tag: theirs.
            begin: begins it.
        """
        del communicator, tag
        return begin()

    def watch_begun(self, context: int, begun: Request, parts: Sequence[int] = ()) -> Request:
        """The same of an operation that has begun, and whose messages have no tag of their own.

        Args:
            context: id of their communicator; any if it has none.
            begun: the operation.
            parts: numbers of the receives that it waits for.
        """
        del context, parts
        return begun

    def on_complete(self, told: Callable[[int, Arrival], object]) -> None:
        """Have completions told: number, and what was received (or sent)."""
        raise NotImplementedError


def waits_as_standard(tag: int) -> bool:
    """Whether sends with a tag wait to be matched where standard sends do.

    Those of programs, partitions among them, and of blocking collective calls, which may all
    synchronize (MPI 4.1 6.1).
    """
    if tag >= 0 or TAG_NEIGHBOR_ALLTOALL <= tag <= TAG_BARRIER or is_partition(tag):
        return True
    return tag <= -TAG_CALLS and call_of_tag(tag) in BLOCKING


def is_partition(tag: int) -> bool:
    """Whether messages with a tag are partitions, of which a program may see each arrive."""
    return -TAG_CALLS < tag <= TAG_PARTITIONS


def numbers_of(waitable: object) -> tuple[Sequence[int], bool]:
    """The operations that a wait is for, and whether it is for something else, too."""
    each: Sequence[Any] = waitable.waitables if isinstance(waitable, AnyOf) else (waitable,)
    found = [one.number for one in each if isinstance(one, DirectRequest)]
    return found, len(found) < len(each)
