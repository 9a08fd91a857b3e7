"""An agent's machine: the ranks of one host, which it has started, and its parent.

`agent_table.py` has its phases and tables. A relay (`relaying.py`) and an agent of passive mode
(`joining.py`) are the same machine with other rows: they share parent, heartbeats and moments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, ClassVar, Final, NamedTuple

from ompy.frameworks.fault_tolerance.departures import in_ranges
from ompy.runtime.connections.control import Kind
from ompy.runtime.connections.modex import unbundle
from ompy.runtime.machines.acts import (
    PARENT,
    Act,
    AskRanks,
    CloseStreams,
    Credit,
    Feed,
    Grow,
    Kill,
    KillRank,
    Look,
    Reap,
    Send,
    SignalRanks,
    Stop,
    Terminate,
    ToRank,
)
from ompy.runtime.machines.agenda import Agenda, earliest
from ompy.runtime.machines.agents.agent_table import (
    REPORTS,
    STARTED_RANKS,
    WIREUP,
    WITH_BODY,
    AgentPhase,
    Table,
)
from ompy.runtime.machines.agents.local_ranks import LocalRanks, RankLife
from ompy.runtime.machines.events import Event, Seen, WrongPhase
from ompy.runtime.machines.leave_news import COLLECTING, unpack_news
from ompy.runtime.machines.pulse import Pulse
from ompy.runtime.machines.stages import Stage

RETRY: Final = (
    0.02  # s; arbitrary: how often what SIGKILL left, or forked meanwhile, is killed again
)
CAUSE_PATIENCE: Final = 1.0  # s; arbitrary: a process on its way out takes far less
LEFTOVER_GRACE_MS: Final = 200  # arbitrary: for processes of a rank that outlive it
WRAPPER_GRACE: Final = 1.0  # s; arbitrary: for a wrapper to exit after its MPI process died
ENDING_HERE: Final = b"what runs on its host is being ended"
NOT_TO_BE: Final = "is ended with its world, which has not come about"
STOPS, GOES_ON = 20, 18  # Linux SIGTSTP, SIGCONT


class Moment(Enum):
    """What an agent waits for, some of it for a rank."""

    PULSE = "the next heartbeat"
    ABORT = "no other rank turns out to be the cause of an abort"
    KILL = "processes that were asked to end do not"
    NEWS = "ranks that leave at the same time are told of together"
    WRAPPER = "the wrapper of an MPI process that has gone goes on"
    START = "nobody tells the job"
    NOBODY = "no rank comes"
    OVERDUE = "some ranks do not come"
    ORPHAN = "the process that started a rank has gone before it"
    LINGER = "ranks that come late have been told"


Name = tuple[Moment, int]
ALL: Final = -1  # no rank in particular


class Beat(NamedTuple):
    """How parent and agent let each other hear from them.

    Attributes:
        interval_s: between two; 0 for never.
        misses: turns without a word after which the parent is lost.
    """

    interval_s: float
    misses: int


# passive mode, until the parameters are known; arbitrary: a host that is down holds no job for long
WAITING_BEAT: Final = Beat(1.0, 15)


class AgentMachine:
    """One that has started the ranks of its host.

    Attributes:
        phase: where it is.
    """

    table: ClassVar[Table] = STARTED_RANKS
    first: ClassVar[AgentPhase] = AgentPhase.RUNNING

    def __init__(self, node: int, beat: Beat) -> None:
        """It knows its parent.

        Args:
            node: index of its host.
            beat: heartbeats of it and the parent.
        """
        self.phase = self.first
        self._node = node
        self._beat = beat
        self._pulse: Pulse | None = None
        self._agenda: Agenda[Name] = Agenda()
        self._acts: list[Act] = []
        self._now = 0.0

    @property
    def due(self) -> float | None:
        """When `TIME` is to be told, s; None: not by itself."""
        pulse = self._pulse.due if self._pulse is not None else None
        return earliest(self._agenda.due, pulse, self._other_due)

    @property
    def _other_due(self) -> float | None:
        return None

    def handle(self, event: Event, now: float) -> list[Act]:
        """Something has happened.

        Args:
            event: what.
            now: s of the driver's clock.

        Raises:
            WrongPhase: it cannot happen where the agent is.
        """
        before = self.phase
        pair = before, event.what, event.kind
        if pair not in self.table:
            raise WrongPhase(f"an agent that is {before.value} cannot be told: {event}")
        self._acts, self._now = [], now
        if event.what is Seen.ABOVE and self._pulse is not None:
            self._pulse.heard()
        if before is not AgentPhase.OVER:
            if event.what is Seen.TIME:
                self._time()
            else:
                self._happened(event)
        assert self.phase in self.table[pair], (pair, self.phase)
        self._check()
        return self._acts

    def _check(self) -> None:
        """What cannot be, whatever has happened."""
        if self.phase is AgentPhase.OVER:
            assert self._agenda.due is None, "nothing is waited for"
            assert self._pulse is None, "nobody is listened to"
        else:
            assert not any(isinstance(act, Stop) for act in self._acts), "who stops is over"

    def _happened(self, event: Event) -> None:
        """What is no moment."""
        match event.what:
            case Seen.BEGUN:
                self._begin_heartbeats()
            case Seen.PARENT_GONE | Seen.TOLD_TO_END:
                self._stop()

    def _do(self, *acts: Act) -> None:
        self._acts += acts

    def _up(self, kind: Kind, body: bytes = b"", /, **header: Any) -> None:
        self._do(Send(PARENT, kind, header, body))

    def _later(self, moment: Moment, seconds: float, rank: int = ALL) -> None:
        self._agenda.set((moment, rank), self._now + seconds)

    def _stop(self) -> None:
        self.phase = AgentPhase.OVER
        self._agenda.clear()
        self._pulse = None
        self._do(Stop())

    # the parent

    def _begin_heartbeats(self) -> None:
        """The parent's host may vanish without a word."""
        if self._beat.interval_s:
            self._pulse = Pulse(self._now, *self._beat, watching=True)

    def _signalled(self, number: int) -> None:
        """After SIGTSTP the launcher stops, and says nothing for a while."""
        if self._pulse is not None and number in {STOPS, GOES_ON}:
            self._pulse.watch(on=number == GOES_ON)

    def _time(self) -> None:
        pulse = self._pulse
        if pulse is not None and pulse.due is not None and pulse.due <= self._now:
            there = pulse.turn(self._now)
            self._up(Kind.ALIVE)
            if not there:
                self._parent_silent()
        for moment, rank in self._agenda.take(self._now):
            if self.phase is not AgentPhase.OVER:
                self._come(moment, rank)

    def _parent_silent(self) -> None:
        self._stop()

    def _come(self, moment: Moment, rank: int) -> None:
        """Something waited for has come, or has not."""
        raise NotImplementedError


