"""tuned's identity and parameters."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.coll import API, CollComponent, CollModule
from ompy.frameworks.communicator import Communicator
from ompy.mca.component import NotAvailable
from ompy.mca.enumerators import Enumerator
from ompy.mca.parameter import Parameter

from ompy_components.coll.tuned.decision import ALGORITHMS, IGNORE


def _algorithm(operation: str) -> Parameter:
    words = {IGNORE: 0, **ALGORITHMS[operation]}
    return Parameter(
        f"{operation}_algorithm",
        "int",
        0,
        f"Algorithm that {operation} always takes, if coll_tuned_use_dynamic_rules is true; "
        f"{IGNORE} leaves it to the fixed rules.",
        level=5,
        unit="algorithm",
        enumerator=Enumerator(words),
    )


class TunedComponent(CollComponent):
    """Every operation, on communicators of two and more.

    The parameters must be the same in every rank: each decides by itself which algorithm to use.
    """

    name: ClassVar[str] = "tuned"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[tuple[int, int]] = API
    rank_modules: ClassVar[tuple[str, ...]] = ("ompy_components.coll.tuned.module",)
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "priority",
            "int",
            30,  # Open MPI 4.1: coll_tuned_priority 30, above basic's 10
            "Priority in the selection of a module for each operation.",
            level=6,
            unit="points",
        ),
        Parameter(
            "use_dynamic_rules",
            "bool",
            True,  # no algorithm is forced by default; one that is should be used
            "Whether algorithms may be forced by coll_tuned_OPERATION_algorithm; if not, the "
            "fixed rules decide always.",
            level=6,
        ),
        *(_algorithm(operation) for operation in ALGORITHMS),
        Parameter(
            "bcast_algorithm_segmentsize",
            "size_t",
            128 * 1024,  # arbitrary: a message of sm's pipeline; several fit into the cache
            "Bytes that the pipeline of bcast passes on at a time; 0 is for all at once.",
            level=5,
            unit="bytes",
        ),
        Parameter(
            "alltoall_max_requests",
            "int",
            16,  # measured: 8 ranks take half as long with all pairs at once as one by one
            "Ranks that a rank exchanges blocks with at the same time in alltoall's linear_sync.",
            level=5,
            unit="ranks",
            minimum=1,
        ),
        Parameter(
            "tree_block_max",
            "size_t",
            1024,  # measured: 512 bytes gain by the tree, with 2048 it exceeds sm's eager limit
            "Largest block that scatter and gather carry along a binomial tree, copying it at "
            "each step; larger ones go straight between their rank and the root.",
            level=5,
            unit="bytes",
        ),
    )

    def query(self, communicator: Communicator) -> CollModule:
        """A module for a communicator of more than one.

        Raises:
            NotAvailable: it has one; as in Open MPI, there is nothing to choose among.
        """
        if communicator.size < 2:
            raise NotAvailable("it has one member only")
        from ompy_components.coll.tuned.module import Tuned

        return Tuned(communicator, self.values)


COMPONENT = TunedComponent()
