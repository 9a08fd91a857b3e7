"""How all ranks come to know the largest of their exit codes: dissemination.

In round k a rank tells the rank 2^k after it the largest code it knows, and waits for what the
rank 2^k before it tells. After the rounds, log2 of the ranks rounded up, everybody's code has
reached everybody. Messages of later rounds may come first, but what a round tells is known only
when those before have ended.

Source: reference gasnet.md 8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

CODES: Final = 256  # POSIX: a process ends with 8 bits


class Reduction:
    """One rank's part in it. Does no input or output.

    Attributes:
        code: the largest that is known.
        round: which one is under way.
        rounds: how many there are.
        begun: this rank takes part by now.
    """

    def __init__(self, rank: int, size: int, tell: Callable[[int, int, int], object]) -> None:
        """Take no part yet.

        Args:
            rank: this one.
            size: of the job.
            tell: sends a rank a round and a code.
        """
        self._rank = rank
        self._size = size
        self._tell = tell
        self._heard: dict[int, int] = {}
        self.rounds = (size - 1).bit_length()
        self.code = 0
        self.round = 0
        self.begun = False

    @property
    def complete(self) -> bool:
        """Whether `code` is that of all."""
        return self.begun and self.round == self.rounds

    def awaited(self) -> list[int]:
        """Ranks that have not told what this one needs: they have not come, or wait themselves."""
        missing = (shift for shift in range(self.rounds) if shift not in self._heard)
        return [(self._rank - (1 << shift)) % self._size for shift in missing]

    def begin_reduction(self, code: int) -> None:
        """Take part with a code; the second time it does nothing."""
        if self.begun:
            return
        self.begun = True
        self.code = max(self.code, code % CODES)
        self._tell_next()
        self._go_on()

    def round_arrived(self, shift: int, code: int) -> None:
        """What the rank 2^shift before this one told. A round is heard once."""
        if shift in self._heard or shift >= self.rounds:
            return
        self._heard[shift] = code
        if self.begun:
            self._go_on()

    def _go_on(self) -> None:
        while self.round < self.rounds and self.round in self._heard:
            self.code = max(self.code, self._heard[self.round])
            self.round += 1
            self._tell_next()

    def _tell_next(self) -> None:
        if self.round < self.rounds:
            self._tell((self._rank + (1 << self.round)) % self._size, self.round, self.code)
