"""Virtual worlds of the control plane in which ranks of another launcher join the job.

The machines are the product's (`OpenJobMachine`, `GuestMachine`); the rest is that of
`control_world.py`. A guest joins at a moment that the world's seed decides, and meets nobody: so
whatever becomes of it, the job ends as it would have without.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ompy.frameworks.job import App, Job, Placement
from ompy.runtime.connections.control import KEY_SIZE, Kind
from ompy.runtime.machines.acts import PARENT, Act, AdmitGuest, Find, Show, Stop, Sweep
from ompy.runtime.machines.agents.agent import Beat, HostMachine
from ompy.runtime.machines.agents.guest_relay import GuestMachine
from ompy.runtime.machines.agents.local_ranks import RankLife
from ompy.runtime.machines.children import Child
from ompy.runtime.machines.events import Event, Seen
from ompy.runtime.machines.launcher.job_table import JobPhase
from ompy.runtime.machines.launcher.open_job import OpenJobMachine

from tests.support.control_processes import Driven, Fault, Wire
from tests.support.control_world import (
    Agent,
    Launcher,
    Rank,
    Shape,
    World,
)

GUEST = "guest"
KEY = bytes(KEY_SIZE)
GUEST_RANKS = 2


class OpenLauncher(Launcher):
    """`ompy-run --joinable`."""

    machine_class = OpenJobMachine

    def carry_out(self, act: Act) -> None:
        if isinstance(act, AdmitGuest):
            header = self.world._start(act.node)
            self.send(act.node, Kind.START, header, act.job.packed())
        else:
            super().carry_out(act)


class GuestLauncher(Driven):
    """`ompy-run --join`."""

    world: GuestWorld
    machine: GuestMachine

    def __init__(self, world: GuestWorld, node: int) -> None:
        super().__init__(world, GUEST, node)
        places = tuple(Placement(rank, 0, 0, rank) for rank in range(GUEST_RANKS))
        alone = Job("0" * 16, (App(("g",), GUEST_RANKS),), (f"host{node}",), places)
        child = Child(node, 1, remote=False)
        self.machine = GuestMachine(node, alone, child, KEY, quiet=False)
        self.code: int | None = None

    def carry_out(self, act: Act) -> None:
        match act:
            case Sweep():
                self._sweep()
            case Stop():
                self.end()
            case Show() | Find():
                pass
            case _:
                super().carry_out(act)

    def tell(self, event: Event) -> None:
        super().tell(event)
        if self.machine.done:
            self.end()

    def _sweep(self) -> None:
        for process in self.world.of_host(self.host):
            if process is not self:
                process.die()

    def end(self) -> None:
        self.code = self.machine.exit_code
        self._sweep()
        self.die()

    def bury(self) -> None:
        """Its agent sees it, and so does the launcher of the job."""


class GuestAgent(Agent):
    """The agent of its ranks."""

    world: GuestWorld

    def hear(self, who: int, message: tuple[Kind, Mapping[str, Any], bytes]) -> None:
        if self.machine is not None:
            super().hear(who, message)
            return
        kind, start, body = message
        assert kind is Kind.START, "the first message"
        assert body.startswith(KEY), "the launcher of the guest puts the key before the job"
        self.job = Job.from_dict(json.loads(body[KEY_SIZE:]))
        lives = []
        for place in self.job.placements:
            if place.node == self.node:
                self.does()
                rank = self.ranks[place.rank] = GuestRank(self.world, place.rank, self)
                self.send(PARENT, Kind.STARTED, {"rank": rank.number, "pid": rank.pid})
                lives.append(RankLife(rank.number, rank.pid))
        beat = Beat(start["heartbeat_ms"] / 1000, start["heartbeat_misses"])
        hosts = [place.node for place in self.job.placements]
        self.machine = HostMachine(self.node, beat, lives, hosts, several=True)
        self.see(Seen.BEGUN)


class GuestRank(Rank):
    """Attaches, looks up rank 0 of the job, and leaves; some fail on the way."""

    def _come(self) -> None:
        """Nobody has asked for it."""
        self._go_on()

    def _live(self) -> None:
        if self.number % GUEST_RANKS and self.world.shape.seed % 3 == 0:
            self.exit(5)
            return
        self.world.clock.soon(lambda: self.run(self._go_on), 0.2)


class GuestWorld(World):
    """A job, and a guest that joins it."""

    launcher_class = OpenLauncher

    def __init__(self, shape: Shape, *faults: Fault) -> None:
        super().__init__(shape, *faults)
        self.guest: GuestLauncher | None = None
        self.clock.soon(self._join, 0.1)

    def ranks(self) -> list[Rank]:
        return [one for one in super().ranks() if not isinstance(one, GuestRank)]

    def _join(self) -> None:
        launcher = self.launcher
        if not launcher.alive or launcher.job.phase is not JobPhase.RUNNING:
            return
        assert isinstance(launcher.job, OpenJobMachine)
        node = launcher.job.next_node
        self.guest = GuestLauncher(self, node)
        agent = self.agents[node] = GuestAgent(self, node, below_relay=True)
        Wire(self, launcher, node, self.guest, remote=True)
        # its own connection to its agent has the same index, on its side
        Wire(self, self.guest, node, agent, remote=False)
        guest = self.guest
        guest.run(lambda: guest.see(Seen.BEGUN))
        apps = json.dumps([App(("g",), GUEST_RANKS)._asdict()]).encode()
        facts = {"host": f"host{node}", "pid": 9}
        event = Event(Seen.JOINED, node, None, facts, apps)
        launcher.run(lambda: launcher.tell(event))

    def is_the_guests(self, fault: Fault) -> bool:
        """Whether a fault strikes nothing but what is the guest's."""
        node = self.shape.hosts
        own = {GUEST, f"agent {node}", node}
        own |= {f"rank {self.shape.hosts * self.shape.per_host + n}" for n in range(GUEST_RANKS)}
        return fault.target in own

    def judge_guest(self) -> None:
        """What must be true of it when all is over."""
        if self.guest is None:
            return
        assert not self.of_host(self.guest.host), "nothing of it is left"
        if not self.struck:
            failing = self.shape.seed % 3 == 0
            ended_early = self.launcher.code != 0 or self.guest.code == 1
            assert ended_early or self.guest.code == (5 if failing else 0)
