"""Real jobs over UDP on loopback, through ompy-run; udplite has to be installed."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

EXCHANGE = """
from ompy import MPI
comm = MPI.COMM_WORLD
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
for size in (0, 1, 5_000, 16_384, 100_000, 3_000_000):
    sent, got = bytes([comm.rank + 1]) * size, bytearray(size)
    comm.Sendrecv(sent, right, recvbuf=got, source=left)
    assert got == bytes([left + 1]) * size
everything = comm.alltoall([bytes([comm.rank, peer]) * 100_000 for peer in range(comm.size)])
assert everything == [bytes([peer, comm.rank]) * 100_000 for peer in range(comm.size)]
assert comm.allreduce(comm.rank) == sum(range(comm.size))
print("done")
"""
ASLEEP = """
import time
from ompy import MPI
comm = MPI.COMM_WORLD
if comm.rank == 0:
    comm.Send(bytes([7]) * 2_000_000, 1)
    comm.send("last", 1)
else:
    time.sleep(1.5)
    got = bytearray(2_000_000)
    comm.Recv(got, 0)
    time.sleep(0.5)
    assert got == bytes([7]) * 2_000_000 and comm.recv(source=0) == "last"
print("done")
"""
UNEVEN = """
import time
from ompy import MPI
comm = MPI.COMM_WORLD
comm.send(comm.rank, (comm.rank + 1) % comm.size)
time.sleep(comm.rank * 0.1)
assert comm.recv(source=(comm.rank - 1) % comm.size) == (comm.rank - 1) % comm.size
print("done")
"""
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True, scope="module")
def installed() -> None:
    try:
        version("ompy-btl-udplite")
    except PackageNotFoundError:
        pytest.fail("install it first: pip install -e . in the folder of its pyproject.toml")


def run(folder: Path, ranks: int, *program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ompy.cli.run", "--oversubscribe", "-n", str(ranks)]
    environment = {name: text for name, text in os.environ.items() if "OMPY_MCA" not in name}
    return subprocess.run(
        [*command, "--mca", "btl", "self,udplite", sys.executable, *program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )


@pytest.mark.parametrize(
    ("program", "ranks"), [(EXCHANGE, 2), (EXCHANGE, 5), (ASLEEP, 2), (UNEVEN, 6)]
)
def test_job(tmp_path: Path, program: str, ranks: int) -> None:
    done = run(tmp_path, ranks, "-c", program)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "done\n" * ranks)


@pytest.mark.parametrize(
    ("example", "said"),
    [("ring", "the token went around 4 rank(s) and collected 6"), ("sample_sort", "sorted")],
)
def test_examples_of_ompy(example: str, said: str) -> None:
    path = ROOT / "examples" / f"{example}.py"
    if not path.exists():
        pytest.skip("the examples are in ompy's repository")
    done = run(ROOT, 4, str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert said in done.stdout
