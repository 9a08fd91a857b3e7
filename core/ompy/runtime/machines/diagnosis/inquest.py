"""Ranks are asked once where they are and what each needs of others. Pure.

Two words ask: REPORT, which a rank answers by a signal handler wherever its program is (WHERE), and
STAND, which who sleeps in a call answers there (STILL). A rank has answered when it has said where
it is and, if it sleeps for long, how it stands. Whoever is asked, may end meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from ompy.runtime.connections.control import Kind
from ompy.runtime.machines.acts import Act, KeepAutopsy

if TYPE_CHECKING:
    from ompy.runtime.diagnosis.survey import Survey
    from ompy.runtime.machines.events import Event

INTERRUPTED, TIMEOUT, SIGNAL = "interrupted", "timeout", "signal"  # why ranks are asked
# by what name users are told of it
EVENTS: Final = {INTERRUPTED: INTERRUPTED, TIMEOUT: "timed out", SIGNAL: "autopsy"}
PATIENCE: Final = 2.0  # s; arbitrary: who presses Ctrl-C waits so long; usually it is ms
Tell = Callable[[Kind, Mapping[str, Any]], Iterable[Act]]


class Inquest:
    """One question to all.

    Attributes:
        why: it is asked.
        due: when nobody is waited for any longer, s.
    """

    def __init__(self, why: str, wanted: frozenset[int], question: int, due: float) -> None:
        """Nobody has been asked.

        Args:
            why: it is asked.
            wanted: ranks.
            question: its number, below 0: none of those that prove something.
            due: when nobody is waited for any longer, s.
        """
        self.why = why
        self.due = due
        self._question = question
        self._wanted = set(wanted)
        self._sleeping: set[int] = set()  # have said where, and not yet how they stand
        self._where: dict[int, Mapping[str, Any]] = {}
        self._said: dict[int, Mapping[str, Any]] = {}

    def ask_all(self, tell: Tell) -> list[Act]:
        """What the agents are told."""
        if not self._wanted:
            return []
        told = {"question": self._question, "ranks": sorted(self._wanted)}
        return [*tell(Kind.REPORT, {}), *tell(Kind.STAND, told)]

    @property
    def is_over(self) -> bool:
        """Whether nobody is waited for."""
        return not self._wanted and not self._sleeping

    def heard(self, event: Event) -> None:
        """A word of an agent, which may be an answer."""
        rank = event.header.get("rank", -1)
        if event.kind is Kind.WHERE and rank in self._wanted:
            more = json.loads(event.body) if event.body else {}
            line, waits = event.header["line"], event.header["waits"]
            self._where[rank] = {"line": line, "waits": waits, **more}
            self._wanted.discard(rank)
            if more.get("asleep") and rank not in self._said:
                self._sleeping.add(rank)
        elif event.kind is Kind.STILL and event.header["question"] == self._question:
            self._said[rank] = json.loads(event.body)
            self._sleeping.discard(rank)
        elif event.kind is Kind.EXITED:
            self._gone(event.header["rank"])

    def _gone(self, rank: int) -> None:
        """A rank has ended: it says nothing any more, and is in no call."""
        self._wanted.discard(rank)
        self._sleeping.discard(rank)
        self._where.pop(rank, None)
        self._said.pop(rank, None)

    @property
    def catching(self) -> frozenset[int]:
        """Ranks whose program has a use of its own for SIGUSR1."""
        return frozenset(r for r, said in self._where.items() if said.get("own_signal"))

    @property
    def reporting(self) -> frozenset[int]:
        """Ranks whose program has none, and that would tell of themselves at SIGUSR1."""
        return frozenset(self._where) - self.catching

    def survey(self, but: frozenset[int] = frozenset()) -> Survey:
        """What was said, without what is not to be told of some."""
        from ompy.runtime.diagnosis.survey import Survey

        said = {rank: each for rank, each in self._said.items() if rank not in but}
        where = {rank: each for rank, each in self._where.items() if rank not in but}
        return Survey(said, where, frozenset(self._wanted))


class Inquests:
    """A job's, one at a time.

    Attributes:
        numbers: of questions; below 0, so that they prove nothing.
        last: why ranks were asked last, and what they have said; None: they were not.
    """

    def __init__(self, tell: Tell, *, stacks: bool = False) -> None:
        """Nobody asks.

        Args:
            tell: says a word to all agents.
            stacks: at a timeout, users are told where each thread is.
        """
        self._stacks = stacks
        self.numbers = count(-1, -1)
        self.last: tuple[str, Survey] | None = None
        self._tell = tell
        self._now: Inquest | None = None

    @property
    def due(self) -> float | None:
        """When nobody is waited for any longer, s; None: nobody is asked."""
        return self._now.due if self._now is not None else None

    def begin_inquest(self, why: str, wanted: frozenset[int], now: float) -> list[Act]:
        """Ask; whoever asks meanwhile for another reason gets the same answers."""
        if self._now is not None:
            self._now.why = why
            return []
        self._now = Inquest(why, wanted, next(self.numbers), now + PATIENCE)
        return self._now.ask_all(self._tell)

    def heard(self, event: Event) -> None:
        """A word of an agent, which may be an answer, or a rank's last."""
        if self._now is not None:
            self._now.heard(event)

    def stop_inquest(self) -> None:
        """Nobody wants to know any more."""
        self._now = None

    def take_inquest(self, late: float | None) -> Inquest | None:
        """What is over, if one is.

        Args:
            late: s of the clock, if who has not answered is not to be waited for; None if he is.
        """
        made = self._now
        if made is None or not (made.is_over or (late is not None and late >= made.due)):
            return None
        self._now = None
        return made

    def tell_users(self, over: Inquest) -> list[Act]:
        """What users are told; programs that have a use of their own for the signal are not."""
        from ompy.runtime.diagnosis.survey import survey_as_json, survey_lines
        from ompy.runtime.machines.launcher.job_news import said

        survey = over.survey(over.catching if over.why is SIGNAL else frozenset())
        if over.why is SIGNAL and not (survey.where or survey.said):
            return []
        self.last = over.why, survey
        lines = survey_lines(survey)
        if self._stacks and over.why is TIMEOUT:
            from ompy.runtime.diagnosis.stacks import stack_lines

            lines += stack_lines(survey.where)
        told = said(EVENTS[over.why], lines, **survey_as_json(survey, over.why))
        return [*told, KeepAutopsy()]
