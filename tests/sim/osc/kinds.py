"""What one-sided operations make of every kind of numbers."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from ompy.data.errors import ERR_OP
from ompy.mpi.collectives.operation import OPERATIONS
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.datatypes.predefined import DATATYPES, typedict
from ompy.mpi.errors import MPIException
from ompy.mpi.windows.windows import Win
from ompy.runtime.ranks.process import RankProcess

ROOM = 64  # bytes; four of the largest


def kinds(process: RankProcess) -> None:
    """Every operation on every kind of numbers does what it does to two buffers of this rank."""
    comm = world_of(process)
    other = (comm.rank + 1) % comm.size
    for allocate in (False, True):
        win = _made(comm, allocate)
        win.Lock_all()
        for kind in "bhilqBHILQfdFD?":
            for name in OPERATIONS:
                _combined(win, kind, name, other)
        win.Unlock_all()
        comm.Barrier()
        win.Free()


def _made(comm: Any, allocate: bool) -> Win:
    if allocate:
        return Win.Allocate(ROOM, comm=comm)
    return Win.Create(bytearray(ROOM), comm=comm)


def _combined(win: Win, kind: str, name: str, other: int) -> None:
    """By one call and its request, with the bytes of a window as they are."""
    there, given = (np.array(values, kind) for values in ([3, 0, 1, 5], [2, 7, 0, 5]))
    operation, back = OPERATIONS[name], np.zeros(4, kind)
    expected = {"REPLACE": given, "NO_OP": there}.get(name, there.copy())
    defined = name in ("REPLACE", "NO_OP")
    if not defined:
        with suppress(MPIException):
            operation.Reduce_local(given, expected)
            defined = True
    for later in (False, True):
        win.Put([there, DATATYPES["BYTE"]], other)
        win.Flush(other)
        place = [0, 4, typedict[kind]]
        if not defined:
            with pytest.raises(MPIException) as caught:
                win.Get_accumulate(given, back, other, place, operation)
            assert caught.value.code == ERR_OP
        elif later:
            win.Raccumulate(given, other, place, operation).Wait()
        else:
            win.Get_accumulate([given, 4, typedict[kind]], back, other, 0, operation)
            win.Flush(other)
            assert (back == there).all(), (kind, name)
        found = np.zeros(4, kind)
        win.Flush(other)
        win.Get(found, other)
        win.Flush(other)
        assert (found == (expected if defined else there)).all(), (kind, name, later, found)
