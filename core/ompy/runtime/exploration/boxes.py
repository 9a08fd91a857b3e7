"""Where messages and receives of one rank meet, in one communicator: MPI's matching, step by step.

A message goes to the first posted receive that fits it, a receive takes the first message of a
sender that fits it. So only a receive from ANY_SOURCE has a choice: which sender's first message
it takes. All else follows, and is done at once, unless a choice that is still open decides it.

Pure: no clock, no network. Source: MPI 4.1, 3.5 (semantics of point-to-point communication).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from ompy.compiled import ccall, cclass
from ompy.data.constants import ANY_SOURCE, ANY_TAG

Operation = tuple[int, int]  # a rank, and the number of one of its operations


@cclass
class Message:
    """A message that was sent.

    Attributes:
        sender: which operation of which rank sent it.
        source: the sender's rank in the communicator.
        tag: of it.
        data: its bytes.
        synchronous: its sender waits until it is taken.
        past: events that its sending depends on, a bit for each.
        site: where in the program it was sent.
        ready: its sender says that its receive is posted.
        knows: what its sender knew of others' operations (`matching/knowledge.py`).
        taken: what took it.
        known: its receiver knows that it has arrived, by it or by one that was sent later.
        turn: when it was taken, among all of the world that were.
        place: among those of its channel, in the order of sending.
    """

    data: Any  # bytes, or what is one
    known: bool
    knows: Any
    past: Any  # of any number of bits
    place: int
    ready: bool
    sender: Any
    site: str
    source: int
    synchronous: bool
    tag: int
    taken: Receive | None
    turn: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        sender: Operation,
        source: int,
        tag: int,
        data: bytes,
        *,
        synchronous: bool,
        past: int,
        site: str,
    ) -> None:
        self.sender = sender
        self.source = source
        self.tag = tag
        self.data = data
        self.synchronous = synchronous
        self.past = past
        self.site = site
        self.taken = None
        self.ready = False
        self.knows = {}
        self.known = False
        self.turn = 0
        self.place = 0

    def __reduce__(self) -> Any:
        """For copies of a world at a choice."""
        what = (self.sender, self.source, self.tag, self.data, self.past, self.site, self.knows)
        marks = (self.synchronous, self.ready, self.known, self.taken, self.turn, self.place)
        return empty_message, (), what + marks

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Be that one."""
        self.sender, self.source, self.tag, self.data, self.past, self.site, *marks = state
        self.knows, self.synchronous, self.ready, self.known, self.taken, *places = marks
        self.turn, self.place = places


def empty_message() -> Message:
    """One that is told later what it is: it refers to what has taken it, and that to it."""
    return Message.__new__(Message)


