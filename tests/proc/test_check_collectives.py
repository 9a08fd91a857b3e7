"""`ompy-run --check` on the memory of collective calls: parts for each member, and roots."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.proc.test_check import FIRST, FOUND, Wrong, check

pytestmark = pytest.mark.proc
ARRAYS: Final = "a, b = array('i', range(2 * size)), array('i', [0] * 2 * size)\n"
WRONG: Final = {
    "parts of equal numbers": Wrong(
        "buffer-in-use",
        {2, 3},
        f"{ARRAYS}r = comm.Ialltoall([a, 2, MPI.INT], [b, 2, MPI.INT])\nx = sum(b)\nr.Wait()",
    ),
    "parts with counts": Wrong(
        "buffer-in-use",
        {2, 3},
        f"{ARRAYS}r = comm.Iallgatherv([a, 2, MPI.INT], [b, [2] * size, MPI.INT])\nx = sum(b)\n"
        "r.Wait()",
    ),
    "parts that are sent": Wrong(
        "buffer-in-use",
        {2, 3},
        f"{ARRAYS}r = comm.Ialltoallv([a, [2] * size, MPI.INT], [b, [2] * size, MPI.INT])\n"
        "a[0] = 9\nr.Wait()",
    ),
    "the root's room": Wrong(
        "buffer-in-use",
        {2, 3},
        f"{ARRAYS}r = comm.Igather([a, 2, MPI.INT], [b, 2, MPI.INT], root=1)\nx = sum(b)\nr.Wait()",
    ),
    "parts of neighbours": Wrong(
        "buffer-in-use",
        {3, 4},
        f"{ARRAYS}c = comm.Create_cart([size], periods=[True])\n"
        "r = c.Ineighbor_allgather([a, 2, MPI.INT], [b, 2, MPI.INT])\nx = sum(b)\nr.Wait()\n"
        "c.Free()",
    ),
    "a start": Wrong(
        "buffer-in-use",
        {3, 4},
        f"{ARRAYS}r = comm.Alltoall_init([a, 2, MPI.INT], [b, 2, MPI.INT])\nr.Start()\nx = sum(b)\n"
        "r.Wait()\nr.Free()",
    ),
}
RIGHT: Final = {
    "what counts at the root alone": (
        f"{ARRAYS}r = comm.Ireduce([a, 4, MPI.INT], [b, 4, MPI.INT], root=1)\n"
        "if me == 0:\n  x = sum(b)\nr.Wait()"
    ),
    "other parts than those that are used": (
        f"{ARRAYS}r = comm.Iallgatherv([a, 1, MPI.INT], [b, [1] * size, MPI.INT])\n"
        "x = b[size]\na[1] = 7\nr.Wait()"
    ),
    "one buffer for both where only one is used": (
        f"{ARRAYS}comm.Gather([a, 1, MPI.INT], [b if me == 0 else a, 1, MPI.INT], root=0)"
    ),
    "a result that is read by the others": (
        f"{ARRAYS}r = comm.Igather([a, 2, MPI.INT], [b, 2, MPI.INT], root=1)\n"
        "if me == 0:\n  b[0] = 5\nr.Wait()"
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong(name: str, tmp_path: Path) -> None:
    wrong = WRONG[name]
    findings, said, code = check(tmp_path, wrong.text)
    assert code == FOUND, said
    assert {each["class"] for each in findings} == {wrong.kind}
    lines = {site["line"] - FIRST + 1 for each in findings for site in each["sites"]}
    assert lines == wrong.lines


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right(name: str, tmp_path: Path) -> None:
    findings, said, code = check(tmp_path, RIGHT[name])
    assert (code, findings) == (0, []), said
