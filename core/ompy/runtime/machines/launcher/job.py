"""The launcher's machine: one job, from its start to its exit code.

It is told what agents say and how they end, and says what is to be done; `job_table.py` has its
phases and its table. The coordinator of passive mode is the same machine with other rows: its
agents come by themselves (`assembly.py`), its ranks have another launcher, which knows their exit
codes, and may end when all of them have finalized.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ompy.frameworks.fault_tolerance.departures import ranges_of
from ompy.frameworks.job import Job, JobWorld
from ompy.mca.reporting import Finding
from ompy.runtime.agents.agent_tree import Tree
from ompy.runtime.connections.control import Kind
from ompy.runtime.diagnosis.rank_spans import ranks_in_words
from ompy.runtime.diagnosis.verdict import Verdict
from ompy.runtime.faults.fault_report import NEVER_FIRED
from ompy.runtime.launching.report import failure_block, fields_of
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
    Widen,
)
from ompy.runtime.machines.agenda import Agenda, earliest
from ompy.runtime.machines.children import Child, Children
from ompy.runtime.machines.diagnosis.deadlock_watch import DeadlockWatch
from ompy.runtime.machines.diagnosis.inquest import INTERRUPTED, SIGNAL, TIMEOUT, Inquests
from ompy.runtime.machines.events import NOTHING, Event, Seen, WrongPhase
from ompy.runtime.machines.launcher.asking import (
    Answer,
    Asked,
    Discarded,
    Growth,
    Reply,
    packed_world,
    runs_of,
)
from ompy.runtime.machines.launcher.cuts import cut_off
from ompy.runtime.machines.launcher.host import Host
from ompy.runtime.machines.launcher.job_news import JobNews, said
from ompy.runtime.machines.launcher.job_rules import JobRules
from ompy.runtime.machines.launcher.job_table import (
    ENDS,
    LAUNCHED,
    TOLD,
    JobPhase,
    Moment,
    Pair,
)
from ompy.runtime.machines.launcher.wire_up import WireUp
from ompy.runtime.machines.leave_news import COLLECTING as LEAVING
from ompy.runtime.machines.stages import Stage
from ompy.runtime.rails.comm_methods import COLLECTING

if TYPE_CHECKING:
    from ompy.runtime.machines.diagnosis.proving import Proof
    from ompy.runtime.machines.launcher.viewing import Viewing

PATIENCE: Final = 5.0  # s; arbitrary: killed processes go at once unless the kernel holds them
# s; arbitrary: who finds out that a rail is gone does so within a few turns of probes
CUT_PATIENCE: Final = 0.3
INTERRUPT: Final = 2  # Linux SIGINT
USER_1: Final = 10  # Linux SIGUSR1


class JobMachine:
    """One job that this launcher has started.

    Attributes:
        phase: where it is.
        verdict: how it ends.
        inquests: how its ranks stand, when somebody wants to know.
    """

    table: ClassVar[Mapping[Pair, tuple[JobPhase, ...]]] = LAUNCHED
    speaker: ClassVar[str] = "ompy-run"

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
        self._asked = Asked(job)
        self._tree = tree
        self._rules = rules
        self._children = Children(children, {branch.parent for branch in tree})
        self._wire_up = WireUp(self._children, self._to_one)
        self._hosts = [Host(node, name) for node, name in enumerate(job.hosts)]
        self._agenda: Agenda[Moment] = Agenda()
        tell, in_mpi = self._children.tell, lambda: self.verdict.in_mpi
        self._deadlocks = DeadlockWatch(rules, tell, self.speaker, in_mpi, self.may_meet)
        self.inquests = Inquests(self._children.tell, stacks=rules.stacks)
        self._viewing: Viewing | None = None  # once somebody watches
        self._began = 0.0
        self._told_to_end = False
        self._kills = list(rules.kills)
        self._up = -1.0  # when all ranks of the beginning were in MPI
        self._cuts: set[tuple[int, int]] = set()  # ranks that do not reach each other

    def may_meet(self) -> frozenset[int] | None:
        """The ranks that may ever come to a port; None if others may join the job."""
        return self.verdict.living

    @property
    def due(self) -> float | None:
        """When `TIME` is to be told, s; None: not by itself."""
        viewed = self._viewing.due if self._viewing is not None else None
        asked, proving = self.inquests.due, self._deadlocks.due
        return earliest(self._agenda.due, self._children.due, proving, viewed, asked)

    @property
    def proof(self) -> Proof | None:
        """That ranks never go on, if it is proven."""
        return self._deadlocks.proof

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
        over = self.phase is JobPhase.OVER
        assert over or not any(isinstance(act, Stop) for act in acts), "who stops is over"
        self._check()
        return acts

    def _check(self) -> None:
        """What cannot be, whatever has happened."""
        agenda, phase = self._agenda, self.phase
        ending = phase is JobPhase.ENDING
        assert (Moment.GIVE_UP in agenda) is ending, f"{phase}: agents have so long to end"
        asking, asked = phase is JobPhase.ASKING, self.inquests.due is not None
        assert asked if asking else not asked or phase is JobPhase.RUNNING, f"{phase}: {asked}"
        if phase is JobPhase.RUNNING:
            assert self.verdict.failure is None, "what has failed is ended"

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
                acts = [*self._signal(event.who), Suspend(event.who)]
            case Seen.CONTINUED:
                acts = [*self._signal(event.who), ResumeInput()]
            case Seen.FORWARDED:
                acts = self._forward(event.who, now)
            case _:
                acts = self._stream(event, now)
        return acts

    def _begin(self, now: float) -> None:
        rules, self._began = self._rules, now
        for child in self._children.nodes:
            self._children.watch(child, now, rules.heartbeat_s, rules.misses, rules.start_s)
        if rules.timeout_s:
            self._agenda.set(Moment.TIMEOUT, now + rules.timeout_s)

    def _look_whether_up(self, now: float) -> None:
        """Who is to be killed after a while is so when all are in MPI, however long that took."""
        first = self._asked.job.worlds[0].size
        if self._up < 0 and all(map(self.verdict.is_in_mpi, range(first))):
            self._up = now
            self._await_kill()

    def _await_kill(self) -> None:
        if self._kills:
            self._agenda.set(Moment.KILL, self._up + self._kills[0].after_s)

    def _kill_somebody(self) -> list[Act]:
        """It is time; once the job is being ended nobody is killed any more."""
        if self.phase is not JobPhase.RUNNING:
            return []
        kill = self._kills.pop(0)
        self._await_kill()
        return [self._to_one(kill.node, Kind.KILL, {"rank": kill.rank})]

    # what agents say

    def _word(self, event: Event, now: float) -> list[Act]:
        header = event.header
        self._children.heard(event)
        acts: list[Act] = []
        viewed = self._viewing.heard(event, now) if self._viewing is not None else ()
        self.inquests.heard(event)
        match event.kind:
            case Kind.OUTPUT:
                node = self._asked.job.placements[header["rank"]].node
                acts = [Show(node, header["rank"], header["stream"], event.body)]
            case Kind.INPUT_TAKEN | Kind.INPUT_CLOSED:
                acts = [TakeInput(header.get("bytes", 0))]
            case Kind.MODEX | Kind.FETCH:
                acts = [*self._wire_up.word(event, self._asked.job.placements)]
            case Kind.FENCED if self._children.fenced(event.who):
                acts = [*self._children.tell(Kind.FENCED)]
            case Kind.FINISHED:
                host = self._hosts[header["node"]]
                host.done = header.get("known", host.known) >= host.known
            case Kind.ASK if self.phase is JobPhase.RUNNING:
                acts = self._reply(self._asked.heard(header["rank"], header, event.body))
            case Kind.AGENT_GONE:
                lost = [header["node"]] if header["alone"] else self._tree.subtree(header["node"])
                acts = self._agents_gone(lost, header["pid"], event.text)
            case kind if kind in TOLD:
                acts = self._told_news(event, now)
            case Kind.STILL if self.phase is JobPhase.RUNNING:
                acts = self._deadlocks.told(event, now)
            case _:
                acts = self._judge(event, now)
        return [*viewed, *acts, *self._see(now), *self._see_answers(now)]

    def _reply(self, replies: Iterable[Reply]) -> list[Act]:
        """To what ranks have asked; a world that comes later is everybody's business."""
        acts, placed = list[Act](), self._asked.job.placements
        for reply in replies:
            match reply:
                case Answer(rank, ask, code, body):
                    told = {"rank": rank, "ask": ask, "code": code}
                    acts.append(self._to_one(placed[rank].node, Kind.ANSWER, told, body))
                case Growth():
                    acts += self._grow(reply)
                case Discarded():
                    acts += self._discard(reply.world)
        return acts

    def _discard(self, world: JobWorld) -> list[Act]:
        """It is not to be: its ranks are ended, and nobody waits for them."""
        self.verdict.discarded(world)
        for rank in range(world.first, world.first + world.size):
            self.news.alone.add(rank)
            self._deadlocks.gone(rank)
        return [*self._children.tell(Kind.DISCARD, {"first": world.first, "size": world.size})]

    def _grow(self, growth: Growth) -> list[Act]:
        """Ranks are added."""
        job, world, expendable = growth
        self.verdict.add_world_of(job)
        placements = job.placements[world.first :]
        for placement in placements:
            self._hosts[placement.node].expects(len(job.placements))
        told = {"first": world.first, "nodes": runs_of(p.node for p in placements)}
        told |= {"expendable": ranges_of(expendable)} if expendable else {}
        return [Widen(job), *self._children.tell(Kind.GROW, told, packed_world(job, world))]

    def _told_news(self, event: Event, now: float) -> list[Act]:
        """What became of faults, paths and rails, what was counted, and who leaves."""
        match event.kind:
            case Kind.LEFT:
                if self._children.collect_leaving(event) and self.phase is not JobPhase.OVER:
                    self._agenda.set(Moment.LEAVING, now + LEAVING)
            case Kind.FAULTS:
                self.news.faults.told(event.header["rank"], event.header["delivered"])
            case Kind.UNREACHABLE:
                if self._rules.survives:
                    self._cuts.add((event.header["rank"], event.header["peer"]))
                    self._agenda.set(Moment.CUT, now + CUT_PATIENCE)
            case Kind.COUNTED:
                self.news.counted[event.header["rank"]] = dict(event.header["values"])
            case Kind.PATHS:  # of an ending job they tell of ranks that were ended
                if self.phase is not JobPhase.ENDING and self.news.path(event):
                    self._agenda.set(Moment.PATHS, now + COLLECTING)
            case _:
                return self.news.rail(event)
        return []

    def _judge(self, event: Event, now: float) -> list[Act]:
        """What bears on the exit code."""
        header, verdict = event.header, self.verdict
        if event.kind in ENDS:
            early = self._ended_early(event)
            if early is not None:
                return early
        match event.kind:
            case Kind.STARTED:
                verdict.started(header["rank"], header["pid"])
                return self.news.bound(header, self._asked.job)
            case Kind.STAGE:
                return self._advanced(header, now)
            case Kind.UNSTARTED:
                return self._unstarted(event)
            case Kind.EXITED:
                if self.phase in {JobPhase.RUNNING, JobPhase.RELEASED}:
                    self.news.alone.add(header["rank"])
                gone = self._reply(self._asked.gone(header["rank"]))
                return [*self._exited(header), *self._wire_up.departed(event), *gone]
            case Kind.LOST:
                verdict.lost(header["rank"], header["pid"])
            case Kind.ABORTED:
                verdict.aborted(header["rank"], header["pid"], header["code"], event.text)
        return []

    def _advanced(self, header: Mapping[str, Any], now: float) -> list[Act]:
        """A rank got further; with those of a later world it may be the last to come."""
        rank, stage = header["rank"], Stage(header["stage"])
        if stage is Stage.FINALIZED:
            self._deadlocks.gone(rank)
        self.verdict.advanced(rank, stage, header.get("calls"))
        if self._kills and stage is Stage.INITIALIZED:
            self._look_whether_up(now)
        if stage is not Stage.ATTACHED or self.phase is not JobPhase.RUNNING:
            return []
        return self._reply(self._asked.attached(rank))

    def _ended_early(self, event: Event) -> list[Act] | None:
        """The end of a rank whose world is being made, and so is not to be. None: of another."""
        rank = event.header["rank"]
        if self.verdict.is_discarded(rank):
            return []
        if self.phase is not JobPhase.RUNNING:
            return None
        why = event.header.get("reason") or event.text or "its MPI process went"
        found = self._asked.ended(rank, why)
        return None if found is None else self._reply(found)

    def _unstarted(self, event: Event) -> list[Act]:
        """A rank could not be started; of a later world its root is told, and the job goes on."""
        rank = event.header["rank"]
        found = self._asked.unstarted(rank, event.text)
        if found is not None:
            return self._reply(found)
        self.verdict.unstarted(rank, event.header["code"], event.text)
        return []

    def _exited(self, header: Mapping[str, Any]) -> list[Act]:
        """A rank has ended; one that the others can do without is only told of."""
        rank, expendable = header["rank"], header["expendable"]
        self._deadlocks.gone(rank)
        self.verdict.exited(rank, header["status"], expendable=expendable)
        if not expendable or header["stage"] == Stage.FINALIZED or not self._may_ask():
            return []
        text = f"rank {rank} {header['reason']}; the job goes on without it."
        return said("rank lost", [text], "warning", rank=rank)

    def _child_gone(self, node: int, reason: str, now: float) -> list[Act]:
        acts: list[Act] = []
        if self._children.gone(node):
            below, pid = self._tree.subtree(node), self._children.pid(node)
            acts = self._agents_gone(below, pid, reason)
        return [*acts, *self._see(now)]

    def _agents_gone(self, nodes: list[int], pid: int, reason: str) -> list[Act]:
        """An agent is not there any longer, nor are those below: nothing will be heard of them.

        Args:
            nodes: its own and theirs.
            pid: its own.
            reason: what is known of it; may be empty.
        """
        lost = [host for host in map(self._hosts.__getitem__, nodes) if not host.done]
        for host in lost:
            host.done = True
        if lost and self._rules.survives and self.phase is JobPhase.RUNNING:
            gone = {host.node for host in lost}
            acts = self._reply(self._asked.lose_hosts(gone))  # who was to come is not waited for
            left = self._left_on(gone)
            if self._can_go_on_without(left):
                return [*acts, *self._go_on_without(lost, left)]
        if lost:
            below = [host.name for host in lost if host.node != nodes[0]]
            self.verdict.agent_lost(self._hosts[nodes[0]].name, pid, reason, below)
        return []

    def _end_cut_off(self) -> list[Act]:
        """Ranks that others do not reach have to go: who agrees counts on it that all do."""
        living, acts, placed = set(self.verdict.in_mpi), list[Act](), self._asked.job.placements
        cuts, self._cuts = self._cuts, set()
        for rank, others in cut_off(cuts, living) if self.phase is JobPhase.RUNNING else ():
            living.discard(rank)
            node = placed[rank].node
            acts.append(self._to_one(node, Kind.KILL, {"rank": rank}))
            if not any(placed[other].node == node for other in living):  # it is the host
                acts += self._reply(self._asked.lose_hosts([node]))
            text = f"no path is left between rank {rank} and {ranks_in_words(others)}: it is ended."
            acts += said("rank cut off", [] if self._rules.quiet else [text], "warning", rank=rank)
        return acts

    def _left_on(self, nodes: set[int]) -> list[int]:
        """The ranks there that have not ended."""
        placed = (p.rank for p in self._asked.job.placements if p.node in nodes)
        return [rank for rank in placed if not self.verdict.has_ended(rank)]

    def _can_go_on_without(self, ranks: list[int]) -> bool:
        """Whether the job may lose these ranks: wire-up waits for who is not in MPI yet."""
        others = any(not host.done for host in self._hosts)
        return others and all(self.verdict.is_in_mpi(rank) for rank in ranks)

    def _go_on_without(self, lost: list[Host], ranks: list[int]) -> list[Act]:
        """Hosts are lost with their ranks, and the others are told so."""
        acts: list[Act] = [*self._children.leaving()]
        for rank in ranks:
            name = self._hosts[self._asked.job.placements[rank].node].name
            dead = self.verdict.exited(rank, 0, expendable=True)
            self.news.alone.add(rank)
            told = {"rank": rank, "finalized": True, "dead": dead}
            why = f"was on {name}, which is lost"
            acts += self._children.tell(Kind.DEPARTED, told, why.encode())
            acts += self._reply(self._asked.gone(rank))
        if not self._rules.quiet:
            names = ", ".join(host.name for host in lost)
            whom = f" with {ranks_in_words(ranks)}" if ranks else ""
            text = f"{names} is lost{whom}; the job goes on without."
            acts += said("host lost", [text], "warning", ranks=ranks)
        return acts

    # output, input, signals

    def _stream(self, event: Event, now: float) -> list[Act]:
        match event.what:
            case Seen.INQUIRED:
                return self._inquired(event, now)
            case Seen.WRITTEN:
                return self._written(event.header["node"], event.header["bytes"])
            case Seen.READ:
                node = self._asked.job.placements[self._asked.job.stdin_rank].node
                kind = Kind.INPUT if event.body else Kind.INPUT_END
                return [self._to_one(node, kind, NOTHING, event.body)]
            case Seen.BROKEN if event.who == 1:  # without standard error the job goes on
                self.verdict.output_broken(event.text)
                return self._see(now)
            case Seen.IDLE if self.phase is JobPhase.CLOSING:
                return self._stop()
        return []

    def _inquired(self, event: Event, now: float) -> list[Act]:
        """Somebody watches the job. What serves him is imported with the first question."""
        if self._viewing is None:
            from ompy.runtime.machines.launcher.viewing import Viewing

            tell, numbers = self._children.tell, self.inquests.numbers
            self._viewing = Viewing(self._asked, self.verdict, self.news, tell, numbers)
        phase, age_s = self.phase, now - self._began
        return self._viewing.inquired(event.who, event.header, now, phase=phase, age_s=age_s)

    def _written(self, node: int, count: int) -> list[Act]:
        credit = self._hosts[node].written(count)
        return [self._to_one(node, Kind.CREDIT, {"bytes": credit})] if credit else []

    def _to_one(self, node: int, kind: Kind, header: Mapping[str, Any], body: bytes = b"") -> Send:
        return Send(self._tree.child_towards(node), kind, {**header, "to": node}, body)

    def _signal(self, number: int, but: frozenset[int] = frozenset()) -> list[Act]:
        told = {"signal": number} | ({"but": sorted(but)} if but else {})
        return [*self._children.tell(Kind.SIGNAL, told)]

    def _forward(self, number: int, now: float) -> list[Act]:
        """A signal for programs; SIGUSR1 asks those that have no use for it how they stand."""
        if number != USER_1 or not self._may_ask():
            return self._signal(number)
        return self.inquests.begin_inquest(SIGNAL, self.verdict.in_mpi, now)

    def _may_ask(self) -> bool:
        """Whether there are ranks to be asked how they stand, and somebody to be told."""
        running = self.phase is JobPhase.RUNNING and not self._rules.quiet
        return running and bool(self.verdict.in_mpi)

    def _see_answers(self, now: float, *, late: bool = False) -> list[Act]:
        """Tell how ranks stand once all have said it, or have had the time to, and go on."""
        over = self.inquests.take_inquest(now if late else None)
        if over is None:
            return []
        acts = self.inquests.tell_users(over)
        ends = self.phase is JobPhase.ASKING
        return acts + (self._end(now) if ends else self._signal(USER_1, over.reporting))

    def _told(self, number: int, now: float) -> list[Act]:
        """A signal ends the job; of a second one nothing is waited for."""
        if self._told_to_end:
            return self._stop()
        self._told_to_end = True
        self.verdict.signalled(number)
        return self._ask_first(INTERRUPTED, now) if number == INTERRUPT else self._see(now)

    def _ask_first(self, why: str, now: float) -> list[Act]:
        """End the job, but first let the ranks say how they stand."""
        if not self._may_ask():
            return self._see(now)
        self.phase = JobPhase.ASKING
        return self.inquests.begin_inquest(why, self.verdict.in_mpi, now)

    # the end

    def _time(self, now: float) -> list[Act]:
        acts: list[Act] = []
        said_here, silent = self._children.time(now)
        acts += said_here
        for node, reason in silent:
            below, pid = self._tree.subtree(node), self._children.pid(node)
            acts += self._agents_gone(below, pid, reason)
        for moment in self._agenda.take(now):
            acts += self._come(moment, now)
        acts += self._deadlocks.turn(now)
        acts += self._viewing.turn(now) if self._viewing is not None else []
        return [*acts, *self._see(now), *self._see_answers(now, late=True)]

    def _come(self, moment: Moment, now: float) -> list[Act]:
        """Something waited for has come, or has not."""
        quiet = self._rules.quiet
        acts = self.news.lost_paths(quiet=quiet) if moment is Moment.PATHS else []
        match moment:
            case Moment.TIMEOUT:
                self.verdict.timed_out(self._rules.timeout_s, self._rules.timeout_source)
                acts = self._ask_first(TIMEOUT, now)
            case Moment.GIVE_UP:
                acts = self._finish()
            case Moment.KILL:
                acts = self._kill_somebody()
            case Moment.CUT:
                acts = self._end_cut_off()
            case Moment.LEAVING:
                acts = [*self._children.leaving()]
        return acts

    def _see(self, now: float) -> list[Act]:
        """Whether the job has to be ended, or has ended."""
        if all(host.done for host in self._hosts):
            return self._finish()
        if self._deadlocks.failure is not None:
            self.verdict.failed(self._deadlocks.failure)
        if self.verdict.failure is not None and self.phase is JobPhase.RUNNING:
            return self._end(now)
        return []

    def _end(self, now: float) -> list[Act]:
        """Have the agents end their ranks."""
        assert self.phase in {JobPhase.RUNNING, JobPhase.ASKING}, self.phase
        self.phase = JobPhase.ENDING
        self._deadlocks.stop()
        self.inquests.stop_inquest()
        grace_ms = self._rules.grace_ms
        self._agenda.set(Moment.GIVE_UP, now + grace_ms / 1000 + PATIENCE)
        return [*self._children.tell(Kind.END, {"grace_ms": grace_ms})]

    def _finish(self) -> list[Act]:
        """No agent has processes left, or answers: say how it went."""
        if self.phase in {JobPhase.CLOSING, JobPhase.OVER}:
            return []
        self.phase = JobPhase.CLOSING
        for moment in Moment:
            self._agenda.drop(moment)
        self._deadlocks.stop()
        self.inquests.stop_inquest()
        rules, failure = self._rules, self.verdict.failure
        acts: list[Act] = [TakeInput(0), Sweep(), CloseView(failed=failure is not None)]
        acts += self.news.lost_paths(quiet=rules.quiet)
        if failure is not None:
            text = "" if rules.quiet else failure_block(failure)
            acts.append(Find(Finding("job failed", text, "error", fields_of(failure))))
        acts += self.news.delivered(strict=rules.fault_strict, quiet=rules.quiet)
        acts += self.news.performance()
        shown = rules.display_rails and not rules.quiet
        return [*acts, ReportRails(self.news.rails.lines(self.verdict.dead) if shown else [])]

    def _stop(self) -> list[Act]:
        self.phase = JobPhase.OVER
        self._agenda.clear()
        self.inquests.stop_inquest()
        return [Stop()]
