"""pt2pt for one window: all of `osc_base`, over memory of its own if the user gives none."""

from __future__ import annotations

from typing import ClassVar

from ompy.data.convertor import allocate_memory
from ompy.frameworks.osc import ALLOCATED, SHARED, Window
from ompy.frameworks.osc_base.module import MessageOsc


class Pt2pt(MessageOsc):
    """Every operation as a message."""

    all_messages: ClassVar[bool] = True

    def __init__(self, window: Window, inline_max: int) -> None:
        if window.flavor in {ALLOCATED, SHARED}:
            window.memory = allocate_memory(window.sizes[window.communicator.rank])
        super().__init__(window, inline_max)

    def shared(self, rank: int) -> memoryview | None:
        """This rank's own part only."""
        return self.window.memory if rank == self.rank else None