@cclass
class Receive:
    """A receive that was posted, or a probe that takes its message out of matching.

    Attributes:
        operation: which of which rank.
        source: a rank in the communicator, or ANY_SOURCE.
        tag: a tag, or ANY_TAG.
        past: events that its posting depends on.
        site: where in the program it was posted.
        knows: what its rank knew of others' operations (`matching/knowledge.py`).
        place: among those of its box, in the order of posting.
        message: what it has taken.
        doubtful: it may be cancelled: whether it takes anything before is a choice.
        held: it takes nothing before.
        released: it was to take nothing, and nothing else could go on: it takes what is there.
        cancelled: it was.
        event: number of its choice, if that is made before the rank goes on: a message is known to
            be there, so that it takes one that is sent before or beside that; -1 if not.
    """

    cancelled: bool
    doubtful: bool
    event: Any
    held: bool
    knows: Any
    message: Message | None
    operation: Any
    past: Any  # of any number of bits
    place: int
    released: bool
    site: str
    source: int
    tag: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self, operation: Operation, source: int, tag: int, *, past: int, site: str
    ) -> None:
        self.operation = operation
        self.source = source
        self.tag = tag
        self.past = past
        self.site = site
        self.knows = {}
        self.place = 0
        self.message = None
        self.event = -1
        self.doubtful = self.held = self.released = self.cancelled = False

    def __reduce__(self) -> Any:
        """For copies of a world at a choice."""
        what = (self.operation, self.source, self.tag, self.past, self.site, self.knows)
        places = (self.place, self.event, self.message)
        marks = (self.doubtful, self.held, self.released, self.cancelled)
        return empty_receive, (), what + places + marks

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Be that one."""
        self.operation, self.source, self.tag, self.past, self.site, self.knows, *rest = state
        self.place, self.event, self.message, *marks = rest
        self.doubtful, self.held, self.released, self.cancelled = marks

    @ccall
    def may_take(self, message: Message) -> bool:
        """Whether a message is not sent too late for it."""
        return self.event < 0 or not message.past >> self.event & 1

    @ccall
    def fits(self, source: int, tag: int) -> bool:
        """Whether it may take such a message; internal tags are not for wildcards."""
        if self.source != source and self.source != ANY_SOURCE:  # noqa: PLR1714 - half the time
            return False
        return self.tag == tag or (self.tag == ANY_TAG and tag >= 0)

    @property
    def wild(self) -> bool:
        """Whether it may take messages of several senders."""
        return self.source == ANY_SOURCE

    @property
    def chooses(self) -> bool:
        """Whether it has a choice."""
        return (self.source == ANY_SOURCE or self.doubtful) and not self.released


def empty_receive() -> Receive:
    """One that is told later what it is."""
    return Receive.__new__(Receive)


class Box:
    """What one rank gets in one communicator.

    Attributes:
        ours: all of its messages are the library's own.
        rank: whose.
        channels: all messages of each sender, by its rank in the communicator, in their order.
        posted: receives that have taken nothing yet, in the order of posting.
        all: all receives, in that order.
        unheard: of these, such as are from ANY_SOURCE and whose rank has not heard what they took.
        deciding: of these, such as have a choice or were cancelled: what they take decides what is
            left for others.
    """

    ours: ClassVar[bool] = False

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.channels: dict[int, list[Message]] = {}
        self.posted: list[Receive] = []
        self.all: list[Receive] = []
        self.unheard: list[Receive] = []
        self.deciding: list[Receive] = []
        # of channels: up to where all messages are known, and all of the library's own
        self._known: dict[int, list[int]] = {}
        self._waiting: dict[int, list[Message]] = {}  # of channels, those that nothing has taken

    def add_message(self, message: Message) -> None:
        """A message comes in, behind those that its sender sent before."""
        channel = self.channels.setdefault(message.source, [])
        message.place = len(channel)
        channel.append(message)
        self._waiting.setdefault(message.source, []).append(message)

    def add_receive(self, receive: Receive) -> None:
        """A receive is posted."""
        receive.place = len(self.all)
        self.all.append(receive)
        self.posted.append(receive)
        if receive.wild:
            self.unheard.append(receive)
        if receive.wild or receive.doubtful:
            self.deciding.append(receive)

    def add_probe(self, probe: Receive) -> None:
        """A probe has taken its message out of matching: it is a receive that has chosen."""
        self.all.append(probe)
        self.deciding.append(probe)

    def find_receive(self, operation: Operation) -> Receive | None:
        """One that was posted."""
        return next((one for one in self.all if one.operation == operation), None)

    def remove_posted(self, receive: Receive) -> None:
        """It was cancelled."""
        receive.cancelled = True
        self.posted.remove(receive)
        if receive in self.unheard:
            self.unheard.remove(receive)
        if not (receive.wild or receive.doubtful):
            self.deciding.append(receive)

    def certain(self) -> Iterator[tuple[Receive, Message]]:
        """The pairs that no choice decides, one after the other; each is taken before the next."""
        found = True
        while found:
            found = False
            if all(receive.chooses or receive.held for receive in self.posted):
                return
            for messages in self._waiting.values():
                for message in messages:
                    receive = self.first_fitting(message)
                    if receive is not None and not receive.chooses and not receive.held:
                        yield receive, message
                        found = True
                        break  # the list is another one now

    def first_fitting(self, message: Message) -> Receive | None:
        """The posted receive that a message goes to, if no earlier one of its sender does."""
        for receive in self.posted:
            if receive.fits(message.source, message.tag):
                return receive
        return None

    def candidates(self, *, held: bool = False) -> dict[Receive, list[Message]]:
        """What each receive with a choice may take now: of a sender the first that goes to it.

        Args:
            held: of those that are to take nothing before they are cancelled instead.
        """
        found: dict[Receive, list[Message]] = {}
        asking = {
            receive
            for receive in self.posted
            if (receive.held if held else receive.chooses and not receive.held)
        }
        if not asking:
            return found
        for messages in self._waiting.values():
            left = set(asking)
            for message in messages:
                receive = self.first_fitting(message)
                if receive in left:
                    left.discard(receive)
                    if receive.may_take(message):
                        found.setdefault(receive, []).append(message)
                    if not left:
                        break
        return found

    def take_message(self, receive: Receive, message: Message) -> None:
        """A receive takes a message."""
        receive.message, message.taken = message, receive
        if receive in self.posted:
            self.posted.remove(receive)
        self._waiting[message.source].remove(message)

    def tell_arrival(self, message: Message) -> list[Message]:
        """The receiver hears of a message: what its sender sent before has arrived, too.

        A collective call's message tells nothing of a program's own: MPI promises nobody that a
        message has arrived because its sender has come to a barrier, say.

        Returns:
            What it had not heard of.
        """
        news = []
        tells = message.tag >= 0 or self.ours
        known = self._known.setdefault(message.source, [0, 0])
        end = message.place + 1
        for sent in self.channels[message.source][known[not tells] : end]:
            if not sent.known and (tells or sent.tag < 0):
                sent.known = True
                news.append(sent)
        known[1] = max(known[1], end)
        if tells:
            known[0] = max(known[0], end)
        if message.taken is not None and message.taken in self.unheard:
            self.unheard.remove(message.taken)
        return news

    def chosen_by(self, message: Message) -> Iterator[Receive]:
        """Receives from ANY_SOURCE that have chosen when the receiver hears of a message.

        Their rank has not heard of that. The message could have gone to them, or does.
        """
        taken = message.taken
        for receive in self.unheard:
            if receive.held or receive.event >= 0 or not receive.fits(message.source, message.tag):
                continue
            if receive.message is not None:
                if taken is None or taken.place >= receive.place:
                    yield receive
            elif taken is None and self.first_fitting(message) is receive:
                yield receive

    def unclaimed(self, source: int, tag: int) -> list[Message]:
        """What a probe finds: of each sender the first that fits and goes to no posted receive."""
        asked = Receive((self.rank, -1), source, tag, past=0, site="")
        found = []
        for messages in self._waiting.values():
            for message in messages:
                if asked.fits(message.source, message.tag) and self.first_fitting(message) is None:
                    found.append(message)
                    break
        return found

    def waiting(self) -> list[Message]:
        """All that nothing has taken."""
        return [message for messages in self._waiting.values() for message in messages]

    def late(self, receive: Receive, begin: dict[int, int]) -> list[Message]:
        """What a receive could have taken had it come in time, of each other sender the first.

        What a receive that was posted earlier has taken it could not have.

        Args:
            receive: one of this box's.
            begin: of each sender, how many of its messages receives that were posted earlier have
                taken, without a gap; brought up to this one.
        """
        found = []
        own = receive.message.source if receive.message is not None else None
        place = receive.place
        for source, messages in self.channels.items():
            if source == own:
                continue
            index, count = begin.get(source, 0), len(messages)
            while index < count:
                taken = messages[index].taken
                if taken is None or taken.place >= place:
                    break
                index += 1
            begin[source] = index
            for message in messages[index:]:
                taken = message.taken
                if (taken is None or taken.place >= place) and receive.fits(source, message.tag):
                    if receive.may_take(message):
                        found.append(message)
                    break
        return found

    def past_of(self, receive: Receive, message: Message, chosen: Mapping[Operation, int]) -> int:
        """The events without which a receive would not take a message.

        Beside what both depend on, those are the choices of receives that leave it the message:
        those posted before it that fit the message and took another or were cancelled, and those
        that took what its sender had sent before and would have fitted.

        Args:
            receive: one of this box's.
            message: likewise.
            chosen: past of each choice, and its own bit, by the receive's operation.
        """
        past: int = receive.past | message.past
        source, tag = message.source, message.tag
        for other in self.deciding:
            more = chosen.get(other.operation, 0)
            if more | past == past:
                continue  # nothing that is not known
            took = other.message
            if (
                other.place < receive.place
                and (took is not None or other.cancelled)
                and other.fits(source, tag)
            ) or (
                took is not None
                and took.source == source
                and took.place < message.place
                and receive.fits(source, took.tag)
            ):
                past |= more
        return past
