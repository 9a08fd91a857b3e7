"""The ranks of one host, as its agent's machine knows them: wire-up, stages, news of departures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from ompy.data.errors import ERR_PROC_FAILED, ERR_RANK
from ompy.frameworks.fault_tolerance.departures import FINALIZED
from ompy.runtime.connections.control import Kind
from ompy.runtime.connections.modex import Answer, ModexStore, bundle
from ompy.runtime.machines.acts import PARENT, Act, Admit, Send, ToRank
from ompy.runtime.machines.events import NOTHING, Event
from ompy.runtime.machines.leave_news import LeavingNews, News, for_rank, pack_news
from ompy.runtime.machines.stages import Stage

STAGES: Final = tuple(Stage)  # in the order in which a rank comes to them


class RankLife:
    """A rank of this host.

    Attributes:
        number: in the world.
        pid: of the process that was started, which may be a wrapper; 0 where another launcher did.
        client_pid: of the MPI process, 0 while there is none.
        here: that is connected.
        stage: how far it has come.
        expendable: the job goes on if it ends before it has finalized.
        calls: the account of its collective calls (`call_account.py`), once it has finalized.
        status: as `os.waitstatus_to_exitcode` has it; None while it runs, or if it is unknown.
    """

    __slots__ = ("calls", "client_pid", "expendable", "here", "number", "pid", "stage", "status")

    def __init__(self, number: int, pid: int = 0) -> None:
        self.number = number
        self.pid = pid
        self.client_pid = 0
        self.here = False
        self.stage = Stage.STARTED
        self.expendable = False
        self.calls: Mapping[str, Any] = {}
        self.status: int | None = None

    def how_it_went(self) -> str:
        """Why a rank that has exited cannot be reached, to follow its name."""
        status = self.status or 0
        if self.stage is Stage.FINALIZED and not status:
            return "has finalized and ended"
        how = f"was killed by signal {-status}" if status < 0 else f"ended with exit code {status}"
        early = self.stage in {Stage.STARTED, Stage.ATTACHED}
        return f"{how} before it initialized MPI" if early else how


class LocalRanks:
    """What they have said, and who waits for what.

    Attributes:
        acts: what is to be done; the machine takes it.
        released: `MPI_Finalize` need not wait for the rest of the job.
    """

    def __init__(
        self,
        ranks: Iterable[RankLife],
        hosts: Iterable[int],
        node: int,
        *,
        several: bool,
        released: bool = True,
    ) -> None:
        """Nothing has been said.

        Args:
            ranks: of this host.
            hosts: index of the host of each process of the job.
            node: index of this one.
            several: there are other hosts, which need the news.
            released: see above.
        """
        self._ranks = {rank.number: rank for rank in ranks}
        self._hosts = list(hosts)
        self._several = several
        self._node = node
        self._modex = ModexStore(frozenset(self._ranks), self._hosts, node)
        self._news = LeavingNews()
        self._told_done: set[int] = set()  # whom the other hosts know to have finalized
        self._commits: dict[int, bytes] = {}  # which the other hosts were not told yet
        self._committed: set[int] = set()  # ranks of this host that have, once at least
        self._finalizing: list[tuple[int, int]] = []  # calls that wait for the rest of the job
        self._dead: set[int] = set()
        self._left: dict[int, tuple[int, bool, Any]] = {}  # what was told of ranks that leave
        self.acts: list[Act] = []
        self.released = released

    def __iter__(self) -> Iterable[RankLife]:
        return iter(self._ranks.values())

    def __getitem__(self, number: int) -> RankLife:
        return self._ranks[number]

    def get(self, number: int) -> RankLife | None:
        """One of this host, or None."""
        return self._ranks.get(number)

    def add_rank(self, rank: RankLife) -> None:
        """One of a world that came later."""
        assert rank.number not in self._ranks, f"rank {rank.number} is here already"
        self._ranks[rank.number] = rank

    @property
    def size(self) -> int:
        """Processes of the job."""
        return len(self._hosts)

    def grow(self, first: int, hosts: Iterable[int]) -> None:
        """The job has more processes, from number `first` on, on these hosts."""
        assert first == self.size, f"a job of {self.size} processes grows at {first}"
        self._hosts += hosts

    def take(self) -> list[Act]:
        """What is to be done, once."""
        acts, self.acts = self.acts, []
        return acts

    def up(self, kind: Kind, header: Mapping[str, Any] = NOTHING, body: bytes = b"") -> None:
        """Tell the parent."""
        self.acts.append(Send(PARENT, kind, header, body))

    def _say(
        self, rank: RankLife, kind: Kind, header: Mapping[str, Any], body: bytes = b""
    ) -> None:
        if rank.here:
            self.acts.append(ToRank(rank.number, kind, header, body))

    # what ranks say

    def attached(self, rank: RankLife, pid: int) -> None:
        """An MPI process has made itself known as this rank."""
        rank.client_pid, rank.here = pid, True
        self.acts.append(Admit(rank.number))
        theirs = for_rank(list(self._left.values()), rank.number)
        if theirs:
            self._say(rank, Kind.LEFT, NOTHING, pack_news(theirs))
        for departed, reason in self._modex.departed.items():
            told = {"rank": departed, "dead": departed in self._dead}
            self._say(rank, Kind.DEPARTED, told, reason.encode())
        self.advance(rank, Stage.ATTACHED)

    def advance(self, rank: RankLife, stage: Stage) -> None:
        """A rank has reached another stage."""
        later = STAGES.index(stage) >= STAGES.index(rank.stage)
        assert later or rank.expendable, f"rank {rank.number} was {rank.stage} and is {stage}"
        rank.stage = stage
        said = {"rank": rank.number, "stage": stage, "calls": rank.calls}
        self.up(Kind.STAGE, said)

    def word(self, event: Event) -> bool:
        """A word of a rank that concerns the wire-up or its leaving.

        Returns:
            Whether news for the other hosts begin to be collected by it.
        """
        rank, header = self._ranks[event.who], event.header
        match event.kind:
            case Kind.COMMIT:
                return self._commit(rank, header["call"], event.body)
            case Kind.LOOKUP:
                self._lookup(rank, header["call"], header["rank"])
            case Kind.FENCE:
                self._fence(rank, header["call"])
            case Kind.EXPENDABLE:
                rank.expendable = header["on"]
            case Kind.LEAVING:
                return self._news.begun(rank.number, header["told"])
            case Kind.FINALIZED:
                rank.calls = header.get("calls") or {}
                first = self._news.finalized(rank.number)
                self.advance(rank, Stage.FINALIZED)
                self._finalizing.append((rank.number, header["call"]))
                if self.released:
                    self.release()
                return first
            case _:
                raise AssertionError(f"{event} is no word of these")
        return False

    def _commit(self, rank: RankLife, call: int, packed: bytes) -> bool:
        if rank.stage is Stage.ATTACHED:
            self.advance(rank, Stage.INITIALIZED)
        self._modex.commit(rank.number, packed)
        self._say(rank, Kind.REPLY, {"call": call})
        if not self._several:
            return False
        first = not self._commits
        self._commits[rank.number] = packed
        self._committed.add(rank.number)
        if self._committed >= self._ranks.keys():
            self.pass_commits_on()  # nobody is to be waited for
            return False
        return first

    def pass_commits_on(self) -> None:
        """Tell the launcher, in one word, what ranks of this host have committed."""
        if self._commits:
            self.up(Kind.MODEX, NOTHING, bundle(self._commits))
            self._commits.clear()

    def _lookup(self, rank: RankLife, call: int, wanted: int) -> None:
        if 0 <= wanted < self.size:
            if self._modex.lookup(wanted, self._later(rank, call, f"rank {wanted} ")):
                self.up(Kind.FETCH, {"host": self._hosts[wanted], "node": self._node})
        else:
            text = f"there is no rank {wanted} in a job of {self.size}"
            self._say(rank, Kind.REFUSED, {"call": call, "code": ERR_RANK}, text.encode())

    def _fence(self, rank: RankLife, call: int) -> None:
        answer = self._later(rank, call, "the fence cannot complete: ")
        if self._modex.fence(rank.number, answer):
            if self._several:
                self.pass_commits_on()  # whoever leaves the fence may ask for them
                self.up(Kind.FENCED)
            else:
                self._modex.fenced()

    def _later(self, rank: RankLife, call: int, subject: str) -> Answer:
        """For the modex, which answers when it can; `subject` begins a refusal."""
        return partial(self._answer, rank, call, subject)

    def _answer(
        self, rank: RankLife, call: int, subject: str, packed: bytes | None, why: str
    ) -> None:
        if packed is None:
            header = {"call": call, "code": ERR_PROC_FAILED}
            self._say(rank, Kind.REFUSED, header, (subject + why).encode())
        else:
            self._say(rank, Kind.REPLY, {"call": call}, packed)

    def release(self) -> None:
        """Nobody waits in `MPI_Finalize` any longer, nor will."""
        self.released = True
        finalizing, self._finalizing = self._finalizing, []
        for number, call in finalizing:
            self._say(self._ranks[number], Kind.REPLY, {"call": call})

    # what ranks elsewhere have come to

    def committed(self, rank: int, packed: bytes) -> None:
        """A rank of another host has."""
        self._modex.commit(rank, packed)

    def follow(self, host: int) -> None:
        """All is here that the ranks of another host have committed, and will be."""
        self._modex.follow(host)

    def fenced(self) -> None:
        """All ranks of the job are at the fence."""
        self._modex.fenced()

    def departed(self, rank: int, reason: str) -> None:
        """A rank is gone: nobody waits for what it would have published."""
        self._modex.depart(rank, reason)

    def tell_departure(self, rank: int, reason: str, *, dead: bool = False) -> None:
        """Tell the MPI processes that `rank` has gone.

        Args:
            rank: which.
            reason: how, to follow its name.
            dead: it has not finalized, and the job goes on without it.
        """
        if dead:
            self._dead.add(rank)
        for other in self._ranks.values():
            if other.number != rank:
                self._say(other, Kind.DEPARTED, {"rank": rank, "dead": dead}, reason.encode())

    def pass_news_on(self) -> None:
        """The moment in which commits and news of leaving ranks are collected is over."""
        self.pass_commits_on()
        news = self._news.take()
        if not news:
            return
        self.tell_leaving(news)
        if self._several:
            self.up(Kind.LEFT, NOTHING, pack_news(news))
            self._told_done.update(rank for rank, done, _ in news if done)

    def exited(self, rank: RankLife) -> bool:
        """The process of a rank has ended: what it said before goes to the other hosts first.

        Returns:
            Whether they know that it had finalized, and need not hear that it has ended.
        """
        if rank.stage is Stage.FINALIZED and rank.number not in self._told_done:
            self.pass_news_on()
        self.pass_commits_on()
        return rank.status == 0 and rank.number in self._told_done

    def elsewhere_leaving(self, news: News) -> None:
        """What was told of all hosts: those of this one have been told."""
        self.tell_leaving([one for one in news if one[0] not in self._ranks])

    def tell_leaving(self, news: News) -> None:
        """Tell the MPI processes that are not done themselves of ranks that finalize."""
        for one in news:
            rank, done, _ = one
            self._left[rank] = one
            if done:
                self._modex.depart(rank, FINALIZED)
        for other in self._ranks.values():
            if other.stage is not Stage.FINALIZED:
                theirs = for_rank(news, other.number)
                if theirs:
                    self._say(other, Kind.LEFT, NOTHING, pack_news(theirs))
