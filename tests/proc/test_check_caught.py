"""`ompy-run --check` of programs that catch errors of MPI's, and go on."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.proc.test_check import FOUND, check

pytestmark = pytest.mark.proc
# rank 1 has room for half of the message, in ways of its own, and is told so
CAUGHT: Final = """\
if me == 0:
    comm.Send(array("d", [1, 2]), dest=1)
else:
    room = array("d", [0])
    try:
        {0}
        raise AssertionError("there is room for it")
    except MPI.Exception as problem:
        assert problem.Get_error_class() in (MPI.ERR_TRUNCATE, MPI.ERR_IN_STATUS)
assert comm.allreduce(1) == size
"""
BEGUN: Final = "r = comm.Irecv(room, source=0)"
WAYS: Final = {
    "a receive": "comm.Recv(room, source=0)",
    "a message that a probe took": "comm.Mprobe(source=0).Recv(room)",
    "a wait": f"{BEGUN}; r.Wait()",
    "a test": f"{BEGUN}\n        while not r.Test(): pass",
    "a wait for all": f"{BEGUN}; MPI.Request.Waitall([r])",
    "a test of all": f"{BEGUN}\n        while not MPI.Request.Testall([r]): pass",
    "a wait for any": f"{BEGUN}; MPI.Request.Waitany([MPI.REQUEST_NULL, r])",
    "a test of any": f"{BEGUN}\n        while not MPI.Request.Testany([r])[1]: pass",
    "a wait for some": f"{BEGUN}; MPI.Request.Waitsome([r], [])",
    "a test of some": f"{BEGUN}\n        while not MPI.Request.Testsome([r]): pass",
    "a persistent one": (
        "r = comm.Recv_init(room, source=0); r.Start()\n        try: MPI.Request.Waitany([r])\n"
        "        finally: r.Free()"
    ),
}


@pytest.mark.parametrize("name", WAYS)
def test_a_message_that_is_too_long(name: str, tmp_path: Path) -> None:
    found, said, code = check(tmp_path, CAUGHT.format(WAYS[name]))
    assert (found, code) == ([], 0), said


def test_the_second_error_is_not_caught(tmp_path: Path) -> None:
    """The program ends by that one alone."""
    again = (
        "if me == 0:\n    comm.Send(array('q', [1, 2]), 1)\n"
        "else:\n    comm.Recv(array('q', [0]), 0)"
    )
    first = CAUGHT.format(WAYS["a receive"])
    found, said, code = check(tmp_path, f"{first}{again}")
    assert code == FOUND, said
    assert [one["class"] for one in found] == ["count-mismatch"]
    assert "2 int64" in found[0]["message"]


PARTS: Final = """\
size = 96 if me == 0 else {0}
data = bytearray(size)
r = comm.Psend_init(data, 4, 1, 3) if me == 0 else comm.Precv_init(data, 2, 0, 3)
r.Start()
if me == 0: r.Pready_range(0, 3)
{1}
r.Free()
"""
CATCHING: Final = "try: r.Wait()\nexcept MPI.Exception: pass"


def test_partitions_of_other_sizes_that_are_handled(tmp_path: Path) -> None:
    found, said, code = check(tmp_path, PARTS.format(48, CATCHING))
    assert (found, code) == ([], 0), said


@pytest.mark.parametrize("size", [48, 192])
def test_partitions_of_other_sizes(size: int, tmp_path: Path) -> None:
    """It has the lines of both sides."""
    found, said, _ = check(tmp_path, PARTS.format(size, "r.Wait()"))
    assert [one["class"] for one in found] == ["count-mismatch"], said
    assert {site["rank"] for site in found[0]["sites"]} == {0, 1}
