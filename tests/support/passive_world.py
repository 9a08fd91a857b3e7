"""Virtual worlds of passive mode: agents that come by themselves, a coordinator in one of them.

The machines are the product's (`JoiningMachine`, `JoinedJobMachine`), told by its `Driver`; below
is what `control_processes.py` has, and a model of ranks that another launcher has started. That one
is `srun` without `--kill-on-bad-exit`: it does nothing by itself. Tasks that end before they begin
MPI can be looked for, as under Slurm: by the second host, later by the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, NamedTuple

from ompy.frameworks.job import App, Job, Placement
from ompy.runtime.connections.control import Kind
from ompy.runtime.machines.acts import (
    PARENT,
    Act,
    Admit,
    Adopt,
    CancelStep,
    Drop,
    Find,
    Hang,
    Keep,
    Kill,
    MakeJob,
    Meet,
    Released,
    Say,
    Stop,
    TakeMeeting,
    Terminate,
    ToRank,
    TurnAway,
    WatchTasks,
)
from ompy.runtime.machines.agents.agent_table import AgentPhase
from ompy.runtime.machines.agents.joining import JoiningMachine, Step
from ompy.runtime.machines.events import Event, Seen
from ompy.runtime.machines.launcher.assembly import JoinedJobMachine
from ompy.runtime.machines.launcher.job_table import JobPhase
from ompy.runtime.passive.step_watch import watch_after

from tests.support.control_processes import Clock, Driven, Fault, Process, Queue, Wire

STEPS = ("commit", "fence", "lookup", "work", "leave", "finalize", "end")
LIMIT_S = 120.0
LOOK_S, RETRY_S, WATCH_S = 0.25, 0.1, 1.0
PATIENCE_S = 10.0  # for so long a rank looks for an agent


class Shape(NamedTuple):
    """What a world is.

    Attributes:
        hosts: how many.
        per_host: ranks of each.
        seed: decides every delay.
        aborts: the rank that aborts, and before which step; or None.
        stubborn: ranks that SIGTERM does not end.
        spread_s: over which the ranks begin.
    """

    hosts: int
    per_host: int
    seed: int
    aborts: tuple[int, str] | None = None
    stubborn: frozenset[int] = frozenset()
    spread_s: float = 0.2


class Coordinator(Driven):
    """What lives in the agent of the first host: it dies with that."""

    world: World

    def __init__(self, world: World, agent: Agent) -> None:
        super().__init__(world, "coordinator", agent.host)
        self.agent = agent
        self.came = 0
        self.job = self.machine = JoinedJobMachine("srun", world.size)
        self.see(Seen.BEGUN)
        world.clock.at(world.clock.now + WATCH_S, lambda: self.run(self._watch))

    def does(self) -> None:
        self.agent.does()

    def add(self, agent: Agent, part: Mapping[str, Any]) -> None:
        who, self.came = self.came, self.came + 1
        remote = agent is not self.agent
        Wire(self.world, self, who, agent, remote=remote)
        self.see(Seen.CAME, who, part={**part, "node": part["host"]}, remote=remote)

    def _watch(self) -> None:
        """What srun's watchers see on hosts whose agents have not come."""
        if self.job.phase is JobPhase.GATHERING:
            for host in range(self.world.shape.hosts):
                if f"host{host}" not in self.job.nodes and self.world.missing(host):
                    self.see(Seen.MISSING, body=b"ended early", host=f"host{host}")
            self.world.clock.at(self.world.clock.now + LOOK_S, lambda: self.run(self._watch))

    def carry_out(self, act: Act) -> None:
        match act:
            case MakeJob():
                job = self.world.job
                body = json.dumps(job.to_dict()).encode()
                self.see(
                    Seen.MADE, -1, body, job=job, grace_ms=500, heartbeat_ms=100,
                    heartbeat_misses=15,
                )  # fmt: skip
            case Find() | Say():
                self.world.told.append((self.name, act))
            case CancelStep():
                self.world.cancel()
            case Released():
                agent = self.agent
                self.world.clock.soon(lambda: agent.run(lambda: agent.see(Seen.COORDINATED)))
            case Drop():
                self.disconnect(act.node)
            case _:
                super().carry_out(act)

    def bury(self) -> None:
        """It is the agent that dies."""


