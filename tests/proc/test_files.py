"""Files of whole programs: faults of the disk in both worlds, hosts, and what is left behind."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.proc.test_sim import BEGIN, OMPY, PREPARED
from tests.support.two_hosts import TwoHosts, why_not

pytestmark = pytest.mark.proc

Run = Callable[..., subprocess.CompletedProcess[str]]

COLUMNS = (
    BEGIN
    + """
from array import array
rank, size, rows, path = comm.rank, comm.size, 3000, sys.argv[1]
fh = MPI.File.Open(comm, path, MPI.MODE_RDWR | MPI.MODE_CREATE)
column = MPI.INT.Create_vector(1, 1, size).Create_resized(0, 4 * size).Commit()
fh.Set_view(4 * rank, MPI.INT, column)
mine = array("i", [rank * rows + i for i in range(rows)])
codes = []
for attempt in range(5):
    try:
        fh.Write_at_all(0, mine)
        codes.append(0)
        break
    except MPI.Exception as problem:
        codes.append(problem.Get_error_class())
        fh.Sync()
said = comm.allgather(codes)
assert all(each == codes for each in said), said
room = array("i", bytes(4 * rows))
fh.Read_at_all(0, room)
assert room == mine, "the columns differ"
fh.Write_at(0, mine[:1])  # by itself
fh.Close()
if rank == 0:
    names = {0: "done", MPI.ERR_NO_SPACE: "no space", MPI.ERR_IO: "io", MPI.ERR_QUOTA: "quota"}
    print(*(names[code] for code in codes))
"""
)


@pytest.fixture(params=["sim", "run"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Runs a program's text in a world."""
    import os

    def start(code: str, *options: object, file: str = "file") -> subprocess.CompletedProcess[str]:
        program = tmp_path / "program.py"
        program.write_text(code)
        command = (
            [sys.executable, "-m", "ompy.cli.run"] if request.param == "run" else [*OMPY, "sim"]
        )
        command += ["-n", "3", *map(str, options)]
        command += [sys.executable] if request.param == "run" else []
        command += [str(program), str(tmp_path / file)]
        env = {**os.environ, PREPARED: "1", "PYTHONHASHSEED": "0"}
        return subprocess.run(command, capture_output=True, text=True, timeout=100, env=env)

    return start


def delivered(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """How often each fault struck, by its kind."""
    found = re.findall(r"^ompy[ -]\w+: +(\d+)  (\w+):", done.stdout + done.stderr, re.MULTILINE)
    return {kind: int(number) for number, kind in found}


@pytest.mark.parametrize(
    ("fault", "said", "times"),
    [
        ("enospc:rank=0,nth=1", "no space done", 1),
        ("io_error:rank=0,nth=2,error=EDQUOT", "quota done", 1),
        ("short_write:probability=0.5", "done", 2),
    ],
)
def test_a_disk_that_fails(run: Run, tmp_path: Path, fault: str, said: str, times: int) -> None:
    done = run(COLUMNS, "--fault", fault, "--fault-strict", "--mca", "io_ompio_bytes_per_agg", 4096)
    assert done.returncode == 0, done.stdout + done.stderr
    assert said in done.stdout.splitlines()
    assert delivered(done)[fault.partition(":")[0]] >= times
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "program.py"]
    assert (tmp_path / "file").stat().st_size == 4 * 3 * 3000


def test_a_full_disk_leaves_what_was_there(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"as it was")
    code = (
        BEGIN
        + """
fh = MPI.File.Open(comm, sys.argv[1], MPI.MODE_RDWR)
for call in (fh.Write_at_all, fh.Write_at):
    try:
        call(0, b"something else")
    except MPI.Exception as problem:
        assert problem.Get_error_class() == MPI.ERR_NO_SPACE
    else:
        raise AssertionError("it was written")
for call in (fh.Preallocate,):
    try:
        call(1 << 20)
    except MPI.Exception as problem:
        assert problem.Get_error_class() == MPI.ERR_NO_SPACE
fh.Close()
"""
    )
    done = run(code, "--fault", "enospc:probability=1", "--fault-strict")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "file").read_bytes() == b"as it was"


def test_an_error_at_open_is_told_to_all(run: Run, tmp_path: Path) -> None:
    code = (
        BEGIN
        + """
try:
    MPI.File.Open(comm, sys.argv[1], MPI.MODE_RDWR | MPI.MODE_CREATE)
except MPI.Exception as problem:
    print(comm.rank, problem)
"""
    )
    done = run(code, "--fault", "io_error:rank=1,nth=1")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if "MPI_ERR_IO" in line]
    assert len(lines) == 3
    assert sum("(at rank 1)" in line for line in lines) == 2


def test_a_program_that_fails_leaves_nothing_beside_its_file(run: Run, tmp_path: Path) -> None:
    code = BEGIN + "fh = MPI.File.Open(comm, sys.argv[1], MPI.MODE_RDWR | MPI.MODE_CREATE)\n"
    code += "fh.Write_shared(b'x')\nassert comm.rank\n"
    assert run(code).returncode
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "program.py"]


def test_a_file_that_is_never_closed(run: Run) -> None:
    code = BEGIN + "fh = MPI.File.Open(comm, sys.argv[1], MPI.MODE_RDWR | MPI.MODE_CREATE)\n"
    code += "fh.Write_ordered(b'xyz')\n"
    done = run(code)
    assert done.returncode == 0, done.stderr


HOSTS = COLUMNS.replace("from mpi4py import MPI", "from ompy import MPI").replace(
    "fh.Close()",
    """fh.Seek_shared(0)
fh.Set_view(0, MPI.INT)
fh.Seek_shared(rows * size)
fh.Write_shared(array("i", [rank]))
fh.Write_ordered(array("i", [rank, rank]))
fh.Sync()
tail = array("i", bytes(12 * size))
fh.Read_at_all(rows * size, tail)
assert sorted(tail[:size]) == list(range(size)), tail
assert list(tail[size:]) == [each for each in range(size) for _ in range(2)], tail
assert MPI.Get_processor_name() == "host-" + "ab"[2 * rank // size]
assert fh.Get_info()["cb_nodes"] == str(size), "both hosts have aggregators"
fh.Close()""",
)


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_two_hosts_with_one_folder(tmp_path: Path) -> None:
    with TwoHosts(how="") as hosts:
        codes, said, errors = hosts.run(tmp_path / "secret", HOSTS, str(tmp_path / "file"), ranks=4)
    assert codes == [0] * 4, errors
    assert said[0].split() == ["done"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "secret"]
