"""pt2pt's identity and parameters."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.osc import API, SHARED, OscComponent, OscModule, Window
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
        Parameter(
            "inline_max",
            "size_t",
            # arbitrary: with its command less than the least eager limit of a BTL, sm's 4 KiB, so
            # that a second message, and a copy less, pay only beyond
            3584,
            "Bytes of data that are sent along with what is to be done with them. More follow in a "
            "message of their own.",
            level=5,
            unit="bytes",
            minimum=0,
        ),
    )

    def query(self, window: Window) -> OscModule | None:
        """A module for any window but one of memory that all share, unless there is one rank."""
        if window.flavor == SHARED and window.communicator.size > 1:
            return None
        from ompy_components.osc.pt2pt.module import Pt2pt

        return Pt2pt(window, self.values.inline_max)


COMPONENT = Pt2ptComponent()
