"""rdma's identity and parameters."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.osc import ALLOCATED, API, CREATED, OscComponent, OscModule, Window
from ompy.frameworks.osc_base.parameters import INLINE_MAX
from ompy.frameworks.osc_base.window_agreement import all_say
from ompy.mca.parameter import Parameter
from ompy.mca.selection import parse_selection


class RdmaComponent(OscComponent):
    """Windows whose members put and get over BTLs."""

    name: ClassVar[str] = "rdma"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[tuple[int, int]] = API
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "priority",
            "int",
            90,  # arbitrary: below sm's, whose loads and stores cost less, above pt2pt's
            "Priority in the selection of a module for each window.",
            level=9,
            unit="points",
        ),
        INLINE_MAX,
        Parameter(
            "btls",
            "string",
            "^tcp",  # arbitrary: tcp's put is a fragment and an answer each, and no faster
            "BTLs whose puts and gets are used: a,b for only these, ^a,b for all but these. What "
            "can go over none of them goes as messages.",
            level=5,
        ),
    )

    def query(self, window: Window) -> OscModule | None:
        """A module, if some member reaches another through a BTL that puts or gets."""
        communicator = window.communicator
        if window.flavor not in {CREATED, ALLOCATED} or communicator.size < 2:
            return None
        from ompy_components.osc.rdma.reachable_btls import able_modules

        able = able_modules(communicator, parse_selection(self.values.btls))
        if all_say(communicator, not able):
            return None
        from ompy_components.osc.rdma.module import RdmaOsc

        return RdmaOsc(window, self.values.inline_max, able)


COMPONENT = RdmaComponent()
