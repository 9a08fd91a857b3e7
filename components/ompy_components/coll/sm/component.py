"""sm's identity and parameters."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.coll import API, CollComponent, CollModule
from ompy.frameworks.communicator import Communicator
from ompy.mca.component import NotAvailable
from ompy.mca.parameter import Parameter


class SmCollComponent(CollComponent):
    """All operations, blocking, where all members are on one host.

    The parameters must be the same in every rank: each lays out the memory by itself.
    """

    name: ClassVar[str] = "sm"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[tuple[int, int]] = API
    rank_modules: ClassVar[tuple[str, ...]] = ("ompy_components.coll.sm.module",)
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "priority",
            "int",
            40,  # arbitrary: above tuned's 30, which serves what this leaves alone; Open MPI has 0
            "Priority in the selection of a module for each operation.",
            level=6,
            unit="points",
        ),
        Parameter(
            "fragment_size",
            "size_t",
            64 * 1024,  # arbitrary: with Open MPI's 8 KiB most of the time would be Python's
            "Bytes that a rank shows the others at a time; more are a pipeline of fragments.",
            level=6,
            unit="bytes",
            minimum=64,
        ),
        Parameter(
            "lend_least",
            "size_t",
            64 * 1024 + 1,  # measured: less takes half of the time by fragments, near cores or far
            "Bytes of a broadcast or of blocks from which on they are read in place, if all ranks "
            "may read each other's memory.",
            level=6,
            unit="bytes",
        ),
        Parameter(
            "comm_num_segments",
            "int",
            32,  # measured: four ranks on two cores. Open MPI's coll/sm has 8
            "Fragments of a rank that may be in use at a time: how far ranks may be apart. It is "
            "rounded up to a power of two.",
            level=6,
            unit="fragments",
            minimum=2,
        ),
        Parameter(
            "nonblocking_size",
            "size_t",
            64 * 1024,  # measured: 64 KiB take 5.1 us by slots, and 8.9 as messages
            "Bytes that a rank shows the others in a nonblocking or persistent call; what is more "
            "goes as messages.",
            level=6,
            unit="bytes",
            minimum=64,
        ),
        Parameter(
            "single_copy",
            "bool",
            True,
            "Blocks that are larger than a fragment are read where they are, by one copy of the "
            "kernel, where it lets the ranks of the host do so; else they are sent as messages.",
            level=6,
        ),
        Parameter(
            "window_size",
            "size_t",
            512
            * 1024,  # all that the default fragments hold: more of it costs fewer changes of rank
            "Bytes of a large reduction that are shown, shared out and combined at a time; at most "
            "what the fragments of a rank hold.",
            level=6,
            unit="bytes",
            minimum=64,
        ),
    )

    def query(self, communicator: Communicator) -> CollModule:
        """A module, if all members are on one host and messages between them go through memory.

        Who has chosen another way for messages (`--mca btl self,tcp`) wants to see it used.

        Raises:
            NotAvailable: that is not so.
        """
        if communicator.size < 2:
            raise NotAvailable("it has one member only")
        from ompy.frameworks.collectives.shared_memory import why_no_memory

        why = why_no_memory(communicator.context, communicator.procs)
        if why:
            raise NotAvailable(why)
        from ompy_components.coll.sm.module import SmColl

        return SmColl(communicator, self.values)


COMPONENT = SmCollComponent()
