"""A board in whose calls a member may take no part, and which it may leave.

A member whose arguments are wrong shows, in place of its data, that it takes no part in the call:
the call's word is marked (REFUSED). The others get an error, all are in step, and the next call
goes on.

Members may have come out of step: one was in another call, has failed in the middle of one, or
guessed wrongly what the others would show. Whoever sees that leaves the memory. It says so in its
line, and in its slots (LEFT), in place of whatever would come next. So nobody waits for it here,
and all leave, each in the next call in which it looks at the others. The module has new memory made
in the first call in which all have left.

All of this is done by who has failed. Who has not looks at nothing more for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ompy import raw
from ompy.compiled import U64, ccall, cclass
from ompy.data.errors import ERR_OTHER, MPIError
from ompy.frameworks.collectives.call_order import (
    DETAIL_MASK,
    KIND_SHIFT,
    LEFT,
    REFUSED,
    number_of,
)
from ompy.frameworks.collectives.patience import abandon
from ompy.frameworks.communicator import Communicator

from ompy_components.coll.sm.board import (
    CALL,
    DONE,
    GONE,
    LENT,
    NUMBER,
    TOTAL,
    WAITS_FOR_DONE,
    Board,
)
from ompy_components.coll.sm.slots import ASLEEP

FOREVER: Final = 1 << 62  # number of a fragment that never comes; arbitrary, beyond all others


@cclass
class LeavableBoard(Board):
    """What a member shares, and may leave.

    Attributes:
        leaving: called when this member leaves the memory, or None.
    """

    leaving: Callable[[], None] | None
    __slots__ = tuple(__annotations__)

    def __init__(
        self, communicator: Communicator, memory: memoryview, depth: int, fragment: int
    ) -> None:
        """Begin as a `Board`."""
        Board.__init__(self, communicator, memory, depth, fragment)
        self.leaving = None

    @ccall
    def refuse(self, number: int) -> None:
        """Show that this member takes no part in the call; it is done with the fragment."""
        words = self._words
        at: int = self._head(self.rank, number)
        if words[self._own + GONE]:
            return  # that says so of every call
        words[at + TOTAL] = 0
        words[at + CALL] = self._order.word | REFUSED
        raw.put_word(self.memory, (at + NUMBER) * 8, number)
        raw.fence()
        self._wake(ASLEEP)
        self.finish(number)

    @ccall
    def refuse_next(self, fragment: int) -> None:
        """Take no part in the call that was begun last, of which nothing has been shown.

        Args:
            fragment: bytes of each, if it is a broadcast; 0 if not.
        """
        number: int = self.next_fragment()
        self.refuse(number)
        words = self._words
        at: int = self._head(0, number)
        mine: U64 = self._order.word
        rank: int
        for rank in range(self.ranks if fragment else 0):
            word: U64 = words[at + CALL]
            root: int = word & DETAIL_MASK
            alike: bool = root == rank and word >> KIND_SHIFT == mine >> KIND_SHIFT
            total: int = words[at + TOTAL] if alike and words[at + NUMBER] == number else 0
            if total and not words[at + LENT]:
                # the root was here before, and shows all of its fragments
                self.last = number + (total - 1) // fragment
                self.finish(self.last)
            at += self._stride

    @ccall
    def has_shown(self) -> bool:
        """Whether this member has shown anything in the call that was begun last."""
        at: int = self._head(self.rank, self.last)
        word: U64 = self._words[at + CALL]
        return number_of(word) == number_of(self._order.word)

    @ccall
    def has_left(self) -> bool:
        """Whether this member has left the memory."""
        return self._words[self._own + GONE] != 0

    @ccall
    def close(self) -> None:
        """This member has freed the communicator: nobody is to wait for it."""
        words = self._words
        if not words[self._own + GONE]:
            words[self._own + GONE] = self._order.word | LEFT
            raw.fence()
            self._wake(ASLEEP)
            self._wake(WAITS_FOR_DONE)

    @ccall
    def leave(self) -> None:
        """Take part in nothing more here, and say so.

        What others may still read stays: a slot says so when all are done with what was in it. Who
        waits for what comes behind that looks at the member's line.
        """
        words = self._words
        if words[self._own + GONE]:
            return
        word: U64 = self._order.word | LEFT
        words[self._own + GONE] = word
        first: int = max(self.last - self.depth, 0) + 1
        number: int
        for number in range(first, first + self.depth):
            at: int = self._head(self.rank, number)
            shown: int = words[at + NUMBER]
            if self.all_done(shown):
                words[at + TOTAL] = 0
                words[at + CALL] = word
                raw.put_word(self.memory, (at + NUMBER) * 8, FOREVER)
        words[self._own + DONE] = FOREVER
        raw.fence()
        self._wake(ASLEEP)
        self._wake(WAITS_FOR_DONE)
        if self.leaving is not None:
            self.leaving()
        # who has left before waits for messages of this call
        abandon(self._communicator, self._order.tag(), MPIError(ERR_OTHER, "it has left"))
