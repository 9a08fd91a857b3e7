"""What the part of a window that one rank has is asked for, and in which order that is served.

Commands of others (and of the rank itself) come as messages to one receive from ANY_SOURCE. Only
commands of one class need an order (`parts.py`). So the choices here are not which message a
receive takes, but which command is the k-th of its class. All else is served when it is there.

What a command depends on is what its sender knew, what this sender has asked for before and waited
for, and the earlier commands of its class. What the rank itself does depends on none of them, only
on what it is told for its own program. Its answers depend on the command that they answer; that a
lock is granted, on its giving back by those who had it before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import ClassVar, Final

from ompy.data.errors import MPIError
from ompy.frameworks.osc_base.headers import COMMAND_TAG, Kind
from ompy.frameworks.osc_base.locks import LockQueue
from ompy.runtime.exploration.boxes import Box, Message, Operation, Receive
from ompy.runtime.exploration.events import FROM, SEES, Value
from ompy.runtime.exploration.windows.parts import FREE, changes, command_of

# what has no order among what its source asks for, and of this what has one within a class
LOOSE: Final = frozenset({Kind.PUT, Kind.GET, Kind.ACCUMULATE, Kind.FETCH, Kind.SWAP})
CHAINED: Final = frozenset({Kind.ACCUMULATE, Kind.FETCH, Kind.SWAP})
READING: Final = frozenset({Kind.GET, Kind.FETCH, Kind.ACCUMULATE})  # unless they change memory

# a class and a place in it are one number of an operation: numbers of a rank's own are below
_CLASSES: Final = 64  # bits of a class, and 1; arbitrary: no window is so large
_PLACES: Final = 32  # bits of a place; arbitrary: no rank is asked for so much


class Asked:
    """A command, as its target sees it.

    Attributes:
        kind: of command.
        of: its class.
        reads: it only reads: it has no place in its class, but is between two that have.
        number: its place in that, or of what follows it, from 0 on; -1 before it is served.
        base: events that it depends on, whatever comes before it in its class.
        event: the number of its choice; -1 if it has none.
        past: those that its answer depends on.
        seen: how many changes of its class were before it.
        before: the same read by the same rank before, where the rank does nothing else meanwhile.
        tries: how often it was read so with the same result, this time included.
        again: a read that was in vain as often as it may; this one waits for what changes that.
        served: it was.
        changes: it changes memory.
    """

    def __init__(self, kind: Kind, of: int) -> None:
        self.kind = kind
        self.of = of
        self.reads = False
        self.number = -1
        self.base = 0
        self.event = -1
        self.past = 0
        self.seen = 0
        self.before: Asked | None = None
        self.tries = 1
        self.again: Asked | None = None
        self.served = False
        self.changes = False


class Order:
    """What was served of one class.

    Attributes:
        served: the commands that may have changed memory, or ask for the lock, in order.
        past: events that the next one depends on.
        changed: of each change of memory, what depends on it.
    """

    def __init__(self) -> None:
        self.served: list[Message] = []
        self.past = 0
        self.changed: list[int] = []


class WindowBox(Box):
    """What one rank gets in the communicator of a window.

    Attributes:
        asked: of each command that has come, what it is.
        orders: by class.
        context: id of the communicator.
    """

    ours: ClassVar[bool] = True

    def __init__(self, context: int, rank: int) -> None:
        super().__init__(rank)
        self.context = context
        self.asked: dict[Operation, Asked] = {}
        self.orders: dict[int, Order] = {}
        # of each source: what was asked for depends on; of what was waited for; of accumulates
        self._all: dict[int, int] = {}
        self._waited: dict[int, int] = {}
        self._chains: dict[tuple[int, int], int] = {}  # by source and class
        self._locks = LockQueue()
        self._alone: set[int] = set()  # sources that have asked for the lock alone
        self._given_back = [0, 0]  # events: of locks that were had alone, of all
        self._answers: dict[tuple[int, int], int] = {}  # by rank of the job and tag: their pasts
        self._swaps: dict[tuple[int, int], tuple[Asked, bytes]] = {}  # likewise: what it compares

    # what there is to choose

    def heads(self) -> Iterator[tuple[Message, Asked]]:
        """Commands that can be served next.

        What a source asks for has no order before it waits for that (MPI 4.1 12.7), but for
        accumulates of the same bytes (12.7.2), which are of one class.
        """
        for messages in self._waiting.values():
            first, chained = True, set()
            for message in messages:
                if message.tag != COMMAND_TAG:
                    continue
                asked = self.asked[message.sender]
                if asked.kind not in LOOSE:
                    if first:
                        yield message, asked
                    break
                if asked.kind not in CHAINED or asked.of not in chained:
                    yield message, asked
                if asked.kind in CHAINED:
                    chained.add(asked.of)
                first = False

    def listening(self) -> Receive | None:
        """The receive for the next command."""
        return next((one for one in self.posted if one.wild and one.tag == COMMAND_TAG), None)

    def choice_of(self, asked: Asked, sender: Operation) -> tuple[Operation, Value]:
        """The choice that is made if a command is served now, and its value.

        Of reads it is when they are served; else which command is the next of its class.
        """
        if asked.of == FREE:  # it has waited for others to change what it reads
            return sender, (FROM, *sender)
        number = self._number_of(asked.of, len(self.order(asked.of).served))
        if asked.reads:
            return sender, (SEES, self.rank, number)
        return (self.rank, number), (FROM, *sender)

    def _number_of(self, of: int, place: int) -> int:
        return (((self.context << _CLASSES) + of + 2) << _PLACES) + place

    def order(self, of: int) -> Order:
        """What was served of a class."""
        found = self.orders.get(of)
        if found is None:
            found = self.orders[of] = Order()
        return found

    def certain(self) -> Iterator[tuple[Receive, Message]]:
        """The pairs that no choice decides: those of any box, and commands that need no order."""
        yield from super().certain()
        receive = self.listening()
        if receive is None:
            return
        for message, asked in list(self.heads()):
            if asked.of == FREE and not self.waits(asked):
                yield receive, message
                return

    def candidates(self, *, held: bool = False) -> dict[Receive, list[Message]]:
        """What receives may take that are about to be cancelled; no other has a choice."""
        return super().candidates(held=True) if held else {}

    def tell_arrival(self, message: Message) -> list[Message]:
        """That one has come says nothing of others: they make no difference to the program."""
        message.known = True
        if message.taken in self.unheard:
            self.unheard.remove(message.taken)
        return []

    def waits(self, asked: Asked) -> bool:
        """Whether nothing that it reads has changed since the same was read so often in vain."""
        before = asked.again
        return before is not None and len(self.order(before.of).changed) <= before.seen

    # what happens

    def serve(self, message: Message, event: int = -1) -> int:
        """A command is served, by a choice if `event` is its number. Returns its past."""
        asked = self.asked[message.sender]
        asked.base, asked.event = self.base_of(message), event
        past = asked.base | (1 << event if event >= 0 else 0)
        if asked.of != FREE:
            order = self.order(asked.of)
            asked.number = len(order.served)
            asked.seen = len(order.changed)
            past |= order.past
            if not asked.reads:
                order.served.append(message)
                order.past = past
        asked.past, asked.served = past, True
        if asked.before is not None and asked.before.seen == asked.seen:
            asked.tries = asked.before.tries + 1
        asked.before = asked.again = None  # a long line of them could not be saved
        source = message.source
        self._all[source] = self._all.get(source, 0) | past
        if asked.kind not in LOOSE:
            self._waited[source] = past
        elif asked.kind in CHAINED:
            self._chains[source, asked.of] = past
        if asked.changes:
            self._change(asked)
        self._serve_command(message, asked)
        return past

    def base_of(self, message: Message) -> int:
        """What a command depends on, whatever comes before it in its class."""
        asked = self.asked[message.sender]
        source = message.source
        before = self._waited if asked.kind in LOOSE else self._all
        base: int = message.past | before.get(source, 0)
        if asked.kind in CHAINED:
            base |= self._chains.get((source, asked.of), 0)
        again = asked.again
        if again is not None:
            later = self.order(again.of).changed[again.seen :]
            base |= later[0] if later else 0
        return base

    def _change(self, asked: Asked) -> None:
        if asked.of != FREE:
            self.order(asked.of).changed.append(asked.past)

    def _serve_command(self, message: Message, asked: Asked) -> None:
        command = command_of(message.data)
        rank = message.sender[0]
        if command.tag:
            self._answers[rank, command.tag + 1] = asked.past
        if command.kind is Kind.SWAP:
            compare = bytes(command.data[: len(command.data) // 2])
            self._swaps[rank, command.tag + 1] = asked, compare
        elif command.kind in {Kind.LOCK, Kind.LOCK_SHARED}:
            alone = command.kind is Kind.LOCK
            if alone:
                self._alone.add(message.source)
            else:
                self._alone.discard(message.source)
            grant = partial(self._grant, rank, command.tag + 1, asked.past, alone)
            self._locks.request(message.source, alone, grant)
        elif command.kind is Kind.UNLOCK:
            self._given_back[1] |= asked.past
            if message.source in self._alone:
                self._given_back[0] |= asked.past
            with suppress(MPIError):  # the target says so
                self._locks.release(message.source)

    def _grant(self, rank: int, tag: int, past: int, alone: bool, _code: int, _text: str) -> None:
        """A rank has the lock: those who had it before have given it back."""
        self._answers[rank, tag] = past | self._given_back[alone]

    def answer(self, to: int, tag: int, data: bytes) -> tuple[int | None, bool]:
        """Its rank answers another.

        Args:
            to: that one's rank in the job.
            tag: of the answer.
            data: of the answer.

        Returns:
            What that depends on, or None if it is no answer; whether a swap has changed memory.
        """
        swap = self._swaps.pop((to, tag), None)
        changed = swap is not None and swap[1] == data
        if swap is not None and changed:
            swap[0].changes = True
            self._change(swap[0])
        return self._answers.pop((to, tag), None), changed

    def changes_beside(self, message: Message) -> bool:
        """Whether a command changes memory that the rank may load: its sender shares the lock."""
        asked, source = self.asked[message.sender], message.source
        if message.sender[0] == self.rank or source in self._alone:
            return False
        return (asked.changes or asked.kind is Kind.SWAP) and source in self._locks.holders()

    def late_commands(self, asked: Asked) -> Sequence[Message]:
        """What has places in its class behind it, and could have had its place."""
        return self.orders[asked.of].served[asked.number + 1 :]

    def past_of_place(self, asked: Asked) -> int:
        """The events that made the place of a command the next one of its class."""
        if not asked.number:
            return 0
        before = self.orders[asked.of].served[asked.number - 1]
        return self.asked[before.sender].past

    def other_places(self, asked: Asked) -> Iterator[tuple[Value, int, int]]:
        """Where a read could have been served instead.

        Yields:
            The value of its choice, events that it must not depend on, and events that it needs.
        """
        served = [self.asked[one.sender] for one in self.orders[asked.of].served]
        for place in range(len(served) + 1):
            value = (SEES, self.rank, self._number_of(asked.of, place))
            needs = served[place - 1].past if place else 0
            if place < asked.number:
                yield value, 1 << served[place].event, needs
            elif place > asked.number:
                yield value, 1 << asked.event, needs


def command_asked(data: bytes, of: int) -> Asked:
    """A command that has come, of a class."""
    command = command_of(data)
    made = Asked(command.kind, of)
    made.changes = changes(command)
    made.reads = command.kind in READING and not made.changes
    return made


def place_of(number: int) -> int:
    """The place in its class that the number of a choice has."""
    return number & ((1 << _PLACES) - 1)
