"""self's identity and parameters."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.coll import API, CollComponent, CollModule
from ompy.frameworks.communicator import Communicator
from ompy.mca.parameter import Parameter


class SelfComponent(CollComponent):
    """Every operation of a communicator with one member."""

    name: ClassVar[str] = "self"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[tuple[int, int]] = API
    rank_modules: ClassVar[tuple[str, ...]] = ("ompy_components.coll.self.module",)
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "priority",
            "int",
            75,  # Open MPI 4.1: coll_self_priority 75
            "Priority in the selection of a module for each operation.",
            level=9,
            unit="points",
        ),
    )

    def query(self, communicator: Communicator) -> CollModule | None:
        """A module for a communicator with one member."""
        if communicator.size != 1:
            return None
        from ompy_components.coll.self.module import SelfColl

        return SelfColl(communicator)


COMPONENT = SelfComponent()
