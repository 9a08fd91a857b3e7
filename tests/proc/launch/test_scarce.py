"""Too little of what a launch needs: one clear error, its exit code, nothing left behind."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.effort import THOROUGH

pytestmark = pytest.mark.proc
BIN = Path(sys.executable).parent
PROGRAM = "from mpi4py import MPI; print(MPI.COMM_WORLD.allreduce(1))"


def limited(kind: int, most: int):
    return lambda: resource.setrlimit(kind, (most, most))


@pytest.mark.parametrize("most", [8, 10, 12, 14, 16, 18, 20, 24, 32, 64] if THOROUGH else [12, 16])
def test_few_descriptors(launch, most) -> None:
    """The job runs, or says what is missing."""
    result = launch.python(4, PROGRAM, preexec_fn=limited(resource.RLIMIT_NOFILE, most))
    assert "Traceback" not in result.err, result
    if result.code:
        assert result.code == 1
        said = " ".join(result.err.split())
        assert "Too many open files" in said
        assert said.count("raise the limit") <= 1  # however many places miss them
    else:
        assert result.out.split() == ["4"] * 4
    if most >= 64:
        assert result.code == 0


def test_the_working_directory_is_gone(launch, tmp_path) -> None:
    (gone := tmp_path / "gone").mkdir()

    def leave() -> None:
        os.chdir(gone)
        gone.rmdir()

    result = launch.python(2, PROGRAM, preexec_fn=leave, cwd=None)
    assert (result.code, len(result.err.splitlines())) == (2, 2), result
    assert "the working directory is not there any longer" in result.err


FULL = ["ompy-info --version", "ompy-run --help"]
FULL += ["ompy-info --all", "ompy --help", "ompy completion bash"] if THOROUGH else []


@pytest.mark.parametrize("words", FULL)
def test_standard_output_is_full(words) -> None:
    name, *rest = words.split()
    with open("/dev/full", "w") as full:
        done = subprocess.run([BIN / name, *rest], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert "standard output cannot be written: No space left on device" in done.stderr


def test_a_list_of_nodes_nobody_has(launch) -> None:
    variables = {"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[0-9999999999]"}
    result = launch.python(2, PROGRAM, env=variables)
    assert result.code == 2
    assert "SLURM_JOB_NODELIST" in result.err
    assert len(result.err.splitlines()) == 2


@pytest.mark.parametrize("after", range(0, 200, 20) if THOROUGH else [20, 80])
def test_a_launcher_killed_while_it_starts(launch, after) -> None:
    """The fixture sees that nothing is left, neither a process nor a file."""
    job = launch.start_python(2, "import time; time.sleep(600)")
    try:
        job.process.wait(after / 1000)
    except subprocess.TimeoutExpired:
        job.signal(signal.SIGKILL)
    assert job.end().code == -signal.SIGKILL
