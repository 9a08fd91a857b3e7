"""self's identity and parameters."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.btl import (
    API,
    EXCLUSIVITY_HIGH,
    BtlComponent,
    BtlModule,
    common_parameters,
)
from ompy.frameworks.capabilities import Capabilities
from ompy.frameworks.context import RankContext
from ompy.mca.parameter import Parameter


class SelfComponent(BtlComponent):
    """Reaches the own rank and nobody else."""

    name: ClassVar[str] = "self"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[tuple[int, int]] = API
    capabilities: ClassVar[Capabilities] = Capabilities(reach="self", wire="memory")
    parameters: ClassVar[tuple[Parameter, ...]] = common_parameters(
        exclusivity=EXCLUSIVITY_HIGH,  # reference openmpi.md 3.13, self (4.1), as the rest
        eager_limit=1024,
        rndv_eager_limit=128 * 1024,
        max_send_size=16 * 1024,
        latency=0,
        bandwidth=100,
    )

    def init(self, context: RankContext) -> list[BtlModule]:
        """One module."""
        from ompy_components.btl.self.module import SelfModule

        return [SelfModule(context, self.values)]


COMPONENT = SelfComponent()
