"""`MPI.Cartcomm`: communicators whose members are the points of a grid."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from operator import index
from typing import Any, Self

from ompy.compiled import cfunc
from ompy.data.constants import UNDEFINED
from ompy.data.errors import ERR_ARG, ERR_DIMS, ERR_RANK, ERR_TOPOLOGY
from ompy.mpi.collectives.refusals import told_to_all
from ompy.mpi.communicators.comm import Comm
from ompy.mpi.communicators.making import make_communicator
from ompy.mpi.communicators.topocomm import Topocomm
from ompy.mpi.communicators.topologies import Grid
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import Handle, handle_for, made_plainly
from ompy.mpi.integers import c_int, whole_number, whole_numbers
from ompy.mpi.state import CommState, state_of_comm


@made_plainly
class Cartcomm(Topocomm):
    """A communicator whose members are the points of a grid."""

    __slots__ = ()

    def __new__(cls, comm: Comm | None = None) -> Self:
        """A null handle, or another one for the same communicator."""
        made: Self = handle_for(cls, comm)
        return made

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, CommState) and isinstance(state.topology, Grid)

    def _grid(self) -> tuple[CommState, Grid]:
        return state_of_comm(self), _grid_of_comm(self)

    def Get_dim(self) -> int:
        """How many dimensions the grid has."""
        return len(_grid_of_comm(self).dims)

    @property
    def dim(self) -> int:
        """How many dimensions the grid has."""
        return len(_grid_of_comm(self).dims)

    @property
    def ndim(self) -> int:
        """How many dimensions the grid has."""
        return len(_grid_of_comm(self).dims)

    def Get_topo(self) -> tuple[list[int], list[int], list[int]]:
        """Points in each dimension, whether each is a ring, and where this process is."""
        grid = _grid_of_comm(self)
        where = grid.coordinates(state_of_comm(self).communicator.rank)
        return list(grid.dims), [int(ring) for ring in grid.periods], where

    @property
    def topo(self) -> tuple[list[int], list[int], list[int]]:
        """As `Get_topo`."""
        return self.Get_topo()

    @property
    def dims(self) -> list[int]:
        """Points in each dimension."""
        return list(_grid_of_comm(self).dims)

    @property
    def periods(self) -> list[int]:
        """Whether each dimension is a ring."""
        return [int(ring) for ring in _grid_of_comm(self).periods]

    @property
    def coords(self) -> list[int]:
        """Where this process is."""
        return _grid_of_comm(self).coordinates(state_of_comm(self).communicator.rank)

    def Get_cart_rank(self, coords: Sequence[int]) -> int:
        """Who is at a point."""
        grid = _grid_of_comm(self)
        if type(coords) is list or type(coords) is tuple:
            known = _known_rank(grid, coords)
            if known >= 0:
                return known
        where = tuple(map(index, coords))
        if len(where) != len(grid.dims):
            raise ValueError(f"expecting {len(grid.dims)} coordinates, got {len(where)}")
        found = grid.rank(where)
        if found is None:
            text = f"{list(where)} lies outside a grid of {list(grid.dims)}"
            raise state_of_comm(self).fail(ERR_ARG, text)
        return found

    def Get_coords(self, rank: int) -> list[int]:
        """Where a rank is."""
        grid = _grid_of_comm(self)
        if type(rank) is int:
            known = grid.known_places.get(rank)
            if known is not None:
                return known.copy()
        rank = whole_number(rank)
        state = state_of_comm(self)
        if not 0 <= rank < state.size:
            raise state.fail(ERR_RANK, f"rank {rank} does not exist in a grid of {state.size}")
        return grid.coordinates(rank)

    def Shift(self, direction: int, disp: int) -> tuple[int, int]:
        """Who sends here and who receives from here when all data move by `disp` points."""
        grid = _grid_of_comm(self)
        if type(direction) is int and type(disp) is int:
            known = grid.known_shifts.get((direction, disp))
            if known is not None:
                return known
        direction, disp = whole_number(direction), whole_number(disp)
        state = state_of_comm(self)
        if not 0 <= direction < len(grid.dims):
            raise state.fail(ERR_DIMS, f"dimension {direction} of a grid of {list(grid.dims)}")
        return grid.shift(state.communicator.rank, direction, disp)

    @told_to_all("Sub")
    def Sub(self, remain_dims: Sequence[bool]) -> Any:
        """The part of the grid this process lies in when only some dimensions are kept."""
        self._enter("Sub")
        state, grid = self._grid()
        kept = [bool(keep) for keep in remain_dims]
        if len(kept) != len(grid.dims):
            raise ValueError(f"expecting {len(grid.dims)} dimensions, got {len(kept)}")
        where = grid.coordinates(state.communicator.rank)
        others = _ranks_beside(grid, where, kept)
        made = make_communicator(state, others, state.communicator.order.tag(), Cartcomm)
        dims, periods = (_chosen(these, kept) for these in (grid.dims, grid.periods))
        made.topology = Grid(dims, periods)
        return Cartcomm._adopt(made)


@cfunc
def _grid_of_comm(comm: Handle) -> Grid:
    """The grid that a communicator's members are the points of.

    Raises:
        MPIException: ERR_COMM, it is null; ERR_TOPOLOGY, they are the points of none.
    """
    state: CommState = state_of_comm(comm)
    grid = state.topology
    if type(grid) is not Grid:
        raise state.fail(ERR_TOPOLOGY, f"{state.communicator.name} is no grid")
    return grid


@cfunc
def _known_rank(grid: Grid, coords: Sequence[int]) -> int:
    """Who is at a point that was asked for before; -1 for others, and what is no point."""
    for each in coords:
        if type(each) is not int:
            return -1
    known = grid.known_ranks.get(tuple(coords))
    return -1 if known is None else known


def _ranks_beside(grid: Grid, where: list[int], kept: list[bool]) -> list[int]:
    """The ranks that have the same coordinates in the dimensions that are dropped, in order."""
    ranks = [0]
    for width, keep, at in zip(grid.dims, kept, where, strict=True):
        places = range(width) if keep else (at,)
        ranks = [rank * width + place for rank in ranks for place in places]
    return ranks


def _chosen(values: Sequence[Any], kept: list[bool]) -> list[Any]:
    return [value for value, keep in zip(values, kept, strict=True) if keep]


def _checked(
    state: CommState, dims: Sequence[int], periods: Sequence[bool] | bool | None
) -> tuple[list[int], Sequence[bool]]:
    """Points in each dimension of a grid, and whether each is a ring.

    Raises:
        ValueError: there are not as many of one as of the other.
        MPIException: ERR_DIMS, a communicator's members cannot fill it.
    """
    widths = whole_numbers(dims)
    if periods is None or isinstance(periods, (bool, int)):
        periods = [bool(periods)] * len(widths)
    if len(periods) != len(widths):
        raise ValueError(f"expecting {len(widths)} periods, got {len(periods)}")
    if min(widths, default=1) < 1 or prod(widths) > state.size:
        raise state.fail(
            ERR_DIMS, f"a grid of {widths} has no place for {state.size} processes to fill"
        )
    return widths, periods


def create_cart(
    state: CommState, dims: Sequence[int], periods: Sequence[bool] | bool | None
) -> Any:
    """A grid of the first members of a communicator; COMM_NULL in the others."""
    widths, rings = _checked(state, dims, periods)
    points = range(prod(widths))
    if state.communicator.rank not in points:
        return Cartcomm()
    made = make_communicator(state, points, state.communicator.order.tag(), Cartcomm)
    made.topology = Grid(widths, list(map(bool, rings)))
    return Cartcomm._adopt(made)


def cart_map(state: CommState, dims: Sequence[int], periods: Sequence[bool] | bool | None) -> int:
    """The rank this process would have in such a grid, or UNDEFINED."""
    widths, _ = _checked(state, dims, periods)
    rank = state.communicator.rank
    return rank if rank < prod(widths) else UNDEFINED


def Compute_dims(nnodes: int, dims: int | Sequence[int]) -> list[int]:
    """Points in each dimension of a grid of `nnodes`, as alike as can be.

    Args:
        nnodes: processes.
        dims: how many dimensions; or a number for each, 0 where it is to be found.
    """
    nnodes = c_int(nnodes)
    if type(dims) is not int and isinstance(dims, Iterable):
        found = whole_numbers(dims)
    else:
        number = whole_number(dims)
        if number < 0:
            raise ValueError(f"expecting a number of dimensions, not {number}")
        found = [0] * number
    fixed = 1
    for width in found:
        if width:
            fixed *= width
    if nnodes < 1 or (found and min(found) < 0) or nnodes % fixed:
        raise MPIException(ERR_DIMS, f"{nnodes} processes cannot fill a grid of {found}")
    free = found.count(0)
    if not free:
        if fixed != nnodes and found:
            raise MPIException(ERR_DIMS, f"{nnodes} processes do not fill a grid of {found}")
        return found
    widths = _balanced(nnodes // fixed, free)
    return [width or widths.pop(0) for width in found]


@cfunc
def _balanced(nodes: int, free: int) -> list[int]:
    """So many factors of a number, as alike as can be, in descending order."""
    widths: list[int] = [1] * free
    factors: list[int] = _prime_factors(nodes)
    place: int
    for factor in reversed(factors):
        least: int = 0
        for place in range(1, free):
            if widths[place] < widths[least]:
                least = place
        widths[least] *= factor
    widths.sort(reverse=True)
    return widths


@cfunc
def _prime_factors(number: int) -> list[int]:
    """In ascending order."""
    found: list[int] = []
    factor: int = 2
    while factor * factor <= number:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    if number > 1:
        found.append(number)
    return found