class Agent(Driven):
    """The passive agent of a host."""

    world: World

    def __init__(self, world: World, host: int) -> None:
        super().__init__(world, f"agent {host}", host)
        meeting = "host0" if world.shape.hosts > 1 else ""
        self.joining = self.machine = JoiningMachine(
            Step(
                "srun", world.size, world.shape.per_host, meeting, host == 0, f"host{host}",
                watched=True, orphans=False,
            )
        )  # fmt: skip
        self.coordinator: Coordinator | None = None
        self.callers: dict[int, Rank] = {}
        self.kept: dict[int, Rank] = {}
        self.kept_by: dict[int, Rank] = {}  # by what they were called when they came
        self.ranks: dict[int, Rank] = {}
        self.served = 0
        self._part: Mapping[str, Any] = {}
        self._looks_since = 0.0
        self.see(Seen.BEGUN)

    def came(self, rank: Rank) -> None:
        """A rank connects and says who it is."""
        who, self.served = self.served, self.served + 1
        self.callers[who] = rank
        rank.agent = self
        local = rank.number % self.world.shape.per_host
        self.see(
            Seen.CAME, who, rank=rank.number, local_rank=local, pid=rank.pid, parent=1,
            argv=["a"], cores=[local],
        )  # fmt: skip

    def rank_gone(self, rank: Rank) -> None:
        """The connection of a rank has ended."""
        known = self.ranks.get(rank.number) is rank or self.kept.get(rank.number) is rank
        if known:
            self.kept.pop(rank.number, None)
            self.see(Seen.CLIENT_GONE, rank.number)

    def carry_out(self, act: Act) -> None:
        match act:
            case Keep():
                self.kept[act.rank] = rank = self.callers.pop(act.who)
                self.kept_by[act.who] = rank
                rank.down.put((Kind.ALIVE, {}))
            case TurnAway():
                rank = self._forget(act.who)
                self.kept.pop(rank.number, None)
                if act.code is None:
                    rank.down.close()
                else:
                    rank.down.put((Kind.REFUSED, {"code": act.code}))
            case ToRank() if act.rank in self.ranks:
                self.ranks[act.rank].down.put((act.kind, act.header))
            case Admit():
                self.ranks[act.rank].down.put((Kind.ADMITTED, {}))
            case Hang():
                self.ranks[act.rank].down.close()
            case Terminate() | Kill():
                self._signal(15 if isinstance(act, Terminate) else 9, act.but)
            case Adopt():
                self._adopt()
            case _:
                self._meets(act)

    def _forget(self, who: int) -> Rank:
        """A caller, or one that was kept, by its number of a caller."""
        if who in self.callers:
            return self.callers.pop(who)
        return self.kept_by[who]

    def _signal(self, number: int, but: int) -> None:
        for rank in self.ranks.values():
            if rank.number != but:
                self.world.clock.soon(lambda rank=rank: rank.signalled(number))

    def _adopt(self) -> None:
        self.ranks, self.kept = self.kept, {}
        for rank in list(self.ranks.values()):
            self.see(Seen.ATTACHED, rank.number, pid=rank.pid)

    def _meets(self, act: Act) -> None:
        match act:
            case WatchTasks():
                self.world.clock.at(self.world.clock.now + LOOK_S, lambda: self.run(self._look))
            case Meet():
                self._part, self._looks_since = act.part, self.world.clock.now
                self.world.clock.soon(lambda: self.run(self._meet))
            case TakeMeeting():
                if not act.take:
                    self.disconnect(PARENT)
            case Say():
                self.world.told.append((self.name, act))
            case CancelStep():
                self.world.cancel()
            case Stop():
                self.end()
            case _:
                super().carry_out(act)

    def _look(self) -> None:
        if self.joining.phase is AgentPhase.GATHERING:
            if self.world.missing(self.host):
                self.see(Seen.MISSING, body=b"a task ended")
            self.world.clock.at(self.world.clock.now + LOOK_S, lambda: self.run(self._look))

    def _meet(self) -> None:
        """Be the coordinator's host, or look for it until it is there."""
        if self.joining.phase is not AgentPhase.MEETING:
            self.see(Seen.UNMET, -1, b"given up")
            return
        if not self.host:
            self.coordinator = Coordinator(self.world, self)
        leader = self.world.agents.get(0)
        found = leader.coordinator if leader is not None and leader.alive else None
        if found is not None and found.job.phase is not JobPhase.RUNNING:
            found.run(lambda: found.add(self, self._part))
            if self.alive:
                self.see(Seen.MET, leads=not self.host)
        elif self._watching and self.world.missing(0):
            self.see(Seen.MISSING, body=b"the meeting host's task ended")
        else:
            when = self.world.clock.now + RETRY_S
            self.world.clock.at(when, lambda: self.run(self._meet))

    @property
    def _watching(self) -> bool:
        """Whether it has looked for so long that it asks about the other host's tasks."""
        return self.world.clock.now - self._looks_since >= watch_after(self.host)

    def die(self) -> None:
        if self.alive and self.coordinator is not None:
            self.coordinator.die()
        super().die()

    def bury(self) -> None:
        """Its ranks see it by their connections, or by their lifelines."""
        for rank in self.world.ranks:
            if rank.agent is self:
                self.world.clock.soon(lambda rank=rank: rank.run(rank.agent_gone))


