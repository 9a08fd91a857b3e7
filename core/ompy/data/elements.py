"""The predefined operations on numbers, where a loop in C does them.

Interpreted, this module is used, and what it does is done by `kernels_plain`. In a compiled module
the function of the same name in `elements.pxd` takes its place.
"""

from __future__ import annotations

from collections.abc import Mapping
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
)
KINDS: Final = "bhilqBHILQfd"
_EVERY_KIND: Final = OPERATIONS[:4]  # the others are not for floats
_ROW: Final = 16  # arbitrary: a power of 2, at least as many as there are kinds
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
    from ompy.data import kernels_plain

    name, kind = OPERATIONS[loop // _ROW], KINDS[loop % _ROW]
    kernels_plain.COMBINE[name](left[start : start + size], right[at : at + size], kind)


# of each operation, the numbers of its loops by the kind of the elements
LOOPS: Final[Mapping[str, Mapping[str, int]]] = {
    name: {
        kind: row * _ROW + column
        for column, kind in enumerate(KINDS)
        if kind not in "fd" or name in _EVERY_KIND
    }
    for row, name in enumerate(OPERATIONS)
}
