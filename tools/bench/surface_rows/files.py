"""Files: each call that reads or writes, and those that all members make together.

A file is unlinked as soon as all have opened it, so none is left, whatever happens to a run.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, Final

from mpi4py import MPI

from tools.bench.surface_rows.rows import KEPT, Row, Step, doubles, repeat, room

PLACES: Final = ("_at", "", "_shared")
SPLIT: Final = ("_at_all", "_all", "_ordered")
MODE: Final = MPI.MODE_RDWR | MPI.MODE_CREATE
ROOM: Final = 4096  # bytes; arbitrary: a page, for rows that move nothing


def rows(comm: Any) -> Iterator[Row]:
    """All of them."""
    for verb in ("Write", "Read"):
        for place in PLACES:
            yield _row(comm, f"{verb}{place}")
            yield _row(comm, f"I{verb.lower()}{place}")
        for place in SPLIT:
            yield _row(comm, f"{verb}{place}")
            yield _split(comm, f"{verb}{place}")
            if place != "_ordered":
                yield _row(comm, f"I{verb.lower()}{place}")
        for place in ("_at", "_at_all"):
            yield _row(comm, f"{verb}{place}", columns=True)
    yield Row(
        "File.Open", "Open, Close", lambda _: repeat(lambda: nameless_file(comm).Close()), False
    )
    yield Row("File.Set_view", "Set_view", lambda _: _viewed(comm), False)
    for name, given in (("Set_size", ROOM), ("Preallocate", ROOM), ("Set_atomicity", True)):
        yield _plain(comm, name, given)
    for name in ("Sync", "Get_size", "Get_position", "Get_position_shared", "Get_view"):
        yield _plain(comm, name)


def nameless_file(comm: Any) -> Any:
    """A file without a name."""
    path = os.path.join(tempfile.gettempdir(), f"surface-{comm.bcast(os.getpid(), 0)}")
    file = MPI.File.Open(comm, path, MODE)
    comm.Barrier()
    if comm.rank == 0:
        os.unlink(path)
    return file


def _filled(comm: Any, size: int, columns: bool) -> tuple[Any, Any, int]:
    """A file with what each rank reads, a buffer for it, and where it is."""
    file, data = nameless_file(comm), room(doubles(size), float)
    KEPT.append(file)
    place = comm.rank * data.nbytes
    if columns:
        width = MPI.DOUBLE.Get_size() * comm.size
        column = MPI.DOUBLE.Create_resized(0, width).Commit()
        file.Set_view(MPI.DOUBLE.Get_size() * comm.rank, MPI.DOUBLE, column)
        place = 0
    file.Write_at_all(place, data)
    return file, data, place


def _positioned(file: Any, name: str, place: int, call: Callable[..., Any]) -> Callable[[], Any]:
    """A call at its place: given, or a pointer's that is put there before."""
    if "_at" in name:
        return lambda: call(place)
    if "_shared" in name or "_ordered" in name:
        return lambda: (file.Seek_shared(0), call())[1]
    return lambda: (file.Seek(place), call())[1]


def _named(name: str) -> str:
    if "_at" in name:
        return f"File.{name}"
    return f"File.Seek{'_shared' if '_shared' in name or '_ordered' in name else ''}, {name}"


def _row(comm: Any, name: str, columns: bool = False) -> Row:
    def make(size: int) -> Step:
        file, data, place = _filled(comm, size, columns)
        method = getattr(file, name)
        if name[0] == "I":
            return repeat(_positioned(file, name, place, lambda *at: method(*at, data).Wait()))
        return repeat(_positioned(file, name, place, lambda *at: method(*at, data)))

    return Row(f"File.{name}", f"{_named(name)}{', columns of 8 bytes' if columns else ''}", make)


def _split(comm: Any, name: str) -> Row:
    def make(size: int) -> Step:
        file, data, place = _filled(comm, size, False)
        begin, end = getattr(file, f"{name}_begin"), getattr(file, f"{name}_end")
        call = _positioned(file, name, place, lambda *at: (begin(*at, data), end(data)))
        return repeat(call)

    return Row(f"File.{name}_begin", f"{_named(name)}_begin, _end", make)


def _viewed(comm: Any) -> Step:
    file, _, _ = _filled(comm, ROOM, False)
    column = MPI.DOUBLE.Create_resized(0, 8 * comm.size).Commit()
    return repeat(lambda: file.Set_view(8 * comm.rank, MPI.DOUBLE, column))


def _plain(comm: Any, name: str, *given: Any) -> Row:
    def make(_: int) -> Step:
        method = getattr(_filled(comm, ROOM, False)[0], name)
        return repeat(lambda: method(*given))

    return Row(f"File.{name}", f"File.{name}", make, False)
