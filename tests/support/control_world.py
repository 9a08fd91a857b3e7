"""Virtual worlds of the control plane: launcher, relays, agents and ranks, without a process.

What decides is the product's: `JobMachine`, `HostMachine`, `RelayMachine`, told by the product's
`Driver` (`control_processes.py`). What is below is a model: processes that die, and what the kernel
then does about it; ranks that attach, publish, wait at fences, work, finalize and end.

What goes wrong is in `Fault`: a process is killed just before the N-th thing it does, its host goes
down there, or a connection is cut or goes dumb at its N-th message. `faults` has all of them for a
world: it runs without one first, and counts. `judge` says what must be true in the end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, NamedTuple

from ompy.frameworks.job import App, Job, Placement
from ompy.runtime.agents.agent_tree import Branch, Tree, parents
from ompy.runtime.connections.control import Kind
from ompy.runtime.machines.acts import (
    PARENT,
    Act,
    Admit,
    AskRanks,
    CloseStreams,
    CloseView,
    Credit,
    Drop,
    Feed,
    Find,
    Grow,
    KeepAutopsy,
    Kill,
    KillRank,
    Look,
    Reap,
    ReportRails,
    Send,
    SignalRanks,
    Stop,
    Sweep,
    TakeInput,
    Terminate,
    ToRank,
    Widen,
)
from ompy.runtime.machines.agents.agent import Beat, HostMachine
from ompy.runtime.machines.agents.local_ranks import RankLife
from ompy.runtime.machines.agents.relaying import RelayMachine
from ompy.runtime.machines.children import Child
from ompy.runtime.machines.events import Event, Seen
from ompy.runtime.machines.launcher.asking import widened
from ompy.runtime.machines.launcher.job import PATIENCE, JobMachine
from ompy.runtime.machines.launcher.job_rules import JobRules
from ompy.runtime.machines.launcher.job_table import JobPhase

from tests.support.control_processes import Clock, Driven, Fault, Process, Queue, Wire

GRACE_MS = 300
BEAT_S, MISSES, LAUNCHER_MISSES = 0.1, 15, 100  # the parameters' defaults
LIMIT_S = 700.0  # who was never told a job waits 600 s for it
LAUNCHER = "launcher"
STEPS = ("attach", "commit", "fence", "lookup", "work", "meet", "leave", "finalize", "end")
# of a rank that was started later: at `come` it waits until rank 0 has heard that all have come,
# and has told the launcher so; all of its world come to `live` before one goes on
LATER_STEPS = ("attach", "commit", "lookup", "come", "live", "leave", "finalize", "end")
SLOW_S = 8.0  # for so long the kernel holds a process that was killed


class Misdeed(NamedTuple):
    """What a rank does that ends the job.

    Attributes:
        rank: which.
        step: before which of `STEPS`.
        kind: exit, abort or crash.
        code: with which.
    """

    rank: int
    step: str
    kind: str
    code: int


class Shape(NamedTuple):
    """What a world is.

    Attributes:
        hosts: how many; the first is the launcher's own.
        radix: how many agents one process starts on other hosts.
        per_host: ranks of each.
        seed: decides every delay.
        misdeed: of a rank.
        stubborn: ranks that SIGTERM does not end.
        litter: hosts where a process stays behind that a rank has started; it forks when it dies.
        slow: ranks that the kernel holds for long when they are killed.
        spawned: how many more rank 0 asks for before it works.
        unforkable: of these, one that cannot be started; -1 for none.
        unexecutable: likewise, one whose program cannot be executed.
        survives: a host that is lost takes its ranks along, and the job goes on.
    """

    hosts: int
    radix: int
    per_host: int
    seed: int
    misdeed: Misdeed | None = None
    stubborn: frozenset[int] = frozenset()
    litter: frozenset[int] = frozenset()
    slow: frozenset[int] = frozenset()
    spawned: int = 0
    unforkable: int = -1
    unexecutable: int = -1
    survives: bool = False


class Launcher(Driven):
    """`ompy-run`."""

    world: World
    machine_class: type[JobMachine] = JobMachine

    def __init__(self, world: World, tree: Tree, children: list[Child]) -> None:
        super().__init__(world, LAUNCHER, 0)
        rules = JobRules(grace_ms=GRACE_MS, heartbeat_s=BEAT_S, misses=MISSES, start_s=20.0)
        rules = rules._replace(survives=world.shape.survives)
        self.job = self.machine = self.machine_class(world.job, tree, children, rules)
        self.findings: list[Any] = []
        self.code: int | None = None
        self.ending = 0.0  # when the agents were told to end
        self.took = 0.0  # to the end

    def carry_out(self, act: Act) -> None:
        now = self.world.clock.now
        ending = self.job.phase is JobPhase.ENDING  # a guest may be ended while the job goes on
        if ending and isinstance(act, Send) and act.kind is Kind.END:
            self.ending = self.ending or now
        match act:
            case Find():
                self.findings.append(act.finding)
            case ReportRails():
                self.world.clock.soon(lambda: self.run(lambda: self.see(Seen.IDLE)))
            case Sweep():
                self._sweep()
            case Drop():
                self.disconnect(act.node)
            case Stop():
                self.code = self.job.exit_code
                self.took = now - self.ending if self.ending else 0.0
                self.end()
            case TakeInput() | CloseView() | KeepAutopsy() | Widen():
                pass
            case _:
                super().carry_out(act)

    def _sweep(self) -> None:
        """All processes below: the agent of this host, its ranks, the shells to the others."""
        for process in self.world.of_host(0):
            if process is not self:
                process.die()
        for node in list(self.wires):
            wire = self.wires[node]
            wire.down.close()

    def bury(self) -> None:
        """The agent of this host sees it, and those of others."""


class Agent(Driven):
    """One that starts ranks, once it is told to."""

    world: World

    machine: Any

    def __init__(self, world: World, node: int, *, below_relay: bool = False) -> None:
        super().__init__(world, f"agent {node}", node)
        self.node = node
        self.below_relay = below_relay
        self.machine = None
        self.job = world.job
        self.ranks: dict[int, Rank] = {}
        self.reaps = True
        self.reaping = False
        world.clock.at(600.0, self._see_whether_told)

    def _see_whether_told(self) -> None:
        if self.alive and self.machine is None:
            self.end()

    def hear(self, who: int, message: tuple[Kind, Mapping[str, Any], bytes]) -> None:
        if self.machine is not None:
            super().hear(who, message)
            return
        kind, start, _ = message
        assert kind is Kind.START, "the first message"
        lives = []
        for place in self.world.job.placements:
            if place.node == self.node:
                self.does()
                rank = self.ranks[place.rank] = Rank(self.world, place.rank, self)
                self.send(PARENT, Kind.STARTED, {"rank": rank.number, "pid": rank.pid})
                lives.append(RankLife(rank.number, rank.pid))
        if self.node in self.world.shape.litter:
            self.world.litter(self.node)
        beat = Beat(start["heartbeat_ms"] / 1000, start["heartbeat_misses"])
        hosts = [place.node for place in self.world.job.placements]
        self.machine = HostMachine(start["node"], beat, lives, hosts, several=True)
        self.see(Seen.BEGUN)

    def lose(self, who: int) -> None:
        if self.machine is None:
            self.end()
        else:
            super().lose(who)

    def carry_out(self, act: Act) -> None:
        match act:
            case ToRank():
                if act.rank in self.ranks:
                    self.ranks[act.rank].down.put((act.kind, act.header))
            case Admit():
                self.ranks[act.rank].down.put((Kind.ADMITTED, {}))
            case Terminate() | Kill():
                self._signal(15 if isinstance(act, Terminate) else 9)
            case AskRanks():
                for rank in self.ranks.values():
                    rank.run(rank.say_where)
            case Reap():
                self.reap()
            case Look():
                dying = [one.number for one in self.ranks.values() if one.is_ending]
                self.see(Seen.OUTLOOK, ending=dying)
            case Grow():
                self._grow(act)
            case KillRank():
                rank = self.ranks[act.rank]
                self.world.clock.soon(lambda: rank.signalled(9))
            case CloseStreams():
                self.reaps = False
            case Credit() | Feed() | SignalRanks():
                pass
            case _:
                super().carry_out(act)

    def _grow(self, act: Grow) -> None:
        """As the product's driver has it."""
        self.job = widened(self.job, act.body)
        for number in act.start:
            self.does()
            if number == self.world.shape.unforkable:
                self.see(Seen.UNFORKED, number, b"no process")
                continue
            rank = self.ranks[number] = Rank(self.world, number, self)
            self.see(Seen.FORKED, number, pid=rank.pid)
        if act.start:
            self.reaps = True
            self.world.clock.soon(lambda: self.run(self.child_ended))

    def _signal(self, number: int) -> None:
        for process in self.world.below_agents(self.node):
            self.world.clock.soon(lambda process=process: process.signalled(number))

    def child_ended(self) -> None:
        """SIGCHLD."""
        if self.reaps and self.machine is not None:
            self.reap()

    def reap(self) -> None:
        if not self.reaping:  # a rank's last word may ask for it once more
            self.reaping = True
            self.note_ends()
            self.reaping = False

    def note_ends(self) -> None:
        ended = [rank for rank in self.ranks.values() if rank.zombie]
        for rank in sorted(ended, key=lambda rank: rank.status >= 0):
            if rank.zombie:
                rank.zombie = False
                rank.up.flush()
                self.see(Seen.EXITED, rank.number, status=rank.status)
        ranks = any(one.alive or one.dying or one.zombie for one in self.ranks.values())
        left = ranks or bool(self.world.below_agents(self.node))
        self.see(Seen.REAPED, ended=bool(ended), left=left)

    def end(self) -> None:
        """It kills what is below it, until there is nothing, and goes."""
        while below := self.world.below_agents(self.node):
            for process in below:
                process.die()
        self.die()

    def bury(self) -> None:
        """Ranks die with their parent; a guard kills what is left, if it has one of its own."""
        guarded = self.node != 0 and not self.below_relay
        for process in self.world.below_agents(self.node):
            if guarded or isinstance(process, Rank):
                process.die()


