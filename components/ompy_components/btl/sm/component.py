"""sm's identity and parameters."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.btl import API, BtlComponent, BtlModule, common_parameters
from ompy.frameworks.capabilities import Capabilities
from ompy.frameworks.context import RankContext
from ompy.mca.component import NotAvailable
from ompy.mca.parameter import Parameter
from ompy.net.base import LinkError


class SmComponent(BtlComponent):
    """Reaches the other ranks of the host. Defaults: reference openmpi.md 3.13, sm (5)."""

    name: ClassVar[str] = "sm"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[tuple[int, int]] = API
    capabilities: ClassVar[Capabilities] = Capabilities(reach="host", wire="memory")
    parameters: ClassVar[tuple[Parameter, ...]] = (
        *common_parameters(
            exclusivity=65536,
            eager_limit=4096,
            rndv_eager_limit=32 * 1024,
            # reference performance.md 3d: pipelined copies want chunks of 128 KiB to 1 MiB;
            # Open MPI's 32 KiB would spend interpreted code on every 32 KiB
            max_send_size=128 * 1024,
            latency=1,
            bandwidth=10_000,
        ),
        Parameter(
            "ring_slots",
            "int",
            32,  # reference performance.md 6: depth of 8, 16 or 256 made no difference
            "Small fragments that can be under way from one rank to another at a time.",
            level=6,
            unit="fragments",
            minimum=2,
        ),
        Parameter(
            "free_list_max",
            "int",
            16,  # arbitrary: five messages at ob1's pipeline depth of 3
            "Large fragments a rank can have under way at a time.",
            level=6,
            unit="fragments",
            minimum=1,
        ),
    )

    def init(self, context: RankContext) -> list[BtlModule]:
        """One module, when the rank is not alone on its host."""
        from ompy_components.btl.sm.module import SmModule

        if len(context.local_procs()) < 2:
            return []  # no other rank of the job is on this host
        try:
            module = SmModule(context, self.values)
        except LinkError as problem:
            raise NotAvailable(str(problem)) from problem
        context.wireup.publish("btl.sm", b"1")
        return [module]


COMPONENT = SmComponent()
