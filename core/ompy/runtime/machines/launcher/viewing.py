"""What somebody is told who watches a job (`ompy top`, `ompy ps`). Pure, as the job's machine is.

A question is an object with `ask`; its answer has the same `ask` and what README.md, "A live view",
says. What the ranks have to say themselves takes a *round*: they are asked where they are
(REPORT), or as at Ctrl-C how they stand (`machines/diagnosis/inquest.py`); who asks meanwhile gets
the same answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ompy.runtime.connections.control import Kind
from ompy.runtime.machines.acts import Act, Inform
from ompy.runtime.machines.agenda import earliest
from ompy.runtime.machines.diagnosis.inquest import Inquest
from ompy.runtime.machines.launcher.job_table import JobPhase

if TYPE_CHECKING:
    from ompy.frameworks.job import Job
    from ompy.runtime.diagnosis.verdict import Verdict
    from ompy.runtime.machines.events import Event
    from ompy.runtime.machines.launcher.asking import Asked
    from ompy.runtime.machines.launcher.job_news import JobNews

# s; arbitrary: some hundred times what a rank takes that runs Python; native code answers later
ROUND: Final = 0.5
RANKS, STACKS, AUTOPSY, JOB = "ranks", "stacks", "autopsy", "job"
QUESTIONS: Final = (JOB, RANKS, STACKS, AUTOPSY)
Answer = dict[str, Any]


class _Round:
    """Ranks that were asked.

    Attributes:
        watchers: who wants to know, and what.
        wanted: ranks that have not answered.
        answers: of the others.
        due: when nobody is waited for any longer.
    """

    def __init__(self, wanted: Iterable[int], due: float) -> None:
        self.watchers: list[tuple[int, str]] = []
        self.wanted = set(wanted)
        self.answers: dict[int, Mapping[str, Any]] = {}
        self.due = due

    def told(self, rank: int, answer: Mapping[str, Any]) -> bool:
        """A rank says something. Whether it was the last."""
        if rank in self.wanted:
            self.wanted.discard(rank)
            self.answers[rank] = answer
        return not self.wanted


class Viewing:
    """One job's."""

    def __init__(
        self,
        asked: Asked,
        verdict: Verdict,
        news: JobNews,
        tell: Callable[[Kind, Mapping[str, Any]], Iterable[Act]],
        numbers: Iterator[int],
    ) -> None:
        """Nobody has asked.

        Args:
            asked: has the job as it is now.
            verdict: knows its ranks.
            news: what they have told of rails.
            tell: says a word to all agents.
            numbers: of questions that prove nothing.
        """
        self._asked = asked
        self._verdict = verdict
        self._news = news
        self._tell = tell
        self._where: _Round | None = None
        self._stand: Inquest | None = None
        self._to_tell: list[int] = []  # watchers, how ranks stand
        self._numbers = numbers
        self._seen: dict[int, tuple[tuple[str, str], float]] = {}  # line, waits: since when

    @property
    def due(self) -> float | None:
        """When `turn` is to be called, s; None: not by itself."""
        return earliest(*(one.due for one in (self._where, self._stand) if one is not None))

    def inquired(
        self,
        watcher: int,
        question: Mapping[str, Any],
        now: float,
        *,
        phase: JobPhase,
        age_s: float,
    ) -> list[Act]:
        """Somebody asks.

        Args:
            watcher: who.
            question: what; a stranger's words are possible.
            now: s.
            phase: where the job is.
            age_s: how long it runs.
        """
        what = question.get("ask")
        if not isinstance(what, str) or what not in QUESTIONS:
            known = ", ".join(QUESTIONS)
            return [Inform(watcher, {"ask": what, "error": f"what is known here: {known}"})]
        if what == JOB:
            return [Inform(watcher, {"ask": JOB, **self._job(phase, age_s)})]
        wanted = self._verdict.in_mpi if phase is JobPhase.RUNNING else frozenset[int]()
        if what == AUTOPSY:
            return self._ask_how_they_stand(watcher, wanted, now)
        acts: list[Act] = []
        if self._where is None:
            self._where = _Round(wanted, now + ROUND)
            acts += self._tell(Kind.REPORT, {}) if wanted else []
        self._where.watchers.append((watcher, what))
        return acts if self._where.wanted else [*acts, *self._end_where(now)]

    def _ask_how_they_stand(self, watcher: int, wanted: frozenset[int], now: float) -> list[Act]:
        acts: list[Act] = []
        if self._stand is None:
            self._stand = Inquest(AUTOPSY, wanted, next(self._numbers), now + ROUND)
            acts = self._stand.ask_all(self._tell)
        self._to_tell.append(watcher)
        return [*acts, *self._end_stand()] if self._stand.is_over else acts

    def heard(self, event: Event, now: float) -> list[Act]:
        """A word of an agent, which may be an answer, or a rank's last."""
        header, acts = event.header, list[Act]()
        if self._stand is not None:
            self._stand.heard(event)
            acts = self._end_stand() if self._stand.is_over else []
        if event.kind is Kind.WHERE and self._where is not None:
            more = json.loads(event.body) if event.body else {}
            place = header["line"], header["waits"]
            if self._seen.get(header["rank"], ((), 0.0))[0] != place:
                self._seen[header["rank"]] = (place, now)
            answer = {"line": place[0], "waits": place[1], **more}
            acts += self._end_where(now) if self._where.told(header["rank"], answer) else []
        return acts

    def turn(self, now: float) -> list[Act]:
        """Time has passed: who has not answered does not, in native code perhaps."""
        acts: list[Act] = []
        if self._where is not None and now >= self._where.due:
            acts += self._end_where(now)
        if self._stand is not None and now >= self._stand.due:
            acts += self._end_stand()
        return acts

    # answers

    def _end_where(self, now: float) -> list[Act]:
        assert self._where is not None, "it has begun"
        over, self._where = self._where, None
        made: dict[str, Answer] = {}
        for _, what in over.watchers:
            if what not in made:
                made[what] = self._stacks(over) if what == STACKS else self._ranks(over, now)
        return [Inform(watcher, made[what]) for watcher, what in over.watchers]

    def _end_stand(self) -> list[Act]:
        from ompy.runtime.diagnosis.survey import survey_as_json, survey_lines

        assert self._stand is not None, "it has begun"
        survey, self._stand = self._stand.survey(), None
        lines, found = survey_lines(survey), survey_as_json(survey)
        answer = {"ask": AUTOPSY, "lines": lines, "autopsy": found}
        watchers, self._to_tell = self._to_tell, []
        return [Inform(watcher, answer) for watcher in watchers]

    def _job(self, phase: JobPhase, age_s: float) -> Answer:
        job: Job = self._asked.job
        states = [self._verdict.state_of(p.rank)["state"] for p in job.placements]
        return {
            "job": job.job_id,
            "program": self._verdict.state_of(0)["program"],
            "hosts": list(job.hosts),
            "ranks": len(job.placements),
            "phase": phase.value,
            "states": {state: states.count(state) for state in sorted(set(states))},
            "age_s": round(age_s, 3),
        }

    def _ranks(self, over: _Round, now: float) -> Answer:
        rows = []
        for placement in self._asked.job.placements:
            row = self._verdict.state_of(placement.rank)
            said = over.answers.get(placement.rank)
            row["told"] = said is not None
            if said is not None:
                row |= {name: value for name, value in said.items() if name != "threads"}
                since = self._seen[placement.rank][1]
                row["for_s"] = round(max(float(said.get("asleep", 0.0)), now - since), 3)
            rows.append(row)
        carried = [[rank, *row] for (rank, *_), row in self._news.carried.items()]
        return {"ask": RANKS, "ranks": rows, "rails": carried, "broken": self._broken()}

    def _broken(self) -> list[Mapping[str, Any]]:
        """Rails that broke and have not healed."""
        return [event for event in self._news.rails.events if not event["healed_ns"]]

    def _stacks(self, over: _Round) -> Answer:
        told = {rank: said.get("threads", []) for rank, said in sorted(over.answers.items())}
        found = [{"rank": rank, "threads": threads} for rank, threads in told.items()]
        return {"ask": STACKS, "stacks": found, "silent": sorted(over.wanted)}
