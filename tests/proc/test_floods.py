"""Floods between real processes, with a small window and little credit."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.effort import THOROUGH

pytestmark = pytest.mark.proc

# the sender may have left when it is told how much was taken: nothing comes of that
LEAVES = """
import struct
from mpi4py import MPI
c = MPI.COMM_WORLD
if c.rank == 0:
    for k in range(3000):
        c.Send(struct.pack("<Q", k), 1, 5)
else:
    room = bytearray(8)
    for k in range(3000):
        c.Recv(room, 0, 5)
        assert struct.unpack("<Q", room)[0] == k
"""
# two threads of each rank flood the other, and persistent requests go on beside them
THREADS = """
import struct, threading
from mpi4py import MPI
c = MPI.COMM_WORLD
peer, count = 1 - c.rank, 300
wrong = []

def flood(tag):
    sent = [c.Isend(struct.pack("<Q", k), peer, tag) for k in range(count)]
    room = bytearray(8)
    for k in range(count):
        c.Recv(room, peer, tag)
        wrong.extend([k] * (struct.unpack("<Q", room)[0] != k))
    MPI.Request.Waitall(sent)

threads = [threading.Thread(target=flood, args=(tag,)) for tag in (1, 2)]
for thread in threads:
    thread.start()
out, back = bytearray(8), bytearray(8)
again = [c.Send_init(out, peer, 3), c.Recv_init(back, peer, 3)]
for k in range(50):
    out[:] = struct.pack("<Q", k)
    MPI.Prequest.Startall(again)
    MPI.Request.Waitall(again)
    wrong.extend([k] * (bytes(back) != bytes(out)))
for thread in threads:
    thread.join()
assert not wrong, wrong
"""


WAYS = [("self,sm", "ob1"), ("self,tcp", "bfo"), ("self,sm", "bfo"), ("self,tcp", "ob1")]


@pytest.mark.parametrize(("btl", "pml"), WAYS if THOROUGH else WAYS[:2])
@pytest.mark.parametrize("program", [LEAVES, THREADS], ids=["the sender leaves", "threads"])
def test_floods(program: str, btl: str, pml: str) -> None:
    limits = {"message_window": 60, "unexpected_bytes": 5000}
    words = [sys.executable, "-m", "ompy.cli.run", "-n", "2", "--mca", "btl", btl]
    words += ["--mca", "pml", pml]
    for name, value in limits.items():
        words += ["--mca", f"pml_{pml}_{name}", str(value)]
    done = subprocess.run(
        [*words, sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stderr
