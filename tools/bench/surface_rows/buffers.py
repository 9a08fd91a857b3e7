"""Calls with buffers of every kind: numbers of all types, records, text, orders; and empty ones."""

# ruff: noqa: ARG005 - all take the same arguments

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from mpi4py import MPI

from tools.bench.surface_rows.rows import Row, repeat

NUMBERS: Final = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "int32": "i",
    "int64": "l",
    "float16": "e",
    "float32": "f",
    "float64": "d",
    "longdouble": "g",
    "complex64": "F",
    "complex128": "D",
    "clongdouble": "G",
}
PAIRS: Final = ("DOUBLE_INT", "FLOAT_INT", "LONG_INT", "TWOINT", "SHORT_INT")
RECORD: Final = np.dtype([("position", "d"), ("kind", "i")], align=True)
Two = Callable[[int], tuple[Any, Any]]  # of a size in bytes: what is given, and room


def rows(comm: Any) -> Iterator[Row]:
    """A message both ways, a broadcast, and where there is one a reduction of each kind."""
    for name, kind in NUMBERS.items():
        yield from _reduced(comm, name, _numbers(kind), MPI.LOR if kind == "?" else MPI.SUM)
    for name in PAIRS:
        yield from _reduced(comm, name, _pairs(getattr(MPI, name)), MPI.MAXLOC)
    for name, two in OTHERS.items():
        yield from _moved(comm, name, two)


def _reduced(comm: Any, name: str, two: Two, op: Any) -> Iterator[Row]:
    yield from _moved(comm, name, two)
    for method in ("Allreduce", "Reduce", "Scan"):
        call = getattr(comm, method)

        def make(size: int, call: Any = call) -> Any:
            given, room = two(size)
            return repeat(lambda: call(given, room, op))

        yield Row(f"Comm.{method}", f"{method} {name}", make)

    def local(size: int) -> Any:
        given, room = two(size)
        return repeat(lambda: op.Reduce_local(given, room))

    yield Row("Op.Reduce_local", f"Reduce_local {name}", local)


def _moved(comm: Any, name: str, two: Two) -> Iterator[Row]:
    peer = comm.rank ^ 1 if comm.rank ^ 1 < comm.size else MPI.PROC_NULL

    def both_ways(size: int) -> Any:
        given, room = two(size)
        return repeat(lambda: comm.Sendrecv(given, peer, 0, room, peer, 0))

    def to_all(size: int) -> Any:
        given, _ = two(size)
        return repeat(lambda: comm.Bcast(given, 0))

    yield Row("Comm.Sendrecv", f"Sendrecv {name}", both_ways)
    yield Row("Comm.Bcast", f"Bcast {name}", to_all)


def _numbers(kind: str) -> Two:
    """As many numbers as there are in so many bytes, one at least."""

    def two(size: int) -> tuple[Any, Any]:
        count = max(size // np.dtype(kind).itemsize, 1)
        return np.ones(count, kind), np.ones(count, kind)

    return two


def _pairs(datatype: Any) -> Two:
    """Values with an index: with a gap behind, where C has one."""
    _, extent = datatype.Get_extent()

    def two(size: int) -> tuple[Any, Any]:
        count = max(size // extent, 1)
        given, room = (np.zeros(count * extent, np.uint8) for _ in range(2))
        return [given, count, datatype], [room, count, datatype]

    return two


def _records(size: int) -> tuple[Any, Any]:
    """Records of NumPy with the datatype that describes them."""
    datatype = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.DOUBLE, MPI.INT])
    datatype = datatype.Create_resized(0, RECORD.itemsize).Commit()
    count = max(size // RECORD.itemsize, 1)
    return [np.zeros(count, RECORD), count, datatype], [np.zeros(count, RECORD), count, datatype]


def _squares(size: int) -> tuple[Any, Any]:
    """Arrays in the order of Fortran."""
    side = max(int((size // 8) ** 0.5), 1)
    given, room = (np.zeros((side, side), order="F") for _ in range(2))
    return given, room


OTHERS: Final[dict[str, Two]] = {
    "records": _records,
    "in Fortran order": _squares,
    "of no dimension": lambda size: (np.array(1.0), np.array(2.0)),
    "empty": lambda size: (np.zeros(0), np.zeros(0)),
    "text": lambda size: (
        [np.zeros(max(size // 8, 1), "S8"), MPI.CHAR],
        [np.zeros(max(size // 8, 1), "S8"), MPI.CHAR],
    ),
    "bytearray": lambda size: (bytearray(size), bytearray(size)),
    "memoryview": lambda size: (memoryview(bytearray(size)), memoryview(bytearray(size))),
    "array.array": lambda size: (array("d", bytes(size)), array("d", bytes(size))),
    "ctypes": lambda size: (
        (ctypes.c_double * max(size // 8, 1))(),
        (ctypes.c_double * max(size // 8, 1))(),
    ),
}
