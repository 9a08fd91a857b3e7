"""Importing MPI, ending it, and the drop-in package: each in an interpreter of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import ompy
import pytest

DROP_IN = Path(ompy.__file__).parent / "dropin"
HEAVY = (
    "asyncio,click,ctypes,multiprocessing,numpy,pickle,pluggy,pydantic,rich,structlog,subprocess,"
    "uvloop"
)


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the interpreter, with the drop-in package on its path."""
    compiled = os.environ.get("PYTHONPATH", "")
    paths = os.pathsep.join([str(DROP_IN), *filter(None, [compiled])])
    return subprocess.run(
        [sys.executable, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": paths, **environment},
    )


def output(code: str, **environment: str) -> str:
    """What a program prints; it must end well and say nothing else."""
    done = python("-c", code, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_start_is_lean() -> None:
    code = f"""
import sys
from ompy import MPI
first = [name for name in "{HEAVY}".split(",") if name in sys.modules]
MPI.COMM_WORLD.Sendrecv(bytearray(3), 0, 0, bytearray(3), 0)
MPI.COMM_WORLD.sendrecv([1], 0, 0, None, 0)
second = [name for name in "asyncio,ctypes,numpy,pickle,uvloop".split(",") if name in sys.modules]
print(first, second)
"""
    assert output(code) == "[] []\n"


def test_a_world_of_one() -> None:
    code = """
from mpi4py import MPI
import mpi4py, ompy.MPI
assert MPI is ompy.MPI
import mpi4py.MPI
assert mpi4py.MPI is MPI
import mpi4py.rc
assert mpi4py.rc.initialize is True
print(MPI.COMM_WORLD.size, MPI.COMM_WORLD.rank, MPI.COMM_SELF.name, MPI.Query_thread())
print(MPI.Get_version(), MPI.get_vendor()[0], MPI.Get_library_version().split()[0])
print(mpi4py.__version__.split("+")[0], mpi4py.get_config())
"""
    assert output(code).splitlines() == [
        "1 0 MPI_COMM_SELF 3",
        "(3, 1) ompy ompy",
        "4.1.2 {}",
    ]


def test_every_name_of_the_module_can_be_had() -> None:
    code = """
from ompy import MPI
missing = [name for name in dir(MPI) if not hasattr(MPI, name)]
from ompy.MPI import *
print(missing, COMM_WORLD is MPI.COMM_WORLD, memory is MPI.buffer, TAG_UB, ERR_TRUNCATE)
print([name for name in ("WIN_NULL", "FILE_NULL", "SESSION_NULL") if getattr(MPI, name)])
try:
    MPI.no_such_name
except AttributeError as problem:
    print(problem)
"""
    assert output(code).splitlines() == [
        "[] True True 0 15",
        "[]",
        "module 'ompy.MPI' has no attribute 'no_such_name'",
    ]


def test_started_by_hand() -> None:
    code = """
import mpi4py
mpi4py.rc(initialize=False, threads=False)
from mpi4py import MPI
print(MPI.Is_initialized())
try:
    MPI.COMM_WORLD.Get_rank()
except MPI.Exception as problem:
    print(problem.Get_error_class() == MPI.ERR_COMM)
MPI.Init()
print(MPI.COMM_WORLD.Get_rank(), MPI.Query_thread() == MPI.THREAD_SINGLE)
MPI.COMM_SELF.Set_attr(MPI.Comm.Create_keyval(None, lambda *_: print("deleted")), 1)
MPI.Finalize()
print(MPI.Is_finalized(), MPI.COMM_WORLD.size)
for call in (MPI.Init, MPI.Finalize, lambda: MPI.COMM_WORLD.send(1, 0)):
    try:
        call()
    except MPI.Exception as problem:
        print(problem.Get_error_class() == MPI.ERR_OTHER)
"""
    assert output(code).split() == [
        "False",
        "True",
        "0",
        "True",
        "deleted",
        "True",
        "1",
        "True",
        "True",
        "True",
    ]


def test_yes_and_no_are_flags() -> None:
    code = """
import mpi4py
mpi4py.rc(initialize="no", threads="no", fast_reduce="yes")
from mpi4py import MPI
print(MPI.Is_initialized(), mpi4py.rc.threads, mpi4py.rc.fast_reduce)
"""
    assert output(code) == "False False True\n"


def test_a_protocol_that_is_no_number_is_warned_of() -> None:
    code = "from mpi4py import MPI; print(MPI.COMM_SELF.bcast((1, 2)))"
    done = python("-c", code, MPI4PY_PICKLE_PROTOCOL="five")
    assert (done.returncode, done.stdout) == (0, "(1, 2)\n")
    assert "environment variable MPI4PY_PICKLE_PROTOCOL: unexpected value 'five'" in done.stderr


ENDING = """
from ompy import MPI
import ompy.mpi.processes.life, os, sys
MPI.COMM_SELF.Set_attr(MPI.Comm.Create_keyval(None, lambda *_: print("finalized")), 1)
"""


@pytest.mark.parametrize(
    ("rest", "code", "finalized"),
    [
        ("", 0, True),
        ("sys.exit(3)", 3, True),
        ("1 / 0", 1, False),
        ("MPI.Finalize()", 0, True),
        ("if os.fork() == 0: sys.exit(0)\nos.wait()", 0, True),
    ],
)
def test_the_end(rest: str, code: int, finalized: bool) -> None:
    done = python("-c", ENDING + rest)
    assert (done.returncode, done.stdout.count("finalized")) == (code, int(finalized))
    assert ("ZeroDivisionError" in done.stderr) == (not finalized)


def test_no_finalizing_when_told_so() -> None:
    assert output(ENDING, MPI4PY_RC_FINALIZE="no") == ""


def test_abort_shows_what_was_printed() -> None:
    code = "from ompy import MPI; print('last words', end=''); MPI.COMM_WORLD.Abort(9)"
    done = python("-c", code)
    assert (done.returncode, done.stdout) == (9, "last words")


def test_fatal_errors_end_the_program() -> None:
    code = "from ompy import MPI; MPI.COMM_WORLD.send(1, 5); print('not reached')"
    done = python("-c", code, MPI4PY_RC_ERRORS="fatal")
    assert done.returncode == 6
    assert "rank 5 does not exist in MPI_COMM_WORLD, which has 1 rank" in done.stderr
    assert done.stdout == ""


def test_a_communicator_of_a_group_alone() -> None:
    code = """
from ompy import MPI
made = MPI.Intracomm.Create_from_group(MPI.COMM_WORLD.Get_group(), "tag")
print(made.size, made.Compare(MPI.COMM_WORLD) == MPI.CONGRUENT)
print(MPI.Intracomm.Create_from_group(MPI.GROUP_EMPTY) == MPI.COMM_NULL)
"""
    assert output(code).split() == ["1", "True", "True"]


def test_running_a_program(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import sys\n"
        "from mpi4py import MPI\n"
        "import beside\n"
        "print(__name__, sys.argv[1:], beside.word, MPI.COMM_WORLD.size)\n"
        "if len(sys.argv) > 2: raise ValueError('boom')\n"
    )
    (tmp_path / "beside.py").write_text("word = 'found'\n")
    done = python("-m", "mpi4py", str(script), "x")
    assert (done.returncode, done.stdout) == (0, "__main__ ['x'] found 1\n")
    done = python("-m", "mpi4py", str(script), "x", "y")
    assert done.returncode == 1
    assert "ValueError: boom" in done.stderr
    done = python(
        "-m", "mpi4py", "-rc", "threads=False", "-c", "import mpi4py; print(mpi4py.rc.threads)"
    )
    assert done.stdout == "False\n"
    assert "usage" in python("-m", "mpi4py").stderr


def test_profilers_are_looked_for() -> None:
    code = """
import mpi4py, warnings
try:
    mpi4py.profile("@nothing", path="/usr/lib")
except ValueError as problem:
    print(problem)
warnings.simplefilter("error")
try:
    mpi4py.profile("hosts", path=["/etc"])
except UserWarning as problem:
    print("hosts" in str(problem))
import pathlib
print((pathlib.Path(mpi4py.get_include()) / "mpi4py" / "mpi4py.h").is_file())
"""
    assert output(code).splitlines() == ["profiler '@nothing' not found", "True", "True"]