class RelayProcess(Driven):
    """What an agent becomes that has agents below it."""

    world: World

    def __init__(self, world: World, node: int, tree: Tree, children: list[Child]) -> None:
        super().__init__(world, f"relay {node}", node)
        self.machine = RelayMachine(node, tree, children, b"")

    def carry_out(self, act: Act) -> None:
        match act:
            case Sweep():
                for process in self.world.below_agents(self.host):
                    process.die()
            case Drop():
                self.disconnect(act.node)
            case _:
                super().carry_out(act)

    def bury(self) -> None:
        """Its guard kills what is below it on its host."""
        for process in self.world.of_host(self.host):
            process.die()


class Litter(Process):
    """What a rank has started, and has left behind. While it is killed it may have forked."""

    world: World
    heirs: int

    def signalled(self, number: int) -> None:
        if self.alive:
            self.die()

    def die(self) -> None:
        was, self.alive = self.alive, False
        agent = self.world.agents[self.host]
        if was and agent.alive and self.heirs:
            self.world.litter(self.host, self.heirs - 1)
        if was:
            self.world.clock.soon(lambda: agent.run(agent.child_ended))


class Rank(Process):
    """An MPI process, which goes from step to step."""

    world: World

    def __init__(self, world: World, number: int, agent: Agent) -> None:
        super().__init__(world, f"rank {number}", agent.host)
        self.number = number
        self.pid = 1000 + number
        self.agent = agent
        self.zombie = False
        self.dying = False
        self.status = 0
        self.attached = False
        self.ended = False
        self._asked = False
        self.meeting = False  # rank 0 waits for those that it has asked for
        self._at_fence = 0
        self._step = 0
        self._calls = 0
        tell = agent.tell
        self.up = Queue(
            world.clock,
            lambda event: agent.run(lambda: tell(event)),
            lambda: agent.run(lambda: tell(Event(Seen.CLIENT_GONE, number))),
        )
        self.down = Queue(
            world.clock, lambda message: self.run(lambda: self._hear(*message)), lambda: None
        )
        world.clock.soon(lambda: self.run(self._go_on), 0.1)

    @property
    def later(self) -> bool:
        return self.number >= len(self.world.job.placements)

    @property
    def is_ending(self) -> bool:
        return self.zombie or self.dying

    def _go_on(self) -> None:
        """Take the next step."""
        self.does()
        steps = LATER_STEPS if self.later else STEPS
        step, self._step = steps[self._step], self._step + 1
        misdeed = self.world.shape.misdeed
        if misdeed is not None and (misdeed.rank, misdeed.step) == (self.number, step):
            self.world.misdone = True
            if misdeed.kind != "abort":
                self.exit(misdeed.code)
                return
            if self.attached:
                self._say(Kind.ABORT, {"code": misdeed.code})
                return
        getattr(self, f"_{step}")()

    def _say(self, kind: Kind, header: Mapping[str, Any], body: bytes = b"") -> None:
        self.up.put(Event(Seen.RANK, self.number, kind, header, body))

    def _call(self, kind: Kind, **header: Any) -> None:
        self._calls += 1
        self._say(kind, {**header, "call": self._calls})

    def _attach(self) -> None:
        if self.number == self.world.shape.unexecutable:
            said = {"code": 127}
            self.up.put(Event(Seen.UNEXECUTABLE, self.number, None, said, b"no such program"))
            self.exit(127)
            return
        self.up.put(Event(Seen.ATTACHED, self.number, None, {"pid": self.pid}))

    def _commit(self) -> None:
        self._call(Kind.COMMIT)

    def _fence(self) -> None:
        self._at_fence = self._step
        self.world.fences.setdefault(self._step, set()).add(self.number)
        self._call(Kind.FENCE)

    def _meet(self) -> None:
        if self.world.shape.survives:  # who has died meanwhile never comes
            self.world.clock.soon(lambda: self.run(self._go_on))
        else:
            self._fence()

    def _lookup(self) -> None:
        wanted = 0 if self.later else (self.number + 1) % len(self.world.job.placements)
        self._call(Kind.LOOKUP, rank=wanted)

    def _work(self) -> None:
        """With all others: it is over when all have come to it."""
        if self.number == 0 and self.world.shape.spawned and not self._asked:
            self._asked = True
            apps = [{**App(("b",), self.world.shape.spawned)._asdict(), "hosts": []}]
            body = json.dumps({"apps": apps, "parents": [0]}).encode()
            self._say(Kind.ASK, {"ask": 1, "what": "spawn"}, body)
            return
        self.world.working.add(self.number)
        self.world.look_whether_met(later=False)

    def _come(self) -> None:
        """To rank 0, which has asked for this one."""
        self.world.come.add(self.number)
        self.world.look_whether_come()

    def say_made(self, why: str) -> None:
        """Rank 0 tells the launcher of its communicator with those that it has asked for."""
        self.meeting = False
        made = {"ask": 2, "what": "made", "first": len(self.world.job.placements), "why": why}
        self._say(Kind.ASK, made)

    def _answered(self, ask: int, code: int) -> None:
        if ask == 1 and not code:
            self.meeting = True
            self.world.look_whether_come()
            return
        self.world.answers.append(code)
        if not code:
            self.world.let_go_on()
        self._work()

    def _live(self) -> None:
        """The same for those that were started later."""
        self.world.living.add(self.number)
        self.world.look_whether_met(later=True)

    def _leave(self) -> None:
        self._say(Kind.LEAVING, {"told": []})
        self.world.clock.soon(lambda: self.run(self._go_on))

    def _finalize(self) -> None:
        self._call(Kind.FINALIZED)

    def _end(self) -> None:
        self.ended = True
        self.exit(0)

    def _hear(self, kind: Kind, header: Mapping[str, Any]) -> None:
        if kind is Kind.ADMITTED:
            self.attached = True
            self._go_on()
        elif kind is Kind.REPLY and header["call"] == self._calls:
            at, self._at_fence = self._at_fence, 0
            size = len(self.world.job.placements)
            assert not at or len(self.world.fences[at]) == size, (
                "a fence opens before all are there"
            )
            self._go_on()
        elif kind is Kind.ANSWER:
            self._answered(header["ask"], header["code"])
        elif kind is Kind.REFUSED:
            self.exit(1)
        elif kind is Kind.DEPARTED:
            self._departed(header["rank"], dead=header.get("dead", False))

    def _departed(self, rank: int, *, dead: bool) -> None:
        if self.meeting and rank >= len(self.world.job.placements):
            self.say_made(f"rank {rank} has gone")
        if rank == 0 and self.later and self._step == 1 + LATER_STEPS.index("come"):
            self.exit(1)  # nobody will ever say that it may go on
        if dead:
            self.world.mourned.add(rank)
            for later in (False, True):
                self.world.look_whether_met(later=later)

    def say_where(self) -> None:
        self._say(Kind.WHERE, {"line": "a.py:1", "waits": ""})

    def exit(self, status: int) -> None:
        """Its process ends: for a moment that can be seen, then its parent is told."""
        if self.alive:
            self.alive, self.status, self.dying = False, status, True
            self.up.close()
            self.down.drop()
            slow = status == -9 and self.number in self.world.shape.slow
            if slow:
                self.world.clock.at(self.world.clock.now + SLOW_S, self._ended)
            else:
                self.world.clock.soon(self._ended, 0.002)

    def _ended(self) -> None:
        self.dying = False
        if self.agent.alive:
            self.zombie = True
            self.world.clock.soon(lambda: self.agent.run(self.agent.child_ended))

    def signalled(self, number: int) -> None:
        if number == 9 or self.number not in self.world.shape.stubborn:
            self.exit(-number)

    def die(self) -> None:
        self.exit(-9)


