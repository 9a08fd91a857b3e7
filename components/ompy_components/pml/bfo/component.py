"""bfo's identity and parameters."""

from __future__ import annotations

from copy import copy
from typing import ClassVar

from ompy.frameworks.bml import Bml
from ompy.frameworks.context import RankContext
from ompy.frameworks.pml import API, Pml, PmlComponent
from ompy.mca.parameter import Parameter
from ompy.mca.performance import PerformanceVariable

from ompy_components.pml.ob1.component import COMPONENT as OB1


def _as_ob1(parameter: Parameter) -> Parameter:
    made = copy(parameter)
    made.synonyms = ()  # those without a prefix are ob1's
    if made.name == "priority":
        made.default = 5  # reference openmpi.md 4.2
    return made


class BfoComponent(PmlComponent):
    """Selected by name only. Defaults: reference openmpi.md 4.2."""

    name: ClassVar[str] = "bfo"
    version: ClassVar[str] = "0.1.0"
    wire_formats: ClassVar[str] = "ompy_components.pml.bfo.wire:WIRE"
    api: ClassVar[tuple[int, int]] = API
    rank_modules: ClassVar[tuple[str, ...]] = ("ompy_components.pml.bfo.module",)
    pvars: ClassVar[tuple[PerformanceVariable, ...]] = OB1.pvars
    parameters: ClassVar[tuple[Parameter, ...]] = (
        *(_as_ob1(parameter) for parameter in OB1.parameters),
        Parameter(
            "piece_ms",
            "int",
            200,  # arbitrary: long against what ranks that share a core wait for each other
            "How long a piece of a large message may take on its rail where there is another to go "
            "on over, from asking until it is there; what was lost goes again behind such pieces. "
            "0: any time.",
            level=5,
            unit="ms",
            minimum=0,
        ),
        Parameter(
            "piece_least",
            "size_t",
            1024 * 1024,  # arbitrary: 8 ms of 1 Gbit/s
            "Bytes of a piece that is not made shorter, however long it takes.",
            level=6,
            unit="bytes",
            minimum=1,
        ),
        Parameter(
            "restarts_max",
            "int",
            1000,  # arbitrary: more often than rails fail during one message
            "Times that one message is begun anew before it fails; 0 for any number.",
            level=9,
            unit="restarts",
            minimum=0,
        ),
    )

    def init(self, context: RankContext, bml: Bml) -> Pml:
        """The PML of one rank."""
        from ompy_components.pml.bfo.module import Bfo

        return Bfo(context, bml, self.values)


COMPONENT = BfoComponent()
