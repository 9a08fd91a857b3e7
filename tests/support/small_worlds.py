"""Worlds so small that thousands of them run in a minute: ranks of ob1, r2 and `RdmaRail`s alone.

Nothing is discovered, parsed or opened: ob1 gets its parameters as they are. The ranks run the
same protocols on the same engine as those of `rdma_world`, which brings up everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ompy.frameworks.btl import BtlModule
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.context import RankContext
from ompy.mca.parameter import Values
from ompy.runtime.simulation.virtual_job import VirtualJob
from ompy_components.bml.r2.module import R2
from ompy_components.pml.ob1.component import Ob1Component
from ompy_components.pml.ob1.module import Ob1

from tests.support.rdma_btl import RdmaModule, RdmaNet, RdmaRail, run_and_look_for_leaks


def values_of(component: Any, **changed: object) -> Values:
    """A component's parameters at their defaults, but for those given."""
    return Values(
        {parameter.name: parameter.default for parameter in component.parameters} | changed
    )


class SmallProcess:
    """A rank that has a PML, and no more: what the programs use of a `RankProcess`."""

    pml_class: type[Ob1] = Ob1

    def __init__(self, context: RankContext, modules: Sequence[BtlModule], values: Values):
        self.context = context
        self.communicators: dict[int, Communicator] = {}
        context.btls += modules
        self._bml = R2(context)
        self.pml = self.pml_class(context, self._bml, values)
        context.pml_name = "ob1"
        for module in context.btls:
            context.engine.add_poller(module)
        context.wireup.publish("pml", b"ob1")
        context.wireup.commit()

    def communicator(self, context_id: int, procs: Sequence[Any], name: str) -> Communicator:
        made = Communicator(self.context, self.pml, context_id, procs, name)
        self.pml.add_communicator(made)
        self.communicators[context_id] = made
        return made

    def finalize(self) -> None:
        self.pml.finalize()
        self._bml.finalize()
        for module in self.context.btls:
            self.context.engine.remove_poller(module)


def small_world(
    programs: Sequence[Any],
    rails: Sequence[RdmaRail],
    *,
    seed: int = 0,
    parameters: Mapping[str, object] = {},
) -> VirtualJob:
    """Run one program per rank over these rails, `parameters` being ob1's, without its prefix."""
    net = RdmaNet()
    values = values_of(Ob1Component, **parameters)
    processes: list[SmallProcess] = []

    def bring_up(context: RankContext, registry: object) -> SmallProcess:
        modules = [RdmaModule(context, net, index, rail) for index, rail in enumerate(rails)]
        processes.append(SmallProcess(context, modules, values))
        return processes[-1]

    job = VirtualJob(len(programs), None, seed=seed, bring_up=bring_up)  # type: ignore[arg-type]
    return run_and_look_for_leaks(job, programs, net, processes)
