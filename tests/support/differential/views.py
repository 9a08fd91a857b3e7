"""Random views of files, and the bytes of a file."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

import numpy as np
from ompy import MPI

from tests.support.differential.layouts import UNITS, Layout, Shape, basic_layout, divisors, runs
from tests.support.differential.program import some

NAMES: Final = [name for name in UNITS if name != "LONG"]  # external32 has 4 bytes of that one
GAPS_MOST: Final = 100  # bytes of a filetype for each of its data; arbitrary
TRIES: Final = 30  # for a filetype that is one
GAPS: Final = (0, 4, 8, 100, 4096)


class FileModel:
    """The bytes of a file."""

    def __init__(self) -> None:
        self.bytes = np.zeros(0, np.uint8)

    def resize(self, size: int) -> None:
        """Cut it off, or add zeros."""
        added = np.zeros(max(0, size - len(self.bytes)), np.uint8)
        self.bytes = np.concatenate((self.bytes, added))[:size]

    def put(self, places: Any, data: Any) -> None:
        """Write, also beyond its end."""
        if len(places):
            self.resize(max(len(self.bytes), int(places.max()) + 1))
            self.bytes[places] = data


def vector(chance: Random, part: Layout, count: int) -> Shape:
    length = chance.choice(divisors(count))
    stride = (length + chance.choice((0, 1, 2, 5))) * part.extent + chance.choice((0, 1, 8))
    datatype = part.datatype.Create_hvector(count // length, length, stride)
    first = np.arange(count // length)[:, None] * stride
    return datatype, (first + np.arange(length) * part.extent).ravel(), f"hvector {length} {stride}"


def indexed(chance: Random, part: Layout, count: int) -> Shape:
    lengths, displacements, at = [], [], chance.choice((0, 0, 1, 3))
    while sum(lengths) < count:
        lengths.append(chance.randint(1, count - sum(lengths)))
        displacements.append(at)
        at += lengths[-1] + chance.choice((0, 0, 1, 3))
    begin = [one * part.extent for one in displacements]
    if some(chance, 0.5):
        datatype = part.datatype.Create_indexed(lengths, displacements)
    else:
        types = [part.datatype] * len(lengths)
        datatype = MPI.Datatype.Create_struct(lengths, begin, types)
    return datatype, runs(lengths, begin, part.extent), f"indexed {lengths} {displacements}"


def subarray(chance: Random, part: Layout, count: int) -> Shape:
    rows = chance.choice(divisors(count))
    lengths = [rows, count // rows]
    starts = [chance.choice((0, 1, 2)) for _ in lengths]
    sizes = [a + b + chance.choice((0, 1, 2)) for a, b in zip(starts, lengths, strict=True)]
    step = chance.choice((1, -1))
    order = MPI.ORDER_C if step > 0 else MPI.ORDER_FORTRAN
    datatype = part.datatype.Create_subarray(sizes, lengths, starts, order)
    chosen = [slice(a, a + b) for a, b in zip(starts, lengths, strict=True)][::step]
    whole = np.arange(int(np.prod(sizes))).reshape(sizes[::step])
    taken = whole[tuple(chosen)].ravel() * part.extent
    return datatype, taken, f"subarray {sizes} {lengths} {starts} {step}"


def darray(chance: Random, part: Layout, count: int) -> Shape:
    """A block for each of some processes, of which this is one."""
    processes = chance.randint(1, 3)
    place = chance.randrange(processes)
    datatype = part.datatype.Create_darray(
        processes,
        place,
        [count * processes],
        [MPI.DISTRIBUTE_BLOCK],
        [MPI.DISTRIBUTE_DFLT_DARG],
        [processes],
        MPI.ORDER_C,
    )
    starts = (place * count + np.arange(count)) * part.extent
    return datatype, starts, f"darray {place} of {processes}"


def resized(chance: Random, part: Layout, count: int) -> Shape:
    """Elements in a row, and a gap."""
    row = part.datatype.Create_contiguous(count)
    extent = count * part.extent + chance.choice(GAPS)
    return row.Create_resized(0, extent), np.arange(count) * part.extent, f"resized {extent}"


SHAPES: Final[tuple[Callable[[Random, Layout, int], Shape], ...]] = (
    *(vector, indexed, subarray, darray, resized),
)


def derive(chance: Random, etype: Layout, count: int, depth: int) -> Layout:
    """A filetype of some elementary ones, or what nearly is one."""
    if not depth or some(chance, 0.25):
        if count == 1:
            return etype
        datatype = etype.datatype.Create_contiguous(count)
        places = etype.places_of(count)
        return Layout(datatype, places, count, f"contiguous {count} ({etype.name})")
    share = chance.choice(divisors(count))
    part = derive(chance, etype, count // share, depth - 1)
    datatype, starts, name = chance.choice(SHAPES)(chance, part, share)
    return Layout(datatype, part.repeated(starts), count, f"{name} ({part.name})")


def is_filetype(layout: Layout) -> bool:
    """Whether its bytes are in order, and those of the next one come after them."""
    lower, extent = layout.datatype.Get_extent()
    places = layout.places
    in_order = bool((np.diff(places) > 0).all()) and places[0] >= 0
    dense = extent <= GAPS_MOST * len(places)  # else a file of many of them is too large
    return in_order and not lower and extent > places[-1] and dense


class View:
    """What a rank sees of a file.

    Attributes:
        unit: basic type.
        etype: elementary datatype, of some units.
        filetype: of some elementary ones, with gaps.
        displacement: bytes.
        representation: of data.
    """

    def __init__(self, chance: Random, representation: str) -> None:
        self.representation = representation
        self.unit = chance.choice(NAMES)
        self.etype = basic_layout(self.unit)
        units = chance.choice((1, 1, 1, 2, 3))
        if units > 1:
            datatype = self.etype.datatype.Create_contiguous(units)
            name = f"{units} {self.unit}"
            self.etype = Layout(datatype, self.etype.places_of(units), units, name)
        for _ in range(TRIES):
            count = chance.choice((1, 1, 2, 4, 6, 12, 60))
            self.filetype = derive(chance, self.etype, count, chance.randint(0, 3))
            if is_filetype(self.filetype):
                break
        else:
            self.filetype = self.etype
        self.displacement = chance.choice((0, 0, 1, 7, 16, 100, 4095))
        for layout in (self.etype, self.filetype):
            if not layout.datatype.is_predefined:
                layout.datatype.Commit()

    def __str__(self) -> str:
        return f"{self.displacement} {self.etype.name}, {self.filetype.name}, {self.representation}"

    @property
    def size(self) -> int:
        """Bytes of an elementary datatype."""
        return len(self.etype.places)

    def show(self, file: Any) -> None:
        """Let a file be seen so."""
        file.Set_view(
            self.displacement, self.etype.datatype, self.filetype.datatype, self.representation
        )

    def places(self, offset: int, count: int) -> Any:
        """The bytes of the file that some elementary datatypes are."""
        which = offset * self.size + np.arange(count * self.size)
        tile, within = np.divmod(which, len(self.filetype.places))
        return self.displacement + tile * self.filetype.extent + self.filetype.places[within]

    def converted(self, data: Any) -> Any:
        """Bytes of whole units, from memory to the file or back."""
        width = UNITS[self.unit] // (2 if "COMPLEX" in self.unit else 1)
        if self.representation != "external32" or width == 1:
            return data
        return data.reshape(-1, width)[:, ::-1].ravel()
