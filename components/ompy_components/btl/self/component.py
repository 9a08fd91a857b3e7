"""self's identity and parameters."""

from __future__ import annotations

from typing import ClassVar, Final

from ompy.frameworks.btl import (
    API,
    EXCLUSIVITY_HIGH,
    GET,
    PUT,
    RDMA_COMPLETION,
    SEND,
    SIZE_MAX,
    BtlComponent,
    BtlModule,
)
from ompy.frameworks.btl_base.btl_parameters import common_parameters
from ompy.frameworks.capabilities import Capabilities
from ompy.frameworks.context import RankContext
from ompy.mca.parameter import Parameter
from ompy.mca.performance import LEVEL, PerformanceVariable

INT_MAX: Final = (1 << 31) - 1  # reference openmpi.md 3.13: a length nothing reaches


class SelfComponent(BtlComponent):
    """Reaches the own rank and nobody else."""

    name: ClassVar[str] = "self"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[tuple[int, int]] = API
    rank_modules: ClassVar[tuple[str, ...]] = ("ompy_components.btl.self.module",)
    capabilities: ClassVar[Capabilities] = Capabilities(reach="self", wire="memory")
    pvars: ClassVar[tuple[PerformanceVariable, ...]] = (
        PerformanceVariable(
            "registrations", "Pieces of memory that are registered.", "registrations", LEVEL
        ),
    )
    parameters: ClassVar[tuple[Parameter, ...]] = common_parameters(
        exclusivity=EXCLUSIVITY_HIGH,  # reference openmpi.md 3.13, self (4.1), as the rest
        eager_limit=1024,
        rndv_eager_limit=128 * 1024,
        max_send_size=16 * 1024,
        latency=0,
        bandwidth=100,
        flags=SEND | PUT | GET | RDMA_COMPLETION,
        rdma_pipeline_send_length=INT_MAX,
        rdma_pipeline_frag_size=INT_MAX,
        min_rdma_pipeline_size=0,
        put_limit=SIZE_MAX,
        get_limit=SIZE_MAX,
        put_alignment=1,
        get_alignment=1,
    )

    def init(self, context: RankContext) -> list[BtlModule]:
        """One module."""
        from ompy_components.btl.self.module import SelfModule

        return [SelfModule(context, self.values)]


COMPONENT = SelfComponent()
