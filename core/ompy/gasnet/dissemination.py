"""A barrier by dissemination: its rounds, without I/O.

In round k each rank tells the one 2**k after it what it knows by then; after ceil(log2(ranks))
rounds each knows of all. What it tells is the barrier's name, or that it has none, or that names
differ. A rank may be one barrier ahead of another, never two, so messages carry the parity of
their barrier.

Source: reference gasnet.md 10 (AMDISSEM).
"""

from __future__ import annotations

from typing import Final, NamedTuple

ANONYMOUS: Final = 1
MISMATCH: Final = 2


class Knowledge(NamedTuple):
    """What is known of a barrier's name.

    Attributes:
        flags: `ANONYMOUS`: no name yet; `MISMATCH`: names differ.
        name: if there is one.
    """

    flags: int
    name: int

    def merged(self, other: Knowledge) -> Knowledge:
        """What both know."""
        if (self.flags | other.flags) & MISMATCH:
            return Knowledge(MISMATCH, 0)
        if self.flags & ANONYMOUS:
            return other
        if other.flags & ANONYMOUS or other.name == self.name:
            return self
        return Knowledge(MISMATCH, 0)


class Round(NamedTuple):
    """A message to send.

    Attributes:
        peer: to whom.
        parity: of the barrier.
        number: of the round.
        known: what to tell.
    """

    peer: int
    parity: int
    number: int
    known: Knowledge


class Dissemination:
    """The barriers of one rank, one after the other.

    Attributes:
        known: of the current barrier, so far.
        entered: it has been notified and not left.
    """

    def __init__(self, rank: int, size: int) -> None:
        self._rank = rank
        self._size = size
        self._rounds = (size - 1).bit_length()
        self._parity = 0
        self._sent = 0
        self._merged = 0
        self._arrived: dict[tuple[int, int], Knowledge] = {}
        self.known = Knowledge(ANONYMOUS, 0)
        self.entered = False

    def enter(self, known: Knowledge) -> None:
        """Begin the next barrier."""
        assert not self.entered, "the last barrier has not been left"
        self.entered = True
        self.known = known
        self._sent = self._merged = 0

    def take_round(self, parity: int, number: int, known: Knowledge) -> None:
        """A message of a round has come, perhaps of the next barrier."""
        key = parity, number
        assert key not in self._arrived, "a round's message has come twice"
        self._arrived[key] = known

    def next_round(self) -> Round | None:
        """The message that can be sent now, each once."""
        if not self.entered:
            return None
        self._merge()
        if self._sent >= self._rounds or self._sent > self._merged:
            return None
        number = self._sent
        self._sent += 1
        peer = (self._rank + (1 << number)) % self._size
        return Round(peer, self._parity, number, self.known)

    def has_news(self) -> bool:
        """Whether it can go on: a message may be sent, or it is complete."""
        self._merge()
        return self.entered and (self._sent <= self._merged or self.complete())

    def complete(self) -> bool:
        """Whether all ranks have entered, and nothing is left to send."""
        self._merge()
        return self.entered and self._sent == self._merged == self._rounds

    def awaited(self) -> int | None:
        """The rank whose message is missing; None: none is. Changes nothing."""
        if not self.entered or self._merged >= self._rounds:
            return None
        return (self._rank - (1 << self._merged)) % self._size

    def leave(self) -> Knowledge:
        """Leave a barrier that is complete. Returns what is known of its name."""
        assert self.complete(), "the barrier is not complete"
        self.entered = False
        self._parity ^= 1
        return self.known

    def _merge(self) -> None:
        """Take in the rounds that have come; a round only when the own message of it was sent."""
        while self._merged < self._sent:
            known = self._arrived.pop((self._parity, self._merged), None)
            if known is None:
                return
            self.known = self.known.merged(known)
            self._merged += 1
