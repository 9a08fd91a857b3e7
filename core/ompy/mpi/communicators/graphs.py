"""`MPI.Graphcomm` and `MPI.Distgraphcomm`: communicators whose members are nodes of a graph."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Sequence
from operator import index as whole
from struct import Struct
from typing import Any, Final, NamedTuple, Self

from ompy.compiled import cfunc
from ompy.data.constants import UNDEFINED
from ompy.data.errors import ERR_ARG, ERR_RANK, ERR_TOPOLOGY
from ompy.mpi.communicators.comm import Comm
from ompy.mpi.communicators.context_agreement import exchange_values
from ompy.mpi.communicators.making import make_communicator
from ompy.mpi.communicators.topocomm import Topocomm
from ompy.mpi.communicators.topologies import Edges, Graph
from ompy.mpi.constants import UNWEIGHTED, WEIGHTS_EMPTY
from ompy.mpi.handles import Handle, handle_for, made_plainly
from ompy.mpi.integers import c_int
from ompy.mpi.state import CommState, state_of_comm

_EDGE: Final = Struct("<qqq")  # from, to, weight


@made_plainly
class Graphcomm(Topocomm):
    """A communicator with a graph that every member knows whole."""

    __slots__ = ()

    def __new__(cls, comm: Comm | None = None) -> Self:
        """A null handle, or another one for the same communicator."""
        made: Self = handle_for(cls, comm)
        return made

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, CommState) and isinstance(state.topology, Graph)

    def Get_dims(self) -> tuple[int, int]:
        """How many nodes and edges there are."""
        graph = _graph_of_comm(self)
        return len(graph.index), len(graph.edges)

    def Get_topo(self) -> tuple[list[int], list[int]]:
        """The graph: where the edges of each node end, and where each edge leads."""
        graph = _graph_of_comm(self)
        return list(graph.index), list(graph.edges)

    def Get_neighbors_count(self, rank: int) -> int:
        """How many neighbours a member has."""
        graph = _graph_of_comm(self)
        node = _node(state_of_comm(self), rank)
        return graph.index[node] - (graph.index[node - 1] if node else 0)

    def Get_neighbors(self, rank: int) -> list[int]:
        """The neighbours of a member."""
        graph = _graph_of_comm(self)
        return graph.adjacent(_node(state_of_comm(self), rank))

    @property
    def dims(self) -> tuple[int, int]:
        """How many nodes and edges there are."""
        graph = _graph_of_comm(self)
        return len(graph.index), len(graph.edges)

    @property
    def nnodes(self) -> int:
        """How many nodes there are."""
        return self.Get_dims()[0]

    @property
    def nedges(self) -> int:
        """How many edges there are."""
        return self.Get_dims()[1]

    @property
    def topo(self) -> tuple[list[int], list[int]]:
        """As `Get_topo`."""
        return self.Get_topo()

    @property
    def index(self) -> list[int]:
        """Where the edges of each node end."""
        return self.Get_topo()[0]

    @property
    def edges(self) -> list[int]:
        """Where the edges lead."""
        return self.Get_topo()[1]

    @property
    def nneighbors(self) -> int:
        """How many neighbours this process has."""
        return self.Get_neighbors_count(self.rank)

    @property
    def neighbors(self) -> list[int]:
        """The neighbours of this process."""
        return _graph_of_comm(self).adjacent(state_of_comm(self).communicator.rank)


@made_plainly
class Distgraphcomm(Topocomm):
    """A communicator with a graph of which each member knows its own edges."""

    __slots__ = ()

    def __new__(cls, comm: Comm | None = None) -> Self:
        """A null handle, or another one for the same communicator."""
        made: Self = handle_for(cls, comm)
        return made

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, CommState) and isinstance(state.topology, Edges)

    def Get_dist_neighbors_count(self) -> tuple[int, int, bool]:
        """How many neighbours send here, how many receive from here; have edges weights?"""
        found = _edges_of_comm(self)
        return len(found.sources), len(found.targets), found.weights is not None

    def Get_dist_neighbors(self) -> tuple[list[int], list[int], tuple[list[int], list[int]] | None]:
        """Who sends here, who receives from here, and the weights of both, None without weights."""
        found = _edges_of_comm(self)
        weights = found.weights
        return (
            list(found.sources),
            list(found.targets),
            None if weights is None else (list(weights[0]), list(weights[1])),
        )


# --- making them


@cfunc
def _graph_of_comm(comm: Handle) -> Graph:
    """The graph that a communicator's members are the nodes of.

    Raises:
        MPIException: ERR_COMM, it is null; ERR_TOPOLOGY, they are those of none.
    """
    state = state_of_comm(comm)
    graph = state.topology
    if type(graph) is not Graph:
        raise state.fail(ERR_TOPOLOGY, f"{state.communicator.name} is no graph")
    return graph


@cfunc
def _edges_of_comm(comm: Handle) -> Edges:
    """This member's edges in a distributed graph; raises likewise."""
    state = state_of_comm(comm)
    edges = state.topology
    if type(edges) is not Edges:
        raise state.fail(ERR_TOPOLOGY, f"{state.communicator.name} is no distributed graph")
    return edges


