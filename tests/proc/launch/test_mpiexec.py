"""Jobs that are started as mpiexec and mpirun, and from within a rank."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from ompy.cli.main import main

pytestmark = pytest.mark.proc
SAYS = "from mpi4py import MPI; import os; print(MPI.COMM_WORLD.size, os.environ.get('K'))"


@pytest.fixture
def path(tmp_path: Path) -> str:
    done = CliRunner().invoke(main, ["mpiexec", "--link", str(tmp_path / "bin")])
    assert done.exit_code == 0, done.output
    return os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]])


def run(path: str, *words: str, **options: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": path}
    return subprocess.run(
        words, capture_output=True, text=True, timeout=60, check=False, env=env, **options
    )


@pytest.mark.parametrize("name", ["mpiexec", "mpirun"])
def test_a_line_of_hydra(path: str, name: str) -> None:
    done = run(path, name, "-n", "2", "-genv", "K", "V", sys.executable, "-c", SAYS)
    assert (done.returncode, done.stdout) == (0, "2 V\n2 V\n"), done.stderr


def test_a_line_without_any_links() -> None:
    ompy = [sys.executable, "-m", "ompy.cli.main", "mpiexec"]
    words = ["-n", "2", "-genv", "K", "V", sys.executable, "-c", SAYS, "--help"]
    done = run(os.environ["PATH"], *ompy, *words)
    assert (done.returncode, done.stdout) == (0, "2 V\n2 V\n"), done.stderr
    done = run(os.environ["PATH"], *ompy)
    assert done.returncode == 2
    assert "write a launch line" in done.stderr


def test_one_of_open_mpi(path: str) -> None:
    line = "--map-by core:PE=1:OVERSUBSCRIBE --bind-to core --report-bindings -x K=2"
    words = ["-n", "1", sys.executable, "-c", SAYS, ":", "-n", "2", sys.executable, "-c", SAYS]
    done = run(path, "mpiexec", *line.split(), *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split().count("3") == 3
    assert done.stderr.count("is bound to package") == 3


def test_a_job_in_a_job(path: str) -> None:
    inner = f"['mpiexec', '-n', '3', {sys.executable!r}, '-c', {SAYS!r}]"
    outer = (
        f"from mpi4py import MPI; import subprocess; c = MPI.COMM_WORLD; c.barrier()\n"
        f"if c.rank == 0: subprocess.run({inner}, check=True)\nc.barrier()"
    )
    done = run(path, "mpiexec", "-n", "2", sys.executable, "-c", outer)
    assert (done.returncode, done.stdout) == (0, "3 None\n" * 3), done.stderr


def test_a_program_is_where_it_was_typed(path: str, tmp_path: Path) -> None:
    program = tmp_path / "says"
    program.write_text("#!/bin/sh\npwd\n")
    program.chmod(0o755)
    (tmp_path / "there").mkdir()
    done = run(path, "mpiexec", "-wdir", "there", "-n", "1", "./says", cwd=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(tmp_path / "there")
