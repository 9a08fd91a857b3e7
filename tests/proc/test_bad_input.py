"""Bad input: one clear message, the documented exit code or error class, and nothing hangs."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path

import ompy
import pytest

from tests.support.effort import THOROUGH

pytestmark = pytest.mark.proc


def ompy_run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ompy.cli.run", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


# arguments, exit code, what the one message says
COMMANDS = {
    "unknown parameter": (
        ["--mca", "btl_tcp_eager_limt", "4k"],
        2,
        ["btl_tcp_eager_limt", "--mca btl_tcp_eager_limt 4k", "btl_tcp_eager_limit"],
    ),
    "bad value": (
        ["--mca", "btl_tcp_eager_limit", "12xyz"],
        2,
        ["12xyz", "btl_tcp_eager_limit", "--mca"],
    ),
    "missing component": (["--mca", "btl", "self,tpc"], 2, ["tpc", "tcp", "--mca btl self,tpc"]),
    "misspelt framework": (["--mca", "bttl", "self"], 2, ["bttl", "btl"]),
    "two negations": (["--mca", "btl", "sm,^tcp"], 2, ["^", "btl"]),
    "the same parameter twice": (
        ["--mca", "btl", "self", "--mca", "btl", "sm"],
        2,
        ["btl", "self", "sm"],
    ),
    "no ranks": (["-n", "0"], 2, ["-n", "0"]),
    "less than no ranks": (["-n", "-3"], 2, ["-n", "-3"]),
    "unknown option": (["--tag-ouptut"], 2, ["--tag-ouptut", "--tag-output"]),
    "no such folder": (["--wdir", "/no/such/folder"], 2, ["/no/such/folder"]),
}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_command_line(name: str) -> None:
    arguments, code, said = COMMANDS[name]
    done = ompy_run(*arguments, sys.executable, "-c", "print('started')")
    assert done.returncode == code, done.stderr
    assert "started" not in done.stdout
    assert "Traceback" not in done.stderr
    for part in said:
        assert part in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) <= 8


def test_setting_in_the_environment_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPY_MCA_pml_ob1_priorty", "3")
    done = ompy_run("-n", "1", sys.executable, "-c", "pass")
    assert done.returncode == 2
    assert "OMPY_MCA_pml_ob1_priorty" in done.stderr
    assert "pml_ob1_priority" in done.stderr


def test_setting_in_a_file_names_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "my.conf"
    file.write_text("# mine\nbtl = self,sm\nbtl_sm_ring_slotz = 4\n")
    done = ompy_run(
        "--mca", "mca_base_param_files", str(file), "-n", "1", sys.executable, "-c", "0"
    )
    assert done.returncode == 2
    assert f"{file}:3" in done.stderr
    assert "btl_sm_ring_slots" in done.stderr


def test_no_program() -> None:
    done = ompy_run("-n", "2")
    assert done.returncode == 2
    assert "program" in done.stderr


def test_no_such_program() -> None:
    done = ompy_run("-n", "2", "no-such-program-anywhere")
    assert done.returncode == 127
    assert "no-such-program-anywhere" in done.stderr


SCRIPT = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
{body}
"""
# body, class of the error, parts of the message
MISTAKES = {
    "rank that does not exist": (
        "comm.send(1, dest=comm.size)",
        "MPI_ERR_RANK",
        ["rank 2 does not exist in MPI_COMM_WORLD, which has 2 ranks"],
    ),
    "negative rank": ("comm.Recv(bytearray(1), source=-7)", "MPI_ERR_RANK", ["-7"]),
    "tag": ("comm.send(1, dest=0, tag=-5)", "MPI_ERR_TAG", ["-5"]),
    "root": ("comm.bcast(1, root=9)", "MPI_ERR_ROOT", ["9"]),
    "truncation": (
        "comm.Sendrecv(bytes(100), 1 - comm.rank, 0, bytearray(10), 1 - comm.rank, 0)",
        "MPI_ERR_TRUNCATE",
        ["100 bytes", "10 bytes"],
    ),
    "large truncation": (
        "comm.Sendrecv(bytes(10**6), 1 - comm.rank, 0, bytearray(10), 1 - comm.rank, 0)",
        "MPI_ERR_TRUNCATE",
        ["1000000 bytes"],
    ),
    "object that cannot be pickled": (
        "comm.send(lambda: 0, dest=1 - comm.rank)",
        "PicklingError|AttributeError",
        ["lambda"],
    ),
    "read-only buffer": ("comm.Recv(b'xxxx', source=1 - comm.rank)", "BufferError", []),
    "buffer too small for its count": (
        "comm.Send([bytearray(3), 10, MPI.DOUBLE], dest=1 - comm.rank)",
        "ValueError",
        ["message:"],
    ),
    "no buffer at all": ("comm.Send(17, dest=1 - comm.rank)", "TypeError", ["message:"]),
    "freed communicator": ("c = comm.Dup(); c.Free(); c.barrier()", "MPI_ERR_COMM", []),
    "after the end": ("MPI.Finalize(); comm.barrier()", "MPI_ERR_", ["finalis"]),
}


