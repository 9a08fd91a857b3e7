"""Members that revoke, agree and shrink while they die, without sockets, threads or an engine.

`Recovery`, `Channel`, `Consensus`, `FlagAgreement`, the steps of `Shrink` and the agreement on a
context id are the product's. What stands in for the rest is small: an engine that keeps what is to
be done later, a PML that puts messages on wires between each two members. So a world takes about a
millisecond, and the scheduler may take any order: whichever wire's next message, whichever news of
a death, whichever member goes on.

A member is killed in a step: of what it would send in it a first part gets out. What the dead have
sent arrives, or is lost from a point on in each wire, and the news may come before or after it.

At the end, of the members that live: all have returned, from `Finalize` too; all say the same,
error for error; what a dead one was told is what they were told; who is in the new communicator is
whoever lives, and nobody whom all knew to be dead.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator
from functools import partial
from itertools import pairwise
from random import Random
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from ompy.data.errors import ERR_PROC_FAILED
from ompy.data.request import Request
from ompy.engine.base import Engine
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.fault_tolerance.consensus import Say
from ompy.frameworks.fault_tolerance.departures import Departures
from ompy.frameworks.fault_tolerance.recovery import Recovery, Word
from ompy.frameworks.pml import Pml
from ompy.frameworks.proc import Proc
from ompy.mpi.communicators import survival
from ompy.mpi.errhandler import RETURN
from ompy.mpi.state import CommState
from ompy.mpi.state import World as RankState

Result = tuple[Any, ...]
Waits = Generator[Callable[[], bool], None, None]  # yields what has to be true to go on
Move = tuple[str, int, int]  # what, from whom, at whom
MOST_STEPS: Final = 5000  # arbitrary: five members with four deaths take at most some hundred


class Death(NamedTuple):
    """One member's.

    Attributes:
        step: of the world; it dies in its first step from that on.
        sent: how many of the messages of this step get out.
    """

    step: int
    sent: int


class Plan(NamedTuple):
    """What is drawn of a world.

    Attributes:
        members: how many.
        program: a key of `PROGRAMS`.
        order: of the moves: "first", "last", "low", "high", or a seed.
        deaths: by member.
        loses: what the dead have sent may be lost.
        apart: members begin their search for a context id at different ones.
    """

    members: int
    program: str
    order: str | int
    deaths: dict[int, Death]
    loses: bool = False
    apart: bool = False


class _Engine(Engine):
    """What `Recovery` and the calls of `survival.py` want of a rank's engine."""

    def __init__(self) -> None:
        super().__init__(Random(0))
        self.soon: deque[Callable[[], object]] = deque()
        self.until: Callable[[], bool] | None = None

    def call_later(self, _: int, what: Callable[[], object]) -> Any:
        self.soon.append(what)

    def wait_until(self, ready: Callable[[], bool], timeout: int = -1) -> Any:
        """Of `Finalize`: the program goes on when it is."""
        self.until = ready


class _Wires(Pml):
    """A PML whose messages a world carries: one receive at a time in each communicator."""

    def __init__(self) -> None:
        self.listening: dict[int, tuple[Request, Any]] = {}
        self.out: list[tuple[int, int, bytes]] = []  # target's rank in the job, context id, data

    def irecv(self, communicator: Any, convertor: Any, source: int, tag: int) -> Request:
        request = Request()
        self.listening[communicator.context_id] = request, convertor
        return request

    def isend(self, communicator: Any, convertor: Any, target: int, tag: int, mode: int) -> Request:
        data = bytearray(convertor.size)
        convertor.pack(0, memoryview(data))
        self.out.append((communicator.procs[target].rank, communicator.context_id, bytes(data)))
        request = Request()
        request.finish()
        return request

    def cancel(self, request: Request) -> None:
        request.cancelled = True
        self.listening = {key: one for key, one in self.listening.items() if one[0] is not request}

    def revoke(self, communicator: Communicator, kept_tag: int) -> None:
        """Nothing waits here but what the channel keeps."""

    def resume_receives(self, communicator: Communicator) -> None:
        """Nor for anybody."""


