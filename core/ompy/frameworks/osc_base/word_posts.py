"""Post, Start, Complete and Wait as words of memory that all members of a window have mapped.

    posts      a word per pair: how often a target has posted to an origin
    completes  a word per pair: how often an origin has completed at a target
    sleeping   a word per member: not 0 while it may be asleep and waits for one of the others

Each word of a pair has one writer and only grows, so nothing needs an atomic step; what a member
has taken of it, it counts by itself. Who waits says so in `sleeping` and then looks, who tells
stores and then looks at `sleeping`: one at least sees the other's word.
"""

from __future__ import annotations

from typing import Final

from ompy import raw
from ompy.compiled import U64, U64View, ccall, cclass, cfunc
from ompy.engine.base import Engine

WORD: Final = 8  # bytes; 64 bits, which x86 and aarch64 load and store at once
_WORD: Final = 8


def room_for_posts(members: int) -> int:
    """Bytes of all these words for so many members."""
    return WORD * members * (2 * members + 1)


@cclass
class WordPosts:
    """What one member does with them."""

    _completes: int
    _completes_taken: U64View
    _due: U64View
    _engine: Engine
    _members: int
    _memory: memoryview[int]
    _posts: int
    _posts_taken: U64View
    _rank: int
    _sleeping: int
    _words: U64View
    __slots__ = tuple(__annotations__)

    def __init__(
        self, view: memoryview, first: int, members: int, rank: int, engine: Engine
    ) -> None:
        """The words in a byte view that begin at byte `first`, a multiple of 8; all 0 at first."""
        self._memory = view
        self._words = view.cast("Q")
        self._posts = first // WORD
        self._completes = self._posts + members * members
        self._sleeping = self._completes + members * members
        self._members = members
        self._rank = rank
        self._engine = engine
        self._posts_taken = memoryview(bytearray(WORD * members)).cast("Q")
        self._completes_taken = memoryview(bytearray(WORD * members)).cast("Q")
        self._due = memoryview(bytearray(WORD * members)).cast("Q")

    @cfunc
    def _post(self, target: int) -> int:
        """The word of a target's posts to this member."""
        return self._posts + self._rank * self._members + target

    @cfunc
    def _complete(self, origin: int) -> int:
        """The word of an origin's completes at this member."""
        return self._completes + self._rank * self._members + origin

    # --- an origin

    @ccall
    def expect_post(self, target: int) -> None:
        """A target's post is to be waited for before it is accessed."""
        self._due[target] = 1

    @ccall
    def has_post(self, target: int) -> bool:
        """Whether a target may be accessed now."""
        due: U64 = self._due[target]
        word: U64 = self._words[self._post(target)]
        return not due or word > self._posts_taken[target]

    @ccall
    def take_post(self, target: int) -> bool:
        """Access a target, if it has posted or does so in a moment; whether it may be."""
        if not self._due[target]:
            return True
        least: U64 = self._posts_taken[target] + 1
        if not self._engine.look_for(self._memory, self._post(target) * _WORD, least):
            return False
        raw.load_fence()
        self._posts_taken[target] = least
        self._due[target] = 0
        return True

    @ccall
    def give_up_post(self, target: int) -> None:
        """A target will not post any more."""
        self._due[target] = 0

    @ccall
    def tell_complete(self, target: int) -> None:
        """Complete at a target, after all that was stored there."""
        raw.fence()
        at: int = self._completes + target * self._members + self._rank
        self._words[at] = self._words[at] + 1

    # --- a target

    @ccall
    def tell_post(self, origin: int) -> None:
        """Post to an origin."""
        raw.fence()
        at: int = self._posts + origin * self._members + self._rank
        self._words[at] = self._words[at] + 1

    @ccall
    def has_completed(self, origin: int) -> bool:
        """Whether an origin has completed."""
        word: U64 = self._words[self._complete(origin)]
        return word > self._completes_taken[origin]

    @ccall
    def await_complete(self, origin: int) -> bool:
        """Whether an origin has completed or does so in a moment."""
        least: U64 = self._completes_taken[origin] + 1
        return self._engine.look_for(self._memory, self._complete(origin) * _WORD, least)

    @ccall
    def take_complete(self, origin: int) -> None:
        """Count a complete of an origin."""
        raw.load_fence()
        self._completes_taken[origin] = self._completes_taken[origin] + 1

    # --- sleep

    @ccall
    def set_sleepers(self, count: int) -> None:
        """Say how many threads of this member may be asleep."""
        self._words[self._sleeping + self._rank] = count
        raw.fence()

    @ccall
    def sleeps(self, rank: int) -> bool:
        """Whether a member may be asleep; asked after it was told something and a fence."""
        word: U64 = self._words[self._sleeping + rank]
        return word != 0

    def close(self) -> None:
        """Look at the memory no more."""
        none = memoryview(bytearray(room_for_posts(self._members)))
        self._memory = none
        self._words = none.cast("Q")
        self._posts = 0
        self._completes = self._members * self._members
        self._sleeping = 2 * self._completes
