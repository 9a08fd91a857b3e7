"""What a datatype handle refers to, and the layouts of derived types.

A derived type is elements of other types at byte displacements; all constructors come down to
that (MPI standard, chapter on datatypes). Regular ones become loops, however many elements they
have (`data/typemap.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ompy.data.layout import Layout, combine_layouts, resize, strided
from ompy.mpi.handles import State


class TypeState(State):
    """A datatype.

    Attributes:
        layout: of one element.
        align: strictest alignment of its basic types, in bytes.
        bounded: its bounds were set by hand; no padding is added then.
        combiner: how it was made: the constructor's name, NAMED for predefined ones.
        params: the constructor's arguments; datatypes among them are states.
        base: the type it was made from, or None.
        name: its name.
        symbol: name of the predefined handle, or empty.
        code: its type code, or empty.
        committed: whether it may be used for messages.
        attributes: by key, or None when there are none.
    """

    __slots__ = (
        "align",
        "attributes",
        "base",
        "bounded",
        "code",
        "combiner",
        "committed",
        "layout",
        "name",
        "params",
        "symbol",
    )

    def __init__(
        self,
        layout: Layout,
        align: int,
        combiner: str,
        params: dict[str, Any],
        base: TypeState | None = None,
        *,
        bounded: bool = False,
    ) -> None:
        super().__init__()
        self.layout = layout if bounded else padded(layout, align)
        self.align = align
        self.bounded = bounded
        self.combiner = combiner
        self.params = params
        self.base = base
        self.name = ""
        self.symbol = ""
        self.code = ""
        self.committed = False
        self.attributes: dict[int, Any] | None = None

    @property
    def predefined(self) -> bool:
        """It cannot be freed."""
        return self.combiner == "NAMED" or self.combiner.startswith("F90_")


def padded(layout: Layout, align: int) -> Layout:
    """The layout with its extent rounded up to a multiple of the alignment."""
    missing = -layout.extent % align if align > 1 and layout.extent > 0 else 0
    return resize(layout, layout.lower, layout.extent + missing) if missing else layout


def consecutive(layout: Layout, count: int) -> Layout:
    """`count` elements one after the other."""
    return layout if count == 1 else strided(layout, count, layout.extent)


def vector(layout: Layout, count: int, length: int, stride: int) -> Layout:
    """`count` runs of `length` elements, `stride` bytes apart; empty runs leave no trace."""
    return strided(consecutive(layout, length), count if length else 0, stride)


def placed(layout: Layout, lengths: Sequence[int], displacements: Sequence[int]) -> Layout:
    """Runs of elements at byte displacements; empty runs leave no trace."""
    made = {length: consecutive(layout, length) for length in set(lengths)}
    return combine_layouts(
        [(at, made[length]) for length, at in zip(lengths, displacements, strict=True) if length]
    )


def structured(
    lengths: Sequence[int], displacements: Sequence[int], layouts: Sequence[Layout]
) -> Layout:
    """Runs of elements of different types at byte displacements."""
    parts = [
        (at, consecutive(layout, length))
        for length, at, layout in zip(lengths, displacements, layouts, strict=True)
        if length
    ]
    return combine_layouts(parts)


def subarray(
    layout: Layout,
    sizes: Sequence[int],
    subsizes: Sequence[int],
    starts: Sequence[int],
    *,
    fortran: bool,
) -> Layout:
    """A box in an array; the bounds are the whole array's."""
    owned = [[(start, size, 1, size)] for start, size in zip(starts, subsizes, strict=True)]
    return _selection(layout, sizes, owned, fortran=fortran)


def darray(
    layout: Layout,
    coordinates: Sequence[int],
    sizes: Sequence[int],
    blocks: Sequence[int],
    grid: Sequence[int],
    *,
    fortran: bool,
) -> Layout:
    """A process's part of a distributed array; the bounds are the whole array's.

    Args:
        layout: of an element.
        coordinates: of the process in the grid.
        sizes: of the whole array.
        blocks: elements dealt out at a time, in each dimension.
        grid: processes in each dimension.
        fortran: the first index varies fastest.
    """
    owned = [_dealt(*each) for each in zip(coordinates, sizes, blocks, grid, strict=True)]
    return _selection(layout, sizes, owned, fortran=fortran)


