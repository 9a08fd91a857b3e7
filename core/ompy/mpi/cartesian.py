"""`MPI.Cartcomm`: communicators whose members are the points of a grid."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any, Final, Self

from ompy.data.constants import PROC_NULL, UNDEFINED
from ompy.data.errors import ERR_ARG, ERR_DIMS, ERR_RANK, ERR_TOPOLOGY
from ompy.mpi.comm import Comm
from ompy.mpi.communicators import make
from ompy.mpi.constants import CART, DIST_GRAPH, GRAPH
from ompy.mpi.errors import MPIException
from ompy.mpi.info import INFO_NULL, Info
from ompy.mpi.intracomm import Intracomm
from ompy.mpi.request import Prequest, Request
from ompy.mpi.state import CommState
from ompy.mpi.unsupported import not_available


class Grid:
    """Points in several dimensions, the last one varying fastest.

    Attributes:
        kind: of topology.
        dims: points in each dimension.
        periods: whether each dimension is a ring.
    """

    kind: Final = CART

    __slots__ = ("dims", "periods")

    def __init__(self, dims: Sequence[int], periods: Sequence[bool]) -> None:
        self.dims = tuple(dims)
        self.periods = tuple(periods)

    def coordinates(self, rank: int) -> list[int]:
        """Where a rank is."""
        found: list[int] = []
        for width in reversed(self.dims):
            rank, at = divmod(rank, width)
            found.insert(0, at)
        return found

    def rank(self, coordinates: Sequence[int]) -> int | None:
        """Who is at a point; None when it lies outside. Rings wrap around."""
        found = 0
        for at, width, ring in zip(coordinates, self.dims, self.periods, strict=True):
            if not 0 <= at < width and not ring:
                return None
            found = found * width + at % width
        return found

    def shifted(self, rank: int, direction: int, steps: int) -> int:
        """Who is `steps` away from a rank, or PROC_NULL."""
        coordinates = self.coordinates(rank)
        coordinates[direction] += steps
        found = self.rank(coordinates)
        return PROC_NULL if found is None else found

    def neighbours(self, rank: int) -> list[int]:
        """The two neighbours in each dimension, PROC_NULL where there is none."""
        directions = range(len(self.dims))
        return [self.shifted(rank, d, step) for d in directions for step in (-1, 1)]


class Topocomm(Intracomm):
    """A communicator with a topology."""

    __slots__ = ()

    def __new__(cls, comm: Comm | None = None) -> Self:
        """A null handle, or another one for the same communicator."""
        return cls._make(comm)

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, CommState) and state.topology is not None

    def _grid(self) -> tuple[CommState, Grid]:
        state = self._state()
        if not isinstance(state.topology, Grid):
            raise state.fail(ERR_TOPOLOGY, f"{state.communicator.name} is no grid")
        return state, state.topology

    @property
    def degrees(self) -> tuple[int, int]:
        """How many neighbours send here, and how many receive from here."""
        edges = self.inedges
        return len(edges), len(edges)

    @property
    def indegree(self) -> int:
        """How many neighbours send here."""
        return len(self.inedges)

    @property
    def outdegree(self) -> int:
        """How many neighbours receive from here."""
        return len(self.outedges)

    @property
    def inoutedges(self) -> tuple[list[int], list[int]]:
        """The neighbours that send here, and those that receive from here."""
        return self.inedges, self.outedges

    @property
    def inedges(self) -> list[int]:
        """The neighbours that send here."""
        state, grid = self._grid()
        return grid.neighbours(state.communicator.rank)

    @property
    def outedges(self) -> list[int]:
        """The neighbours that receive from here."""
        return self.inedges

    def Neighbor_allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        """Every member sends one block to its neighbours. Not available."""
        raise not_available("Topocomm.Neighbor_allgather", "neighbourhood collectives")

    def Neighbor_allgatherv(self, sendbuf: Any, recvbuf: Any) -> None:
        """As `Neighbor_allgather`, with blocks of different sizes. Not available."""
        raise not_available("Topocomm.Neighbor_allgatherv", "neighbourhood collectives")

    def Neighbor_alltoall(self, sendbuf: Any, recvbuf: Any) -> None:
        """Every member sends a block of its own to each neighbour. Not available."""
        raise not_available("Topocomm.Neighbor_alltoall", "neighbourhood collectives")

    def Neighbor_alltoallv(self, sendbuf: Any, recvbuf: Any) -> None:
        """As `Neighbor_alltoall`, with blocks of different sizes. Not available."""
        raise not_available("Topocomm.Neighbor_alltoallv", "neighbourhood collectives")

    def Neighbor_alltoallw(self, sendbuf: Any, recvbuf: Any) -> None:
        """As `Neighbor_alltoall`, with blocks of different types. Not available."""
        raise not_available("Topocomm.Neighbor_alltoallw", "neighbourhood collectives")

    def Ineighbor_allgather(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin what `Neighbor_allgather` does. Not available."""
        raise not_available("Topocomm.Ineighbor_allgather", "neighbourhood collectives")

    def Ineighbor_allgatherv(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin what `Neighbor_allgatherv` does. Not available."""
        raise not_available("Topocomm.Ineighbor_allgatherv", "neighbourhood collectives")

    def Ineighbor_alltoall(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin what `Neighbor_alltoall` does. Not available."""
        raise not_available("Topocomm.Ineighbor_alltoall", "neighbourhood collectives")

    def Ineighbor_alltoallv(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin what `Neighbor_alltoallv` does. Not available."""
        raise not_available("Topocomm.Ineighbor_alltoallv", "neighbourhood collectives")

    def Ineighbor_alltoallw(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin what `Neighbor_alltoallw` does. Not available."""
        raise not_available("Topocomm.Ineighbor_alltoallw", "neighbourhood collectives")

    def Neighbor_allgather_init(
        self, sendbuf: Any, recvbuf: Any, info: Info = INFO_NULL
    ) -> Prequest:
        """A request for what `Neighbor_allgather` does. Not available."""
        raise not_available("Topocomm.Neighbor_allgather_init", "neighbourhood collectives")

    def Neighbor_allgatherv_init(
        self, sendbuf: Any, recvbuf: Any, info: Info = INFO_NULL
    ) -> Prequest:
        """A request for what `Neighbor_allgatherv` does. Not available."""
        raise not_available("Topocomm.Neighbor_allgatherv_init", "neighbourhood collectives")

    def Neighbor_alltoall_init(
        self, sendbuf: Any, recvbuf: Any, info: Info = INFO_NULL
    ) -> Prequest:
        """A request for what `Neighbor_alltoall` does. Not available."""
        raise not_available("Topocomm.Neighbor_alltoall_init", "neighbourhood collectives")

    def Neighbor_alltoallv_init(
        self, sendbuf: Any, recvbuf: Any, info: Info = INFO_NULL
    ) -> Prequest:
        """A request for what `Neighbor_alltoallv` does. Not available."""
        raise not_available("Topocomm.Neighbor_alltoallv_init", "neighbourhood collectives")

    def Neighbor_alltoallw_init(
        self, sendbuf: Any, recvbuf: Any, info: Info = INFO_NULL
    ) -> Prequest:
        """A request for what `Neighbor_alltoallw` does. Not available."""
        raise not_available("Topocomm.Neighbor_alltoallw_init", "neighbourhood collectives")

    def neighbor_allgather(self, sendobj: Any) -> list[Any]:
        """Every member sends an object to its neighbours. Not available."""
        raise not_available("Topocomm.neighbor_allgather", "neighbourhood collectives")

    def neighbor_alltoall(self, sendobj: list[Any]) -> list[Any]:
        """Every member sends an object of its own to each neighbour. Not available."""
        raise not_available("Topocomm.neighbor_alltoall", "neighbourhood collectives")


class Cartcomm(Topocomm):
    """A communicator whose members are the points of a grid."""

    __slots__ = ()

    def __new__(cls, comm: Comm | None = None) -> Self:
        """A null handle, or another one for the same communicator."""
        return cls._make(comm)

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, CommState) and isinstance(state.topology, Grid)

    def Get_dim(self) -> int:
        """How many dimensions the grid has."""
        return len(self._grid()[1].dims)

    @property
    def dim(self) -> int:
        """How many dimensions the grid has."""
        return self.Get_dim()

    @property
    def ndim(self) -> int:
        """How many dimensions the grid has."""
        return self.Get_dim()

    def Get_topo(self) -> tuple[list[int], list[int], list[int]]:
        """Points in each dimension, whether each is a ring, and where this process is."""
        state, grid = self._grid()
        where = grid.coordinates(state.communicator.rank)
        return list(grid.dims), [int(ring) for ring in grid.periods], where

    @property
    def topo(self) -> tuple[list[int], list[int], list[int]]:
        """As `Get_topo`."""
        return self.Get_topo()

    @property
    def dims(self) -> list[int]:
        """Points in each dimension."""
        return self.Get_topo()[0]

    @property
    def periods(self) -> list[int]:
        """Whether each dimension is a ring."""
        return self.Get_topo()[1]

    @property
    def coords(self) -> list[int]:
        """Where this process is."""
        return self.Get_topo()[2]

    def Get_cart_rank(self, coords: Sequence[int]) -> int:
        """Who is at a point."""
        state, grid = self._grid()
        where = [index(at) for at in coords]
        if len(where) != len(grid.dims):
            raise ValueError(f"expecting {len(grid.dims)} coordinates, got {len(where)}")
        found = grid.rank(where)
        if found is None:
            raise state.fail(ERR_ARG, f"{where} lies outside a grid of {list(grid.dims)}")
        return found

    def Get_coords(self, rank: int) -> list[int]:
        """Where a rank is."""
        state, grid = self._grid()
        if not 0 <= rank < state.size:
            raise state.fail(ERR_RANK, f"rank {rank} does not exist in a grid of {state.size}")
        return grid.coordinates(rank)

    def Shift(self, direction: int, disp: int) -> tuple[int, int]:
        """Who sends here and who receives from here when all data move by `disp` points."""
        state, grid = self._grid()
        if not 0 <= direction < len(grid.dims):
            raise state.fail(ERR_DIMS, f"dimension {direction} of a grid of {list(grid.dims)}")
        rank = state.communicator.rank
        return grid.shifted(rank, direction, -disp), grid.shifted(rank, direction, disp)

    def Sub(self, remain_dims: Sequence[bool]) -> Any:
        """The part of the grid this process lies in when only some dimensions are kept."""
        self._enter("Sub")
        state, grid = self._grid()
        kept = [bool(keep) for keep in remain_dims]
        if len(kept) != len(grid.dims):
            raise ValueError(f"expecting {len(grid.dims)} dimensions, got {len(kept)}")
        where = grid.coordinates(state.communicator.rank)
        others = [rank for rank in range(state.size) if _alike(grid, rank, where, kept)]
        made = make(state, others, state.communicator.order.tag(), Cartcomm)
        dims, periods = (_chosen(these, kept) for these in (grid.dims, grid.periods))
        made.topology = Grid(dims, periods)
        return Cartcomm._adopt(made)


class Graphcomm(Topocomm):
    """A communicator with a graph topology. Not available: only null handles exist."""

    __slots__ = ()

    def __new__(cls, comm: Comm | None = None) -> Self:
        """A null handle."""
        return cls._make(comm)

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return getattr(state.topology, "kind", None) == GRAPH

    def Get_dims(self) -> tuple[int, int]:
        """How many nodes and edges there are. Not available."""
        raise not_available("Graphcomm.Get_dims", "graph topologies")

    def Get_topo(self) -> tuple[list[int], list[int]]:
        """The graph: index and edges. Not available."""
        raise not_available("Graphcomm.Get_topo", "graph topologies")

    def Get_neighbors_count(self, rank: int) -> int:
        """How many neighbours a member has. Not available."""
        raise not_available("Graphcomm.Get_neighbors_count", "graph topologies")

    def Get_neighbors(self, rank: int) -> list[int]:
        """The neighbours of a member. Not available."""
        raise not_available("Graphcomm.Get_neighbors", "graph topologies")

    @property
    def dims(self) -> tuple[int, int]:
        """How many nodes and edges there are."""
        return self.Get_dims()

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
        return self.Get_neighbors(self.rank)


class Distgraphcomm(Topocomm):
    """A communicator with a distributed graph. Not available: only null handles exist."""

    __slots__ = ()

    def __new__(cls, comm: Comm | None = None) -> Self:
        """A null handle."""
        return cls._make(comm)

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return getattr(state.topology, "kind", None) == DIST_GRAPH

    def Get_dist_neighbors_count(self) -> tuple[int, int, bool]:
        """Neighbours that send here, that receive from here; have edges weights? Not available."""
        raise not_available("Distgraphcomm.Get_dist_neighbors_count", "graph topologies")

    def Get_dist_neighbors(self) -> tuple[list[int], list[int], tuple[list[int], list[int]] | None]:
        """Who sends here, who receives from here, and the weights. Not available."""
        raise not_available("Distgraphcomm.Get_dist_neighbors", "graph topologies")


def _alike(grid: Grid, rank: int, where: list[int], kept: list[bool]) -> bool:
    """Whether a rank has the same coordinates in the dimensions that are dropped."""
    theirs = grid.coordinates(rank)
    return all(keep or a == b for keep, a, b in zip(kept, theirs, where, strict=True))


def _chosen(values: Sequence[Any], kept: list[bool]) -> list[Any]:
    return [value for value, keep in zip(values, kept, strict=True) if keep]


def _grid_of(state: CommState, dims: Sequence[int], periods: Sequence[bool] | bool | None) -> Grid:
    widths = [index(width) for width in dims]
    if periods is None or isinstance(periods, (bool, int)):
        periods = [bool(periods)] * len(widths)
    if len(periods) != len(widths):
        raise ValueError(f"expecting {len(widths)} periods, got {len(periods)}")
    if any(width < 1 for width in widths) or prod(widths) > state.size:
        raise state.fail(
            ERR_DIMS, f"a grid of {widths} has no place for {state.size} processes to fill"
        )
    return Grid(widths, [bool(ring) for ring in periods])


def create_cart(
    state: CommState, dims: Sequence[int], periods: Sequence[bool] | bool | None
) -> Any:
    """A grid of the first members of a communicator; COMM_NULL in the others."""
    grid = _grid_of(state, dims, periods)
    points = range(prod(grid.dims))
    if state.communicator.rank not in points:
        return Cartcomm()
    made = make(state, points, state.communicator.order.tag(), Cartcomm)
    made.topology = grid
    return Cartcomm._adopt(made)


def cart_map(state: CommState, dims: Sequence[int], periods: Sequence[bool] | bool | None) -> int:
    """The rank this process would have in such a grid, or UNDEFINED."""
    grid = _grid_of(state, dims, periods)
    rank = state.communicator.rank
    return rank if rank < prod(grid.dims) else UNDEFINED


def Compute_dims(nnodes: int, dims: int | Sequence[int]) -> list[int]:
    """Points in each dimension of a grid of `nnodes`, as alike as can be.

    Args:
        nnodes: processes.
        dims: how many dimensions; or a number for each, 0 where it is to be found.
    """
    found = [0] * dims if isinstance(dims, int) else [index(width) for width in dims]
    fixed = prod(width for width in found if width)
    if nnodes < 1 or any(width < 0 for width in found) or nnodes % fixed:
        raise MPIException(ERR_DIMS, f"{nnodes} processes cannot fill a grid of {found}")
    free = found.count(0)
    if not free:
        if fixed != nnodes and found:
            raise MPIException(ERR_DIMS, f"{nnodes} processes do not fill a grid of {found}")
        return found
    widths = [1] * free
    for factor in reversed(_prime_factors(nnodes // fixed)):
        widths[widths.index(min(widths))] *= factor
    widths.sort(reverse=True)
    return [width or widths.pop(0) for width in found]


def _prime_factors(number: int) -> list[int]:
    """In ascending order."""
    found = []
    factor = 2
    while factor * factor <= number:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    return [*found, number] if number > 1 else found
