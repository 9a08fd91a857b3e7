"""Members that make different collective calls, as real jobs: an error, and no exit code 0."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.effort import THOROUGH

pytestmark = pytest.mark.proc

PROGRAM = """
import sys
from mpi4py import MPI
comm = MPI.COMM_WORLD
mine, room = bytearray(8), bytearray(8)
calls = {
    "nothing": lambda: None,
    "bcast": lambda: comm.bcast("x", 0),
    "allreduce": lambda: comm.allreduce(1),
    "Bcast": lambda: comm.Bcast([mine, MPI.LONG], 0),
    "Bcast from 1": lambda: comm.Bcast([mine, MPI.LONG], 1),
    "Allreduce": lambda: comm.Allreduce([mine, MPI.LONG], [room, MPI.LONG]),
    "gather": lambda: comm.gather(1, 0),
    "Barrier": comm.Barrier,
    "Ibarrier": lambda: comm.Ibarrier().Wait(),
    "Dup": comm.Dup,
}
print("got", calls[sys.argv[1 + comm.rank]](), flush=True)
"""
SM, TCP = (), ("--mca", "btl", "self,tcp", "--mca", "coll", "tuned,basic")
PAIRS = [
    (("bcast", "allreduce"), SM),
    (("Bcast", "Allreduce"), SM),
    (("Bcast", "Allreduce"), TCP),
    (("Barrier", "gather"), SM),  # one in shared memory, one in messages
    (("Ibarrier", "Barrier"), TCP),
    (("Bcast", "Bcast from 1"), TCP),  # neither needs the other: the launcher finds it
    (("nothing", "gather"), SM),
    (("Dup", "Barrier"), SM),
]


def job(pair: tuple[str, str], options: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "ompy.cli.run", "-n", "2", *options]
    words += [sys.executable, "-c", PROGRAM, *pair]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(("pair", "options"), PAIRS if THOROUGH else PAIRS[1::2])
def test_is_an_error(pair: tuple[str, str], options: tuple[str, ...]) -> None:
    done = job(pair, options)
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 1, said
    # or the other has left, whose call needed nothing
    texts = ("is not the same in all members", "without taking part in", "has finalized")
    assert any(text in said for text in texts), said


@pytest.mark.parametrize("options", [SM, TCP])
def test_the_same_calls_are_none(options: tuple[str, ...]) -> None:
    done = job(("allreduce", "allreduce"), options)
    assert (done.returncode, done.stdout.split()) == (0, ["got", "2"] * 2), done.stderr


REFUSED = """
import sys
from mpi4py import MPI
comm = MPI.COMM_WORLD
calls = {
    "one": lambda: comm.Bcast(bytearray(8), 99 if comm.rank == 0 else 1),
    "all": lambda: comm.Bcast(bytearray(8), 99 + comm.rank),
    "objects": lambda: comm.gather(1, 99 + comm.rank),
}
try:
    calls[sys.argv[1]]()
except MPI.Exception:
    print("caught")
assert comm.allreduce(1) == comm.size
"""


@pytest.mark.parametrize("options", [SM, TCP], ids=["sm", "tcp"])
@pytest.mark.parametrize("call", ["one", "all", "objects"])
def test_calls_that_were_refused_and_caught_end_well(call: str, options: tuple[str, ...]) -> None:
    """Roots that do not exist differ: each member has its error, and the program goes on."""
    command = [sys.executable, "-m", "ompy.cli.run", *options, "-n", "3", sys.executable, "-c"]
    done = subprocess.run(
        [*command, REFUSED, call], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("caught") >= (1 if call == "one" else 3)
