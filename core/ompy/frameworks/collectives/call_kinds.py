"""The calls that all members of a communicator make together, by number.

A call's number goes into the tags of its messages and into shared memory, so that members who make
different calls are told so. Two names of one call have one number: what mpi4py makes the same call
of MPI (`Barrier` and `barrier`, `Dup` and `Clone`) may be mixed.
"""

from __future__ import annotations

from typing import Final

_BUFFERS: Final = (
    "Barrier",
    "Bcast",
    "Gather",
    "Gatherv",
    "Scatter",
    "Scatterv",
    "Allgather",
    "Allgatherv",
    "Alltoall",
    "Alltoallv",
    "Alltoallw",
    "Reduce",
    "Allreduce",
    "Reduce_scatter_block",
    "Reduce_scatter",
    "Scan",
    "Exscan",
)
_NEIGHBOURS: Final = (
    "Neighbor_allgather",
    "Neighbor_allgatherv",
    "Neighbor_alltoall",
    "Neighbor_alltoallv",
    "Neighbor_alltoallw",
)
_ROOTED: Final = frozenset({"bcast", "gather", "gatherv", "scatter", "scatterv", "reduce"})

NAMES: Final[tuple[str, ...]] = (
    "",
    *_BUFFERS,
    *(f"I{name.lower()}" for name in _BUFFERS),
    *(f"{name}_init" for name in _BUFFERS),
    # of objects
    "bcast",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "reduce",
    "allreduce",
    "scan",
    "exscan",
    # of communicators
    "Dup",
    "Create",
    "Split",
    "Split_type",
    "Create_cart",
    "Sub",
    # of windows
    "Win.Create",
    "Win.Create_dynamic",
    "Win.Allocate",
    "Win.Allocate_shared",
    "Win.Fence",
    "Win.Free",
    # of neighbours
    *_NEIGHBOURS,
    *(f"I{name.lower()}" for name in _NEIGHBOURS),
    *(f"{name}_init" for name in _NEIGHBOURS),
    "neighbor_allgather",
    "neighbor_alltoall",
    # of communicators with a graph
    "Create_graph",
    "Create_dist_graph_adjacent",
    "Create_dist_graph",
    # of communicators between groups
    "Create_intercomm",
    "Merge",
    "Idup",
    # of files
    "File.Open",
    "File.Close",
    "File.Set_size",
    "File.Preallocate",
    "File.Set_view",
    "File.Set_info",
    "File.Set_atomicity",
    "File.Sync",
    "File.Seek_shared",
    "File.Read_all",
    "File.Write_all",
    "File.Read_ordered",
    "File.Write_ordered",
    "File.Iread_all",
    "File.Iwrite_all",
    "File.Read_all_begin",
    "File.Write_all_begin",
    "File.Read_ordered_begin",
    "File.Write_ordered_begin",
    # of other worlds
    "Spawn",
    "Accept",
    "Connect",
    # of members that may die
    "Agree",
    "Iagree",
    "Shrink",
    "Ishrink",
)
KIND_BITS: Final = 7  # of a tag; arbitrary: enough for the names
# of a call that only some members make, which do not number it: `Create_group`
OF_SOME: Final = (1 << KIND_BITS) - 1
# of what two leaders say before their groups have a communicator: `Create_intercomm`
OF_LEADERS: Final = OF_SOME - 1
assert len(NAMES) <= OF_LEADERS, "a kind has its place in a tag"


def operation_of(name: str) -> str:
    """The operation of coll that a call is of, if it is one of any.

    The blocking, nonblocking and persistent call, its v-forms and that on objects have one.
    """
    plain = name.removesuffix("_init")
    plain = plain[1:] if plain[:1] == "I" else plain.lower()
    return plain.removesuffix("_block").rstrip("vw")


KINDS: Final[dict[str, int]] = {name: number for number, name in enumerate(NAMES) if name}
# those whose detail is a root
ROOTED: Final = frozenset(
    number
    for name, number in KINDS.items()
    if name.removeprefix("I").removesuffix("_init").lower() in _ROOTED
)
# those that go on behind the next call; of names in capitals an I begins no other
BACKGROUND: Final = frozenset(
    number
    for name, number in KINDS.items()
    if name.removeprefix("File.")[0] == "I" or name.endswith(("_init", "_begin"))
)
