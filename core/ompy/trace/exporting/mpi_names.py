"""What a call of mpi4py is called in MPI, and which kind of call it is: what other tools know.

`comm.Send` and `comm.send` are MPI_Send, `Request.Wait` is MPI_Wait, `comm.Split` MPI_Comm_split.
Source: MPI 4.0, the names of its bindings for C.
"""

from __future__ import annotations

from typing import Final

_ONE_SIDED: Final = frozenset(
    {"Put", "Get", "Accumulate", "Get_accumulate", "Rput", "Rget", "Raccumulate"}
    | {"Rget_accumulate", "Fetch_and_op", "Compare_and_swap"}
)
# methods of communicators whose names in C are others
_OTHERS: Final = {
    "Dup": "Comm_dup",
    "Clone": "Comm_dup",
    "Dup_with_info": "Comm_dup_with_info",
    "Idup": "Comm_idup",
    "Create": "Comm_create",
    "Split": "Comm_split",
    "Split_type": "Comm_split_type",
    "Create_cart": "Cart_create",
    "Sub": "Cart_sub",
    "Create_graph": "Graph_create",
    "Create_dist_graph": "Dist_graph_create",
    "Create_dist_graph_adjacent": "Dist_graph_create_adjacent",
    "Create_intercomm": "Intercomm_create",
    "Merge": "Intercomm_merge",
    "Disconnect": "Comm_disconnect",
    "Spawn": "Comm_spawn",
    "Spawn_multiple": "Comm_spawn_multiple",
    "Accept": "Comm_accept",
    "Connect": "Comm_connect",
    "Agree": "Comm_agree",
    "Shrink": "Comm_shrink",
}
# collective operations, and how data go in them: from one to all, from all to one, all to all
COLLECTIVES: Final = {
    "Barrier": "barrier",
    "Bcast": "one to all",
    "Scatter": "one to all",
    "Scatterv": "one to all",
    "Gather": "all to one",
    "Gatherv": "all to one",
    "Reduce": "all to one",
    "Allgather": "all to all",
    "Allgatherv": "all to all",
    "Allreduce": "all to all",
    "Alltoall": "all to all",
    "Alltoallv": "all to all",
    "Alltoallw": "all to all",
    "Reduce_scatter": "all to all",
    "Reduce_scatter_block": "all to all",
    "Scan": "other",
    "Exscan": "other",
}


def mpi_name(call: str) -> str:
    """The name in MPI of a call that a trace names."""
    kind, _, method = call.rpartition(".")
    if kind == "Message":
        return f"MPI_{'Imrecv' if method.startswith('I') else 'Mrecv'}"
    if kind == "Win":
        return f"MPI_{method}" if method in _ONE_SIDED else f"MPI_Win_{method.lower()}"
    if kind == "File":
        return f"MPI_File_{method.lower()}"
    return f"MPI_{_OTHERS.get(method, method[:1].upper() + method[1:])}"


def is_nonblocking(call: str) -> bool:
    """Whether messages that a call begins have requests of their own."""
    kind, _, method = call.rpartition(".")
    if kind == "Request":
        return method.startswith("Start")
    return method[:1] in "Ii" and kind != "Win"


def collective_operation(call: str) -> str:
    """The collective operation that a blocking call makes, as `COLLECTIVES` names it; or empty."""
    operation = call[:1].upper() + call[1:]
    return operation if operation in COLLECTIVES else ""