class World:
    """One job."""

    launcher_class: type[Launcher] = Launcher

    def __init__(self, shape: Shape, *faults: Fault) -> None:
        self.shape = shape
        self.faults = faults
        self.struck: set[Fault] = set()
        self.mourned: set[int] = set()  # ranks that some have heard of that they died
        self.met = {False: False, True: False}  # those of the beginning, and of the later world
        self.misdone = False
        self.clock = Clock(shape.seed)
        self.processes: list[Process] = []
        self.wires: list[Wire] = []
        self.agents: dict[int, Agent] = {}
        self.working: set[int] = set()
        self.living: set[int] = set()
        self.come: set[int] = set()  # to rank 0, of those that it has asked for
        self.answers: list[int] = []  # what rank 0 was told: error classes
        self.fences: dict[int, set[int]] = {}
        size = shape.hosts * shape.per_host
        places = tuple(
            Placement(rank, 0, rank // shape.per_host, rank % shape.per_host)
            for rank in range(size)
        )
        names = tuple(f"host{node}" for node in range(shape.hosts))
        self.job = Job("0" * 16, (App(("a",), size),), names, places)
        self._build()

    def _build(self) -> None:
        others = list(range(1, self.shape.hosts))
        above = parents(others, self.shape.radix)
        branches = [Branch(node, above[node], f"host{node}", ("ssh",)) for node in others]
        tree = Tree(branches)
        tops = [branch.node for branch in tree.children()]
        children = [Child(node, 100 + node, remote=node > 0) for node in (0, *tops)]
        self.launcher = self.launcher_class(self, tree, children)
        for node in (0, *tops):
            self._grow(self.launcher, node, tree, remote=node > 0)
        for node in (0, *tops):
            self.launcher.send(node, Kind.START, self._start(node))
        self.launcher.run(lambda: self.launcher.see(Seen.BEGUN))

    def _start(self, node: int) -> dict[str, Any]:
        return {
            "node": node,
            "heartbeat_ms": BEAT_S * 1000 if node else 0,
            "heartbeat_misses": LAUNCHER_MISSES,
            "agent_misses": MISSES,
            "start_timeout_ms": 20_000,
        }

    def _grow(self, upper: Driven, node: int, tree: Tree, *, remote: bool) -> None:
        """An agent and those below it."""
        below = tree.below(node)
        if not below:
            self.agents[node] = Agent(self, node)
            Wire(self, upper, node, self.agents[node], remote=remote)
            return
        subtree = Tree(below, node)
        own = [branch.node for branch in subtree.children()]
        children = [Child(node, 1, remote=False), *(Child(n, n, remote=True) for n in own)]
        relay = RelayProcess(self, node, subtree, children)
        Wire(self, upper, node, relay, remote=remote)
        self.agents[node] = Agent(self, node, below_relay=True)
        Wire(self, relay, node, self.agents[node], remote=False)
        for child in own:
            self._grow(relay, child, subtree, remote=True)
        relay.run(lambda: relay.see(Seen.BEGUN))

    def look_whether_met(self, *, later: bool) -> None:
        """Ranks that wait for each other go on when all have come that anybody takes for alive."""
        first = self.job.placements
        size = self.shape.spawned if later else len(first)
        places = range(len(first), len(first) + size) if later else range(size)
        here = self.living if later else self.working
        if self.met[later] or not here or not set(places) <= here | self.mourned:
            return
        self.met[later] = True
        for rank in self.ranks():
            if rank.later is later:
                self.clock.soon(lambda rank=rank: rank.run(rank._go_on), 0.4)

    def look_whether_come(self) -> None:
        """Rank 0 goes on when all have come that it has asked for."""
        first = len(self.job.placements)
        root = next(rank for rank in self.ranks() if rank.number == 0)
        if root.meeting and set(range(first, first + self.shape.spawned)) <= self.come:
            root.say_made("")

    def let_go_on(self) -> None:
        """Rank 0 has told those that it has asked for that they are ranks of the job."""
        for rank in self.ranks():
            if rank.later:
                self.clock.soon(lambda rank=rank: rank.run(rank._go_on))

    # what is there

    def ranks(self) -> list[Rank]:
        return [one for one in self.processes if isinstance(one, Rank)]

    def of_host(self, host: int) -> list[Process]:
        return [one for one in self.processes if one.host == host and one.alive]

    def below_agents(self, host: int) -> list[Any]:
        """Ranks of a host, and what they have left."""
        return [one for one in self.of_host(host) if isinstance(one, Rank | Litter)]

    def litter(self, host: int, heirs: int = 2) -> None:
        Litter(self, f"litter {host}", host).heirs = heirs

    def power_off(self, host: int) -> None:
        for process in self.of_host(host):
            process.vanish()

    # running

    def run(self) -> World:
        """To the end of everybody.

        Raises:
            AssertionError: somebody is left waiting.
        """
        while left := [one.name for one in self.processes if one.alive and not self._lost(one)]:
            assert self.clock.step(), f"they wait for nothing: {left}"
            assert self.clock.now < LIMIT_S, f"they wait for ever: {left}"
        return self

    def _lost(self, process: Process) -> bool:
        """Of the launcher and its own agent, each is the other's guard: no process is both's."""
        killed = {fault.target for fault in self.struck if fault.kind == "kill"}
        return isinstance(process, Litter) and not process.host and killed >= {LAUNCHER, "agent 0"}

    @property
    def failures(self) -> list[Mapping[str, Any]]:
        """What the launcher has said of how the job failed."""
        found = self.launcher.findings
        return [finding.fields for finding in found if finding.name == "job failed"]


def faults(shape: Shape, kind: type[World] = World) -> Iterator[Fault]:
    """Every kill, every host that goes down, everything that a connection may lose."""
    whole = kind(shape).run()
    for process in whole.processes:
        for index in range(process.done + 1):
            yield Fault("kill", process.name, index)
            if isinstance(process, Driven) and process.host:
                yield Fault("down", process.name, index)
    for wire in whole.wires:
        if not wire.remote:
            continue
        for way, queue in (("up", wire.up), ("down", wire.down)):
            for index in range(queue.count + 1):
                for kind in ("cut", "dumb up", "dumb down", "dumb both"):
                    yield Fault(kind, wire.node, index, way)


GONE = "The process that looks after the ranks of a host is gone."


def judge(world: World) -> str:
    """What must be true of a world that is over. In a word, what became of it."""
    code, failures = world.launcher.code, world.failures
    if any(fault.target == LAUNCHER for fault in world.struck) and code is None:
        return "launcher killed"
    assert code is not None, "the launcher has come to an end"
    lost = any(fault.kind == "down" or fault.kind.startswith("dumb") for fault in world.struck)
    patience = PATIENCE if lost or world.shape.slow else 0.0
    assert world.launcher.took <= GRACE_MS / 1000 + patience + 0.5, "it waits for nobody too long"
    assert len(failures) == int(code != 0), "it says once why"
    if not code:
        assert not world.misdone, "a rank has ended the job, and nobody knows"
        refused = bool(world.answers) and world.answers[0] != 0
        assert not refused or _is_amiss(world), "a spawn has failed for nothing"
        assert len(world.answers) == int(world.shape.spawned > 0)
        for rank in world.ranks():
            if rank.later and refused:
                continue
            assert rank.status == 0
            assert rank.ended, f"rank {rank.number} has not done its work, and nobody knows"
        return "well"
    (failure,) = failures
    stories = list(_stories(world))
    assert stories, f"nothing has gone wrong: {failure}"
    found = [word for word, want, holds in stories if want == code and holds(failure)]
    assert found, f"{code}: {failure}, of {[story[:2] for story in stories]}"
    return found[0]


def _is_amiss(world: World) -> bool:
    """Whether there is a reason why what rank 0 has asked for has not come about."""
    first = len(world.job.placements)
    later = range(first, first + world.shape.spawned)
    struck = (str(fault.target) for fault in world.struck)
    killed = any(name in {f"rank {rank}" for rank in later} for name in struck)
    return killed or bool({world.shape.unforkable, world.shape.unexecutable} & set(later))


def _stories(world: World) -> Iterator[tuple[str, int, Callable[[Mapping[str, Any]], bool]]]:
    """What may be said of the faults that have struck: a word, the code, whether it is this."""

    def about(text: str) -> Callable[[Mapping[str, Any]], bool]:
        return lambda failure: str(failure["headline"]).startswith(text)

    misdeed = world.shape.misdeed
    if misdeed is not None and world.misdone:
        text = f"Rank {misdeed.rank} {'aborted' if misdeed.kind == 'abort' else ''}".rstrip()
        code = misdeed.code if misdeed.code > 0 else 128 - misdeed.code
        yield misdeed.kind, code, about(f"{text} ")
    for fault in world.struck:
        target = str(fault.target)
        if target.startswith("rank"):
            yield "rank killed", 137, about(f"R{target[1:]} was killed by signal 9")
            if int(target[5:]) in world.shape.slow:  # its connections are closed long before
                number = int(target[5:])
                yield "rank killed", 1, about(f"The MPI process {1000 + number} of rank {number} ")
        else:
            what, _, node = target.rpartition(" ")
            host, word = f"host{node}", f"{what or 'wire'} {fault.kind}"
            yield (
                word,
                1,
                lambda failure, host=host: (
                    failure["headline"].startswith(GONE) and failure["host"] == host
                ),
            )


def shape_of(number: int) -> Shape:
    """The world of a number: 2 to 5 hosts, trees of depth 1 to 3, a misdeed in every third."""
    chance = Random(f"shape {number}")
    hosts = chance.randint(2, 5)
    radix = chance.choice((1, 2, hosts)) if hosts < 5 else chance.choice((2, 3, 5))
    per_host = chance.randint(1, 2)
    ranks = range(hosts * per_host)
    misdeed = None
    if chance.random() < 1 / 3:
        kind, code = chance.choice((("exit", 3), ("abort", 7), ("crash", -11)))
        misdeed = Misdeed(chance.choice(ranks), chance.choice(STEPS[1:-1]), kind, code)
    stubborn = frozenset(rank for rank in ranks if chance.random() < 0.15)
    litter = frozenset(node for node in range(hosts) if chance.random() < 0.15)
    slow = frozenset(rank for rank in ranks if chance.random() < 0.05)
    spawned = chance.choice((0, 0, 1, 2, 3))
    amiss = hosts * per_host + chance.randrange(12)  # mostly nobody
    forks = chance.random() < 0.5
    return Shape(
        hosts,
        radix,
        per_host,
        number,
        misdeed,
        stubborn,
        litter,
        slow,
        spawned,
        amiss if forks else -1,
        -1 if forks else amiss,
    )


def depth_of(shape: Shape) -> int:
    """Of the tree of agents."""
    above = parents(range(1, shape.hosts), shape.radix)
    depth = dict.fromkeys((0, -1), 0)
    for node, parent in above.items():
        depth[node] = depth[parent] + 1
    return max(depth.values())