class Member:
    """One process: its part of the product, and its program."""

    def __init__(self, world: World, rank: int, count: int) -> None:
        self.rank = rank
        self.procs = [Proc(each, 0, each, "host") for each in range(count)]
        self.engine, self.wires = _Engine(), _Wires()
        self.departures = Departures(self.procs)
        context: Any = SimpleNamespace(
            rank=rank,
            me=self.procs[rank],
            engine=self.engine,
            departures=self.departures,
            direct=None,  # no explored world: this one's own schedule tries the orders
        )
        self.recovery = context.recovery = Recovery(context)
        self._context = context
        process: Any = SimpleNamespace(communicators={}, communicator=self._make, context=context)
        self._process = process
        self._state_of_rank = RankState(process, RETURN)
        if world.plan.apart:
            self._state_of_rank.ids.following += rank % 3
        self.comm = self.state(self._make(0, self.procs, "COMM_WORLD"))
        self.told: list[Any] = []
        self.returned = False
        self._ready: Callable[[], bool] = lambda: True
        self._program: Waits = PROGRAMS[world.plan.program](world, self)

    def _make(
        self, number: int, procs: list[Proc], name: str, own: object = None, line: int = -1
    ) -> Communicator:
        assert (own, line) == (None, -1), "nothing here is between two groups"
        made = Communicator(self._context, self.wires, number, procs, name)
        self._process.communicators[number] = made
        self.recovery.add_communicator(made, made)
        return made

    def state(self, communicator: Communicator) -> CommState:
        """What MPI has of a communicator."""
        return CommState(self._state_of_rank, communicator, None)

    @property
    def may_go_on(self) -> bool:
        """Whether its program is not over and does not wait."""
        return not self.returned and self._ready()

    def go_on(self) -> None:
        """Run its program until it waits, or has left `Finalize`."""
        try:
            self._ready = next(self._program)
        except StopIteration:
            if self.engine.until is None:
                self.recovery.finalize()
                assert self.engine.until is not None
                self._ready = self.engine.until
            else:
                self.returned = True

    def hear(self, source: int, number: int, data: bytes) -> None:
        """A message arrives for a receive that waits."""
        request, room = self.wires.listening.pop(number)
        room.bind(len(data))
        room.unpack(0, memoryview(data))
        procs = self._process.communicators[number].procs
        request.source = [proc.rank for proc in procs].index(source)
        request.finish()


