"""Copying slabs with NumPy. Importing it imports NumPy.

Runs are seen as the items of an array, straight in the user's memory; only the data are copied.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ompy.data.typemap import Dimension, Scatter, Scattered, Slab

Array = np.ndarray[Any, Any]

_WORDS: Final = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}
# Measured: from here on a row of bytes is copied as fast as one item of that size
_LONG: Final = 256
# runs of a length that are worth an index array: below, slices are as fast. Measured, 8 byte runs
_INDEXED_FROM: Final = 16


def gather(slab: Slab, memory: memoryview, packed: memoryview) -> None:
    """Copy a slab's runs from memory to where they are in the packed bytes."""
    if not slab.dimensions:
        packed[slab.packed : slab.packed + slab.length] = memory[
            slab.memory : slab.memory + slab.length
        ]
        return
    runs, words = _arrays(slab, memory, packed)
    np.copyto(words, runs)


def scatter(slab: Slab, packed: memoryview, memory: memoryview) -> None:
    """Copy a slab's runs from the packed bytes to memory."""
    if not slab.dimensions:
        memory[slab.memory : slab.memory + slab.length] = packed[
            slab.packed : slab.packed + slab.length
        ]
        return
    runs, words = _arrays(slab, memory, packed)
    np.copyto(runs, words)


def _arrays(slab: Slab, memory: memoryview, packed: memoryview) -> tuple[Array, Array]:
    """A slab's runs in memory and in the packed bytes, as arrays of equal shape."""
    length = slab.length
    dimensions: tuple[Dimension, ...] = slab.dimensions
    if length >= _LONG:
        dimensions = (*dimensions, (length, 1, 1))
        kind = "u1"
    else:
        kind = _WORDS.get(length, f"V{length}")
    counts = [count for count, _, _ in dimensions]
    runs: Array = np.ndarray(
        counts, kind, memory, slab.memory, [stride for _, stride, _ in dimensions]
    )
    words: Array = np.ndarray(
        counts, kind, packed, slab.packed, [step for _, _, step in dimensions]
    )
    return runs, words


class _Group:
    """The runs of one length.

    Attributes:
        length: of them.
        places: which runs they are, in packed order.
        displacements, starts: of the runs, in memory and in the packed bytes.
    """

    __slots__ = ("displacements", "length", "places", "starts")

    def __init__(self, node: Scattered, length: int, places: Array) -> None:
        self.length = length
        self.places = places
        self.displacements: Array = np.fromiter(
            node.displacements, np.int64, len(node.displacements)
        )[places]
        self.starts: Array = np.fromiter(node.starts, np.int64, len(node.starts))[places]


def _groups(node: Scattered) -> list[_Group]:
    if node.arrays is None:
        lengths = np.fromiter(node.lengths, np.int64, len(node.lengths))
        node.arrays = [
            _Group(node, int(length), np.flatnonzero(lengths == length))
            for length in np.unique(lengths)
        ]
    found: list[_Group] = node.arrays  # type: ignore[assignment]
    return found


def gather_scattered(piece: Scatter, memory: memoryview, packed: memoryview) -> None:
    """Copy runs at any displacements into the packed bytes."""
    for group, first, last in _in_range(piece):
        shift = piece.packed - piece.node.starts[piece.first]
        at, to = piece.memory + group.displacements[first:last], shift + group.starts[first:last]
        _copy(packed, to, memory, at, group.length)


def scatter_scattered(piece: Scatter, packed: memoryview, memory: memoryview) -> None:
    """Copy runs at any displacements from the packed bytes."""
    for group, first, last in _in_range(piece):
        shift = piece.packed - piece.node.starts[piece.first]
        to, at = piece.memory + group.displacements[first:last], shift + group.starts[first:last]
        _copy(memory, to, packed, at, group.length)


def _in_range(piece: Scatter) -> list[tuple[_Group, int, int]]:
    """The runs of a piece, by length: which of each group they are."""
    found = []
    for group in _groups(piece.node):
        first, last = np.searchsorted(group.places, (piece.first, piece.last))
        if last > first:
            found.append((group, int(first), int(last)))
    return found


def _copy(target: memoryview, to: Array, source: memoryview, at: Array, length: int) -> None:
    """Copy runs of equal length."""
    if length >= _LONG or len(at) < _INDEXED_FROM:
        for end, start in zip(to.tolist(), at.tolist(), strict=True):
            target[end : end + length] = source[start : start + length]
        return
    _windows(target, length)[to] = _windows(source, length)[at]


def _windows(memory: memoryview, length: int) -> Array:
    """All runs of a length there are in memory, by their first byte."""
    kind = _WORDS.get(length, f"V{length}")
    windows: Array = np.ndarray((len(memory) - length + 1,), kind, memory, 0, (1,))
    return windows
