"""Random datatypes, with the places of all their bytes.

Lower bound and extent are what the datatype says: a struct's may be padded to its alignment.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

import numpy as np
from ompy import MPI

from tests.support.differential.program import some

UNITS: Final = {  # bytes of a basic type
    "BYTE": 1,
    "CHAR": 1,
    "INT8_T": 1,
    "SHORT": 2,
    "INT": 4,
    "FLOAT": 4,
    "UINT32_T": 4,
    "DOUBLE": 8,
    "LONG": 8,
    "C_FLOAT_COMPLEX": 8,
    "C_DOUBLE_COMPLEX": 16,
    "INT16_T": 2,
    "INT32_T": 4,
    "INT64_T": 8,
    "UINT8_T": 1,
    "UINT16_T": 2,
    "UINT64_T": 8,
}
GAPS_MOST: Final = 32  # bytes of a layout for each of its data; arbitrary
Shape = tuple[Any, Any, str]  # a datatype, where its elements begin (bytes), and its name


class Layout:
    """A datatype and its model.

    Attributes:
        datatype: committed by `draw_layout`.
        places: of its bytes, from its origin, in the order in which they are sent.
        extent: bytes.
        units: elements of the basic type in it.
        name: in reports.
        basic: it is predefined.
    """

    def __init__(self, datatype: Any, places: Any, units: int, name: str) -> None:
        self.datatype = datatype
        self.places = np.asarray(places, np.int64)
        self.extent: int = datatype.Get_extent()[1]
        self.units = units
        self.name = name
        self.basic: bool = datatype.is_predefined

    @property
    def span(self) -> int:
        """From its first byte to the one after its last."""
        return int(self.places.max()) + 1 - int(self.places.min())

    def repeated(self, starts: Any) -> Any:
        """The places of the bytes of elements that begin at `starts`."""
        return (np.asarray(starts, np.int64)[:, None] + self.places[None, :]).ravel()

    def places_of(self, count: int) -> Any:
        """The places of the bytes of some elements in a row."""
        return self.repeated(np.arange(count) * self.extent)


def basic_layout(name: str) -> Layout:
    """Of a predefined type."""
    return Layout(getattr(MPI, name), np.arange(UNITS[name]), 1, name)


def divisors(number: int, most: int = 64) -> list[int]:
    """Those up to `most`."""
    return [one for one in range(1, min(number, most) + 1) if not number % one]


def draw_parts(chance: Random, total: int) -> list[int]:
    """Up to five positive numbers with this sum."""
    count = chance.randint(1, min(5, total))
    edges = [0, *sorted(chance.sample(range(1, total), count - 1)), total]
    return [after - before for before, after in zip(edges, edges[1:], strict=False)]


def shuffled(chance: Random, *columns: list[Any]) -> list[list[Any]]:
    """Lists of the same length, now and then in another order."""
    order = list(range(len(columns[0])))
    if some(chance, 0.4):
        chance.shuffle(order)
    return [[column[at] for at in order] for column in columns]


def runs(lengths: list[int], starts: list[int], extent: int) -> Any:
    """Where the elements of blocks begin."""
    return np.concatenate(
        [start + np.arange(length) * extent for length, start in zip(lengths, starts, strict=True)]
    )


def room_of(chance: Random, part: Layout) -> int:
    """Bytes from one displacement to the next so that blocks do not overlap."""
    return max(abs(part.extent), part.span) + chance.choice((0, 1, 3))


def contiguous(chance: Random, part: Layout, count: int, overlap: bool) -> Shape:
    starts = np.arange(count) * part.extent
    return part.datatype.Create_contiguous(count), starts, f"contiguous {count}"


def vector(chance: Random, part: Layout, count: int, overlap: bool) -> Shape:
    length = chance.choice(divisors(count))
    stride = (length + chance.choice((0, 0, 1, 2, 5))) * chance.choice((1, 1, -1))
    if overlap and some(chance, 0.3):
        stride = chance.randint(0, length)
    datatype = part.datatype.Create_vector(count // length, length, stride)
    first = np.arange(count // length)[:, None] * stride * part.extent
    starts = (first + np.arange(length) * part.extent).ravel()
    return datatype, starts, f"vector {count // length} {length} {stride}"


def hvector(chance: Random, part: Layout, count: int, overlap: bool) -> Shape:
    length = chance.choice(divisors(count))
    stride = abs(length * part.extent) + part.span + chance.choice((0, 1, 3, 8))
    stride *= chance.choice((1, 1, -1))
    datatype = part.datatype.Create_hvector(count // length, length, stride)
    first = np.arange(count // length)[:, None] * stride
    starts = (first + np.arange(length) * part.extent).ravel()
    return datatype, starts, f"hvector {count // length} {length} {stride}"


def draw_blocks(chance: Random, lengths: list[int]) -> list[int]:
    """Displacements of blocks, with gaps between some."""
    found, at = [], chance.choice((0, 0, -2, 3))
    for length in lengths:
        found.append(at)
        at += length + chance.choice((0, 0, 1, 3))
    return found


def placed(
    chance: Random,
    part: Layout,
    displacements: list[int],
    lengths: int | list[int],
    name: str,
    in_extents: Callable[..., MPI.Datatype],
    in_bytes: Callable[..., MPI.Datatype],
) -> tuple[MPI.Datatype, list[int], str]:
    """A type of blocks at displacements in extents or in bytes, where they begin, and its name."""
    if some(chance, 0.5):
        begin = [one * part.extent for one in displacements]
        return in_extents(lengths, displacements), begin, name
    room = room_of(chance, part)
    begin = [one * room for one in displacements]
    return in_bytes(lengths, begin), begin, f"h{name}"


def indexed(chance: Random, part: Layout, count: int, overlap: bool) -> Shape:
    lengths = draw_parts(chance, count)
    displacements = draw_blocks(chance, lengths)
    if some(chance, 0.2):
        lengths.insert(0, 0)
        displacements.insert(0, chance.randint(-3, 30))
    lengths, displacements = shuffled(chance, lengths, displacements)
    made = part.datatype.Create_indexed, part.datatype.Create_hindexed
    datatype, begin, name = placed(chance, part, displacements, lengths, "indexed", *made)
    return datatype, runs(lengths, begin, part.extent), f"{name} {lengths} {begin}"


def indexed_block(chance: Random, part: Layout, count: int, overlap: bool) -> Shape:
    length = chance.choice(divisors(count))
    lengths = [length] * (count // length)
    (displacements,) = shuffled(chance, draw_blocks(chance, lengths))
    made = part.datatype.Create_indexed_block, part.datatype.Create_hindexed_block
    datatype, begin, name = placed(chance, part, displacements, length, "indexed_block", *made)
    return datatype, runs(lengths, begin, part.extent), f"{name} {length} {begin}"


def subarray(chance: Random, part: Layout, count: int, overlap: bool) -> Shape:
    lengths, rest = [], count
    for _ in range(chance.randint(1, 3)):
        lengths.append(chance.choice(divisors(rest)))
        rest //= lengths[-1]
    lengths.append(rest)
    chance.shuffle(lengths)
    starts = [chance.choice((0, 0, 1, 2)) for _ in lengths]
    sizes = [
        start + length + chance.choice((0, 0, 1, 2))
        for start, length in zip(starts, lengths, strict=True)
    ]
    fortran = some(chance, 0.5)
    order = MPI.ORDER_FORTRAN if fortran else MPI.ORDER_C
    datatype = part.datatype.Create_subarray(sizes, lengths, starts, order)
    step = -1 if fortran else 1
    chosen = [slice(a, a + b) for a, b in zip(starts, lengths, strict=True)]
    whole = np.arange(int(np.prod(sizes))).reshape(sizes[::step])
    taken = whole[tuple(chosen[::step])].ravel() * part.extent
    return datatype, taken, f"subarray {sizes} {lengths} {starts} {fortran=}"


SHAPES: Final[tuple[Callable[[Random, Layout, int, bool], Shape], ...]] = (
    *(contiguous, vector, hvector, indexed, indexed, indexed_block, indexed_block, subarray),
)


def resized(chance: Random, part: Layout, overlap: bool) -> Layout:
    """Another lower bound and extent, which may be negative."""
    lower = int(part.places.min()) + chance.choice((0, 0, -3, -8, 1, 5))
    extent = part.span + chance.choice((0, 0, 1, 4, 8, 17))
    if some(chance, 0.2):
        extent = -extent
    if overlap and some(chance, 0.3):
        extent = chance.randint(0, max(extent, 0))
    datatype = part.datatype.Create_resized(lower, extent)
    return Layout(datatype, part.places, part.units, f"resized {lower} {extent} ({part.name})")


def struct(chance: Random, name: str, units: int, depth: int, overlap: bool) -> Layout:
    """Blocks of several datatypes, in any order."""
    lengths, displacements, parts, at = [], [], [], 0
    for share in draw_parts(chance, units):
        length = chance.choice(divisors(share))
        part = derive(chance, name, share // length, depth - 1, overlap)
        places = part.places_of(length)
        displacements.append(at - int(places.min()))
        at += int(places.max()) + 1 - int(places.min()) + chance.choice((0, 0, 1, 3, 8))
        lengths.append(length)
        parts.append(part)
    shift = chance.choice((0, 0, -at, 5))
    displacements = [one + shift for one in displacements]
    if some(chance, 0.15):  # a block of no elements
        lengths.append(0)
        displacements.append(3)
        parts.append(basic_layout("INT"))
    lengths, displacements, parts = shuffled(chance, lengths, displacements, parts)
    datatype = MPI.Datatype.Create_struct(lengths, displacements, [one.datatype for one in parts])
    places = [
        start + part.places_of(length)
        for length, start, part in zip(lengths, displacements, parts, strict=True)
    ]
    names = ", ".join(one.name for one in parts)
    return Layout(
        datatype, np.concatenate(places), units, f"struct {lengths} {displacements} ({names})"
    )


def derive(chance: Random, name: str, units: int, depth: int, overlap: bool) -> Layout:
    """A layout, not yet committed."""
    if units == 1 and (depth <= 0 or some(chance, 0.6)):
        return basic_layout(name)
    if depth <= 0:
        kind, share = 0, units
    else:
        kind = chance.randrange(len(SHAPES) + 4)
        share = chance.choice(divisors(units))
    if kind >= len(SHAPES) + 3:
        return struct(chance, name, units, depth, overlap)
    if kind >= len(SHAPES):
        part = derive(chance, name, units, depth - 1, overlap)
        if kind == len(SHAPES):
            return Layout(part.datatype.Dup(), part.places, units, f"dup ({part.name})")
        return resized(chance, part, overlap)
    part = derive(chance, name, units // share, depth - 1, overlap)
    datatype, starts, shape = SHAPES[kind](chance, part, share, overlap)
    return Layout(datatype, part.repeated(starts), units, f"{shape} ({part.name})")


def draw_layout(
    chance: Random, name: str, units: int, depth: int = 3, overlap: bool = False
) -> Layout:
    """A committed layout of some elements of a basic type.

    Args:
        chance: draws it.
        name: of the basic type.
        units: elements.
        depth: constructors, at most, one on another.
        overlap: bytes may be there twice: for what is only read.
    """
    found = derive(chance, name, units, depth, overlap)
    if max(abs(found.extent), found.span) > GAPS_MOST * len(found.places):  # memory for many of it
        found = derive(chance, name, units, 0, overlap)
    if not found.basic:
        found.datatype.Commit()
    return found
