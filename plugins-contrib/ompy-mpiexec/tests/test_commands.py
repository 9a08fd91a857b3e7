"""The two commands: they are there, start jobs, and give the job's exit code."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from importlib.metadata import distribution
from pathlib import Path

import pytest

COMMANDS = Path(sysconfig.get_path("scripts"))
PATIENCE = 100.0  # s; far beyond what anything here takes


def run(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(COMMANDS / name), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.mark.parametrize("name", ["mpiexec", "mpirun"])
def test_it_starts_a_job(name: str) -> None:
    code = "from mpi4py import MPI; c = MPI.COMM_WORLD; print(c.allreduce(1), c.size)"
    done = run(name, "-n", "2", sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["2 2", "2 2"]


def test_the_exit_code_is_the_jobs() -> None:
    assert run("mpiexec", "-n", "1", sys.executable, "-c", "raise SystemExit(7)").returncode == 7


def test_a_note_names_the_command() -> None:
    done = run("mpirun", "--map-by", "slot:NOLOCAL", "-n", "1", sys.executable, "-c", "pass")
    assert done.returncode == 0, done.stderr
    assert "mpirun: " in done.stderr


def test_it_has_nothing_to_import() -> None:
    files = [str(path) for path in distribution("ompy-mpiexec").files or ()]
    assert not [path for path in files if path.endswith(".py")], files
