"""The launcher's machine: one job, from its start to its exit code.

It is told what agents say and how they end, and says what is to be done; `job_table.py` has its
phases and its table. The coordinator of passive mode is the same machine with other rows: its
agents come by themselves (`assembly.py`), its ranks have another launcher, which knows their exit
codes, and may end when all of them have finalized.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar, Final, NamedTuple

from ompy.frameworks.job import Job
from ompy.mca.reporting import Finding
from ompy.runtime.comm_methods import COLLECTING
from ompy.runtime.control import Kind
from ompy.runtime.fault_report import NEVER_FIRED
from ompy.runtime.forwarding import OUTPUT_WINDOW
from ompy.runtime.machines.acts import (
    Act,
    CloseView,
    Find,
    ReportRails,
    ResumeInput,
    Send,
    Show,
    Stop,
    Suspend,
    Sweep,
    TakeInput,
)
from ompy.runtime.machines.agenda import Agenda, earliest
from ompy.runtime.machines.children import Child, Children
from ompy.runtime.machines.events import NOTHING, Event, Seen, WrongPhase
from ompy.runtime.machines.job_news import JobNews, said
from ompy.runtime.machines.job_table import LAUNCHED, JobPhase, Pair
from ompy.runtime.ranks import Stage
from ompy.runtime.report import failure_block, fields_of
from ompy.runtime.tree import Tree
from ompy.runtime.verdict import Verdict
from ompy.runtime.whereabouts import Whereabouts

PATIENCE: Final = 5.0  # s; arbitrary: killed processes go at once unless the kernel holds them
REPORT_PATIENCE: Final = 0.5  # s; arbitrary: some hundred times what a rank takes to say it
WHERE_PATIENCE: Final = 2.0  # s; arbitrary: who presses Ctrl-C waits so long; usually it is ms
INTERRUPT: Final = 2  # Linux SIGINT
_CREDIT_STEP: Final = OUTPUT_WINDOW // 8  # bytes; arbitrary: few messages, window never shut long


class JobRules(NamedTuple):
    """How a job is gone about.

    Attributes:
        grace_ms: from SIGTERM to SIGKILL when ranks are ended.
        timeout_s: end it after so many seconds; 0 for never.
        timeout_source: what set that, for the message.
        quiet: say nothing about how it ended.
        heartbeat_s: how often agents of other hosts and we let each other hear from us.
        misses: how often nothing is heard before one is lost.
        start_s: how long they may take until the first time.
        display_rails: say at the end what became of rails.
        fault_strict: a fault of the script that never struck is an error.
    """

    grace_ms: int
    timeout_s: float = 0.0
    timeout_source: str = ""
    quiet: bool = False
    heartbeat_s: float = 0.0
    misses: int = 0
    start_s: float = 0.0
    display_rails: bool = False
    fault_strict: bool = False


class Moment(Enum):
    """What a job waits for."""

    TIMEOUT = "it has run for too long"
    END = "its ranks have said where they are"
    WHERE = "ranks were asked where they are, and some do not say it"
    GIVE_UP = "agents do not end"
    PATHS = "both ends of a lost path have told of it"
    OVERDUE = "agents do not come"


class _Host:
    """An agent, wherever it is in the tree."""

    def __init__(self, node: int, name: str) -> None:
        self.node = node
        self.name = name
        self.done = False  # it has finished, or it has gone
        self.uncredited = 0


class JobMachine:
    """One job that this launcher has started.

    Attributes:
        phase: where it is.
        verdict: how it ends.
    """

    table: ClassVar[Mapping[Pair, tuple[JobPhase, ...]]] = LAUNCHED

    def __init__(self, job: Job, tree: Tree, children: list[Child], rules: JobRules) -> None:
        """The agents have been told the job.

        Args:
            job: what runs.
            tree: which agents have started which others.
            children: those that the launcher is connected to.
            rules: how to go about it.
        """
        self.phase = JobPhase.RUNNING
        self.verdict = Verdict(job)
        self.news = JobNews(job.faults)
        self._job = job
        self._tree = tree
        self._rules = rules
        self._children = Children(children)
        self._hosts = [_Host(node, name) for node, name in enumerate(job.hosts)]
        self._agenda: Agenda[Moment] = Agenda()
        self._where: Whereabouts | None = None  # once somebody has asked the ranks
        self._told_to_end = False

    @property
    def due(self) -> float | None:
        """When `TIME` is to be told, s; None: not by itself."""
        return earliest(self._agenda.due, self._children.due)

    @property
    def exit_code(self) -> int:
        """What the launcher ends with."""
        strict = self._rules.fault_strict and bool(self.news.faults.silent)
        return self.verdict.exit_code or (NEVER_FIRED if strict else 0)

    def handle(self, event: Event, now: float) -> list[Act]:
        """Something has happened.

        Args:
            event: what.
            now: s of the driver's clock.

        Raises:
            WrongPhase: it cannot happen where the job is.
        """
        before = self.phase
        pair = before, event.what, event.kind
        if pair not in self.table:
            raise WrongPhase(f"a job that is {before.value} cannot be told: {event}")
        acts = self._word(event, now) if event.what is Seen.BELOW else self._seen(event, now)
        assert self.phase in self.table[pair], (pair, self.phase)
        return acts

    def _seen(self, event: Event, now: float) -> list[Act]:
        """What is no word of an agent."""
        acts: list[Act] = []
        match event.what:
            case Seen.BEGUN:
                self._begin(now)
            case Seen.CHILD_GONE:
                acts = self._child_gone(event.who, event.text, now)
            case Seen.TIME:
                acts = self._time(now)
            case Seen.TOLD_TO_END:
                acts = self._told(event.who, now)
            case Seen.STOPPED:
                acts = [*self._forward(event.who), Suspend(event.who)]
            case Seen.CONTINUED:
                acts = [*self._forward(event.who), ResumeInput()]
            case Seen.FORWARDED:
                acts = self._forward(event.who)
            case _:
                acts = self._stream(event, now)
        return acts

    def _begin(self, now: float) -> None:
        rules = self._rules
        for child in self._children.nodes:
            self._children.watch(child, now, rules.heartbeat_s, rules.misses, rules.start_s)
        if rules.timeout_s:
            self._agenda.set(Moment.TIMEOUT, now + rules.timeout_s)

    # what agents say

    def _word(self, event: Event, now: float) -> list[Act]:
        header = event.header
        self._children.heard(event)
        acts: list[Act] = []
        match event.kind:
            case Kind.OUTPUT:
                node = self._job.placements[header["rank"]].node
                acts = [Show(node, header["rank"], header["stream"], event.body)]
            case Kind.INPUT_TAKEN | Kind.INPUT_CLOSED:
                acts = [TakeInput(header.get("bytes", 0))]
            case Kind.MODEX | Kind.LEFT:
                acts = [*self._children.news(event)]
            case Kind.FENCED if self._children.fenced(event.who):
                acts = [*self._children.tell(Kind.FENCED)]
            case Kind.FINISHED:
                self._hosts[header["node"]].done = True
            case Kind.AGENT_GONE:
                lost = [header["node"]] if header["alone"] else self._tree.subtree(header["node"])
                self._agents_gone(lost, header["pid"], event.text)
            case Kind.FAULTS | Kind.PATHS | Kind.RAIL | Kind.CARRIED:
                acts = self._told_news(event, now)
            case _:
                acts = self._judge(event, now)
        return [*acts, *self._see(now)]

    def _told_news(self, event: Event, now: float) -> list[Act]:
        """What became of faults, paths and rails."""
        match event.kind:
            case Kind.FAULTS:
                self.news.faults.told(event.header["rank"], event.header["delivered"])
            case Kind.PATHS:
                if self.news.path(event):
                    self._agenda.set(Moment.PATHS, now + COLLECTING)
            case _:
                return self.news.rail(event)
        return []

    def _judge(self, event: Event, now: float) -> list[Act]:
        """What bears on the exit code."""
        header, verdict = event.header, self.verdict
        match event.kind:
            case Kind.STARTED:
                verdict.started(header["rank"], header["pid"])
            case Kind.STAGE:
                verdict.advanced(header["rank"], Stage(header["stage"]), header.get("calls"))
            case Kind.UNSTARTED:
                verdict.unstarted(header["rank"], header["code"], event.body.decode())
            case Kind.EXITED:
                if self.phase in {JobPhase.RUNNING, JobPhase.RELEASED}:
                    self.news.alone.add(header["rank"])
                return [*self._exited(header), *self._children.news(event)]
            case Kind.LOST:
                verdict.lost(header["rank"], header["pid"])
            case Kind.ABORTED:
                verdict.aborted(header["rank"], header["pid"], header["code"], event.text)
            case Kind.WHERE if self._where is not None:
                self._where.told(header["rank"], header["line"], header["waits"])
                if self._where.complete:
                    return self._say_where(now)
        return []

    def _exited(self, header: Mapping[str, Any]) -> list[Act]:
        """A rank has ended; one that the others can do without is only told of."""
        rank, expendable = header["rank"], header["expendable"]
        self.verdict.exited(rank, header["status"], expendable=expendable)
        if not expendable or header["stage"] == Stage.FINALIZED or self._rules.quiet:
            return []
        text = f"rank {rank} {header['reason']}; the job goes on without it."
        return said("rank lost", [text], "warning", rank=rank)

    def _child_gone(self, node: int, reason: str, now: float) -> list[Act]:
        if self._children.gone(node):
            self._agents_gone(self._tree.subtree(node), self._children.pid(node), reason)
        return self._see(now)

    def _agents_gone(self, nodes: list[int], pid: int, reason: str) -> None:
        """An agent is not there any longer, nor are those below: nothing will be heard of them.

        Args:
            nodes: its own and theirs.
            pid: its own.
            reason: what is known of it; may be empty.
        """
        lost = [host for host in map(self._hosts.__getitem__, nodes) if not host.done]
        for host in lost:
            host.done = True
        if lost:
            below = [host.name for host in lost if host.node != nodes[0]]
            self.verdict.agent_lost(self._hosts[nodes[0]].name, pid, reason, below)

    # output, input, signals

    def _stream(self, event: Event, now: float) -> list[Act]:
        match event.what:
            case Seen.WRITTEN:
                return self._written(event.header["node"], event.header["bytes"])
            case Seen.READ:
                node = self._job.placements[self._job.stdin_rank].node
                kind = Kind.INPUT if event.body else Kind.INPUT_END
                return [self._to_one(node, kind, NOTHING, event.body)]
            case Seen.BROKEN if event.who == 1:  # without standard error the job goes on
                self.verdict.output_broken(event.text)
                return self._see(now)
            case Seen.IDLE if self.phase is JobPhase.CLOSING:
                return self._stop()
        return []

    def _written(self, node: int, count: int) -> list[Act]:
        host = self._hosts[node]
        host.uncredited += count
        if host.uncredited < _CREDIT_STEP:
            return []
        credit, host.uncredited = host.uncredited, 0
        return [self._to_one(node, Kind.CREDIT, {"bytes": credit})]

    def _to_one(self, node: int, kind: Kind, header: Mapping[str, Any], body: bytes = b"") -> Send:
        return Send(self._tree.child_towards(node), kind, {**header, "to": node}, body)

    def _forward(self, number: int) -> list[Act]:
        return [*self._children.tell(Kind.SIGNAL, {"signal": number})]

    def _told(self, number: int, now: float) -> list[Act]:
        """A signal ends the job; of a second one nothing is waited for."""
        if self._told_to_end:
            return self._stop()
        self._told_to_end = True
        self.verdict.signalled(number)
        asked = self.verdict.in_mpi
        running = self.phase is JobPhase.RUNNING
        if number == INTERRUPT and asked and running and not self._rules.quiet:
            self.phase = JobPhase.ASKING
            self._where = Whereabouts(asked)
            self._agenda.set(Moment.WHERE, now + WHERE_PATIENCE)
            return [*self._children.tell(Kind.REPORT, {"short": True})]
        return self._see(now)

    # the end

    def _time(self, now: float) -> list[Act]:
        acts: list[Act] = []
        said_here, silent = self._children.time(now)
        acts += said_here
        for node, reason in silent:
            self._agents_gone(self._tree.subtree(node), self._children.pid(node), reason)
        for moment in self._agenda.take(now):
            match moment:
                case Moment.TIMEOUT:
                    acts += self._time_out(now)
                case Moment.END:
                    acts += self._end(now)
                case Moment.WHERE:
                    acts += self._say_where(now)
                case Moment.GIVE_UP:
                    acts += self._finish()
                case Moment.PATHS:
                    acts += self.news.lost_paths(quiet=self._rules.quiet)
        return [*acts, *self._see(now)]

    def _time_out(self, now: float) -> list[Act]:
        """End the job, but first let the ranks say where they are."""
        self.verdict.timed_out(self._rules.timeout_s, self._rules.timeout_source)
        if self.phase is not JobPhase.RUNNING:
            return []
        self.phase = JobPhase.ASKING
        self._agenda.set(Moment.END, now + REPORT_PATIENCE)
        return [*self._children.tell(Kind.REPORT)]

    def _say_where(self, now: float) -> list[Act]:
        """Say where the ranks were when somebody pressed Ctrl-C, and go on with the end."""
        assert self._where is not None, "it was asked"
        where, self._where = self._where, None
        return [*said("interrupted", where.lines()), *self._end(now)]

    def _see(self, now: float) -> list[Act]:
        """Whether the job has to be ended, or has ended."""
        if all(host.done for host in self._hosts):
            return self._finish()
        if self.verdict.failure is not None and self.phase is JobPhase.RUNNING:
            return self._end(now)
        return []

    def _end(self, now: float) -> list[Act]:
        """Have the agents end their ranks."""
        assert self.phase in {JobPhase.RUNNING, JobPhase.ASKING}, self.phase
        self.phase = JobPhase.ENDING
        self._where = None
        for moment in (Moment.END, Moment.WHERE):
            self._agenda.drop(moment)
        grace_ms = self._rules.grace_ms
        self._agenda.set(Moment.GIVE_UP, now + grace_ms / 1000 + PATIENCE)
        return [*self._children.tell(Kind.END, {"grace_ms": grace_ms})]

    def _finish(self) -> list[Act]:
        """No agent has processes left, or answers: say how it went."""
        if self.phase in {JobPhase.CLOSING, JobPhase.OVER}:
            return []
        self.phase = JobPhase.CLOSING
        for moment in (Moment.END, Moment.WHERE, Moment.GIVE_UP, Moment.PATHS):
            self._agenda.drop(moment)
        self._where = None
        rules, failure = self._rules, self.verdict.failure
        acts: list[Act] = [TakeInput(0), Sweep(), CloseView(failed=failure is not None)]
        acts += self.news.lost_paths(quiet=rules.quiet)
        if failure is not None:
            text = "" if rules.quiet else failure_block(failure)
            acts.append(Find(Finding("job failed", text, "error", fields_of(failure))))
        acts += self.news.delivered(strict=rules.fault_strict, quiet=rules.quiet)
        shown = rules.display_rails and not rules.quiet
        return [*acts, ReportRails(self.news.rails.lines() if shown else [])]

    def _stop(self) -> list[Act]:
        self.phase = JobPhase.OVER
        self._agenda.clear()
        return [Stop()]
