"""Other launchers are seen, and what only looks like one is not."""

import os
import subprocess
import sys

import pytest
from ompy.runtime.launchers import started_by_another

SRUN = {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "8"}


@pytest.mark.parametrize(
    ("environment", "who"),
    [
        (SRUN, "srun started this program 8 times"),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, "mpirun of Open MPI"),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, "mpiexec"),
        ({"RANK": "1", "WORLD_SIZE": "4"}, "torchrun"),
    ],
)
def test_several_worlds_of_one_are_an_error(environment, who):
    assert who in started_by_another(environment)
    assert "ompy-run -n" in started_by_another(environment)
    assert started_by_another({**environment, "OMPY_SINGLETON": "1"}) == ""


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "8"},  # a batch script
        {**SRUN, "SLURM_STEP_NUM_TASKS": "1"},
        {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPY_SIZE": "2"},
        {"WORLD_SIZE": "4"},
        {"RANK": "high", "WORLD_SIZE": "large"},
    ],
)
def test_one_world_of_one_is_none(environment):
    assert started_by_another(environment) == ""


def test_a_program_says_so():
    code = "from ompy import MPI; print(MPI.COMM_WORLD.size)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env={**os.environ, **SRUN}, capture_output=True, text=True)
    assert done.returncode == 1
    assert "srun started this program 8 times" in done.stderr
    alone = {**os.environ, **SRUN, "OMPY_SINGLETON": "1"}
    done = subprocess.run(command, env=alone, capture_output=True, text=True)
    assert done.stdout == "1\n"
