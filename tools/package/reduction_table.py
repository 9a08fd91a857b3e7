#!/usr/bin/env python3
"""Record what reductions of every kind of buffer by every operation come to, in the mpi4py at hand.

    python -m venv /tmp/other && /tmp/other/bin/pip install mpi4py mpich numpy
    /tmp/other/bin/python tools/package/reduction_table.py > tests/data/reductions.json

Each buffer is combined with itself turned round, by `Op.Reduce_local` and by `Allreduce` on
COMM_SELF: the result's bytes in hexadecimal, or the name of the MPI error class or exception.
`tests/unit/mpi/test_reductions.py` makes the same table with ompy and compares.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

OPERATIONS = ["MAX", "MIN", "SUM", "PROD", "LAND", "BAND", "LOR", "BOR", "LXOR", "BXOR"]
OPERATIONS += ["MAXLOC", "MINLOC", "REPLACE", "NO_OP"]
VALUES = [0, 1, 2, 3, 100, 7]


class Capsule:
    """A buffer that is to be had by DLPack alone."""

    def __init__(self, data: np.ndarray) -> None:
        self.data = data

    def __dlpack__(self, **_: Any) -> Any:
        return self.data.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self.data.__dlpack_device__()


def buffers() -> Iterator[tuple[str, Callable[[list[int]], Any]]]:
    """A name, and what makes a buffer of such values."""
    for code in "bhilqBHILQefdgFDG?":
        yield f"numpy {code}", lambda values, code=code: np.array(values).astype(code)
    yield "numpy S1", lambda values: np.array([chr(each + 1) for each in values], "S1")
    yield "numpy U1", lambda values: np.array([chr(each + 1) for each in values], "U1")
    yield "bytearray", bytearray
    for code in "bhilqBHILQfd":
        yield f"array {code}", lambda values, code=code: array(code, values)
        yield (
            f"memoryview {code}",
            lambda values, code=code: memoryview(bytearray(array(code, values))).cast(code),
        )
    yield "memoryview c", lambda values: memoryview(bytearray(values)).cast("c")
    yield "memoryview ?", lambda values: memoryview(bytearray(map(bool, values))).cast("?")
    for code in "bhiqBHIQfdFD":
        yield f"dlpack {code}", lambda values, code=code: Capsule(np.array(values).astype(code))


def bytes_of(buffer: Any) -> str:
    """Its bytes in hexadecimal; of long doubles those that count."""
    data = buffer.data if isinstance(buffer, Capsule) else buffer
    raw = memoryview(data.view("u1") if isinstance(data, np.ndarray) else data).tobytes()
    if isinstance(data, np.ndarray) and data.dtype.char in "gG":
        raw = b"".join(raw[at : at + 10] for at in range(0, len(raw), 16))
    return raw.hex()


def outcome(mpi: Any, call: Callable[[], Any]) -> str:
    """What a call gives, or how it fails."""
    try:
        return bytes_of(call())
    except mpi.Exception as problem:
        known = {mpi.ERR_OP: "ERR_OP", mpi.ERR_TYPE: "ERR_TYPE"}
        found = problem.Get_error_class()
        return known.get(found, f"error class {found}")
    except Exception as problem:
        return type(problem).__name__


def table(mpi: Any) -> dict[str, dict[str, list[str]]]:
    """For each buffer and operation: what `Reduce_local` gives, and what `Allreduce` does."""

    def local(make: Callable[[list[int]], Any], op: Any) -> Any:
        result = make(VALUES[::-1])
        op.Reduce_local(make(VALUES), result)
        return result

    def alone(make: Callable[[list[int]], Any], op: Any) -> Any:
        result = make(VALUES[::-1])
        mpi.COMM_SELF.Allreduce(make(VALUES), result, op)
        return result

    found: dict[str, dict[str, list[str]]] = {}
    for name, make in buffers():
        found[name] = {}
        for operation in OPERATIONS:
            op = getattr(mpi, operation)
            calls = [lambda: local(make, op), lambda: alone(make, op)]  # noqa: B023 - called here
            found[name][operation] = [outcome(mpi, call) for call in calls]
    return found


def main() -> None:
    """Print the table and who made it."""
    import mpi4py
    from mpi4py import MPI

    said = MPI.Get_library_version().strip("\0\n ").split("\n")[0]
    made = {"mpi4py": mpi4py.__version__, "library": said, "numpy": np.__version__}
    lines = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in table(MPI).items()]
    rows = ",\n".join(lines)
    sys.stdout.write(f'{{"made_by": {json.dumps(made)},\n"table": {{\n{rows}\n}}}}\n')


if __name__ == "__main__":
    main()
