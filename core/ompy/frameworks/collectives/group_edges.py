"""Along which edges the data of a collective call between two groups go."""

from __future__ import annotations

from ompy.compiled import ccall, cclass
from ompy.data.constants import PROC_NULL, ROOT
from ompy.frameworks.collectives.neighbours import Neighbours


@cclass
class GroupEdges:
    """The neighbours of a member in each kind of call: members of the other group.

    Attributes:
        across: to each of the other group, and from each.
        from_others: from each of the other group.
        nobody: none: of the members of a root's group.
        to_others: to each of the other group.
    """

    _first: int
    _from_one: dict[int, Neighbours]
    _shifted: dict[Neighbours, Neighbours]
    _to_one: dict[int, Neighbours]
    across: Neighbours
    from_others: Neighbours
    nobody: Neighbours
    to_others: Neighbours
    __slots__ = tuple(__annotations__)

    def __init__(self, size: int, first: int = 0) -> None:
        """Those of a communicator.

        Args:
            size: members of the other group.
            first: the rank of the first of them; more than 0 where both groups are together.
        """
        others = range(first, first + size)
        self._first = first
        self._from_one = {}
        self._to_one = {}
        self._shifted = {}
        self.across = Neighbours(others, others)
        self.from_others = Neighbours(others, ())
        self.nobody = Neighbours((), ())
        self.to_others = Neighbours((), others)

    @ccall
    def of_broadcast(self, root: int) -> Neighbours:
        """From a root, as the member names it, to all of the other group; also of a scatter."""
        if root == ROOT:
            return self.to_others
        if root == PROC_NULL:
            return self.nobody
        found: Neighbours | None = self._from_one.get(root)
        if found is None:
            found = self._from_one[root] = Neighbours((self._first + root,), ())
        return found

    @ccall
    def of_gather(self, root: int) -> Neighbours:
        """From all of the other group to a root; also of a reduction."""
        if root == ROOT:
            return self.from_others
        if root == PROC_NULL:
            return self.nobody
        found: Neighbours | None = self._to_one.get(root)
        if found is None:
            found = self._to_one[root] = Neighbours((), (self._first + root,))
        return found

    @ccall
    def shifted(self, edges: Neighbours) -> Neighbours:
        """Edges between ranks of the groups as those of both together."""
        found: Neighbours | None = self._shifted.get(edges)
        if found is None:
            first = self._first
            sources = [first + rank for rank in edges.sources]
            found = Neighbours(sources, [first + rank for rank in edges.targets])
            self._shifted[edges] = found
        return found
