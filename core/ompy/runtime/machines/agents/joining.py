"""An agent of passive mode, its rows: ranks come by themselves, and so does it to a coordinator.

Another launcher has started the ranks, and ends them; it may take the host down as soon as they
have ended. So this agent first gathers them, then looks for the coordinator, and lets none out of
`MPI_Finalize` before all of the job are in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

from ompy.data.errors import ERR_UNSUPPORTED_OPERATION
from ompy.runtime.connections.control import Kind
from ompy.runtime.machines.acts import (
    Adopt,
    CancelStep,
    Hang,
    Keep,
    Kill,
    Meet,
    Say,
    TakeMeeting,
    Terminate,
    ToRank,
    TurnAway,
    WatchTasks,
)
from ompy.runtime.machines.agents.agent import WAITING_BEAT, Beat, Moment, RanksAgent
from ompy.runtime.machines.agents.agent_table import PASSIVE, AgentPhase, Table
from ompy.runtime.machines.agents.local_ranks import LocalRanks, RankLife
from ompy.runtime.machines.events import Event, Seen

GRACE_MS: Final = 1000  # reference openmpi.md 2.4.2; before the coordinator has said another
OVERDUE: Final = 30.0  # s; arbitrary: hosts of one job rarely start so far apart
NOBODY: Final = 3.0  # s; arbitrary: who started us connects at once, and starts another if not
ORPHAN_GRACE: Final = 0.2  # s; arbitrary: for a rank that is on its way out, which tells more
LINGER: Final = 2.0  # s; arbitrary: how long ranks that come late are told that the job has failed
FAILED: Final = 1  # exit code of ranks that cannot be brought up


class Step(NamedTuple):
    """What another launcher has said of the job.

    Attributes:
        launcher: its name, for messages.
        size: processes of the job.
        local_size: how many of them are on this host.
        meeting: name of the host with the coordinator; empty when there is one host.
        leads: whether this is that host; None when the host of rank 0 is.
        host: name of this one.
        watched: tasks that end before they come can be noticed.
        orphans: ranks whose starter goes are left alone by the launcher.
    """

    launcher: str
    size: int
    local_size: int
    meeting: str
    leads: bool | None
    host: str
    watched: bool = False
    orphans: bool = False


class _WaitingRank(NamedTuple):
    who: int
    rank: RankLife
    local_rank: int
    hello: Mapping[str, Any]


class JoiningMachine(RanksAgent):
    """The agent of one host, from its first rank to its last."""

    table: ClassVar[Table] = PASSIVE
    first: ClassVar[AgentPhase] = AgentPhase.GATHERING

    def __init__(self, step: Step) -> None:
        """Nobody has come.

        Args:
            step: what the variables of its first rank say.
        """
        super().__init__(-1, Beat(0, 0))
        self._step = step
        self._waiting: dict[int, _WaitingRank] = {}
        self._ranks = LocalRanks((), (), -1, several=bool(step.meeting), released=False)
        self._running: set[int] = set()  # ranks whose process has not ended
        self._came: set[int] = set()
        self._aborting: RankLife | None = None
        self._linked = False
        self._needed = False  # the coordinator is here, and not done
        self._grace_ms = GRACE_MS
        self._code = FAILED

    def _check(self) -> None:
        super()._check()
        count, phase = len(self._waiting), self.phase
        if phase is AgentPhase.GATHERING:
            assert count < self._step.local_size, "all are here: the coordinator is looked for"
        elif phase in {AgentPhase.MEETING, AgentPhase.WAITING}:
            assert count == self._step.local_size, "one that goes ends the job"
        else:
            assert not count, f"{phase}: who has come is served or turned away"
        needs = phase in {AgentPhase.WAITING, AgentPhase.RUNNING}
        assert self._linked or not needs, f"{phase}, and there is no coordinator"

    def _happened(self, event: Event) -> None:
        match event.what:
            case Seen.BEGUN:
                self._later(Moment.NOBODY, NOBODY)
                self._later(Moment.OVERDUE, OVERDUE)
            case Seen.CAME:
                self._came_by(event.who, event.header)
            case Seen.ABOVE:
                self._obey(event)
            case Seen.RANK:
                self._said(event)
            case Seen.ATTACHED:
                self._attached(event)
            case Seen.MET:
                self._met(leads=event.header["leads"])
            case Seen.COORDINATED:
                self._needed = False
                self._see()
            case Seen.UNMET:
                self._needed = False
                if self.phase is AgentPhase.MEETING:
                    self._do(Say(f"host {self._step.host}: {event.text}"))
                    self._end(FAILED)
            case _:
                self._gone(event)

    def _gone(self, event: Event) -> None:
        """Something is not there any longer."""
        match event.what:
            case Seen.CLIENT_GONE:
                self._client_gone(event.who)
            case Seen.STARTER_GONE:
                self._starter_gone(event.who)
            case Seen.EXITED:
                self._running.discard(event.who)
                self._see()
            case Seen.MISSING:
                if self.phase in {AgentPhase.GATHERING, AgentPhase.MEETING}:
                    self._do(Say(event.text), CancelStep())
                    self._end(FAILED)
            case Seen.PARENT_GONE:
                self._coordinator_gone(event.text)

    # ranks of this host come

    def _came_by(self, who: int, hello: Mapping[str, Any]) -> None:
        """Keep it until all ranks are here. One that is late for this job is another's."""
        number, step = hello["rank"], self._step
        self._came.add(number)
        here = self._ranks.get(number)
        if self.phase is AgentPhase.ENDING:
            self._do(TurnAway(who, self._code))
            self._see()
        elif self.phase is AgentPhase.RELEASED or (here is not None and not here.here):
            self._do(TurnAway(who))  # it tries again, and then finds the agent of its own job
        elif number in self._waiting or here is not None:
            text = f"rank {number} is another process already: one may use MPI"
            self._do(TurnAway(who, FAILED, text))
        elif self.phase is not AgentPhase.GATHERING:
            text = (
                f"{step.launcher} said that {step.local_size} ranks are on this host, and they are "
                f"here without rank {number}"
            )
            self._do(TurnAway(who, FAILED, text))
        else:
            self._keep(who, number, hello)

    def _keep(self, who: int, number: int, hello: Mapping[str, Any]) -> None:
        if not self._waiting and self._step.watched:
            self._do(WatchTasks())
        rank = RankLife(number)
        rank.client_pid = hello["pid"]
        self._waiting[number] = _WaitingRank(who, rank, hello["local_rank"], hello)
        starter = hello["parent"] if self._step.orphans else 0
        self._do(Keep(who, number, starter))
        if len(self._waiting) == self._step.local_size:
            self.phase = AgentPhase.MEETING
            self._meet()

    def _meet(self) -> None:
        """Get the job from the coordinator, which may be here."""
        waiting = self._waiting.values()
        ranks = [
            [one.rank.number, one.local_rank, one.rank.client_pid, one.hello["argv"]]
            for one in waiting
        ]
        cores = len({core for one in waiting for core in one.hello["cores"]})
        leads = 0 in self._waiting if self._step.leads is None else self._step.leads
        self._needed = leads
        self._do(Meet(leads, {"host": self._step.host, "ranks": ranks, "cores": cores}))

    def _client_gone(self, number: int) -> None:
        if number in self._waiting:  # it says nothing before it is admitted: this is its end
            del self._waiting[number]
            if self.phase is not AgentPhase.ENDING:
                said = f"rank {number} ended while it waited for the others to begin MPI"
                self._do(Say(said))
                self._end(FAILED)
            self._see()
            return
        rank = self._ranks.get(number)
        if rank is not None:
            rank.here = False
            if self.phase is AgentPhase.RUNNING and rank is not self._aborting:
                self._up(Kind.LOST, rank=number, pid=rank.client_pid)

    def _starter_gone(self, number: int) -> None:
        """Slurm leaves tasks alone when their step daemon is killed; others start by hand."""
        if self.phase is AgentPhase.RUNNING and number in self._running:
            self._later(Moment.ORPHAN, ORPHAN_GRACE, number)
        elif number in self._waiting and self.phase is not AgentPhase.ENDING:
            text = f"the process that started rank {number} is gone; its host ends its ranks"
            self._do(Say(text))
            self._end(FAILED)

    # the coordinator

    def _met(self, *, leads: bool) -> None:
        take = self.phase is AgentPhase.MEETING
        self._do(TakeMeeting(take))
        if take:
            self.phase = AgentPhase.WAITING
            self._linked = True
            if not leads:
                self._beat = WAITING_BEAT
                self._begin_heartbeats()
        self._needed = leads

    def _obey(self, event: Event) -> None:
        """What the coordinator says."""
        match event.kind:
            case Kind.START:
                if self.phase is AgentPhase.WAITING:
                    self._start(event)
            case Kind.FINISHED:
                if self.phase is AgentPhase.RUNNING:
                    self.phase = AgentPhase.RELEASED
                self._ranks.release()
                self._acts += self._ranks.take()
                self._see()
            case Kind.END:
                self._end(event.header["code"])
            case Kind.STAND:
                told = {"question": event.header["question"]}
                asked = (rank for rank in event.header["ranks"] if rank in self._running)
                self._do(*(ToRank(rank, Kind.STAND, told) for rank in asked))
            case _:
                self._elsewhere(event)

    def _start(self, event: Event) -> None:
        """All are here: the ranks of this host get to know their job."""
        self.phase = AgentPhase.RUNNING
        header, step = event.header, self._step
        self._grace_ms = header["grace_ms"]
        ranks = [one.rank for one in self._waiting.values()]
        hosts = [placed["node"] for placed in json.loads(event.body)["placements"]]
        several = bool(step.meeting)
        self._ranks = LocalRanks(ranks, hosts, header["node"], several=several, released=False)
        self._running = set(self._waiting)
        self._waiting.clear()
        self._pulse = None
        self._beat = Beat(header["heartbeat_ms"] / 1000, header["heartbeat_misses"])
        self._begin_heartbeats()
        self._do(Adopt(event.body))

    def _coordinator_gone(self, reason: str) -> None:
        """Its host may be taken down as soon as all are released."""
        self._linked = False
        self._pulse = None
        if self.phase not in {AgentPhase.RELEASED, AgentPhase.ENDING}:
            where = self._step.meeting or "this host"
            why = f": {reason}" if reason else ""
            said = f"the job's coordinator on host {where} is gone{why}; host {self._step.host} "
            self._do(Say(f"{said}ends its ranks"))
            if self.phase is AgentPhase.WAITING and self._step.watched:
                self._do(CancelStep())  # hosts that still look for it can be told by nobody else
            self._end(FAILED)

    def _parent_silent(self) -> None:
        self._do(TakeMeeting(take=False))
        self._coordinator_gone("nothing was heard of it")

    def _aborted(self, rank: RankLife, code: int, reason: bytes) -> None:
        """A rank ends the job; it may end with its own code."""
        if self._aborting is None:
            self._aborting = rank
            self._up(Kind.ABORTED, reason, rank=rank.number, pid=rank.client_pid, code=code)

    def _asked(self, event: Event) -> None:
        text = (
            f"{self._step.launcher} has started this job, and starts no more processes of it: "
            "start the program with ompy-run, in the same allocation"
        )
        told = {"ask": event.header["ask"], "code": ERR_UNSUPPORTED_OPERATION}
        self._do(ToRank(event.who, Kind.ANSWER, told, text.encode()))

    # the end

    def _see(self) -> None:
        """Whether nobody of this host is left, and nobody needs the coordinator here."""
        over = self.phase in {AgentPhase.RELEASED, AgentPhase.ENDING}
        if not over or self._running or self._waiting:
            return
        if self._linked:
            self._up(Kind.FINISHED)
        if len(self._came) >= self._step.local_size and not self._needed:
            self._stop()

    def _end(self, code: int) -> None:
        """End the ranks of this host: SIGTERM, and SIGKILL to what is left after the grace."""
        if self.phase is AgentPhase.ENDING:
            return
        self.phase, self._code = AgentPhase.ENDING, code
        for one in self._waiting.values():
            self._do(TurnAway(one.who, code))  # the reason has been told
        self._waiting.clear()
        but = -1
        if self._aborting is not None:
            but = self._aborting.number
            if self._aborting.here:
                self._aborting.here = False
                self._do(Hang(but))  # so it ends, with its own code
        self._do(Terminate(but))
        self._later(Moment.KILL, self._grace_ms / 1000)
        # then what is left dies by its lifeline
        self._later(Moment.LINGER, self._grace_ms / 1000 + LINGER)
        self._see()

    def _come(self, moment: Moment, rank: int) -> None:
        match moment:
            case Moment.NOBODY:
                if not self._came:
                    self._stop()
            case Moment.OVERDUE:
                if self.phase is AgentPhase.GATHERING:
                    count = self._step.local_size - len(self._waiting)
                    host = f"host {self._step.host} have not begun MPI after {OVERDUE:g} s"
                    self._do(Say(f"{count} ranks of {host}; it waits"))
            case Moment.ORPHAN:
                self._up(Kind.LOST, rank=rank, pid=self._ranks[rank].client_pid, orphan=True)
            case Moment.KILL:
                but = self._aborting.number if self._aborting is not None else -1
                self._do(Kill(but))
            case Moment.LINGER:
                self._stop()
            case _:
                super()._come(moment, rank)
