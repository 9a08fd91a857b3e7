"""Ranks of a virtual world that have emulated fabric NICs and nothing else, agents included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import interfaces_for
from ompy.mca.parameter import Values
from ompy.net.faults.fault_rules import FaultRule
from ompy.net.faults.middleware import FaultCounter
from ompy.net.faults.scripted import ScriptedFaults
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.simulation.virtual_job import VirtualJob
from ompy_components.nic.ofi_emulated.choice import chosen
from ompy_components.nic.ofi_emulated.component import COMPONENT
from ompy_components.nic.ofi_emulated.device import EmulatedFabric

from tests.support.fabric_programs import Side, best
from tests.support.scripted_world import faults_of
from tests.support.worlds import registry

DEFAULTS = {parameter.name: parameter.default for parameter in COMPONENT.parameters}
KEY = "fabric"


class Rank:
    """One rank with one device, open.

    Attributes:
        nic: the device.
        context: of the rank.
        script: the faults of its network.
    """

    def __init__(
        self, context: RankContext, settings: dict[str, Any], rules: Sequence[FaultRule]
    ) -> None:
        self.context = context
        self.engine = context.engine
        self.rank = context.rank
        self._given = 0
        self.script: ScriptedFaults | None = None
        if rules:
            self.script = faults_of(context, rules)
            context.network.install(self.script)
        values = Values({**DEFAULTS, **settings})
        self.nic = EmulatedFabric(context, interfaces_for(context), chosen(values), values)
        self.nic.open()

    def swap(self, mine: bytes) -> bytes:
        """Give the other rank some bytes, and have its."""
        return self.gather(mine)[1 - self.rank]

    def gather(self, mine: bytes) -> list[bytes]:
        """What every rank has given, by rank."""
        wireup = self.context.wireup
        self._given += 1
        key = f"{KEY}{self._given}"  # a peer may be one further when we look
        wireup.publish(key, mine)
        wireup.commit()
        wireup.fence()
        return [wireup.lookup(rank)[key] for rank in range(self.context.size)]

    def side(self, provider: str = "", **more: Any) -> Side:
        """This rank as the programs want it."""
        hints = {key: more.pop(key) for key in ("caps", "mr_mode", "op_flags") if key in more}
        info = best(self.nic, provider, **hints)
        return Side(self.engine, self.rank, self.nic, info, self.swap, **more)

    def compute(self, seconds: float) -> None:
        """Nothing is polled meanwhile."""
        self.engine.spend(round(seconds * 1_000_000_000))  # type: ignore[attr-defined]

    def finalize(self) -> None:
        self.nic.close()


def run(
    program: Callable[[Rank], Any],
    *,
    seed: int = 0,
    rules: Sequence[FaultRule] = (),
    trace: bool = False,
    hosts: Sequence[int] = (0, 1),
    rail: Rail | None = None,
    rails: int = 1,
    **settings: Any,
) -> tuple[VirtualJob, FaultCounter]:
    """Run a program on ranks of two or more hosts.

    Args:
        program: of each rank.
        seed: of the world.
        rules: of a fault script.
        trace: write the events.
        hosts: of the ranks.
        rail: the network.
        rails: how many there are.
        settings: parameters of the device.

    Returns:
        The job, whose `results` are those of the programs, and the faults delivered.
    """
    made: list[Rank] = []

    def bring_up(context: RankContext, _registry: Any) -> Rank:
        made.append(Rank(context, settings, rules))
        return made[-1]

    networks = (rail or Rail("rail0"), *(Rail(f"rail{number}") for number in range(1, rails)))
    job = VirtualJob(
        len(hosts),
        registry(),
        seed=seed,
        rails=networks,
        hosts=hosts,
        bring_up=bring_up,
    )
    job.results = job.run(program, trace=trace)  # type: ignore[attr-defined]
    counter = FaultCounter()
    for rank in made:
        for name, count in rank.nic.counts.items():
            counter.delivered[name] += count
        if rank.script is not None:
            for rule, count in zip(rules, rank.script.delivered, strict=True):
                counter.delivered[rule.what] += count
    return job, counter


def both(program: Callable[[Side], Any], provider: str = "", **more: Any) -> Callable[[Rank], Any]:
    """A program of `fabric_programs` for `run`."""

    def body(rank: Rank) -> Any:
        side = rank.side(provider, **more)
        result = program(side)
        side.close()
        return result

    return body