class RanksAgent(AgentMachine):
    """An agent that serves ranks, whoever has started them."""

    _ranks: LocalRanks

    def _said(self, event: Event) -> None:
        """A rank says something."""
        rank, header = self._ranks[event.who], event.header
        if event.kind in WIREUP:
            if self._ranks.word(event):
                self._later(Moment.NEWS, COLLECTING)
            self._acts += self._ranks.take()
        elif event.kind is Kind.ASK:
            self._asked(event)
        elif event.kind in REPORTS:
            assert event.kind is not None
            body = event.body if event.kind in WITH_BODY else b""
            self._up(event.kind, body, **{**header, "rank": rank.number})
        else:
            self._aborted(rank, header["code"], event.body)

    def _aborted(self, rank: RankLife, code: int, reason: bytes) -> None:
        raise NotImplementedError

    def _asked(self, event: Event) -> None:
        """A rank wants something of the launcher."""
        raise NotImplementedError

    def _attached(self, event: Event) -> None:
        self._ranks.attached(self._ranks[event.who], event.header["pid"])
        self._acts += self._ranks.take()

    def _elsewhere(self, event: Event) -> None:
        """What ranks of other hosts have come to."""
        match event.kind:
            case Kind.MODEX:
                for rank, packed in unbundle(event.body).items():
                    self._ranks.committed(rank, packed)
                if "host" in event.header:
                    self._ranks.follow(event.header["host"])
            case Kind.FENCED:
                self._ranks.fenced()
            case Kind.LEFT:
                self._ranks.elsewhere_leaving(unpack_news(event.body))
        self._acts += self._ranks.take()

    def _come(self, moment: Moment, rank: int) -> None:
        if moment is Moment.NEWS:
            self._ranks.pass_news_on()
            self._acts += self._ranks.take()


