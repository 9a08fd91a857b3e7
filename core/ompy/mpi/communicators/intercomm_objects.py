"""Collective operations on objects between two groups: straight to the other one, as buffers go.

A root gives ROOT, the others of its group PROC_NULL and get None; those of the other group give its
rank. What all get is of the other group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from ompy.data.constants import ROOT
from ompy.frameworks.collectives.group_edges import GroupEdges
from ompy.mpi.collectives.object_collectives import (
    ALLGATHER,
    ALLREDUCE,
    ALLTOALL,
    BCAST,
    GATHER,
    REDUCE,
    SCATTER,
    along_edges_between,
)
from ompy.mpi.collectives.operation import SUM, Op
from ompy.mpi.collectives.refusals import see_root
from ompy.mpi.state import CommBase, CommState


class InterObjectCollectives(CommBase):
    """Collective operations on objects between two groups, in the same order at all members."""

    __slots__ = ()

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """The root's object at every member of the other group; None in its own."""
        state = self._rooted("bcast", root)
        found = along_edges_between(state, BCAST, obj, _edges(state).of_broadcast(root), root)
        return found[0] if found else None

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        """The objects of the other group in a list at the root, None elsewhere."""
        return self._gathered("gather", GATHER, sendobj, root)

    def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        """This member's item of the root's sequence; None in the root's group."""
        state = self._rooted("scatter", root)
        edges = _edges(state).of_broadcast(root)
        found = along_edges_between(state, SCATTER, sendobj, edges, root)
        return found[0] if found else None

    def allgather(self, sendobj: Any) -> list[Any]:
        """The objects of the other group in a list."""
        return self._swapped(ALLGATHER, sendobj)

    def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        """This member's item of each sequence of the other group."""
        return self._swapped(ALLTOALL, sendobj)

    def reduce(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM, root: int = 0) -> Any:
        """The objects of the other group combined in rank order at the root, None elsewhere."""
        objects = self._gathered("reduce", REDUCE, sendobj, root)
        return None if objects is None else reduce(op, objects)

    def allreduce(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM) -> Any:
        """The objects of the other group combined in rank order."""
        return reduce(op, self._swapped(ALLREDUCE, sendobj))

    def _swapped(self, which: int, given: Any) -> list[Any]:
        state = self._state()
        return along_edges_between(state, which, given, _edges(state).across, 0)

    def _gathered(self, name: str, which: int, given: Any, root: int) -> list[Any] | None:
        state = self._rooted(name, root)
        found = along_edges_between(state, which, given, _edges(state).of_gather(root), root)
        return found if root == ROOT else None

    def _rooted(self, name: str, root: int) -> CommState:
        state = self._state()
        see_root(self, name, root)
        return state


def _edges(state: CommState) -> GroupEdges:
    """Those to and from the other group."""
    if state.neighbours is None:
        state.neighbours = GroupEdges(state.size)
    found: GroupEdges = state.neighbours
    return found
