"""Neighbourhood collectives on buffers: what a call's arguments say, as coll wants to hear it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ompy.compiled import ccall, cfunc
from ompy.data.errors import ERR_BUFFER, ERR_TOPOLOGY
from ompy.frameworks.collectives.neighbours import Neighbours
from ompy.mpi.buffers.common_forms import says_in_place
from ompy.mpi.buffers.spec import typed_blocks
from ompy.mpi.collectives.collective_calls import Call, blocks_of, call_of, refuse, single
from ompy.mpi.communicators.topologies import Graph
from ompy.mpi.state import CommState


@ccall
def edges(state: CommState) -> Neighbours:
    """The neighbours of this member.

    Raises:
        MPIException: ERR_TOPOLOGY, the communicator has no topology.
    """
    if state.neighbours is None:
        if state.topology is None:
            raise state.fail(ERR_TOPOLOGY, f"{state.communicator.name} has no topology")
        state.neighbours = state.topology.neighbours(state.communicator.rank)
    found: Neighbours = state.neighbours
    return found


@ccall
def neighbours(state: CommState) -> Neighbours:
    """The neighbours of this member, for data to go along the edges.

    Raises:
        MPIException: ERR_TOPOLOGY, there are none, or who is sent to would not receive.
    """
    topology = state.topology
    if type(topology) is Graph and topology.one_way is not None:
        node, other = topology.one_way
        raise state.fail(
            ERR_TOPOLOGY,
            f"the graph has not as many edges from {node} to {other} as back: a neighbourhood "
            "collective sends and receives along each (Create_dist_graph makes graphs of edges "
            "that lead one way)",
        )
    return edges(state)


@ccall
def allgather(state: CommState, sendbuf: Any, recvbuf: Any, parse: Callable[..., Any]) -> Call:
    """The call of a neighbourhood's allgather."""
    try:
        found = _read(state, sendbuf, recvbuf)
        send = single(sendbuf, False)
        receive = blocks_of(recvbuf, True, len(found.sources), parse)
        return call_of(state, "neighbor_allgather", (send, receive, found))
    except Exception as problem:
        refuse(state, problem)
        raise


@ccall
def alltoall(state: CommState, sendbuf: Any, recvbuf: Any, parse: Callable[..., Any]) -> Call:
    """The call of a neighbourhood's alltoall."""
    try:
        found = _read(state, sendbuf, recvbuf)
        send = blocks_of(sendbuf, False, len(found.targets), parse)
        receive = blocks_of(recvbuf, True, len(found.sources), parse)
        return call_of(state, "neighbor_alltoall", (send, receive, found))
    except Exception as problem:
        refuse(state, problem)
        raise


@ccall
def alltoallw(state: CommState, sendbuf: Any, recvbuf: Any) -> Call:
    """The call of a neighbourhood's alltoall with a datatype for each block."""
    try:
        found = _read(state, sendbuf, recvbuf)
        send = typed_blocks(sendbuf, False, len(found.targets))
        receive = typed_blocks(recvbuf, True, len(found.sources))
        return call_of(state, "neighbor_alltoall", (send, receive, found))
    except Exception as problem:
        refuse(state, problem)
        raise


@cfunc
def _read(state: CommState, sendbuf: Any, recvbuf: Any) -> Neighbours:
    for each in (sendbuf, recvbuf):
        if each is not None and says_in_place(each):
            raise state.fail(ERR_BUFFER, "IN_PLACE means nothing along edges")
    return neighbours(state)
