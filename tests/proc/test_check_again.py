"""`ompy-run --check` on nonblocking calls that come again: a fault of a late round is found."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.proc.test_check import FOUND, Wrong, check

pytestmark = pytest.mark.proc
# rounds of an exchange with nothing between its calls, then one with a fault
ROUNDS: Final = """\
out, room = bytearray(8), bytearray(8)
for i in range(6):
  r = comm.Irecv(room, left)
  s = comm.Isend(out, right)
  {}
  MPI.Request.Waitall([r, s])
"""
WRONG: Final = {
    "a send's memory is written in a branch": Wrong(
        "buffer-in-use",
        {4, 6},
        ROUNDS.format("if i == 4:\n    out[0] = 1"),
    ),
    "a receive's memory is read in a branch": Wrong(
        "buffer-in-use",
        {3, 6},
        ROUNDS.format("if i == 4:\n    print(room[0])"),
    ),
    "a function of the program reads it": Wrong(
        "buffer-in-use",
        {5, 2},
        "def f(a):\n  return a[0]\n"
        "out, room = bytearray(8), bytearray(8)\nfor i in range(6):\n"
        "  r = comm.Irecv(room, left)\n  s = comm.Isend(out, right)\n"
        "  if i == 4: f(room)\n  MPI.Request.Waitall([r, s])",
    ),
    "memory of a receive is sent in a late round": Wrong(
        "buffer-in-use",
        {4, 5},
        "out, room = bytearray(8), bytearray(8)\nfor i in range(6):\n"
        "  b = room if i == 4 else out\n  r = comm.Irecv(room, left)\n"
        "  s = comm.Isend(b, right)\n  MPI.Request.Waitall([r, s])",
    ),
    "another thread writes what is sent": Wrong(
        "buffer-in-use",
        {8},
        "import threading, time\nout = bytearray(8)\ndef poke():\n  out[0] = 1\n"
        "for i in range(6):\n  if me == 0:\n"
        "    if i == 4: threading.Timer(0.2, poke).start()\n"
        "    s = comm.Issend(out, right)\n    s.Wait()\n  else:\n"
        "    time.sleep(0.6 * (i == 4))\n    comm.Recv(bytearray(8), left)",
    ),
    "a request is left in the last round": Wrong(
        "request-lifecycle",
        {3},
        "for i in range(6):\n  r = comm.Irecv(bytearray(8), left)\n"
        "  s = comm.Isend(bytes(8), right)\n"
        "  MPI.Request.Waitall([r, s] if i < 5 else [r])",
    ),
    "a type that differs in a late round": Wrong(
        "type-mismatch",
        {4},
        "for i in range(6):\n  r = comm.Irecv(array('d', [0]), left)\n"
        "  b = array('q' if i == 4 else 'd', [0])\n  s = comm.Isend(b, right)\n"
        "  MPI.Request.Waitall([r, s])",
    ),
    "another root, by its name": Wrong(
        "root-mismatch",
        {2},
        "for i in range(6):\n  comm.bcast(root=me if i == 4 else 0, obj=i)",
    ),
    "another operation, by its name": Wrong(
        "op-mismatch",
        {2},
        "for i in range(6):\n  comm.allreduce(i, op=MPI.MAX if me and i == 4 else MPI.SUM)",
    ),
    "buffers that overlap, by their names": Wrong(
        "invalid-argument",
        {4},
        "a, b = array('d', [1]), array('d', [1])\nfor i in range(6):\n"
        "  c = a if i == 4 else b\n  comm.Allreduce(op=MPI.SUM, sendbuf=a, recvbuf=c)",
    ),
    "another code of an array": Wrong(
        "type-mismatch",
        {3, 4},
        "for i in range(6):\n  a = array('q' if i == 4 else 'd', [0])\n"
        "  if me: comm.Send(a, dest=left)\n  else: comm.Recv(array('d', [0]), source=right)",
    ),
    "an element of a list that is read": Wrong(
        "buffer-in-use",
        {3, 5},
        "rooms = [bytearray(8)]\nfor i in range(6):\n  r = comm.Irecv(rooms[0], left)\n"
        "  comm.Send(bytes(8), right)\n  n = rooms[0][1] if i < 9 else 0\n  r.Wait()",
    ),
    "a message that nobody receives": Wrong(
        "leak",
        {1, 2, 3},
        "for i in range(5):\n  s = comm.Isend(bytes(8), right, i // 4)\n  s.Wait()\n"
        "  if i < 4: comm.Recv(bytearray(8), left, 0)",
    ),
}
RIGHT: Final = {
    "exchanges": ROUNDS.format("pass"),
    "waits in turn, statuses, tests": (
        "status = MPI.Status()\nfor i in range(6):\n"
        "  r = comm.Irecv(bytearray(8), left)\n  s = comm.Isend(bytes(8), right)\n"
        "  r.Wait(status)\n  assert status.source == left\n"
        "  while not s.Test():\n    pass\n"
    ),
    "objects": (
        "for i in range(6):\n  r = comm.irecv(source=left)\n  s = comm.isend([i], right)\n"
        "  assert MPI.Request.waitall([r, s]) == [[i], None]\n"
    ),
    "many requests of one wait, one of them twice": (
        "for i in range(6):\n"
        "  rs = [comm.Irecv(bytearray(8), left, 1), comm.Irecv(bytearray(8), left, 2),\n"
        "        comm.Isend(bytes(8), right, 1), comm.Isend(bytes(8), right, 2)]\n"
        "  MPI.Request.Waitall([*rs, rs[0]])\n"
    ),
    "what is used behind the wait": ROUNDS.format("pass") + "  out[0] = room[0] + 1\n",
    "a call of another thread meanwhile": (
        "import threading, time\nout = bytearray(8)\nfor i in range(4):\n  if me == 0:\n"
        "    t = threading.Timer(0.1, comm.Get_rank)\n    t.start()\n"
        "    s = comm.Issend(out, right)\n    s.Wait()\n    t.join()\n"
        "    comm.Recv(out, right)\n"
        "  else:\n    time.sleep(0.3)\n    comm.Recv(out, left)\n    comm.Send(out, left)\n"
    ),
    "from anybody, blocking": (
        "for i in range(6):\n  s = comm.Isend(bytes(8), right)\n  comm.Recv(bytearray(8))\n"
        "  s.Wait()\n  comm.Barrier()\n"
    ),
    "from anybody": (
        "for i in range(6):\n  r = comm.Irecv(bytearray(8))\n"
        "  s = comm.Isend(bytes(8), right)\n  MPI.Request.Waitall([r, s])\n  comm.Barrier()\n"
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_in_a_late_round(name: str, tmp_path: Path) -> None:
    wrong = WRONG[name]
    found, said, code = check(tmp_path, wrong.text, ranks=wrong.ranks)
    assert code == FOUND, said
    assert {one["class"] for one in found} >= {wrong.kind}, found


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_again_and_again(name: str, tmp_path: Path) -> None:
    found, said, code = check(tmp_path, RIGHT[name], ranks=2)
    assert (found, code) == ([], 0), said
