"""Communicators between two groups in a real job: made from groups of COMM_WORLD, and not freed.

What follows them to the end of the job: the accounts of calls that the launcher compares.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.proc

PROGRAM = """
from mpi4py import MPI
world = MPI.COMM_WORLD
everybody = world.Get_group()
low, high = everybody.Incl([0, 2]), everybody.Incl([1, 3, 4])
mine, other = (low, high) if world.rank in (0, 2) else (high, low)
leaders = (1, 2) if mine is low else (2, 1)
comm = MPI.Intercomm.Create_from_groups(mine, leaders[0], other, leaders[1])
print(world.rank, comm.allgather(world.rank), flush=True)
hidden, tag, local, first = MPI._commctx_inter(comm)
assert hidden.is_inter and local.size == comm.size and first == (mine is low)
if SKIPS and world.rank == 0:
    raise SystemExit
comm.Barrier()
"""


def job(skips: bool, *options: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "ompy.cli.run", "-n", "5", *options]
    words += [sys.executable, "-c", f"SKIPS = {skips}\n{PROGRAM}"]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("options", [(), ("--mca", "btl", "self,tcp", "--mca", "pml", "bfo")])
def test_from_groups_of_the_world(options: tuple[str, ...]) -> None:
    done = job(False, *options)
    assert done.returncode == 0, done.stderr
    low, high = "[0, 2]", "[1, 3, 4]"
    expected = sorted(f"{rank} {high if rank in {0, 2} else low}" for rank in range(5))
    assert sorted(done.stdout.splitlines()) == expected


def test_a_call_that_one_member_leaves_out() -> None:
    done = job(True)
    # who is heard first: one that waits for it for ever, or one that another one's failure stopped
    assert done.returncode in {1, 4}, done.stderr
    assert "finalized" in done.stderr or "the same collective calls" in done.stderr


PARTS = """
from mpi4py import MPI
world = MPI.COMM_WORLD
alone = world.rank == 0
own = world.Split(int(alone), world.rank)
comm = own.Create_intercomm(0, world, 1 if alone else 0)
for _ in range(3):
    part = comm.Split(comm.rank, 0)  # the second of the larger group is left over
    assert (part == MPI.COMM_NULL) == (comm.rank > 0)
    if part != MPI.COMM_NULL:
        assert part.allgather(world.rank) == [1 - world.rank]
        part.Free()
    part = comm.Create(comm.group.Incl([0]))
    if part != MPI.COMM_NULL:
        part.Barrier()
        part.Free()
    assert comm.Split(MPI.UNDEFINED if alone else 0) == MPI.COMM_NULL
    both = comm.Dup()
    both.Barrier()
    both.Free()
print("well", flush=True)
"""


@pytest.mark.parametrize("may_die", ["0", "1"])
def test_those_that_are_no_members_of_a_part(may_die: str) -> None:
    """They agree on as much as the members do, also where ranks may die."""
    words = [sys.executable, "-m", "ompy.cli.run", "-n", "3", "--mca", "mpi_ft_enable", may_die]
    words += ["--timeout", "40", sys.executable, "-c", PARTS]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "well\n" * 3), done.stderr
