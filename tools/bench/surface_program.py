#!/usr/bin/env python3
"""Time calls of the API, as one program for ompy and every mpi4py; rank 0 prints a line for each.

    mpiexec -n 2 python tools/bench/surface_program.py SECONDS SIZES [PATTERN] [FAMILY[:N]...]

A line is JSON: `{"row": "Gather", "size": 8, "seconds": 1.2e-6}`, or `"error"` in place of seconds.
With N the first N lines of a family are left out: those a run before had, and the one it ended in.
The rows are those of `surface_rows`. A figure is the lowest of some parts: what it takes when
nothing else wants the processor.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any, Final

sys.path.append(str(Path(__file__).resolve().parents[2]))

from mpi4py import MPI

from tools.bench.surface_rows import (
    between,
    buffers,
    collectives,
    files,
    handles,
    local_calls,
    messages,
    persistent,
    questions,
    requests,
    sessions,
    windows,
)
from tools.bench.surface_rows.rows import Row, Step

FAMILIES: Final[dict[str, Callable[[Any], Iterator[Row]]]] = {
    "messages": messages.rows,
    "persistent": persistent.rows,
    "requests": requests.rows,
    "collectives": collectives.rows,
    "started": collectives.started_rows,
    "alone": collectives.alone_rows,
    "between": between.rows,
    "buffers": buffers.rows,
    "windows": windows.rows,
    "created": windows.created_rows,
    "dynamic": windows.dynamic_rows,
    "handles": handles.rows,
    "files": files.rows,
    "sessions": sessions.rows,
    "local": local_calls.rows,
    "questions": questions.rows,
}
PARTS: Final = 7  # arbitrary: enough for one that other work has not disturbed
WARM_UP: Final = 3  # arbitrary: connections are made, pages are touched
MOST: Final = 20000  # arbitrary: calls of a part, of a thing that takes next to nothing


def lines_to_time(
    comm: Any, families: Sequence[str], pattern: re.Pattern[str], sizes: Sequence[int]
) -> Iterator[tuple[Row, int]]:
    """The rows of some families, or of all if none is named, each with its sizes."""
    for word in families or FAMILIES:
        family, _, left_out = word.partition(":")
        lines = (
            (row, size)
            for row in FAMILIES[family](comm)
            if pattern.search(row.name)
            for size in (sizes if row.sized else sizes[:1])
        )
        yield from islice(lines, int(left_out or 0), None)


def seconds_of(comm: Any, step: Step, budget: float) -> float:
    """Seconds of one of a step's repetitions, on rank 0."""
    step(WARM_UP)
    comm.Barrier()
    begin = perf_counter()
    step(WARM_UP)
    once = (perf_counter() - begin) / WARM_UP
    count = comm.bcast(min(MOST, max(1, int(budget / PARTS / max(once, 1e-8)))), 0)
    least = float("inf")
    for _ in range(PARTS):
        comm.Barrier()
        begin = perf_counter()
        step(count)
        least = min(least, perf_counter() - begin)
    comm.Barrier()
    return least / count


def timed(comm: Any, row: Row, size: int, budget: float) -> dict[str, Any]:
    """A row's line."""
    line: dict[str, Any] = {"row": row.name, "method": row.method, "size": size}
    try:
        return {**line, "seconds": seconds_of(comm, row.make(size), budget) / row.per}
    except (NotImplementedError, AttributeError, MPI.Exception) as problem:
        return {**line, "error": f"{type(problem).__name__}: {problem}"}


def main() -> None:
    """Time what the command line names."""
    budget, sizes = float(sys.argv[1]), [int(word) for word in sys.argv[2].split(",")]
    pattern = re.compile(sys.argv[3] if len(sys.argv) > 3 else "")
    comm = MPI.COMM_WORLD
    MPI.Attach_buffer(bytearray(16 << 20))
    for row, size in lines_to_time(comm, sys.argv[4:], pattern, sizes):
        line = timed(comm, row, size if row.sized else 0, budget)
        if comm.rank == 0:
            print(json.dumps(line), flush=True)
    MPI.Detach_buffer()


if __name__ == "__main__":
    main()
