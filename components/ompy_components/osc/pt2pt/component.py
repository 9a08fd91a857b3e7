"""pt2pt's identity and parameters."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.osc import API, SHARED, OscComponent, OscModule, Window
from ompy.frameworks.osc_base.parameters import INLINE_MAX
from ompy.mca.parameter import Parameter


class Pt2ptComponent(OscComponent):
    """Windows of any ranks, over whatever the PML uses."""

    name: ClassVar[str] = "pt2pt"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[tuple[int, int]] = API
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "priority",
            "int",
            10,  # Open MPI 2.x: osc_pt2pt_priority
            "Priority in the selection of a module for each window.",
            level=9,
            unit="points",
        ),
        INLINE_MAX,
    )

    def query(self, window: Window) -> OscModule | None:
        """A module for any window but one of memory that all share, unless there is one rank."""
        if window.flavor == SHARED and window.communicator.size > 1:
            return None
        from ompy_components.osc.pt2pt.module import Pt2pt

        return Pt2pt(window, self.values.inline_max)


COMPONENT = Pt2ptComponent()