class Rank(Process):
    """An MPI process that another launcher has started."""

    world: World

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world, f"rank {number}", number // world.shape.per_host)
        self.number = number
        self.pid = 1000 + number
        self.status: int | None = None
        self.ended = False
        self.agent: Agent | None = None
        self.taken = self.admitted = self.aborting = self.finalizing = False
        self._since = world.clock.now
        self._step = self._calls = 0
        self._connect()
        world.clock.soon(lambda: self.run(self._come), world.shape.spread_s)

    def _connect(self) -> None:
        clock = self.world.clock
        self.up = Queue(clock, self._tell_agent, self._tell_end)
        self.down = Queue(
            clock, lambda word: self.run(lambda: self._hear(*word)), lambda: self.run(self._hung_up)
        )

    def _tell_agent(self, event: Event) -> None:
        agent = self.agent
        if agent is not None:
            agent.run(lambda: agent.tell(event))

    def _tell_end(self) -> None:
        agent = self.agent
        if agent is not None:
            agent.run(lambda: agent.rank_gone(self))

    def _come(self) -> None:
        """Find the agent of this host, or start one."""
        self.does()
        agent = self.world.agents.get(self.host)
        if agent is None or not agent.alive:
            agent = self.world.agents[self.host] = Agent(self.world, self.host)
        agent.run(lambda: agent.came(self))

    def _hear(self, kind: Kind, header: Mapping[str, Any]) -> None:
        if kind is Kind.ALIVE:
            self.taken = True
        elif kind is Kind.REFUSED and "call" not in header:
            self.exit(header["code"] or 1)
        elif kind is Kind.REFUSED:
            self.exit(1)
        elif kind is Kind.ADMITTED:
            self.admitted = True
            self._go_on()
        elif kind is Kind.REPLY and header["call"] == self._calls:
            self._go_on()

    def _hung_up(self) -> None:
        """The agent has closed the connection."""
        if self.aborting:
            self.exit(7)
        elif not self.taken:
            self._again()
        else:
            self.exit(1)

    def agent_gone(self) -> None:
        self.down.flush()  # what it had sent is read before its end is
        if not self.taken and not self.ended:
            self._again()
        else:
            self.exit(-9 if self.admitted else 1)

    def _again(self) -> None:
        if self.world.clock.now - self._since > PATIENCE_S:
            self.exit(1)
        else:
            self._connect()
            self.world.clock.soon(lambda: self.run(self._come))

    def _go_on(self) -> None:
        self.does()
        step, self._step = STEPS[self._step], self._step + 1
        if self.world.shape.aborts == (self.number, step):
            self.aborting = self.world.aborted = True
            self._say(Kind.ABORT, {"code": 7})
        else:
            getattr(self, f"_{step}")()

    def _say(self, kind: Kind, header: Mapping[str, Any]) -> None:
        self.up.put(Event(Seen.RANK, self.number, kind, header, b""))

    def _call(self, kind: Kind, **header: Any) -> None:
        self._calls += 1
        self._say(kind, {**header, "call": self._calls})

    def _commit(self) -> None:
        self._call(Kind.COMMIT)

    def _fence(self) -> None:
        self._call(Kind.FENCE)

    def _lookup(self) -> None:
        self._call(Kind.LOOKUP, rank=(self.number + 1) % self.world.size)

    def _work(self) -> None:
        self.world.working.add(self.number)
        if len(self.world.working) == self.world.size:
            for rank in self.world.ranks:
                self.world.clock.soon(lambda rank=rank: rank.run(rank._go_on), 0.4)

    def _leave(self) -> None:
        self._say(Kind.LEAVING, {"told": []})
        self.world.clock.soon(lambda: self.run(self._go_on))

    def _finalize(self) -> None:
        self.finalizing = True
        self._call(Kind.FINALIZED)

    def _end(self) -> None:
        self.ended = True
        self.exit(0)

    def exit(self, status: int) -> None:
        """Its connections are closed, then its process has ended."""
        if self.alive:
            self.alive, self.status = False, status
            self.up.close()
            self.down.drop()
            self.world.clock.soon(self._gone, 0.005)

    def _gone(self) -> None:
        agent = self.agent
        if agent is not None and agent.ranks.get(self.number) is self:
            agent.run(lambda: agent.see(Seen.EXITED, self.number))

    def signalled(self, number: int) -> None:
        if number == 9 or self.number not in self.world.shape.stubborn:
            self.exit(-number)

    def die(self) -> None:
        self.exit(-9)

    def vanish(self) -> None:
        self.alive = False


