"""Groups that meet at ports, processes that were started, ranks that may die: again, or refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pytest

from tests.proc.replay.test_replayed_jobs import DIVERGED, run

pytestmark = pytest.mark.proc
REFUSED: Final = 2
# who is at the port first hangs on who is late
PORT: Final = """\
import os, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
if comm.rank == 0:
    port = MPI.Open_port()
    MPI.Publish_name("service", port)
    comm.Barrier()
    told = []
    for _ in range(comm.size - 1):
        between = MPI.COMM_SELF.Accept(port)
        told.append(between.recv(source=0))
        between.Disconnect()
    MPI.Unpublish_name("service", port)
    MPI.Close_port(port)
    print(told)
else:
    comm.Barrier()
    if comm.rank == int(os.environ["LATE"]):
        time.sleep(0.5)
    between = MPI.COMM_SELF.Connect(MPI.Lookup_name("service"))
    between.send(comm.rank, dest=0)
    between.Disconnect()
"""
STARTS: Final = """\
import os, sys
from mpi4py import MPI
if len(sys.argv) > 1:
    parent = MPI.Comm.Get_parent()
    parent.send(parent.rank, dest=0)
    whole = parent.Merge(True)
    whole.allreduce(1)
    parent.Disconnect()
else:
    comm = MPI.COMM_WORLD
    number = int(os.environ.get("NUMBER", "2"))
    between = comm.Spawn(sys.executable, [__file__, "child"], maxprocs=number)
    told = []
    if comm.rank == 0:
        told = [between.recv(source=MPI.ANY_SOURCE) for _ in range(2)]
    whole = between.Merge(False)
    print(comm.rank, told, whole.rank, whole.allreduce(1), flush=True)
    between.Disconnect()
"""
MAY_DIE: Final = """\
import os
from mpi4py import MPI
comm = MPI.COMM_WORLD
comm.Set_errhandler(MPI.ERRORS_RETURN)
if comm.rank == 0:
    print([comm.recv(source=MPI.ANY_SOURCE) for _ in range(comm.size - 1)])
else:
    comm.send(comm.rank, dest=0)
if os.environ.get("DIES"):
    if comm.rank == 0:
        comm.send(None, dest=2)  # it has received from both
    if comm.rank == 2:
        comm.recv(source=0)
        os.kill(os.getpid(), 9)
    try:
        comm.Barrier()
    except MPI.Exception:
        comm.Revoke()
    print(comm.Shrink().size)
"""
DIES_EARLY: Final = """\
import os, time
rank = os.environ["OMPY_RANK"]
time.sleep(0 if rank == "2" else 1.2)
from mpi4py import MPI
comm = MPI.COMM_WORLD
if rank == "2":
    os.kill(os.getpid(), 9)
comm.Set_errhandler(MPI.ERRORS_RETURN)
try:
    comm.recv(source=2)
except MPI.Exception:
    print("nothing")
"""


def record(folder: Path, program: str, *options: str, **variables: str) -> list[str]:
    """The lines that a recording of three ranks writes."""
    (folder / "program.py").write_text(program)
    words = ["--oversubscribe", "-n", "3", "--record", "recording", "--record-data", *options]
    code, told, errors = run(folder, "ompy-run", *words, sys.executable, "program.py", **variables)
    assert code == 0, errors
    return sorted(told.splitlines())


def replay(folder: Path, *words: str, **variables: str) -> tuple[int, list[str], str]:
    """Exit code, lines and errors of a replay."""
    code, told, errors = run(folder, "ompy", "replay", "recording", *words, **variables)
    return code, sorted(told.splitlines()), errors


def test_who_connects_first_connects_first_again(tmp_path: Path) -> None:
    told = record(tmp_path, PORT, LATE="1")
    assert told == ["[2, 1]"]
    for words in ((), ("--rank", "0")):
        code, again, errors = replay(tmp_path, *words, LATE="2")
        assert (code, again) == (0, told), errors
    assert replay(tmp_path, "--rank", "2", LATE="0")[0] == 0


@pytest.mark.nightly
def test_a_rank_that_starts_others_runs_alone(tmp_path: Path) -> None:
    told = record(tmp_path, STARTS)
    assert replay(tmp_path)[:2] == (0, told)
    for rank, line in enumerate(told):
        code, alone, errors = replay(tmp_path, "--rank", str(rank))
        assert (code, alone) == (0, [line]), errors
    code, _, errors = replay(tmp_path, NUMBER="3")
    assert code == DIVERGED
    assert "now:            program.py:12: 3 processes from rank 3 of the job on" in errors
    assert "in the recording: program.py:12: 2 processes from rank 3 of the job on" in errors


def test_ranks_that_may_die_are_replayed_if_none_did(tmp_path: Path) -> None:
    told = record(tmp_path, MAY_DIE, "--mca", "mpi_ft_enable", "1")
    assert replay(tmp_path)[:2] == (0, told)
    assert replay(tmp_path, "--rank", "0")[:2] == (0, told)
    record(tmp_path, MAY_DIE, "--mca", "mpi_ft_enable", "1", DIES="1")
    for words in ((), ("--rank", "0")):
        code, _, errors = replay(tmp_path, *words)
        assert code == REFUSED
        assert "rank 2 has died: when this one heard of it is not recorded" in errors


def test_a_rank_that_died_before_others_began_is_told_of(tmp_path: Path) -> None:
    record(tmp_path, DIES_EARLY, "--mca", "mpi_ft_enable", "1")
    code, _, errors = replay(tmp_path)
    assert code == REFUSED, errors
    assert "rank 2 has died: when this one heard of it is not recorded" in errors
