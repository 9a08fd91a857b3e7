"""The layouts of derived types.

A derived type is elements of other types at byte displacements; all constructors come down to
that (MPI standard, chapter on datatypes). Regular ones become loops, however many elements they
have (`data/typemap.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from ompy.data.layout import Layout, bounds_of, combine_layouts, resize, strided
from ompy.mpi.constants import ORDER_FORTRAN

if TYPE_CHECKING:
    from ompy.mpi.datatypes.typestate import TypeState

LayoutOf = Callable[["TypeState"], Layout]  # of a type that another one is made of


def derived_layout(state: TypeState, layout_of: LayoutOf) -> Layout | None:
    """The layout that a constructor describes, without padding; None of what has none.

    Args:
        state: the type.
        layout_of: the types that it is made of: in memory, or as a file has them.
    """
    make = _MAKERS.get(state.combiner)
    return None if make is None else make(state, layout_of)


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
    lengths: Sequence[int],
    displacements: Sequence[int],
    layouts: Sequence[Layout],
    bounded: Sequence[bool],
) -> Layout:
    """Runs of elements of different types at byte displacements.

    The bounds are those of the parts in `bounded`, if there are any: bounds set by hand are
    markers in the type map, and count instead of all data (MPI standard, 5.1.7).
    """
    parts = [
        (at, consecutive(layout, length), by_hand)
        for length, at, layout, by_hand in zip(
            lengths, displacements, layouts, bounded, strict=True
        )
        if length
    ]
    made = combine_layouts([(at, layout) for at, layout, _ in parts])
    markers = [(at, layout) for at, layout, by_hand in parts if by_hand]
    if not markers:
        return made
    lower, extent = bounds_of(markers)
    return resize(made, lower, extent)


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


def _of_base(state: TypeState, layout_of: LayoutOf) -> Layout:
    assert state.base is not None, "this constructor takes a datatype"
    return layout_of(state.base)


def _contiguous(state: TypeState, layout_of: LayoutOf) -> Layout:
    (count,) = state.arguments
    return consecutive(_of_base(state, layout_of), count)


def _vector(state: TypeState, layout_of: LayoutOf) -> Layout:
    base = _of_base(state, layout_of)
    count, length, stride = state.arguments
    return vector(base, count, length, stride * base.extent)


def _hvector(state: TypeState, layout_of: LayoutOf) -> Layout:
    return vector(_of_base(state, layout_of), *state.arguments)


def _indexed(state: TypeState, layout_of: LayoutOf) -> Layout:
    base = _of_base(state, layout_of)
    lengths, displacements = state.arguments
    return placed(base, lengths, [place * base.extent for place in displacements])


def _hindexed(state: TypeState, layout_of: LayoutOf) -> Layout:
    return placed(_of_base(state, layout_of), *state.arguments)


def _indexed_block(state: TypeState, layout_of: LayoutOf) -> Layout:
    base = _of_base(state, layout_of)
    length, displacements = state.arguments
    at = [place * base.extent for place in displacements]
    return placed(base, [length] * len(at), at)


def _hindexed_block(state: TypeState, layout_of: LayoutOf) -> Layout:
    length, displacements = state.arguments
    return placed(_of_base(state, layout_of), [length] * len(displacements), displacements)


def _struct(state: TypeState, layout_of: LayoutOf) -> Layout:
    lengths, displacements, parts = state.arguments
    layouts = [layout_of(part) for part in parts]
    return structured(lengths, displacements, layouts, [part.bounded for part in parts])


def _subarray(state: TypeState, layout_of: LayoutOf) -> Layout:
    sizes, subsizes, starts, order = state.arguments
    base = _of_base(state, layout_of)
    return subarray(base, sizes, subsizes, starts, fortran=order == ORDER_FORTRAN)


def _resized(state: TypeState, layout_of: LayoutOf) -> Layout:
    return resize(_of_base(state, layout_of), *state.arguments)


def _distributed(state: TypeState, layout_of: LayoutOf) -> Layout:
    from ompy.mpi.datatypes.distributed import darray_layout

    return darray_layout(_of_base(state, layout_of), state.arguments)


_MAKERS: Final[dict[str, Callable[[TypeState, LayoutOf], Layout]]] = {
    "DUP": _of_base,
    "CONTIGUOUS": _contiguous,
    "VECTOR": _vector,
    "HVECTOR": _hvector,
    "INDEXED": _indexed,
    "HINDEXED": _hindexed,
    "INDEXED_BLOCK": _indexed_block,
    "HINDEXED_BLOCK": _hindexed_block,
    "STRUCT": _struct,
    "SUBARRAY": _subarray,
    "DARRAY": _distributed,
    "RESIZED": _resized,
}
