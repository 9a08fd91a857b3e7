"""The PML's identity."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.bml import Bml
from ompy.frameworks.context import RankContext
from ompy.frameworks.pml import Pml, PmlComponent
from ompy.mca.parameter import Parameter


class GoodComponent(PmlComponent):
    """Nobody's choice unless it is named."""

    name: ClassVar[str] = "good"
    version: ClassVar[str] = "1.3"
    api: ClassVar[tuple[int, int]] = (2, 0)
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("priority", "int", 1, "Priority in the selection of a PML.", level=9),
    )

    def init(self, context: RankContext, bml: Bml) -> Pml:
        from ompy_pml_good.module import GoodPml

        return GoodPml(context, bml)


COMPONENT = GoodComponent()