class World:
    """One job."""

    def __init__(self, shape: Shape, *faults: Fault) -> None:
        self.shape = shape
        self.faults = faults
        self.struck: set[Fault] = set()
        self.clock = Clock(shape.seed)
        self.processes: list[Process] = []
        self.wires: list[Wire] = []
        self.agents: dict[int, Agent] = {}
        self.told: list[tuple[str, Find | Say]] = []
        self.working: set[int] = set()
        self.aborted = self.cancelled = False
        self.size = shape.hosts * shape.per_host
        places = tuple(
            Placement(rank, 0, rank // shape.per_host, rank % shape.per_host)
            for rank in range(self.size)
        )
        names = tuple(f"host{node}" for node in range(shape.hosts))
        self.job = Job("0" * 16, (App(("a",), self.size),), names, places)
        self.ranks = [Rank(self, number) for number in range(self.size)]

    def missing(self, host: int) -> bool:
        """Whether a task of a host has ended."""
        return any(rank.host == host and not rank.alive for rank in self.ranks)

    def cancel(self) -> None:
        """Slurm ends all tasks of the step: SIGTERM, later SIGKILL."""
        self.cancelled = True
        for rank in self.ranks:
            self.clock.soon(lambda rank=rank: rank.signalled(15))
            self.clock.at(self.clock.now + 3.0, lambda rank=rank: rank.signalled(9))

    def power_off(self, host: int) -> None:
        for process in self.processes:
            if process.host == host and process.alive:
                process.vanish()

    def run(self) -> World:
        """To the end of everybody.

        Raises:
            AssertionError: somebody is left waiting.
        """
        while left := [one.name for one in self.processes if one.alive]:
            assert self.clock.step(), f"they wait for nothing: {left}"
            assert self.clock.now < LIMIT_S, f"they wait for ever: {left}"
        return self


def judge(world: World) -> str:
    """What must be true of a world that is over. In a word, what became of it."""
    blocks = [act for _, act in world.told if isinstance(act, Find)]
    assert len(blocks) <= 1, "the coordinator says it once"
    well = [rank for rank in world.ranks if rank.status == 0 and rank.ended]
    if not world.struck and not world.aborted:
        assert len(well) == world.size, "nothing has gone wrong"
        assert not world.told
    if len(well) == world.size:
        return "well"
    wrong = {str(fault.target).split()[0] for fault in world.struck}
    struck = {str(fault.target) for fault in world.struck}
    silenced = struck >= {f"agent {host}" for host in range(world.shape.hosts)}
    silenced |= not world.agents  # no rank has begun MPI: there is nobody who could
    finalized = all(rank.finalizing or rank.ended for rank in world.ranks)  # nothing is lost
    left = world.cancelled and len(world.struck) > 1
    assert world.told or silenced or finalized or left, "somebody says why"
    if world.aborted and not world.struck:
        assert blocks
        assert str(blocks[0].finding.fields["headline"]).startswith("Rank")
        (aborting,) = (rank for rank in world.ranks if rank.aborting)
        assert aborting.status == 7, "it ends with its own code"
    return "aborted" if world.aborted and not world.struck else " and ".join(sorted(wrong))


def faults(shape: Shape) -> Iterator[Fault]:
    """Every kill, every host that goes down, everything that a connection may lose."""
    whole = World(shape).run()
    for process in whole.processes:
        if isinstance(process, Coordinator):
            continue
        for index in range(process.done + 1):
            yield Fault("kill", process.name, index)
            if isinstance(process, Driven):
                yield Fault("down", process.name, index)
    for wire in whole.wires:
        if wire.remote:
            for way, queue in (("up", wire.up), ("down", wire.down)):
                for index in range(queue.count + 1):
                    for kind in ("cut", "dumb up", "dumb down", "dumb both"):
                        yield Fault(kind, wire.node, index, way)


def shape_of(number: int) -> Shape:
    """The world of a number: 1 to 5 hosts, an abort in every fourth."""
    chance = Random(f"shape {number}")
    hosts, per_host = chance.randint(1, 5), chance.randint(1, 3)
    hosts = max(hosts, 2) if per_host == 1 else hosts
    ranks = range(hosts * per_host)
    aborts = (chance.choice(ranks), chance.choice(STEPS[:-1])) if chance.random() < 0.25 else None
    stubborn = frozenset(rank for rank in ranks if chance.random() < 0.2)
    return Shape(hosts, per_host, number, aborts, stubborn, chance.choice((0.05, 0.5, 2.0)))
