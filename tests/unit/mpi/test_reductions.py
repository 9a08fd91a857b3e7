"""Every kind of buffer reduced by every operation, against a table that mpi4py on MPICH has made.

The table is `tests/data/reductions.json`; `tools/package/reduction_table.py` makes it, as here.
"""

from __future__ import annotations

import json
from array import array
from functools import cache
from pathlib import Path

import pytest
from ompy import MPI

from tools.package.reduction_table import OPERATIONS, table

RECORDED = json.loads(Path("tests/data/reductions.json").read_text())["table"]
# MPI 4.1, 6.9.2: no operation is defined for MPI_CHAR, which is for characters; MPICH computes
# with them all the same (README of core/ompy/mpi, 353)
CHARACTERS = {"numpy S1", "memoryview c"}
DLPACK = [name for name in RECORDED if name.startswith("dlpack")]


@cache
def ours() -> dict[str, dict[str, list[str]]]:
    return table(MPI)


def test_the_table_is_whole() -> None:
    assert set(ours()) == set(RECORDED)
    assert all(list(row) == OPERATIONS for row in RECORDED.values())
    assert "ERR_OP" in str(RECORDED["numpy B"]["REPLACE"])


@pytest.mark.parametrize("name", [name for name in RECORDED if name not in DLPACK])
def test_as_mpi4py_on_mpich(name: str) -> None:
    expected = RECORDED[name]
    if name in CHARACTERS:
        expected = {operation: ["ERR_OP", "ERR_OP"] for operation in OPERATIONS}
    assert ours()[name] == expected


@pytest.mark.parametrize("name", DLPACK)
def test_dlpack_as_numpy(name: str) -> None:
    """mpi4py refuses the capsules of NumPy that we can record with: it wants other versions."""
    assert ours()[name] == ours()[name.replace("dlpack", "numpy")]


@pytest.mark.parametrize("code", ["i4", "=i4", MPI.INT32_T, MPI.INT, MPI.INTEGER])
def test_types_of_one_kind_and_size_are_reduced_together(code: MPI.Datatype | str) -> None:
    """In mpi4py `i4` is INT32_T, and the buffer alone an INT."""
    given, found = array("i", [1, 2]), array("i", [0, 0])
    MPI.COMM_SELF.Allreduce([given, code], found)
    assert found == given
    MPI.COMM_SELF.Reduce_scatter([found, code], [found_parts := array("i", [0, 0]), MPI.INT32_T])
    assert found_parts == given
    with pytest.raises(ValueError, match="differ"):
        MPI.COMM_SELF.Allreduce([given, code], [found, MPI.UNSIGNED])


def test_attributes_of_the_world_are_integers() -> None:
    """Not of another class, as what prints them shows."""
    for keyval in (MPI.TAG_UB, MPI.IO, MPI.WTIME_IS_GLOBAL, MPI.UNIVERSE_SIZE, MPI.APPNUM):
        assert type(MPI.COMM_WORLD.Get_attr(keyval)) is int