# blocks of consecutive indices: the first index, a block's length, how many, from one to the next
Owned = tuple[int, int, int, int]


def _dealt(at: int, size: int, block: int, width: int) -> list[Owned]:
    """The indices of the process at place `at` of `width`: whole blocks, and a shorter last one."""
    round_ = block * width
    first = at * block
    whole = max((size - first - block) // round_ + 1, 0) if size > first else 0
    found = [(first, block, whole, round_)] if whole else []
    last = first + whole * round_
    if last < size:
        found.append((last, size - last, 1, round_))
    return found


def _selection(
    layout: Layout, sizes: Sequence[int], owned: Sequence[list[Owned]], *, fortran: bool
) -> Layout:
    """The elements whose index in each dimension is one of those owned."""
    if not fortran:
        sizes, owned = sizes[::-1], owned[::-1]
    made = layout
    stride = layout.extent  # bytes from one index to the next, the fastest dimension first
    for size, blocks in zip(sizes, owned, strict=True):
        made = combine_layouts(
            [
                (first * stride, strided(strided(made, length, stride), count, step * stride))
                for first, length, count, step in blocks
                if length
            ]
        )
        stride *= size
    return resize(made, 0, stride)


class Basics(NamedTuple):
    """Equal basic types in a row.

    Attributes:
        kind: how they are converted: plain, signed or unsigned (C's longs), extended.
        length: bytes of each.
        number: how many.
    """

    kind: str
    length: int
    number: int


Signature = tuple[tuple[Basics, ...], int]  # the basic types of a period, and how many periods


def signature(state: TypeState) -> Signature:
    """The basic types of one element, in packing order."""
    if state.combiner == "STRUCT":
        return _signature_of_struct(state)
    if state.base is None:
        return _named(state), 1
    runs, times = signature(state.base)
    inner = state.base.layout.size
    return _folded(runs, times * (state.layout.size // inner if inner else 0))


def _signature_of_struct(state: TypeState) -> Signature:
    parts = []
    for number, part in zip(state.params["blocklengths"], state.params["datatypes"], strict=True):
        runs, times = signature(part)
        if number and times and runs:
            parts.append((runs, times * number))
    if len({runs for runs, _ in parts}) == 1:
        return _folded(parts[0][0], sum(times for _, times in parts))
    every: list[Basics] = []
    for runs, times in parts:
        folded, periods = _folded(runs, times)
        every += folded * periods
    return tuple(every), 1


def _folded(runs: tuple[Basics, ...], times: int) -> Signature:
    if len(runs) != 1:
        return runs, times
    kind, length, number = runs[0]
    return ((Basics(kind, length, number * times),) if times else ()), 1


# C's longs by symbol, because 64 bit integers have the same code
_LONGS: Final = {"LONG": "signed", "UNSIGNED_LONG": "unsigned"}
_PAIR_VALUES: Final = {"l": "signed", "g": "extended"}
_INT_SIZE: Final = 4  # bytes of the index in MPI's pairs; C's int on POSIX


def _named(state: TypeState) -> tuple[Basics, ...]:
    """The basic types of a predefined one: itself, or value and index of a pair."""
    size, code = state.layout.size, state.code
    if not size:
        return ()
    if len(state.layout.format) == 2:
        value = state.layout.format[0]
        kind = _PAIR_VALUES.get(value, "plain")
        return Basics(kind, size - _INT_SIZE, 1), Basics("plain", _INT_SIZE, 1)
    if code == "g":
        return (Basics("extended", size, 1),)
    return (Basics(_LONGS.get(state.symbol, "plain"), size, 1),)
