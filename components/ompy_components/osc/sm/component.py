"""sm's identity and parameters."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.osc import API, SHARED, OscComponent, OscModule, Window
from ompy.mca.parameter import Parameter


class SmOscComponent(OscComponent):
    """Windows whose members are on one host and reach each other's memory."""

    name: ClassVar[str] = "sm"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[tuple[int, int]] = API
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "priority",
            "int",
            100,  # Open MPI 4.1: osc_sm_priority
            "Priority in the selection of a module for each window.",
            level=9,
            unit="points",
        ),
        Parameter(
            "word_locks",
            "bool",
            True,
            "Whether locks are words of the shared memory, where all members run compiled: an "
            "operation then costs a copy and little more. Otherwise they are the kernel's.",
            level=6,
        ),
        Parameter(
            "active_messages",
            "bool",
            True,
            "Whether small operations on memory of a member's own are done by that member, while "
            "it is in MPI; where all members run compiled, have words for locks and are few. "
            "Otherwise the kernel copies.",
            level=6,
        ),
        Parameter(
            "max_attach",
            "int",
            1024,  # arbitrary; Open MPI 5: osc_rdma_max_attach has 64
            "Pieces of memory that a rank has attached to a dynamic window at a time, at most.",
            level=6,
            unit="pieces",
            minimum=1,
        ),
    )

    def query(self, window: Window) -> OscModule | None:
        """A module, if all members can share the memory.

        Who has chosen another way for messages (`--mca btl self,tcp`) wants to see it used, except
        in a window that has to be shared.
        """
        communicator = window.communicator
        if window.flavor != SHARED and communicator.context.recovery is not None:
            return None  # who waits in memory for one that dies would not hear of it
        if len({proc.node for proc in communicator.procs}) > 1:
            return None
        by_memory = communicator.size == 1 or any(
            module.name == "sm" for module in communicator.context.btls
        )
        if window.flavor != SHARED and not by_memory:
            return None
        from ompy_components.osc.sm.module import shared_window

        values = self.values
        return shared_window(
            window,
            by_words=values.word_locks,
            by_messages=values.active_messages,
            max_attach=values.max_attach,
        )


COMPONENT = SmOscComponent()
