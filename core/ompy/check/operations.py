"""Collective operations, by what moves in them; an operation is named by its *stem*."""

from __future__ import annotations

from typing import Final

FROM_ROOT: Final = frozenset({"bcast", "scatter", "scatterv"})
TO_ROOT: Final = frozenset({"gather", "gatherv", "reduce"})
ROOTED: Final = FROM_ROOT | TO_ROOT
FROM_LOWER: Final = frozenset({"scan", "exscan"})
REDUCTIONS: Final = FROM_LOWER | {"reduce", "allreduce", "reduce_scatter", "reduce_scatter_block"}
EXCHANGES: Final = frozenset({"allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"})
ALONG_EDGES: Final = frozenset(
    f"neighbor_{stem}" for stem in ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw")
)


def stem_of(kind: str) -> str:
    """The operation of a collective call, whichever form it has: `bcast` of `Ibcast`."""
    name = kind.removesuffix("_init")
    if name[:1] in {"I", "i"} and name[1:2].islower():
        name = name[1:]
    return name.lower()
