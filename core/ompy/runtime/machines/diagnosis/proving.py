"""Proving that ranks can never go on: when the launcher asks, and whether the answers agree.

QUIET     nobody who sleeps seems to be lost
SUSPECT   by what ranks have said unasked some are: once no others follow they are asked, and a
          second later (`OTHERS`) where others run
FIRST     they were asked; the answers come
SECOND    they said the same again what they had said: they are asked once more
PROVEN    both answers were the same, so that they all slept at one moment

A rank that sleeps may have been told of by a word that is old: only answers count. Between the
first and the second answer of a rank nothing has happened there (its sleeps are the same, and its
numbers of messages), so at the moment when the last first answer came, all were asleep.

The owner of a lock is asked, too, if it may run: it has the queue of those that want the lock. If
it polls it answers; if it computes it does not, and what has come of the requests is not known. A
queue of its second answer is true from then on: the others sleep, so none of them is granted the
lock, nor gives it back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Set
from enum import Enum
from typing import Final, NamedTuple

from ompy.frameworks.needs import LOCK
from ompy.runtime.machines.diagnosis.deadlock import Deadlock, Said, find_deadlock

SETTLE: Final = 0.2  # of the patience of ranks; arbitrary: who stops at the same time says so
AGAIN: Final = 2  # times that; arbitrary: what was under way has come by then
OTHERS: Final = 4  # times that; arbitrary: ranks that come late to a call are named with the rest
ANSWERS: Final = 0.5  # s; arbitrary: some hundred times what a rank that sleeps takes
LONGEST: Final = 8.0  # s; arbitrary: between two questions in vain, which cost little


class Doubt(Enum):
    """How far a proof has come."""

    QUIET = "quiet"
    SUSPECT = "suspect"
    FIRST = "first answers"
    SECOND = "second answers"
    PROVEN = "proven"


class Proof(NamedTuple):
    """What was proven.

    Attributes:
        found: who never goes on.
        said: what these have said, by rank.
    """

    found: Deadlock
    said: dict[int, Said]


class Prover:
    """One job's.

    Attributes:
        doubt: how far it is.
        due: when `turn` is to be called, s; None: not by itself.
        proof: once there is one.
    """

    def __init__(
        self,
        still_s: float,
        in_mpi: Callable[[], Set[int]] = frozenset,
        everybody: Callable[[], Set[int] | None] = lambda: None,
    ) -> None:
        """Nothing is known.

        Args:
            still_s: how long ranks sleep before they say so.
            in_mpi: which ranks might yet say the same; these get some time.
            everybody: the processes that may ever come to a port; None if others may.
        """
        self.doubt = Doubt.QUIET
        self.due: float | None = None
        self.proof: Proof | None = None
        self._settle, self._again = SETTLE * still_s, AGAIN * still_s
        self._in_mpi, self._others = in_mpi, OTHERS * still_s
        self._everybody = everybody
        self._alone_until: float | None = None
        self._unasked: dict[int, Said] = {}
        self._first: dict[int, Said] = {}
        self._answers: dict[int, Said] = {}
        self._wanted: frozenset[int] = frozenset()
        self._hoped: frozenset[int] = frozenset()  # others whose answers would help
        self._suspected: frozenset[int] = frozenset()
        self._question = 0
        self._pause = self._again

    @property
    def question(self) -> int:
        """The number of the last question."""
        return self._question

    def told(self, rank: int, question: int, body: bytes, now: float) -> frozenset[int]:
        """A rank says how it stands. Returns whom to ask."""
        said = self._unasked[rank] = json.loads(body)
        asking = self.doubt in {Doubt.FIRST, Doubt.SECOND}
        if not asking or question != self._question:
            if not asking and self.doubt is not Doubt.PROVEN:
                due = now + self._settle
                self._suspect(due if self.due is None else min(due, self.due))
            return frozenset()
        self._answers[rank] = said
        complete = self._answers.keys() >= self._wanted | self._hoped
        return self._compare(now) if complete else frozenset()

    def gone(self, rank: int) -> None:
        """A rank has ended, or finalized: nothing is known of it any longer."""
        self._unasked.pop(rank, None)

    def turn(self, now: float) -> frozenset[int]:
        """The moment has come. Returns whom to ask."""
        if self.due is None or now < self.due:
            return frozenset()
        if self.doubt is not Doubt.SUSPECT:  # who has not answered runs, or answers later
            missing = self._wanted - self._answers.keys()
            for rank in missing:
                self.gone(rank)
            return self._later(now) if missing else self._compare(now)
        lost = self._find(self._unasked, suspect=True)
        if lost is None:
            self.doubt, self.due = Doubt.QUIET, None
            self._pause, self._alone_until = self._again, None
            return frozenset()
        if self._alone_until is None:
            self._alone_until = now + self._others
        late = now < self._alone_until and self._in_mpi() - lost.ranks
        if late or lost.ranks != self._suspected:  # others may be about to say the same
            self._suspected = lost.ranks
            self._suspect(now + self._settle)
            return frozenset()
        return self._ask(Doubt.FIRST, lost, now)

    def _find(self, said: Mapping[int, Said], *, suspect: bool = False) -> Deadlock | None:
        return find_deadlock(said, suspect=suspect, everybody=self._everybody())

    def _suspect(self, when: float) -> None:
        self.doubt, self.due = Doubt.SUSPECT, when

    def _later(self, now: float) -> frozenset[int]:
        self._suspect(now + self._pause)
        self._pause = min(2 * self._pause, LONGEST)
        return frozenset()

    def _ask(self, doubt: Doubt, lost: Deadlock, now: float) -> frozenset[int]:
        self.doubt, self.due = doubt, now + ANSWERS
        self._question += 1
        needs = (need for waits in lost.waits for need in waits.needs)
        owners = frozenset(need["target"] for need in needs if need["what"] == LOCK)
        self._wanted, self._hoped, self._answers = lost.ranks, owners - lost.ranks, {}
        return self._wanted | self._hoped

    def _compare(self, now: float) -> frozenset[int]:
        """All have answered."""
        if self.doubt is Doubt.FIRST:
            lost = self._find(self._answers)
            if lost is None:
                return self._later(now)
            self._first = {rank: self._answers[rank] for rank in lost.ranks}
            return self._ask(Doubt.SECOND, lost, now)
        lost = self._find(self._answers)
        second = {rank: self._answers[rank] for rank in self._wanted}
        if lost is None or lost.ranks != self._wanted or self._first != second:
            return self._later(now)
        self.doubt, self.due = Doubt.PROVEN, None
        self.proof = Proof(lost, dict(self._answers))
        return frozenset()
