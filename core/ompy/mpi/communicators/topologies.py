"""Topologies: which members of a communicator are neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from ompy.data.constants import PROC_NULL, UNDEFINED
from ompy.frameworks.collectives.neighbours import Neighbours
from ompy.mpi.constants import CART, DIST_GRAPH, GRAPH

_KEPT_MOST: Final = 1024  # arbitrary: answers; a program asks for few, again and again


class Grid:
    """Points in several dimensions, the last one varying fastest.

    Attributes:
        kind: of topology.
        dims: points in each dimension.
        periods: whether each dimension is a ring.
        known_places, known_ranks, known_shifts: what was asked for before, shifts of this
            process's rank by direction and steps.
    """

    kind: Final = CART

    __slots__ = ("_neighbours", "dims", "known_places", "known_ranks", "known_shifts", "periods")

    def __init__(self, dims: Sequence[int], periods: Sequence[bool]) -> None:
        self.dims = tuple(dims)
        self.periods = tuple(periods)
        self._neighbours: dict[int, Neighbours] = {}
        self.known_places: dict[int, list[int]] = {}
        self.known_ranks: dict[tuple[int, ...], int | None] = {}
        self.known_shifts: dict[tuple[int, int], tuple[int, int]] = {}

    def coordinates(self, rank: int) -> list[int]:
        """Where a rank is."""
        known = self.known_places.get(rank)
        if known is not None:
            return known.copy()
        asked, found = rank, list[int]()
        for width in self.dims[::-1]:
            found.append(rank % width)
            rank //= width
        found.reverse()
        if len(self.known_places) < _KEPT_MOST:
            self.known_places[asked] = found
        return found.copy()

    def rank(self, coordinates: Sequence[int]) -> int | None:
        """Who is at a point; None when it lies outside. Rings wrap around."""
        asked = tuple(coordinates)
        found = self.known_ranks.get(asked, UNDEFINED)
        if found != UNDEFINED:
            return found
        made = self._rank_at(asked)
        if len(self.known_ranks) < _KEPT_MOST:
            self.known_ranks[asked] = made
        return made

    def _rank_at(self, coordinates: Sequence[int]) -> int | None:
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

    def shift(self, own: int, direction: int, steps: int) -> tuple[int, int]:
        """Who reaches this process's rank by so many steps, and whom it reaches.

        PROC_NULL stands for nobody.
        """
        found = self.shifted(own, direction, -steps), self.shifted(own, direction, steps)
        if len(self.known_shifts) < _KEPT_MOST:
            self.known_shifts[direction, steps] = found
        return found

    def neighbours(self, rank: int) -> Neighbours:
        """The two neighbours in each dimension, PROC_NULL where there is none.

        In a ring of one or two points both edges of a dimension join the same two members: what is
        sent in one direction is received from the other one (MPI 4.0, 8.6). So the second edge of
        each dimension is sent along first.
        """
        found = self._neighbours.get(rank)
        if found is not None:
            return found
        directions = range(len(self.dims))
        ranks = [self.shifted(rank, d, step) for d in directions for step in (-1, 1)]
        found = Neighbours(ranks, ranks, [place ^ 1 for place in range(len(ranks))])
        self._neighbours[rank] = found
        return found


class Graph:
    """A graph that every member knows whole.

    Attributes:
        kind: of topology.
        index: where the edges of each node end in `edges`.
        edges: the node that each edge leads to.
    """

    kind: Final = GRAPH

    __slots__ = ("_is_known", "_neighbours", "_one_way", "edges", "index")

    def __init__(self, index: Sequence[int], edges: Sequence[int]) -> None:
        self.index = tuple(index)
        self.edges = tuple(edges)
        self._neighbours: dict[int, Neighbours] = {}
        self._one_way: tuple[int, int] | None = None
        self._is_known = False  # before somebody asks

    def adjacent(self, rank: int) -> list[int]:
        """The neighbours of a node."""
        first = self.index[rank - 1] if rank else 0
        return list(self.edges[first : self.index[rank]])

    def neighbours(self, rank: int) -> Neighbours:
        """An edge leads both ways."""
        found = self._neighbours.get(rank)
        if found is None:
            ranks = self.adjacent(rank)
            found = self._neighbours[rank] = Neighbours(ranks, ranks)
        return found

    @property
    def one_way(self) -> tuple[int, int] | None:
        """An edge that is not there as often in the other direction, or None."""
        if not self._is_known:
            self._one_way, self._is_known = self._found_one_way(), True
        return self._one_way

    def _found_one_way(self) -> tuple[int, int] | None:
        starts = (0, *self.index)
        found = Counter(
            (node, other)
            for node, (first, end) in enumerate(pairwise(starts))
            for other in self.edges[first:end]
        )
        for (node, other), times in found.items():
            if found[other, node] != times:
                return node, other
        return None


Weights = tuple[tuple[int, ...], tuple[int, ...]]


class Edges:
    """A distributed graph: of each member only its own edges are known.

    Attributes:
        kind: of topology.
        sources: who sends here.
        targets: who receives from here.
        weights: of the edges from the sources, and of those to the targets; None for no weights.
    """

    kind: Final = DIST_GRAPH

    __slots__ = ("_neighbours", "sources", "targets", "weights")

    def __init__(
        self, sources: Sequence[int], targets: Sequence[int], weights: Weights | None
    ) -> None:
        self.sources = tuple(sources)
        self.targets = tuple(targets)
        self.weights = weights
        self._neighbours = Neighbours(self.sources, self.targets)

    def neighbours(self, rank: int) -> Neighbours:
        """The edges of this member."""
        return self._neighbours


Topology = Grid | Graph | Edges
