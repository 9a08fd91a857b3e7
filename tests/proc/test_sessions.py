"""Sessions in real jobs: before, beside, after and without `MPI.Init`."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.proc

WITHOUT_INIT = """
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
"""
SESSION = """
session = MPI.Session.Init()
comm = MPI.Intracomm.Create_from_group(session.Create_group("mpi://WORLD"))
"""
ALONE_TWICE = f"""{WITHOUT_INIT}
for _ in range(2):
    {SESSION.strip().replace(chr(10), chr(10) + "    ")}
    assert not MPI.Is_initialized() and not MPI.Is_finalized()
    assert MPI.COMM_WORLD == MPI.COMM_NULL
    assert MPI.Get_processor_name()
    MPI.Free_mem(MPI.Alloc_mem(100))
    print(comm.allreduce(comm.rank), flush=True)
    comm.Free()
    session.Finalize()
"""
BESIDE = f"""{WITHOUT_INIT}
{SESSION}
MPI.Init()
world = MPI.COMM_WORLD
assert world.allreduce(1) == comm.allreduce(1) == world.size
MPI.Finalize()
assert (world.rank, world.size) == (comm.rank, comm.size)
calls = [world.barrier, world.Dup, world.Idup, world.iprobe, world.recv]
calls += [lambda: world.bcast(1), lambda: world.send(1, 0), lambda: world.Bcast(bytearray(8))]
for call in calls:
    try:
        call()
    except MPI.Exception as problem:
        assert "finalised" in str(problem), problem
    else:
        raise AssertionError(call)
again = MPI.Session.Init()
print(comm.allreduce(comm.rank))
"""
AFTER = """
from mpi4py import MPI
MPI.Finalize()
try:
    MPI.Session.Init()
except MPI.Exception as problem:
    print(problem)
"""
RAISES = f"""{WITHOUT_INIT}
{SESSION}
if comm.rank == 1:
    raise RuntimeError("on purpose")
comm.recv(source=1)
"""
LEAVES = f"""{WITHOUT_INIT}
{SESSION}
if comm.rank == 0:
    try:
        comm.recv(source=1)
    except MPI.Exception as problem:
        print(problem.Get_error_class() == MPI.ERR_PROC_FAILED, problem)
"""
SETS = """
session = MPI.Session.Init()
for name, members in (("mpi://WORLD", world), ("mpix://SHARED", world), ("mpi://SELF", own)):
    group = session.Create_group(name)
    assert MPI.Group.Compare(group, members) == MPI.IDENT, (name, group.size)
    assert session.Get_pset_info(name)["mpi_size"] == str(members.size)
    MPI.Intracomm.Create_from_group(group).Barrier()
session.Finalize()
"""
SPAWNED = f"""
from mpi4py import MPI
world, own = MPI.COMM_WORLD.group, MPI.COMM_SELF.group
parent = MPI.Comm.Get_parent()
{SETS}
parent.Disconnect()
"""
SPAWNS = f"""
import sys
from mpi4py import MPI
world, own = MPI.COMM_WORLD.group, MPI.COMM_SELF.group
children = MPI.COMM_WORLD.Spawn(sys.executable, ["-c", {SPAWNED!r}], 3)
{SETS}
children.Disconnect()
{SETS}
"""


def job(program: str, ranks: int = 2) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "ompy.cli.run", "-n", str(ranks), sys.executable, "-c", program]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("program", [ALONE_TWICE, BESIDE], ids=["alone", "beside"])
def test_communicators_of_a_session(program: str) -> None:
    done = job(program, 3)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {"3"}


def test_process_sets_are_of_those_that_were_started_together() -> None:
    done = job(SPAWNS)
    assert done.returncode == 0, done.stderr


def test_in_a_process_that_nobody_launched() -> None:
    program = ALONE_TWICE.replace(
        "import mpi4py\n", "import ompy.mpi.processes.options as mpi4py\n"
    )
    words = [sys.executable, "-c", program.replace("from mpi4py import", "from ompy import")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "0\n0\n"), done.stderr


def test_who_has_left_begins_none() -> None:
    done = job(AFTER)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("left its job with MPI_Finalize") == 2


def test_an_exception_ends_the_job() -> None:
    done = job(RAISES)
    assert done.returncode == 1
    assert "RuntimeError: on purpose" in done.stderr


def test_a_rank_that_leaves_is_missed() -> None:
    done = job(LEAVES)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("True ")
