"""`ompy sim --kill`: a world that goes on without a rank or a host, the same for the same seed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SIM = [sys.executable, "-m", "ompy.cli.main", "sim"]
PATIENCE = 200.0  # s; far beyond what anything here takes, beside many others too
EXAMPLE = ["examples/survive.py", "60"]
SURVIVES = ["--mca", "mpi_ft_enable", "1"]
pytestmark = pytest.mark.proc


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [*SIM, *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT, check=False
    )


@pytest.mark.nightly
@pytest.mark.parametrize("pml", ["ob1", "bfo"])
def test_a_stencil_goes_on(pml: str) -> None:
    words = ["-n", "4", *SURVIVES, "--mca", "pml", pml, "--kill", "rank=1,after=400ms", *EXAMPLE]
    done = run(*words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("4 ranks, 60 steps: as without a failure\n")
    assert "rank 1 was killed; the world went on without it" in done.stderr
    again = run(*words)
    assert (again.stdout, again.stderr) == (done.stdout, done.stderr)


@pytest.mark.nightly
def test_without_a_host() -> None:
    hosts = ["-n", "4", "--ranks-per-host", "2", "--kill", "host=host1,after=400ms"]
    done = run(*hosts, *SURVIVES, *EXAMPLE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("4 ranks, 60 steps: as without a failure\n")


def test_without_the_parameter_a_death_is_the_end() -> None:
    done = run("-n", "3", "--kill", "rank=1,after=400ms", *EXAMPLE)
    assert done.returncode == 128 + 9
    assert "rank 1: it was killed" in done.stderr
