"""inter's identity and parameters."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.coll import API, CollComponent, CollModule
from ompy.frameworks.communicator import Communicator
from ompy.mca.parameter import Parameter


class InterComponent(CollComponent):
    """Every operation that there is between two groups."""

    name: ClassVar[str] = "inter"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[tuple[int, int]] = API
    serves_groups: ClassVar[bool] = True
    rank_modules: ClassVar[tuple[str, ...]] = ("ompy_components.coll.inter.module",)
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "priority",
            "int",
            40,  # Open MPI 4.1: coll_inter_priority 40
            "Priority in the selection of a module for each operation.",
            level=9,
            unit="points",
        ),
    )

    def query(self, communicator: Communicator) -> CollModule:
        """A module for any communicator between two groups."""
        from ompy_components.coll.inter.module import Inter

        return Inter(communicator)


COMPONENT = InterComponent()