BTLS = ("self,sm", "self,tcp")
CELLS = [*product(sorted(MISTAKES), BTLS)]  # in CI the two take turns
CHOSEN = [(name, BTLS[place % 2]) for place, name in enumerate(sorted(MISTAKES))]


@pytest.mark.parametrize(("name", "btl"), CELLS if THOROUGH else CHOSEN)
def test_mistake_ends_the_job_with_its_traceback(name: str, btl: str) -> None:
    body, error, said = MISTAKES[name]
    arguments = ["-n", "2", "--mca", "btl", btl, sys.executable, "-c", SCRIPT.format(body=body)]
    done = ompy_run(*arguments)
    assert done.returncode == 1, done.stderr
    assert "Traceback (most recent call last)" in done.stderr
    assert any(part in done.stderr for part in error.split("|")), done.stderr
    for part in said:
        assert part in done.stderr, done.stderr


def test_mistake_on_one_rank_ends_all_at_once() -> None:
    """The others compute, wait for ever, or sleep."""
    body = """
import time
comm.barrier()
if comm.rank == 1:
    {}["missing"]
if comm.rank == 0:
    comm.recv(source=1)
if comm.rank == 2:
    time.sleep(1000)
while True:
    pass
"""
    done = ompy_run("-n", "4", sys.executable, "-c", SCRIPT.format(body=body))
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    assert "KeyError: 'missing'" in done.stderr
    assert "Rank 1" in done.stderr


def test_a_caught_error_leaves_the_communicator_usable() -> None:
    body = """
for mistake in (lambda: comm.send(1, dest=99), lambda: comm.send(lambda: 0, dest=0),
                lambda: comm.Sendrecv(bytes(9), 1 - comm.rank, 0, bytearray(3), 1 - comm.rank, 0)):
    try:
        mistake()
    except Exception as problem:
        assert not isinstance(problem, MPI.Exception) or problem.Get_error_class() in (
            MPI.ERR_RANK, MPI.ERR_TRUNCATE)
    else:
        raise AssertionError("no error")
    assert comm.allreduce(1) == comm.size
"""
    done = ompy_run("-n", "2", sys.executable, "-c", SCRIPT.format(body=body))
    assert done.returncode == 0, done.stderr


def test_a_rank_that_never_calls_mpi() -> None:
    body = "import os, sys\nif os.environ['OMPY_RANK'] == '1': sys.exit(0)\n" + SCRIPT.format(
        body="comm.recv(source=1)"
    )
    done = ompy_run("-n", "2", sys.executable, "-c", body)
    assert done.returncode == 1
    assert "Rank 1" in done.stderr or "rank        1" in done.stderr
    assert "MPI" in done.stderr


def test_an_interpreter_taken_for_a_value(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("print(1)\n")
    done = ompy_run("-n", "1", "--mca", "btl", "python3", "a.py", cwd=tmp_path)
    assert done.returncode == 127
    assert "python3 was taken as the value of --mca btl" in done.stderr


def test_a_python_without_ompy() -> None:
    """The drop-in is found by it, and says what is missing."""
    dropin = Path(ompy.__file__).parent / "dropin"
    code = f"import sys; sys.path.insert(0, {str(dropin)!r}); import mpi4py"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert "a Python without ompy" in done.stderr
    assert done.stderr.count("Traceback") == 1


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("MPI.Compute_dims(-1, 2)", "ompy.MPI.Exception: MPI_ERR"),
        ("MPI.COMM_WORLD.Revoke()", "NotImplementedError: MPI.Comm.Revoke"),
    ],
)
def test_errors_have_the_names_that_programs_use(call: str, text: str) -> None:
    done = ompy_run("-n", "1", sys.executable, "-c", f"from ompy import MPI; {call}")
    assert text in done.stderr


def test_an_object_for_a_buffer() -> None:
    code = "from ompy import MPI; MPI.COMM_SELF.Send([1, 2], 0)"
    done = ompy_run("-n", "1", sys.executable, "-c", code)
    assert "the methods in lower case take any object" in done.stderr
    assert done.stderr.count("Traceback") == 1