class World:
    """Some members, and what is under way between them.

    Attributes:
        plan: what was drawn.
        members: by rank.
        dead: in the order of their deaths.
        entered: the barrier.
        counted: what happened.
        made: who made each step, and how many messages it sent in it.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.dead: list[int] = []
        self.entered: set[int] = set()
        self.counted: Counter[str] = Counter()
        self.made: list[tuple[int, int]] = []
        self._chance = Random(plan.order)
        self._wires: dict[tuple[int, int], deque[tuple[int, bytes]]] = {}
        self._news: list[tuple[int, int]] = []  # who died, who has not heard of it
        self.members = [Member(self, rank, plan.members) for rank in range(plan.members)]

    def run(self) -> World:
        """To its end. Itself."""
        while moves := self._moves():
            assert len(self.made) < MOST_STEPS, "it does not end"
            move = _chosen(moves, self.plan.order, self._chance)
            death = self.plan.deaths.get(move[2])
            dies = death is not None and death.step <= len(self.made)
            self._make(move, death if dies else None)
        self.check_end()
        return self

    def _moves(self) -> list[Move]:
        living = [member for member in self.members if member.rank not in self.dead]
        found = [("run", one.rank, one.rank) for one in living if one.may_go_on]
        found += [("soon", one.rank, one.rank) for one in living if one.engine.soon]
        found += [("news", victim, rank) for victim, rank in self._news if rank not in self.dead]
        for (source, target), wire in self._wires.items():
            listens = self.members[target].wires.listening
            if wire and target not in self.dead and wire[0][0] in listens:
                found.append(("hear", source, target))
        return found

    def _make(self, move: Move, death: Death | None) -> None:
        what, source, target = move
        member = self.members[target]
        match what:
            case "run":
                member.go_on()
            case "soon":
                member.engine.soon.popleft()()
            case "news":
                self._news.remove((source, target))
                member.departures.died(source, "has died")
            case "hear":
                number, data = self._wires[source, target].popleft()
                self.counted["after its sender"] += source in self.dead
                member.hear(source, number, data)
        out, member.wires.out = member.wires.out, []
        self.made.append((target, len(out)))
        for peer, number, data in out if death is None else out[: death.sent]:
            self._wires.setdefault((target, peer), deque()).append((number, data))
            self.counted[f"said {data[0]}"] += 1
        if death is not None:
            self._kill(target, len(out) > death.sent)

    def _kill(self, victim: int, halfway: bool) -> None:
        self.counted["deaths"] += 1
        self.counted["halfway"] += halfway
        self.counted["leaders"] += all(rank in self.dead for rank in range(victim))
        self.counted["who knew"] += bool(self.members[victim].told)
        self.dead.append(victim)
        self._news += [
            (victim, member.rank) for member in self.members if member.rank not in self.dead
        ]
        for (source, _), wire in self._wires.items():
            if self.plan.loses and source in self.dead and wire:
                left = self._chance.randint(0, len(wire))
                self.counted["lost"] += len(wire) - left
                while len(wire) > left:
                    wire.pop()

    def check_end(self) -> None:
        """What has to be true in the end.

        Raises:
            AssertionError: it is not.
        """
        living = [member for member in self.members if member.rank not in self.dead]
        for member in living:
            assert member.returned, f"{member.rank} waits, told {member.told}"
        told = [member.told for member in self.members]
        longest = max(told, key=len)
        for member in self.members:
            assert member.told == longest[: len(member.told)], told
        for one, other in pairwise(living):
            assert one.told == other.told, told
        alive = {member.rank for member in living}
        for what, *values in longest if living else ():
            if what == "shrunk":
                assert alive <= set(values[1]), told
            elif what == "agreed":
                assert all(values[0] & ~flag_of(rank) == 0 for rank in alive), told
            if not self.dead:
                assert what != "failed", told
                assert what != "shrunk" or len(values[1]) == len(self.members), told


def flag_of(rank: int) -> int:
    """What a member says to an agreement: one bit is missing."""
    return ~(1 << rank)


def _chosen(moves: list[Move], order: str | int, chance: Random) -> Move:
    match order:
        case "first":
            return moves[0]
        case "last":
            return moves[-1]
        case "low":
            return min(moves, key=lambda move: move[2])
        case "high":
            return max(moves, key=lambda move: move[2])
    return moves[int(chance.random() * len(moves))]


def _agreed(member: Member) -> Generator[Callable[[], bool], None, bool]:
    """One `Agree`; whether it went well. Who died is acknowledged."""
    made = survival.FlagAgreement(member.comm, flag_of(member.rank))
    yield lambda: made.agreement.complete
    flag, problem = made.outcome()
    if problem is None:
        member.told.append(("agreed", flag))
        return True
    assert problem.code == ERR_PROC_FAILED, problem
    member.told.append(("failed",))
    survival.acknowledge_failed(member.comm, None)
    return False


def _agrees(_: World, member: Member) -> Waits:
    """Twice."""
    for _again in range(2):
        yield from _agreed(member)


def _shrinks(_: World, member: Member) -> Waits:
    """And agrees in the new communicator on how it is numbered."""
    steps = survival._shrink_in_steps(member.comm)
    while True:
        try:
            agreement = next(steps)
        except StopIteration as ended:
            made: Communicator = ended.value.communicator
            break
        yield partial(getattr, agreement, "complete")
    ranks = tuple(proc.rank for proc in made.procs)
    member.told.append(("shrunk", made.context_id, ranks))


def _revokes(world: World, member: Member) -> Waits:
    """The last one revokes; the others wait for a message of a neighbour that never comes."""
    channel = member.recovery.channel(member.comm.communicator)
    count = len(world.members)
    if member.rank < count - 1:
        source = member.procs[member.rank + 1]
        yield lambda: channel.revoked or bool(source.left)
        # who finalizes has revoked before, and said so on the same wire
        assert channel.revoked or source.departed, "who heard of a revocation has kept it"
    survival.revoke_state(member.comm)
    member.told.append(("revoked", member.comm.revoked))


def _recovers(world: World, member: Member) -> Waits:
    """A barrier; who meets an error in it revokes; agree until that goes well, and shrink."""
    channel = member.recovery.channel(member.comm.communicator)
    world.entered.add(member.rank)
    count = len(world.members)
    yield lambda: len(world.entered) == count or channel.revoked or bool(channel.failed)
    if channel.revoked or channel.failed:
        survival.revoke_state(member.comm)
    while not (yield from _agreed(member)):
        pass
    yield from _shrinks(world, member)


PROGRAMS: Final[dict[str, Callable[[World, Member], Waits]]] = {
    "agree": _agrees,
    "shrink": _shrinks,
    "revoke": _revokes,
    "recover": _recovers,
}
SAID: Final = {"votes": Say.VOTE, "questions": Say.ASK, "revocations": Word.REVOKE}


def every_death(plan: Plan) -> Iterator[Plan]:
    """A world with one death for each step of one without, and each part of what it sends in it."""
    for step, (member, sent) in enumerate(World(plan).run().made):
        for part in range(sent + 1):
            yield plan._replace(deaths={member: Death(step, part)})
