"""The predefined reduction operations with nothing but the standard library.

Each function combines packed elements of one format and stores the result in `right`. The
results are those of C and of `kernels_numpy`, bit by bit: integers wrap, a `float` is rounded
after every operation, a comparison with a NaN is false. There is no long double.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import add, and_, gt, lt, mul, or_, sub, xor
from typing import Any, Final

Combine = Callable[[memoryview, memoryview, str], None]
Pair = tuple[float, int]

_LONG: Final = "q" if struct.calcsize("l") == 8 else "i"
# value and index without a gap, which only the standard sizes of `struct` allow
_PAIRS: Final = {
    "fi": struct.Struct("=fi"),
    "di": struct.Struct("=di"),
    "li": struct.Struct(f"={_LONG}i"),
    "ii": struct.Struct("=ii"),
    "hi": struct.Struct("=hi"),
}
_UNSIGNED: Final = {"b": "B", "h": "H", "i": "I", "l": "L", "q": "Q"}
_PARTS: Final = {"F": "f", "D": "d"}

SIZES: Final[Mapping[str, int]] = {
    **{kind: struct.calcsize(kind) for kind in "bhilqBHILQfd?"},
    **{kind: pair.size for kind, pair in _PAIRS.items()},
    "x": 1,
    "F": 8,
    "D": 16,
}  # bytes of one packed element


def _values(view: memoryview, kind: str) -> Sequence[Any]:
    return view.cast(kind)  # type: ignore[call-overload, no-any-return]


def _store(right: memoryview, kind: str, values: list[Any]) -> None:
    right[:] = memoryview(array(kind, values)).cast("B")


def _maximum(left: memoryview, right: memoryview, kind: str) -> None:
    pairs = zip(_values(left, kind), _values(right, kind), strict=True)
    _store(right, kind, [a if a > b else b for a, b in pairs])


def _minimum(left: memoryview, right: memoryview, kind: str) -> None:
    pairs = zip(_values(left, kind), _values(right, kind), strict=True)
    _store(right, kind, [a if a < b else b for a, b in pairs])


def _sum(left: memoryview, right: memoryview, kind: str) -> None:
    if kind in "fdFD":
        kind = _PARTS.get(kind, kind)
        # the sum of two floats, rounded to double and then to float, is the float sum
        _store(right, kind, list(map(add, _values(left, kind), _values(right, kind))))
        return
    kind = _UNSIGNED.get(kind, kind)  # the same bits, and no sign to mend
    mask = (1 << 8 * SIZES[kind]) - 1
    pairs = zip(_values(left, kind), _values(right, kind), strict=True)
    _store(right, kind, [(a + b) & mask for a, b in pairs])


def _product(left: memoryview, right: memoryview, kind: str) -> None:
    if kind in _PARTS:
        _complex_product(left, right, _PARTS[kind])
        return
    if kind in "fd":
        _store(right, kind, list(map(mul, _values(left, kind), _values(right, kind))))
        return
    kind = _UNSIGNED.get(kind, kind)
    mask = (1 << 8 * SIZES[kind]) - 1
    pairs = zip(_values(left, kind), _values(right, kind), strict=True)
    _store(right, kind, [(a * b) & mask for a, b in pairs])


def _complex_product(left: memoryview, right: memoryview, part: str) -> None:
    """The textbook formula, every operation rounded to `part`."""
    a: array[float] = array(part, left.tobytes())
    b: array[float] = array(part, right.tobytes())

    def times(x: array[float], y: array[float]) -> array[float]:
        return array(part, list(map(mul, x, y)))

    real = list(map(sub, times(a[0::2], b[0::2]), times(a[1::2], b[1::2])))
    imaginary = list(map(add, times(a[0::2], b[1::2]), times(a[1::2], b[0::2])))
    b[0::2] = array(part, real)
    b[1::2] = array(part, imaginary)
    right[:] = memoryview(b).cast("B")


def _logical(left: memoryview, right: memoryview, kind: str, truth: Callable[..., Any]) -> None:
    kind = kind.replace("?", "B")  # any bit makes it true
    pairs = zip(_values(left, kind), _values(right, kind), strict=True)
    _store(right, kind, [1 if truth(a, b) else 0 for a, b in pairs])


def _bits(
    left: memoryview, right: memoryview, _kind: str, combine: Callable[[int, int], int]
) -> None:
    bits = combine(int.from_bytes(left, "little"), int.from_bytes(right, "little"))
    right[:] = bits.to_bytes(len(right), "little")


def _location(left: memoryview, right: memoryview, kind: str, better: Callable[..., bool]) -> None:
    """Of equal values the lower index counts (MPI 4.0, 6.9.4)."""
    pair = _PAIRS[kind]
    at = 0
    for a, b in zip(pair.iter_unpack(left), pair.iter_unpack(right), strict=True):
        if better(a[0], b[0]):
            pair.pack_into(right, at, *a)
        elif a[0] == b[0] and a[1] < b[1]:
            pair.pack_into(right, at, b[0], a[1])
        at += pair.size


COMBINE: Final[Mapping[str, Combine]] = {
    "MPI_MAX": _maximum,
    "MPI_MIN": _minimum,
    "MPI_SUM": _sum,
    "MPI_PROD": _product,
    "MPI_LAND": partial(_logical, truth=lambda a, b: a and b),
    "MPI_BAND": partial(_bits, combine=and_),
    "MPI_LOR": partial(_logical, truth=lambda a, b: a or b),
    "MPI_BOR": partial(_bits, combine=or_),
    "MPI_LXOR": partial(_logical, truth=lambda a, b: (a == 0) is not (b == 0)),
    "MPI_BXOR": partial(_bits, combine=xor),
    "MPI_MAXLOC": partial(_location, better=gt),
    "MPI_MINLOC": partial(_location, better=lt),
}
