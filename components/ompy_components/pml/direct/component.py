"""direct's identity."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.bml import Bml
from ompy.frameworks.context import RankContext
from ompy.frameworks.pml import API, Pml, PmlComponent
from ompy.mca.component import NotAvailable
from ompy.mca.parameter import Parameter


class DirectComponent(PmlComponent):
    """The PML of `ompy sim --explore` and `--cluster`, whose worlds match for it."""

    name: ClassVar[str] = "direct"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[tuple[int, int]] = API
    rank_modules: ClassVar[tuple[str, ...]] = ("ompy_components.pml.direct.module",)
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "priority",
            "int",
            1,  # arbitrary: below all that work anywhere
            "Priority of the component; the PML with the highest that is available is used.",
            level=9,
            unit="points",
        ),
    )

    def init(self, context: RankContext, bml: Bml) -> Pml:
        """The PML of one rank.

        Raises:
            NotAvailable: the world is not explored.
        """
        del bml
        from ompy_components.pml.direct.module import Direct

        if context.direct is None:
            raise NotAvailable(
                "it is the PML of ompy sim --explore and --cluster, and works nowhere else"
            )
        return Direct(context.direct, context.trace)


COMPONENT = DirectComponent()
