"""basic's identity and parameters."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.coll import API, CollComponent, CollModule
from ompy.frameworks.communicator import Communicator
from ompy.mca.parameter import Parameter


class BasicComponent(CollComponent):
    """Every operation, on every communicator.

    The limits must be the same in every rank: each decides by itself which algorithm to use.
    Where they are said to be measured: interpreted, btl sm, 2 to 16 ranks on 2 cores.
    """

    name: ClassVar[str] = "basic"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[tuple[int, int]] = API
    rank_modules: ClassVar[tuple[str, ...]] = ("ompy_components.coll.basic.module",)
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "priority",
            "int",
            10,  # reference openmpi.md 0.6 names no other; Open MPI 4.1: coll_basic_priority 10
            "Priority in the selection of a module for each operation.",
            level=9,
            unit="points",
        ),
        Parameter(
            "tree_block_max",
            "size_t",
            1024,  # measured: 512 bytes gain by the tree, with 2048 it exceeds sm's eager limit
            "Largest block that scatter and gather carry along a tree, copying it at each "
            "step; larger ones go straight between their rank and the root.",
            level=5,
            unit="bytes",
        ),
        Parameter(
            "allgather_small_max",
            "size_t",
            256 * 1024,  # measured: the ring pays from 0.1 (2 ranks) to 8 MiB (8 ranks)
            "Most bytes, of all blocks together, that allgather exchanges in few steps with "
            "a copy (Bruck); more go round a ring.",
            level=5,
            unit="bytes",
        ),
        Parameter(
            "alltoall_small_max",
            "size_t",
            0,  # measured: with all pairs at once there is nothing to gain up to 16 ranks
            "Largest block that a regular alltoall exchanges in few steps with copies (Bruck); "
            "others are exchanged pairwise. 0 is for all to be exchanged pairwise.",
            level=5,
            unit="bytes",
        ),
        Parameter(
            "alltoall_window",
            "int",
            16,  # measured: 8 ranks take half as long with all pairs at once as one by one
            "Ranks that a rank exchanges blocks with at the same time in a pairwise alltoall.",
            level=5,
            unit="ranks",
            minimum=1,
        ),
        Parameter(
            "allreduce_small_max",
            "size_t",
            512 * 1024,  # measured: the ring pays from 0.5 (2 ranks) to 2 MiB (8 ranks)
            "Most bytes that allreduce combines by recursive doubling; more go round a ring, "
            "or to one rank and back when the operation does not commute.",
            level=5,
            unit="bytes",
        ),
        Parameter(
            "reduce_scatter_small_max",
            "size_t",
            128 * 1024,  # measured: pairwise pays from 4 KiB (2 ranks) to 0.5 MiB (4 and 8)
            "Most bytes, of all blocks together, that reduce_scatter combines by recursive "
            "doubling, each rank keeping its block; more are exchanged pairwise.",
            level=5,
            unit="bytes",
        ),
    )

    def query(self, communicator: Communicator) -> CollModule:
        """A module for any communicator."""
        from ompy_components.coll.basic.module import Basic

        return Basic(communicator, self.values)


COMPONENT = BasicComponent()
