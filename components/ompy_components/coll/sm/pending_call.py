"""A nonblocking call as its board sees it: where it is shown, how far it has come, its steps."""

from __future__ import annotations

from typing import Final

from ompy.compiled import U64, ccall, cclass
from ompy.data.request import Deferred
from ompy.frameworks.collectives.patience import LongWait

# where a call has come to
ROOM: Final = 0  # its slot is still read
PEERS: Final = 1  # it has shown its own, and waits for what others show
MESSAGES: Final = 2  # the rest goes as messages
READERS: Final = 3  # arbitrary: the next number; what it has lent is read


@cclass
class SlotsInTurn:
    """Slots that calls have in turn, one after the other.

    Attributes:
        count: how many.
        first: the place of the first one among a member's slots.
        roomy, up_to: the first and the last number of calls of which is known that there is room.
        starts: calls so far; the number of the last one.
    """

    count: int
    first: int
    roomy: U64
    starts: U64
    up_to: U64
    __slots__ = tuple(__annotations__)

    def __init__(self, first: int, count: int) -> None:
        """No call yet."""
        self.first = first
        self.count = count
        self.starts = 0
        self.roomy = 1
        self.up_to = 0


@cclass
class PendingCall(Deferred):
    """What the board asks of a call.

    Attributes:
        before: the number of the call before in its slot; 0 for none.
        known: others refer to it beside its request, so that it cannot be used once more.
        first, end: the members whose data it waits for.
        number: of the call in its slot.
        patience: asks the others, when it takes long.
        problem: what a user's function raised, or None.
        readers: the members that read what it has lent; None for all.
        slot: its place among each member's slots.
        sources: the members whose data it waits for, if they are no range; else None.
        state: where it has come to.
        turns: the slots that it has one of.
        word: of the call, as the communicator's order has it.
    """

    before: U64
    end: int
    first: int
    known: bool
    number: U64
    patience: LongWait | None
    problem: Exception | None
    readers: tuple[int, ...] | None
    slot: int
    sources: tuple[int, ...] | None
    state: int
    turns: SlotsInTurn
    word: U64
    __slots__ = tuple(__annotations__)

    @ccall
    def set_up(self) -> None:
        """Make it a call that has not begun; in place of `__init__`, which is a call in Python."""
        self.reset()
        self.waits_on = None
        self.patience = None
        self.problem = None
        self.sources = None
        self.readers = None
        self.known = False
        self.state = ROOM

    @ccall
    def set_up_again(self) -> bool:
        """Make it a call that has not begun, with the same arguments; false if it cannot be."""
        if self.known or not self.complete or self.error or self.state == MESSAGES:
            return False
        self.reset()
        self.state = ROOM
        return True

    @ccall
    def show_own(self) -> None:
        """Show this member's data; there is room."""
        raise NotImplementedError

    @ccall
    def take_others(self) -> None:
        """The members that it waits for have shown theirs."""
        raise NotImplementedError

    @ccall
    def has_lent(self) -> bool:
        """Whether others read memory of this member."""
        raise NotImplementedError

    @ccall
    def withdraw_lent(self) -> None:
        """It fails: what it has lent is the user's again, whoever reads it."""

    @ccall
    def end_reading(self) -> None:
        """Those who read what it has lent are done."""
        raise NotImplementedError
