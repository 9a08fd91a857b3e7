"""The BTL's identity."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.btl import BtlComponent, BtlModule
from ompy.frameworks.btl_base.btl_parameters import common_parameters
from ompy.frameworks.capabilities import Capabilities
from ompy.frameworks.context import RankContext
from ompy.mca.parameter import Parameter


class GoodComponent(BtlComponent):
    """Reaches the ranks of this host."""

    name: ClassVar[str] = "good"
    version: ClassVar[str] = "1.2"
    api: ClassVar[tuple[int, int]] = (3, 1)
    capabilities: ClassVar[Capabilities] = Capabilities(reach="host", wire="stream")
    parameters: ClassVar[tuple[Parameter, ...]] = common_parameters(
        exclusivity=0,  # nobody's choice unless it is named
        eager_limit=4096,
        rndv_eager_limit=4096,
        max_send_size=65536,
        latency=200,
        bandwidth=50,
    )

    def init(self, context: RankContext) -> list[BtlModule]:
        from ompy_btl_good.module import GoodModule

        return [GoodModule(context, self.values)] if len(context.local_procs()) > 1 else []


COMPONENT = GoodComponent()
