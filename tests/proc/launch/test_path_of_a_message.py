"""The path of a message in ARCHITECTURE.md is the one that a message takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.proc
ROOT = Path(__file__).parents[3]
ROW = re.compile(r"\| (\d+) \| (send|receive) \| `([\w/.]+)` \|")
STEPS = 13  # of the table
PROGRAM = """
import sys, time
from mpi4py import MPI

comm = MPI.COMM_WORLD
room, entered = bytearray(1000), {}


def note(frame, event, _argument):
    code = frame.f_code
    if event == "call":
        entered.setdefault((code.co_filename, code.co_name))


comm.Barrier()
if comm.rank == 0:
    time.sleep(0.2)  # so that the receiver waits
sys.setprofile(note)
comm.Send(room, dest=1) if comm.rank == 0 else comm.Recv(room, source=0)
sys.setprofile(None)
print(comm.rank, *(file for file, _ in entered))
"""


def path_of(side: str) -> list[str]:
    """The files of one side, in their order."""
    rows = ROW.findall((ROOT / "ARCHITECTURE.md").read_text())
    assert [int(number) for number, _, _ in rows] == list(range(1, STEPS + 1))
    return [file for _, found, file in rows if found == side]


def test_each_step_is_taken_and_in_this_order(launch):
    done = launch.python(2, PROGRAM, "--mca", "coll", "^sm", env={"OMPY_PURE": "1"})
    assert done.code == 0, done
    for line in done.out.splitlines():
        rank, *entered = line.split()
        rest = iter(entered)
        for file in path_of("receive" if int(rank) else "send"):
            assert any(name.endswith(f"/{file}") for name in rest), f"{file} does not come then"
