"""Copying slabs with memory views alone.

A memory view of machine words can be sliced with a step, and assigning one such slice to another is
one call whatever their length. The longest dimension of a slab is copied that way, word by word of
its runs; or its runs one by one when they are longer than there are many.
"""

from __future__ import annotations

from itertools import product
from typing import Final

from ompy.data.typemap import Dimension, Scatter, Slab

_WORDS: Final = ((8, "Q"), (4, "I"), (2, "H"), (1, "B"))


def gather(slab: Slab, memory: memoryview, packed: memoryview) -> None:
    """Copy a slab's runs from memory to where they are in the packed bytes."""
    dimensions = [(count, step, stride) for count, stride, step in slab.dimensions]
    _copy(packed, slab.packed, memory, slab.memory, slab.length, dimensions)


def scatter(slab: Slab, packed: memoryview, memory: memoryview) -> None:
    """Copy a slab's runs from the packed bytes to memory."""
    _copy(memory, slab.memory, packed, slab.packed, slab.length, list(slab.dimensions))


def gather_scattered(piece: Scatter, memory: memoryview, packed: memoryview) -> None:
    """Copy runs at any displacements into the packed bytes, one by one."""
    node, at = piece.node, piece.packed
    for index in range(piece.first, piece.last):
        length = node.lengths[index]
        start = piece.memory + node.displacements[index]
        packed[at : at + length] = memory[start : start + length]
        at += length


def scatter_scattered(piece: Scatter, packed: memoryview, memory: memoryview) -> None:
    """Copy runs at any displacements from the packed bytes, one by one."""
    node, at = piece.node, piece.packed
    for index in range(piece.first, piece.last):
        length = node.lengths[index]
        start = piece.memory + node.displacements[index]
        memory[start : start + length] = packed[at : at + length]
        at += length


def _copy(
    target: memoryview,
    to: int,
    source: memoryview,
    at: int,
    length: int,
    dimensions: list[Dimension],
) -> None:
    """Copy an array of runs; dimensions are (count, stride in target, stride in source)."""
    if not dimensions:
        target[to : to + length] = source[at : at + length]
        return
    longest = max(range(len(dimensions)), key=lambda index: dimensions[index][0])
    count, step, stride = dimensions[longest]
    word, code = next(
        pair for pair in _WORDS if not (length % pair[0] or step % pair[0] or stride % pair[0])
    )
    if not step or not stride or count * word <= length:
        outer, inner = dimensions, None  # run by run
    else:
        outer, inner = dimensions[:longest] + dimensions[longest + 1 :], dimensions[longest]
    for indices in product(*(range(number) for number, _, _ in outer)):
        start, end = at, to
        for index, (_, forward, back) in zip(indices, outer, strict=True):
            end += index * forward
            start += index * back
        if inner is None:
            target[end : end + length] = source[start : start + length]
            continue
        for column in range(0, length, word):
            words = _words(target, end + column, count, step, word, code)
            words[:] = _words(source, start + column, count, stride, word, code)


def _words(
    memory: memoryview, start: int, count: int, stride: int, word: int, code: str
) -> memoryview:
    """`count` words, the first at byte `start`, `stride` bytes apart."""
    reach = (count - 1) * stride
    low = start + min(0, reach)
    region = memory[low : low + abs(reach) + word].cast(code)  # type: ignore[call-overload]
    found: memoryview = region[:: stride // word]  # a negative step begins at the end
    return found
