"""ob1's identity and parameters."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.bml import Bml
from ompy.frameworks.context import RankContext
from ompy.frameworks.pml import API, Pml, PmlComponent
from ompy.mca.parameter import Parameter


class Ob1Component(PmlComponent):
    """The default PML. Defaults: reference openmpi.md 3.9."""

    name: ClassVar[str] = "ob1"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[tuple[int, int]] = API
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "priority",
            "int",
            20,
            "Priority in the selection of a PML.",
            level=9,
            unit="points",
        ),
        Parameter(
            "send_pipeline_depth",
            "int",
            3,
            "Fragments of one message under way at a time in the send/receive pipeline.",
            level=9,
            unit="fragments",
            minimum=1,
        ),
        Parameter(
            "max_send_per_range",
            "int",
            4,
            "Rails one large message is shared out over at most.",
            level=9,
            unit="rails",
            minimum=1,
        ),
    )

    def init(self, context: RankContext, bml: Bml) -> Pml:
        """The PML of one rank."""
        from ompy_components.pml.ob1.module import Ob1

        return Ob1(context, bml, self.values)


COMPONENT = Ob1Component()
