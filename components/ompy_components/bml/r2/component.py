"""r2's identity."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.bml import API, Bml, BmlComponent
from ompy.frameworks.context import RankContext
from ompy.mca.parameter import Parameter


class R2Component(BmlComponent):
    """The only BML; it always wins."""

    name: ClassVar[str] = "r2"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[tuple[int, int]] = API
    rank_modules: ClassVar[tuple[str, ...]] = ("ompy_components.bml.r2.module",)
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "priority",
            "int",
            100,  # reference openmpi.md 1.4.8
            "Priority in the selection of a BML.",
            level=9,
            unit="points",
        ),
    )

    def init(self, context: RankContext) -> Bml:
        """The BML of one rank."""
        from ompy_components.bml.r2.module import R2

        return R2(context)


COMPONENT = R2Component()