class HostMachine(RanksAgent):
    """The agent of a host whose ranks it has started."""

    def __init__(
        self, node: int, beat: Beat, ranks: list[RankLife], hosts: Iterable[int], *, several: bool
    ) -> None:
        """They have been started.

        Args:
            node: index of the host.
            beat: heartbeats of it and the parent.
            ranks: of this host.
            hosts: index of the host of each process of the job.
            several: there are other hosts.
        """
        super().__init__(node, beat)
        self._ranks = LocalRanks(ranks, hosts, node, several=several)
        self._all = ranks
        self._begun_with = len(ranks)
        self._size_at_first = self._ranks.size
        self._abort: tuple[RankLife, int, bytes] | None = None
        self._abort_told = False
        self._expendable: list[list[int]] = []  # ranges of ranks of the world that came last
        self._discarded: set[int] = set()  # ranks of worlds that have not come about
        self._failed: dict[int, str] = {}  # why, of those the others have not been told of

    def _happened(self, event: Event) -> None:
        match event.what:
            case Seen.ABOVE:
                self._obey(event)
            case Seen.RANK:
                self._said(event)
            case Seen.ATTACHED:
                self._attached(event)
            case Seen.UNEXECUTABLE:  # its process ends by itself
                self._up(Kind.UNSTARTED, event.body, rank=event.who, code=event.header["code"])
                self._discard(event.who, 1)
            case Seen.CLIENT_GONE:
                self._client_gone(self._ranks[event.who])
            case Seen.EXITED:
                self._exited(self._ranks[event.who], event.header["status"])
            case Seen.FORKED | Seen.UNFORKED:
                self._forked(event)
            case Seen.REAPED:
                self._reaped(ended=event.header["ended"], left=event.header["left"])
            case Seen.OUTLOOK:
                self._settle(event.header["ending"])
            case _:
                super()._happened(event)

    def _check(self) -> None:
        super()._check()
        killing = (Moment.KILL, ALL) in self._agenda
        wanted = self.phase in {AgentPhase.ENDING, AgentPhase.KILLING}
        assert killing is wanted, f"{self.phase}: those that are to end are killed in the end"
        if self._abort is not None and self.phase is not AgentPhase.OVER:
            will_be = (Moment.ABORT, ALL) in self._agenda
            assert will_be or self._abort_told, "the launcher has to know of an abort"

    def _obey(self, event: Event) -> None:
        """A word of the launcher."""
        header = event.header
        match event.kind:
            case Kind.CREDIT:
                self._do(Credit(header["bytes"]))
            case Kind.INPUT | Kind.INPUT_END:
                self._do(Feed(event.body))
            case Kind.SIGNAL:
                self._do(SignalRanks(header["signal"], frozenset(header.get("but", ()))))
                self._signalled(header["signal"])
            case Kind.REPORT:
                self._do(AskRanks())
            case Kind.END:
                self._end(header["grace_ms"])
            case Kind.DEPARTED:
                self._departed_elsewhere(header, event.text)
            case Kind.GROW:
                self._grow(event)
            case Kind.DISCARD:
                self._discard_world(header["first"], header["size"])
            case Kind.KILL:
                self._lose_on_purpose(header["rank"])
            case _:
                self._tell_rank(event)

    def _tell_rank(self, event: Event) -> None:
        """A word that is for ranks of ours."""
        header = event.header
        match event.kind:
            case Kind.ANSWER:
                told = {"ask": header["ask"], "code": header["code"]}
                self._do(ToRank(header["rank"], Kind.ANSWER, told, event.body))
            case Kind.STAND:
                told = {"question": header["question"]}
                asked = (each.number for each in self._all if each.number in header["ranks"])
                self._do(*(ToRank(rank, Kind.STAND, told) for rank in asked))
            case _:
                self._elsewhere(event)

    def _lose_on_purpose(self, number: int) -> None:
        """Kill a rank, or, for -1, all there is on this host, as if it went down."""
        if self.phase is not AgentPhase.RUNNING:
            return
        for rank in self._all:
            if rank.status is None and number in {rank.number, -1}:
                self._do(KillRank(rank.number))
        if number < 0:
            self._stop()

    # worlds that come later

    def _asked(self, event: Event) -> None:
        self._up(Kind.ASK, event.body, **{**event.header, "rank": event.who})

    def _grow(self, event: Event) -> None:
        """The job has more ranks: start ours, if nobody is ending what is here."""
        first, body = event.header["first"], event.body
        hosts = [node for node, count in event.header["nodes"] for _ in range(count)]
        self._expendable = event.header.get("expendable", ())
        ours = [number for number, node in enumerate(hosts, first) if node == self._node]
        self._ranks.grow(first, hosts)
        if ours and self.phase is AgentPhase.FINISHED:
            self.phase = AgentPhase.RUNNING  # what it had is over, and this begins
        if self.phase is AgentPhase.RUNNING:
            self._do(Grow(body, tuple(ours)))
            return
        for rank in ours:
            self._up(Kind.UNSTARTED, ENDING_HERE, rank=rank, code=1)

    def _forked(self, event: Event) -> None:
        """A rank of a later world was started, or could not be."""
        if event.what is Seen.UNFORKED:
            self._up(Kind.UNSTARTED, event.body, rank=event.who, code=1)
            return
        rank = RankLife(event.who, event.header["pid"])
        rank.expendable = in_ranges(rank.number, self._expendable)
        self._all.append(rank)
        self._ranks.add_rank(rank)
        more = {"bound": event.header["bound"]} if "bound" in event.header else {}
        self._up(Kind.STARTED, rank=rank.number, pid=rank.pid, **more)

    def _discard(self, first: int, size: int, *, kill: bool = False) -> None:
        """The end of these ranks is no failure, if they are of a later world."""
        for rank in self._all[self._begun_with :]:
            if first <= rank.number < first + size and rank.status is None:
                rank.expendable, rank.stage = True, Stage.FINALIZED
                if kill:
                    self._do(KillRank(rank.number))

    def _discard_world(self, first: int, size: int) -> None:
        """It is not to be: what is here of it is killed, and nobody waits for any of it."""
        self._discard(first, size, kill=True)
        if self._abort is not None and first <= self._abort[0].number < first + size:
            self._abort, self._abort_told = None, False  # that is no end of the job
            self._agenda.drop((Moment.ABORT, ALL))
        later = range(self._size_at_first, self._ranks.size)
        for number in range(max(first, later.start), min(first + size, later.stop)):
            self._discarded.add(number)
            self._failed.pop(number, None)
            self._ranks.departed(number, NOT_TO_BE)
            self._ranks.tell_departure(number, NOT_TO_BE)
        self._acts += self._ranks.take()

    # ends of ranks

    def _client_gone(self, rank: RankLife) -> None:
        rank.here = False
        if rank.stage is not Stage.FINALIZED:
            self._later(Moment.WRAPPER, WRAPPER_GRACE, rank.number)

    def _exited(self, rank: RankLife, status: int) -> None:
        rank.status = status
        reason = rank.how_it_went()
        said = {"pid": rank.pid, "status": status, "stage": rank.stage, "reason": reason}
        known = self._ranks.exited(rank)
        self._acts += self._ranks.take()
        self._up(Kind.EXITED, rank=rank.number, expendable=rank.expendable, known=known, **said)
        done = rank.stage is Stage.FINALIZED
        dead = rank.expendable and not done
        self._departed(rank.number, reason, finalized=rank.expendable or done, dead=dead)

    def _departed_elsewhere(self, header: Mapping[str, Any], reason: str) -> None:
        rank, dead = header["rank"], header.get("dead", False)
        if self._ranks.get(rank) is None:  # else it was this agent that has told it
            self._departed(rank, reason, finalized=header["finalized"], dead=dead)

    def _departed(self, rank: int, reason: str, *, finalized: bool, dead: bool) -> None:
        """Tell the others, of a rank that failed once they have been told to end.

        They mostly have ended before they hear of it, and say nothing; who lives on because it
        handles SIGTERM waits in no call for what will not come.
        """
        if rank in self._discarded:  # they know
            return
        self._ranks.departed(rank, reason)
        if finalized or self.phase is not AgentPhase.RUNNING:
            self._ranks.tell_departure(rank, reason, dead=dead)
        else:
            self._failed[rank] = reason
        self._acts += self._ranks.take()

    def _aborted(self, rank: RankLife, code: int, reason: bytes) -> None:
        """A rank ends the job. If another is dying, that is the cause and has to come first."""
        if self._abort is None:  # what follows the first is its consequence
            self._abort = (rank, code, reason)
            self._later(Moment.ABORT, CAUSE_PATIENCE)
            self._do(Reap())
            self._look()

    def _look(self) -> None:
        finalized = (rank.number for rank in self._all if rank.stage is Stage.FINALIZED)
        self._do(Look(frozenset(finalized)))

    def _settle(self, ending: list[int]) -> None:
        """Tell the launcher who aborted, once no other rank is on its way out."""
        if self._abort is not None and not set(ending) - {self._abort[0].number}:
            self._tell_abort()

    def _tell_abort(self) -> None:
        if self._abort is not None and not self._abort_told:
            self._abort_told = True
            self._agenda.drop((Moment.ABORT, ALL))
            rank, code, reason = self._abort
            self._up(Kind.ABORTED, reason, rank=rank.number, pid=rank.client_pid, code=code)

    def _reaped(self, *, ended: bool, left: bool) -> None:
        """When nothing is left and nothing can come, this host is done."""
        if ended and self._abort is not None and not self._abort_told:
            self._look()
        if not left:
            self._finish()
        elif self.phase is AgentPhase.RUNNING and all(r.status is not None for r in self._all):
            self._end(LEFTOVER_GRACE_MS)

    # the end

    def _end(self, grace_ms: int) -> None:
        """End everything: SIGTERM, and SIGKILL to what is left after the grace."""
        if self.phase is AgentPhase.FINISHED:
            return
        if grace_ms <= 0:
            self._kill()
        elif self.phase is AgentPhase.RUNNING:
            self.phase = AgentPhase.ENDING
            self._do(Terminate())
            for rank, reason in self._failed.items():
                self._ranks.tell_departure(rank, reason)
            self._acts += self._ranks.take()
            self._later(Moment.KILL, grace_ms / 1000)

    def _kill(self) -> None:
        self.phase = AgentPhase.KILLING
        self._do(Kill())
        self._later(Moment.KILL, RETRY)

    def _finish(self) -> None:
        """No process is left: send the rest of the output and wait for the launcher to go."""
        if self.phase is not AgentPhase.FINISHED:
            self.phase = AgentPhase.FINISHED
            self._agenda.drop((Moment.KILL, ALL))
            self._tell_abort()
            self._do(CloseStreams())
            self._up(Kind.FINISHED, node=self._node, known=self._ranks.size)

    def _come(self, moment: Moment, rank: int) -> None:
        match moment:
            case Moment.ABORT:
                self._tell_abort()
            case Moment.KILL:
                self._kill()
            case Moment.WRAPPER:
                one = self._ranks[rank]
                if one.status is None and one.stage is Stage.INITIALIZED:
                    self._up(Kind.LOST, rank=rank, pid=one.client_pid)
            case _:
                super()._come(moment, rank)
