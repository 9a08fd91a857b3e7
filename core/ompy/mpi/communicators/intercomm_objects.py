"""Collective operations on objects between two groups: straight messages, as buffers go.

A root gives ROOT, the others of its group PROC_NULL and get None; those of the other group give its
rank. What all get is of the other group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from ompy.data.constants import PROC_NULL, ROOT
from ompy.mpi.buffers.objects import pickle
from ompy.mpi.collectives.in_turn import together
from ompy.mpi.collectives.object_collectives import (
    items_of,
    received_object,
    send_object,
    swapped_objects,
)
from ompy.mpi.collectives.operation import SUM, Op
from ompy.mpi.collectives.refusals import see_root
from ompy.mpi.state import CommBase, CommState


class InterObjectCollectives(CommBase):
    """Collective operations on objects between two groups, in the same order at all members."""

    __slots__ = ()

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """The root's object at every member of the other group; None in its own."""
        return self._rooted("bcast", _bcast, root, obj)

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        """The objects of the other group in a list at the root, None elsewhere."""
        found: list[Any] | None = self._rooted("gather", _gather, root, sendobj)
        return found

    def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        """This member's item of the root's sequence; None in the root's group."""
        return self._rooted("scatter", _scatter, root, sendobj)

    def allgather(self, sendobj: Any) -> list[Any]:
        """The objects of the other group in a list."""
        found: list[Any] = together(self._state(), "allgather", 0, _allgather, sendobj)
        return found

    def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        """This member's item of each sequence of the other group."""
        found: list[Any] = together(self._state(), "alltoall", 0, _alltoall, sendobj)
        return found

    def reduce(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM, root: int = 0) -> Any:
        """The objects of the other group combined in rank order at the root, None elsewhere."""
        return self._rooted("reduce", _reduce, root, sendobj, op)

    def allreduce(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM) -> Any:
        """The objects of the other group combined in rank order."""
        return together(self._state(), "allreduce", 0, _allreduce, sendobj, op)

    def _rooted(self, name: str, function: Callable[..., Any], root: int, *given: Any) -> Any:
        state = self._state()
        see_root(self, name, root)
        return together(state, name, root, function, *given, root)


def _bcast(state: CommState, obj: Any, root: int) -> Any:
    if root == ROOT:
        swapped_objects(state, [pickle.pieces(obj)] * state.size, ())
    return received_object(state, root) if root >= 0 else None


def _gather(state: CommState, obj: Any, root: int) -> list[Any] | None:
    if root == ROOT:
        return swapped_objects(state, (), range(state.size))
    if root != PROC_NULL:
        send_object(state, pickle.pieces(obj), root)
    return None


def _scatter(state: CommState, objects: Sequence[Any] | None, root: int) -> Any:
    if root == ROOT:
        messages = [pickle.pieces(item) for item in items_of(state, objects)]
        swapped_objects(state, messages, ())
    return received_object(state, root) if root >= 0 else None


def _allgather(state: CommState, obj: Any) -> list[Any]:
    return swapped_objects(state, [pickle.pieces(obj)] * state.size, range(state.size))


def _alltoall(state: CommState, objects: Sequence[Any]) -> list[Any]:
    messages = [pickle.pieces(item) for item in items_of(state, objects)]
    return swapped_objects(state, messages, range(state.size))


def _reduce(state: CommState, obj: Any, op: Op | Callable[[Any, Any], Any], root: int) -> Any:
    objects = _gather(state, obj, root)
    return None if objects is None else reduce(op, objects)


def _allreduce(state: CommState, obj: Any, op: Op | Callable[[Any, Any], Any]) -> Any:
    return reduce(op, _allgather(state, obj))