@cfunc
def _node(state: CommState, rank: Any) -> int:
    """A member, by the rank that a user gave.

    Raises:
        MPIException: ERR_RANK, there is none.
    """
    node: int = c_int(rank)
    if not 0 <= node < state.size:
        raise state.fail(ERR_RANK, f"rank {node} does not exist in a graph of {state.size}")
    return node


def _numbers(values: Sequence[int] | None) -> list[int]:
    """None stands for none."""
    return [] if values is None else list(map(whole, values))


def _graph_of(state: CommState, index: Sequence[int], edges: Sequence[int]) -> Graph:
    """The graph that the arguments say; `index` may begin with a 0 of its own.

    Raises:
        MPIException: ERR_ARG, they say none for this communicator.
    """
    ends, others = _numbers(index), _numbers(edges)
    if len(ends) > 1 and ends[0] == 0 and ends[-1] == len(others):
        ends = ends[1:]
    nodes = len(ends)
    if nodes > state.size:
        raise state.fail(ERR_ARG, f"{state.size} processes are too few for a graph of {nodes}")
    if (len(ends) > 1 and ends != sorted(ends)) or (ends and ends[0] < 0):
        raise state.fail(ERR_ARG, f"index {ends}: the ends of the edges must not decrease")
    if (ends[-1] if ends else 0) != len(others):
        raise state.fail(ERR_ARG, f"index {ends} does not end with {len(others)}, the edges")
    if others and not (min(others) >= 0 and max(others) < nodes):
        raise state.fail(ERR_ARG, f"edges {others} do not all lead to one of {nodes} nodes")
    return Graph(ends, others)


def create_graph(state: CommState, index: Sequence[int], edges: Sequence[int]) -> Graphcomm:
    """A graph of the first members of a communicator; COMM_NULL in the others."""
    graph = _graph_of(state, index, edges)
    nodes = range(len(graph.index))
    if state.communicator.rank not in nodes:
        return Graphcomm()
    made = make_communicator(state, nodes, state.communicator.order.tag(), Graphcomm)
    made.topology = graph
    return Graphcomm._adopt(made)


def graph_map(state: CommState, index: Sequence[int], edges: Sequence[int]) -> int:
    """The rank this process would have in such a graph, or UNDEFINED."""
    nodes = len(_graph_of(state, index, edges).index)
    rank = state.communicator.rank
    return rank if rank < nodes else UNDEFINED


def _ranks(state: CommState, ranks: Sequence[int], what: str) -> list[int]:
    found = _numbers(ranks)
    for rank in found:
        if not 0 <= rank < state.size:
            name = state.communicator.name
            raise state.fail(ERR_RANK, f"{what} {rank} does not exist in {name} of {state.size}")
    return found


