"""What this distribution does to those who did not ask for it: nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent


def test_a_job_without_a_cluster_is_as_ever() -> None:
    program = "from mpi4py import MPI; print(MPI.COMM_WORLD.allreduce(1))"
    command = [str(BIN / "ompy-run"), "-n", "2", sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("2\n2\n", "")


def test_it_is_found_and_says_why_it_is_not_used() -> None:
    command = [str(BIN / "ompy-info"), "--plugins"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (line,) = [line for line in done.stdout.splitlines() if "ompy-dask" in line]
    assert line.split() == ["plm", "dask", "ompy-dask", "0.1.0", "not-available"]
    assert "plm_dask_scheduler is empty" in done.stdout
