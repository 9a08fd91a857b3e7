"""The predefined operations on numbers, where a loop in C does them.

Interpreted, this module is used, and what it does is done by `kernels_plain`. In a compiled module
the function of the same name in `elements.pxd` takes its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import calcsize
from typing import Final

# the order in which `elements.pxd` has them
OPERATIONS: Final = (
    "MPI_MAX",
    "MPI_MIN",
    "MPI_SUM",
    "MPI_PROD",
    "MPI_LAND",
    "MPI_BAND",
    "MPI_LOR",
    "MPI_BOR",
    "MPI_LXOR",
    "MPI_BXOR",
    "MPI_MAXLOC",
    "MPI_MINLOC",
)
# numbers, complex ones, logical values, bytes, values with an index: `Layout.format` of each
KINDS: Final = (*"bhilqBHILQ", *"fdge", *"FDG", "?", "x", "fi", "di", "li", "ii", "hi", "gi")
_NUMBERS: Final = KINDS[:17]
_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "MPI_MAX": _NUMBERS[:14],
    "MPI_MIN": _NUMBERS[:14],
    "MPI_SUM": _NUMBERS,
    "MPI_PROD": _NUMBERS,
    "MPI_LAND": (*_NUMBERS[:10], "?"),
    "MPI_LOR": (*_NUMBERS[:10], "?"),
    "MPI_LXOR": (*_NUMBERS[:10], "?"),
    "MPI_BAND": (*_NUMBERS[:10], "x"),
    "MPI_BOR": (*_NUMBERS[:10], "x"),
    "MPI_BXOR": (*_NUMBERS[:10], "x"),
    "MPI_MAXLOC": KINDS[19:],
    "MPI_MINLOC": KINDS[19:],
}
_ROW: Final = 32  # arbitrary: a power of 2, at least as many as there are kinds
assert len(KINDS) <= _ROW


def combine(loop: int, left: memoryview, start: int, right: memoryview, at: int, size: int) -> None:
    """Store `left op right` in `right`: `size` bytes of packed elements from `start` and `at`.

    Args:
        loop: one of `LOOPS`.
        left: view of format B, as is `right`.
        start: byte of `left`.
        right: gets the result.
        at: byte of `right`.
        size: bytes, of whole elements.
    """
    from ompy.data import kernels

    name, kind = OPERATIONS[loop // _ROW], KINDS[loop % _ROW]
    combined = kernels.combine_of(name, 1, kind)
    combined(left[start : start + size], right[at : at + size], kind)


def combine_pairs(
    loop: int,
    left: memoryview,
    start: int,
    right: memoryview,
    at: int,
    count: int,
    extent: int,
    index: int,
) -> None:
    """The same of values with an index that have gaps, as they lie in memory.

    Args:
        loop: one of `LOOPS` of MPI_MAXLOC or MPI_MINLOC.
        left: view of format B, as is `right`.
        start: byte of `left` where the first pair begins.
        right: gets the result.
        at: byte of `right`.
        count: pairs.
        extent: bytes from one pair to the next.
        index: bytes from a pair's value to its index.
    """
    size = _VALUES[KINDS[loop % _ROW][0]]
    for each in range(0, count * extent, extent):
        one, other = (
            bytearray(view[first : first + size]) + view[first + index : first + index + INDEX]
            for view, first in ((left, start + each), (right, at + each))
        )
        combine(loop, memoryview(one), 0, memoryview(other), 0, size + INDEX)
        right[at + each : at + each + size] = other[:size]
        right[at + each + index : at + each + index + INDEX] = other[size:]


INDEX: Final = 4  # bytes; MPI 4.0, 6.9.4: an index is C's int
_VALUES: Final = {**{kind: calcsize(kind) for kind in "fdlih"}, "g": 16}  # bytes
assert (OPERATIONS[10], KINDS[19]) == ("MPI_MAXLOC", "fi"), "elements.pxd has these numbers"
# of each operation, the numbers of its loops by the kind of the elements
LOOPS: Final[Mapping[str, Mapping[str, int]]] = {
    name: {kind: row * _ROW + KINDS.index(kind) for kind in _KINDS[name]}
    for row, name in enumerate(OPERATIONS)
}