def _weights(state: CommState, weights: Any, edges: int) -> list[int] | None:
    """The weights of so many edges; None for no weights."""
    if weights is None or (isinstance(weights, int) and weights == UNWEIGHTED):
        return None
    if isinstance(weights, int) and weights == WEIGHTS_EMPTY:
        if edges:
            raise ValueError("empty weights but nonzero degree")
        return []
    found = [whole(weight) for weight in weights]
    if len(found) != edges:
        raise ValueError(f"expecting {edges} items, got {len(found)}")
    if any(weight < 0 for weight in found):
        raise state.fail(ERR_ARG, f"weights {found}: a weight is not negative")
    return found


def create_adjacent(
    state: CommState,
    sources: Sequence[int],
    destinations: Sequence[int],
    sourceweights: Any,
    destweights: Any,
) -> Distgraphcomm:
    """A graph of which each member tells its own edges."""
    incoming = _ranks(state, sources, "source")
    outgoing = _ranks(state, destinations, "destination")
    before = _weights(state, sourceweights, len(incoming))
    after = _weights(state, destweights, len(outgoing))
    if before is None and after is not None and not incoming:
        before = []
    if after is None and before is not None and not outgoing:
        after = []
    weights = None
    if before is not None and after is not None:
        weights = tuple(before), tuple(after)
    elif before is not None or after is not None:
        raise state.fail(ERR_ARG, "the edges of one direction have weights, the others none")
    return _made(state, Edges(incoming, outgoing, weights))


def _made(state: CommState, edges: Edges) -> Distgraphcomm:
    made = make_communicator(
        state, range(state.size), state.communicator.order.tag(), Distgraphcomm
    )
    made.topology = edges
    return Distgraphcomm._adopt(made)


class _Told(NamedTuple):
    """An edge that a member told of."""

    source: int
    target: int
    weight: int


def create_dist_graph(
    state: CommState,
    sources: Sequence[int],
    degrees: Sequence[int],
    destinations: Sequence[int],
    weights: Any,
) -> Distgraphcomm:
    """A graph of which each member tells any edges.

    The edges of a member are in the order of those who told of them, and then as these did. So both
    ends of several edges between two members have them in one order.
    """
    said, weighted = _said(state, sources, degrees, destinations, weights)
    communicator = state.communicator
    rank, tag = communicator.rank, communicator.order.tag()
    told = b"".join(_EDGE.pack(*edge) for edge in said)
    answers = state.call(
        exchange_values, communicator, range(state.size), tag, bytes([weighted]) + told
    )
    if len({answer[0] for answer in answers}) > 1:
        raise state.fail(ERR_ARG, "some members give weights to their edges, others do not")
    every = [_Told(*edge) for answer in answers for edge in _EDGE.iter_unpack(answer[1:])]
    incoming = [edge for edge in every if edge.target == rank]
    outgoing = [edge for edge in every if edge.source == rank]
    kept = None
    if weighted:
        kept = tuple(edge.weight for edge in incoming), tuple(edge.weight for edge in outgoing)
    return _made(
        state,
        Edges([edge.source for edge in incoming], [edge.target for edge in outgoing], kept),
    )


def _said(
    state: CommState,
    sources: Sequence[int],
    degrees: Sequence[int],
    destinations: Sequence[int],
    weights: Any,
) -> tuple[list[_Told], bool]:
    """The edges that this member tells of, and whether they have weights."""
    starts = _ranks(state, sources, "source")
    numbers = _numbers(degrees)
    if len(numbers) != len(starts):
        raise ValueError(f"expecting {len(starts)} items, got {len(numbers)}")
    if any(number < 0 for number in numbers):
        raise state.fail(ERR_ARG, f"degrees {numbers}: a degree is not negative")
    ends = _ranks(state, destinations, "destination")
    if len(ends) != sum(numbers):
        raise ValueError(f"expecting {sum(numbers)} items, got {len(ends)}")
    given = _weights(state, weights, len(ends))
    origins = [start for start, number in zip(starts, numbers, strict=True) for _ in range(number)]
    each = [0] * len(ends) if given is None else given
    said = [_Told(*edge) for edge in zip(origins, ends, each, strict=True)]
    return said, given is not None
