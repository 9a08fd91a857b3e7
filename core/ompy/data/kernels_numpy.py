"""The predefined reduction operations on NumPy arrays.

The same as `kernels_plain`, bit by bit, and long double besides. Imported only when there is
enough to do; importing it imports NumPy.

Where a ufunc is close to what C does but differs with NaNs or signed zeros (`maximum`), or
may fuse operations (complex `multiply`), the C way is spelt out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]
Combine = Callable[[memoryview, memoryview, str], None]

_PARTS: Final = {"F": "f", "D": "d", "G": "g"}
_FLOATS: Final = "efdg"


def _arrays(left: memoryview, right: memoryview, kind: str) -> tuple[Array, Array]:
    return np.frombuffer(left, kind), np.frombuffer(right, kind)


def _pairs(left: memoryview, right: memoryview, kind: str) -> tuple[Array, Array]:
    dtype = np.dtype([("value", kind[0]), ("index", kind[1])])  # no gap between them
    return np.frombuffer(left, dtype), np.frombuffer(right, dtype)


def _maximum(left: memoryview, right: memoryview, kind: str) -> None:
    a, b = _arrays(left, right, kind)
    if kind in _FLOATS:
        np.copyto(b, a, where=a > b)
    else:
        np.maximum(a, b, out=b)


def _minimum(left: memoryview, right: memoryview, kind: str) -> None:
    a, b = _arrays(left, right, kind)
    if kind in _FLOATS:
        np.copyto(b, a, where=a < b)
    else:
        np.minimum(a, b, out=b)


def _sum(left: memoryview, right: memoryview, kind: str) -> None:
    a, b = _arrays(left, right, _PARTS.get(kind, kind))
    with np.errstate(all="ignore"):
        np.add(a, b, out=b)


def _product(left: memoryview, right: memoryview, kind: str) -> None:
    a, b = _arrays(left, right, _PARTS.get(kind, kind))
    with np.errstate(all="ignore"):
        if kind not in _PARTS:
            np.multiply(a, b, out=b)
            return
        real = a[0::2] * b[0::2] - a[1::2] * b[1::2]
        b[1::2] = a[0::2] * b[1::2] + a[1::2] * b[0::2]
        b[0::2] = real


def _logical(left: memoryview, right: memoryview, kind: str, ufunc: Callable[..., Any]) -> None:
    a, b = _arrays(left, right, kind.replace("?", "B"))  # any bit makes it true
    b[:] = ufunc(a, b)


def _bits(left: memoryview, right: memoryview, kind: str, ufunc: Callable[..., Any]) -> None:
    a, b = _arrays(left, right, kind.replace("x", "B"))
    ufunc(a, b, out=b)


def _location(left: memoryview, right: memoryview, kind: str, better: Callable[..., Array]) -> None:
    """Of equal values the lower index counts (MPI 4.0, 6.9.4)."""
    a, b = _pairs(left, right, kind)
    wins = better(a["value"], b["value"])
    sooner = (a["value"] == b["value"]) & (a["index"] < b["index"])
    np.copyto(b["value"], a["value"], where=wins)
    np.copyto(b["index"], a["index"], where=wins | sooner)


COMBINE: Final[Mapping[str, Combine]] = {
    "MPI_MAX": _maximum,
    "MPI_MIN": _minimum,
    "MPI_SUM": _sum,
    "MPI_PROD": _product,
    "MPI_LAND": partial(_logical, ufunc=np.logical_and),
    "MPI_BAND": partial(_bits, ufunc=np.bitwise_and),
    "MPI_LOR": partial(_logical, ufunc=np.logical_or),
    "MPI_BOR": partial(_bits, ufunc=np.bitwise_or),
    "MPI_LXOR": partial(_logical, ufunc=np.logical_xor),
    "MPI_BXOR": partial(_bits, ufunc=np.bitwise_xor),
    "MPI_MAXLOC": partial(_location, better=np.greater),
    "MPI_MINLOC": partial(_location, better=np.less),
}
