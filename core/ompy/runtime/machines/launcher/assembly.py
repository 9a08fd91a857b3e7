"""The rows of a job that another launcher has started: its agents come by themselves.

The coordinator lives in the passive agent of one host. Exit codes are the launcher's to know; so
what ends the job is said at once, and each agent ends its own ranks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from ompy.frameworks.job import Job
from ompy.mca.reporting import Finding
from ompy.runtime.agents.agent_tree import Tree
from ompy.runtime.connections.control import Kind
from ompy.runtime.diagnosis.verdict import Failure, Verdict
from ompy.runtime.launching.report import failure_block, fields_of
from ompy.runtime.machines.acts import Act, CancelStep, Find, MakeJob, Released, Say, Send
from ompy.runtime.machines.agents.agent import WAITING_BEAT
from ompy.runtime.machines.children import Child
from ompy.runtime.machines.events import Event, Seen
from ompy.runtime.machines.launcher.asking import Asked
from ompy.runtime.machines.launcher.job import JobMachine
from ompy.runtime.machines.launcher.job_rules import JobRules
from ompy.runtime.machines.launcher.job_table import JOINED, JobPhase, Moment, Pair
from ompy.runtime.machines.stages import Stage

OVERDUE: Final = 30.0  # s; arbitrary: ranks of one job rarely start so far apart
UNUSABLE: Final = 1  # exit code of ranks of a job that cannot begin
_SHOWN: Final = 10  # arbitrary: numbers of ranks that fit a line
_NOBODY: Final = Job("", (), (), ())


class _Part:
    """An agent that has come, and the part of the job it has."""

    def __init__(self, who: int, part: Mapping[str, Any], *, remote: bool) -> None:
        self.who = who
        self.part = part
        self.host = str(part["host"])
        self.node = str(part.get("node", ""))  # as Slurm calls its host
        self.ranks = [int(rank) for rank, *_ in part["ranks"]]
        self.remote = remote
        self.done = False


class JoinedJobMachine(JobMachine):
    """One job, from its first agent to its last."""

    table: ClassVar[Mapping[Pair, tuple[JobPhase, ...]]] = JOINED
    speaker: ClassVar[str] = "ompy"

    def __init__(self, launcher: str, size: int) -> None:
        """No agent has come.

        Args:
            launcher: that has started the ranks.
            size: how many there are.
        """
        super().__init__(_NOBODY, Tree([]), [], JobRules(grace_ms=0))
        self.phase = JobPhase.GATHERING
        self._launcher = launcher
        self._size = size
        self._parts: list[_Part] = []
        self._finalized: set[int] = set()
        self._done = False

    def may_meet(self) -> None:
        """It is not known here which processes the other launcher will start."""

    def _check(self) -> None:
        phase = self.phase
        assert self._done is (phase is JobPhase.OVER), f"{phase}: over is when nobody needs it"
        if phase is JobPhase.RELEASED:
            assert len(self._finalized) >= self._size, "nobody is released before the last"
        if phase in {JobPhase.GATHERING, JobPhase.RUNNING}:
            assert self.verdict.failure is None, "what has failed is ended"

    def _seen(self, event: Event, now: float) -> list[Act]:
        acts: list[Act] = []
        match event.what:
            case Seen.BEGUN:
                self._agenda.set(Moment.OVERDUE, now + OVERDUE)
            case Seen.CAME:
                acts = self._came(event, now)
            case Seen.MADE:
                acts = self._made(event, now)
            case Seen.UNUSABLE:
                acts = self._fail(Failure(event.who, event.text))
            case Seen.MISSING:
                here = event.header["host"] in self.nodes
                if self.phase is JobPhase.GATHERING and not here:
                    acts = [*self._fail(Failure(UNUSABLE, event.text)), CancelStep()]
            case _:
                acts = super()._seen(event, now)
        return acts

    # agents come

    def _came(self, event: Event, now: float) -> list[Act]:
        """An agent has come; with the last the job begins."""
        part = _Part(event.who, event.header["part"], remote=event.header["remote"])
        self._children.add(Child(event.who, 0, remote=part.remote))
        self._parts.append(part)
        if self.phase is not JobPhase.GATHERING:
            part.done = True
            return [Send(part.who, Kind.END, {"code": UNUSABLE})]
        self._children.watch(part.who, now, *WAITING_BEAT)
        if not self._known:
            return []
        self._parts.sort(key=lambda part: min(part.ranks))
        ranks = sorted(rank for part in self._parts for rank in part.ranks)
        if ranks != list(range(self._size)):
            text = f"{self._launcher} has given ranks {ranks}: one twice, or another job's."
            return self._fail(Failure(UNUSABLE, text))
        return [MakeJob([part.part for part in self._parts])]

    @property
    def nodes(self) -> set[str]:
        """The hosts whose agents have come, as Slurm calls them."""
        return {part.node for part in self._parts}

    @property
    def _known(self) -> bool:
        """Whether all ranks are of an agent that has come."""
        return sum(len(part.ranks) for part in self._parts) >= self._size

    def _made(self, event: Event, now: float) -> list[Act]:
        """The job, and how it is gone about."""
        if self.phase is not JobPhase.GATHERING:
            return []
        self.phase = JobPhase.RUNNING
        self._agenda.drop(Moment.OVERDUE)
        header = event.header
        self.verdict = Verdict(header["job"])
        self._asked = Asked(header["job"])
        acts: list[Act] = []
        for node, part in enumerate(self._parts):
            for rank, _, pid, *_ in part.part["ranks"]:
                self.verdict.started(int(rank), int(pid))
            beat = header["heartbeat_ms"] if part.remote else 0
            start = {
                "node": node,
                "grace_ms": header["grace_ms"],
                "heartbeat_ms": beat,
                "heartbeat_misses": header["heartbeat_misses"],
            }
            acts.append(Send(part.who, Kind.START, start, event.body))
            self._children.watch(part.who, now, beat / 1000, header["heartbeat_misses"])
        return acts

    def _overdue(self) -> Say:
        here = {rank for part in self._parts for rank in part.ranks}
        missing = [rank for rank in range(self._size) if rank not in here]
        shown = ", ".join(map(str, missing[:_SHOWN])) + (", ..." if len(missing) > _SHOWN else "")
        return Say(
            f"after {OVERDUE:g} s nothing is known of rank {shown}: not all ranks of their hosts "
            "have begun MPI; the job waits"
        )

    # the job runs

    def _word(self, event: Event, now: float) -> list[Act]:
        self._children.heard(event)
        if event.kind is Kind.FINISHED:
            return self._finished(event.who)
        if self.phase in {JobPhase.ENDING, JobPhase.OVER}:
            return []
        acts: list[Act] = []
        match event.kind:
            case Kind.MODEX | Kind.FETCH:
                named = event._replace(header={**event.header, "node": event.who})
                acts = [*self._wire_up.word(named, self._asked.job.placements)]
            case Kind.FENCED if self._children.fenced(event.who):
                acts = [*self._children.tell(Kind.FENCED)]
            case Kind.PATHS | Kind.RAIL | Kind.LEFT:
                self._told_news(event, now)
            case Kind.STILL if self.phase is JobPhase.RUNNING:
                acts = self._deadlocks.told(event, now)
            case Kind.LOST:
                rank, orphan = event.header["rank"], bool(event.header.get("orphan"))
                self.news.alone.add(rank)
                pid = event.header["pid"]
                self.verdict.vanished(rank, pid, self._launcher, orphan=orphan)
            case Kind.STAGE | Kind.ABORTED:
                self._judge(event, now)
                acts = self._all_finalized(event)
        failure = self._deadlocks.failure or self.verdict.failure
        if failure is None:
            return acts
        said = acts if event.kind is Kind.STILL else []
        return [*said, *self._fail(failure)]

    def _all_finalized(self, event: Event) -> list[Act]:
        """Whether all ranks have, after what was said."""
        if event.kind is not Kind.STAGE or event.header["stage"] != Stage.FINALIZED:
            return []
        self._finalized.add(event.header["rank"])
        if len(self._finalized) < self._size or self.phase is not JobPhase.RUNNING:
            return []
        self.phase = JobPhase.RELEASED
        return [*self._show_rails(), *self._children.tell(Kind.FINISHED)]

    def _show_rails(self) -> list[Act]:
        text = "".join(f"ompy: {line}\n" for line in self.news.rails.lines())
        return [Find(Finding("rails", text))] if text else []

    # the job ends

    def _fail(self, failure: Failure) -> list[Act]:
        """End the job, and say why, once."""
        if self.phase in {JobPhase.ENDING, JobPhase.OVER}:
            return []
        rails = self._show_rails()
        self.phase = JobPhase.ENDING
        self._deadlocks.stop()
        self._agenda.clear()
        block = Finding("job failed", failure_block(failure), "error", fields_of(failure))
        ends = self._children.tell(Kind.END, {"code": failure.code or UNUSABLE})
        return [*self.news.lost_paths(), *rails, Find(block), *ends, *self._settle()]

    def _child_gone(self, node: int, reason: str, now: float) -> list[Act]:
        """The connection to an agent has ended; before it has finished that ends the job."""
        self._children.gone(node)
        (part,) = (part for part in self._parts if part.who == node)
        was, part.done = part.done, True
        if was or self.phase in {JobPhase.RELEASED, JobPhase.ENDING, JobPhase.OVER}:
            return self._settle()
        facts = (("host", part.host),)
        headline = "The process that serves the ranks of a host is gone. The job was ended."
        advice = reason or "Something killed it, or its host is down."
        return self._fail(Failure(UNUSABLE, headline, facts, advice))

    def _finished(self, who: int) -> list[Act]:
        """No process is left at an agent."""
        (part,) = (part for part in self._parts if part.who == who)
        part.done = True
        if self.phase is JobPhase.GATHERING:
            headline = f"The ranks of host {part.host} ended before the job began."
            return self._fail(Failure(UNUSABLE, headline))
        return self._settle()

    def _settle(self) -> list[Act]:
        """Whether no agent needs us any longer."""
        if self._done or not self._known or not all(part.done for part in self._parts):
            return []
        self._done = True
        self.phase = JobPhase.OVER
        self._agenda.clear()
        return [Released()]

    def _time(self, now: float) -> list[Act]:
        acts: list[Act] = []
        said_here, silent = self._children.time(now)
        acts += said_here
        for node, reason in silent:
            acts += self._child_gone(node, reason, now)
        for moment in self._agenda.take(now):
            if moment is Moment.OVERDUE:
                acts.append(self._overdue())
            elif moment is Moment.PATHS:
                acts += self.news.lost_paths()
            elif moment is Moment.LEAVING:
                acts += self._children.leaving()
        return [*acts, *self._deadlocks.turn(now)]
