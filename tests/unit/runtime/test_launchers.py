"""Other launchers are seen, and what only looks like one is not."""

import os
import subprocess
import sys

import pytest
from ompy.runtime.launching.launchers import LauncherError, membership

SRUN = {
    "SLURM_PROCID": "5",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "2",
    "SLURM_STEP_NODELIST": "h[1-4]",
    "SLURM_STEP_TASKS_PER_NODE": "2(x4)",
    "SLURM_CLUSTER_NAME": "c",
    "SLURM_JOB_ID": "17",
    "SLURM_STEP_ID": "3",
}
TORCHRUN = {
    "RANK": "3",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "a",
    "MASTER_PORT": "29500",
    "TORCHELASTIC_RUN_ID": "r",
    "OMPY_SECRET_FILE": "/secret",
}
MPIRUN = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "PMIX_NAMESPACE": "prterun-h-1",
}
POD = {"JOB_COMPLETION_INDEX": "2", "WORLD_SIZE": "3", "MASTER_ADDR": "job-0.svc"}


def test_a_step_of_slurm():
    found = membership(SRUN)
    assert (found.launcher, found.job) == ("srun", "slurm.c.17.3")
    assert (found.rank, found.size, found.local_rank, found.local_size) == (5, 8, 1, 2)
    assert (found.meeting, found.leads, found.secret) == ("h1", False, "")
    here = {**SRUN, "SLURM_STEP_TASKS_PER_NODE": "8", "SLURM_NODEID": "0", "SLURM_LOCALID": "5"}
    assert membership(here).meeting == ""


def test_workers_of_torchrun_also_where_srun_started_it():
    found = membership({**SRUN, **TORCHRUN})
    assert (found.launcher, found.rank, found.size, found.meeting) == ("torchrun", 3, 4, "a")
    assert (found.job, found.secret) == ("torchrun.r..a.29500", "/secret")


def test_mpirun_on_one_host_needs_no_secret():
    found = membership(MPIRUN)
    assert (found.job, found.rank, found.size) == ("mpirun.prterun-h-1", 1, 2)
    assert (found.meeting, found.leads) == ("", None)


def test_a_pod_is_a_host_with_one_rank():
    found = membership({**POD, "OMPY_SECRET_FILE": "/s"})
    assert (found.rank, found.size, found.local_rank, found.local_size) == (2, 3, 0, 1)
    assert (found.meeting, found.secret) == ("job-0.svc", "/s")


@pytest.mark.parametrize(
    ("environment", "what"),
    [
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, "WORLD_LOCAL_RANK is not set"),
        ({**MPIRUN, "OMPI_COMM_WORLD_LOCAL_RANK": "2"}, "contradict each other"),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, "mpiexec started this program 2 times"),
        ({"PMIX_RANK": "1", "PMIX_NAMESPACE": "n"}, "as rank 1 of several"),
        ({"RANK": "1", "WORLD_SIZE": "4"}, "LOCAL_RANK is not set"),
        ({**TORCHRUN, "OMPY_SECRET_FILE": ""}, "and OMPY_SECRET_FILE is not set"),
        ({"JOB_COMPLETION_INDEX": "1"}, "WORLD_SIZE is not set"),
        (POD, "and OMPY_SECRET_FILE is not set"),
        ({**SRUN, "SLURM_HET_SIZE": "2"}, "heterogeneous step"),
        ({**SRUN, "SLURM_STEP_TASKS_PER_NODE": "2,x"}, "cannot be understood"),
        ({**SRUN, "SLURM_NODEID": "9"}, "cannot be understood"),
        ({**SRUN, "SLURM_LOCALID": "2"}, "contradict each other"),
    ],
)
def test_what_cannot_be_wired_up_says_so(environment, what):
    with pytest.raises(LauncherError, match=what) as caught:
        membership(environment)
    assert "OMPY_SINGLETON=1" in str(caught.value)
    assert membership({**environment, "OMPY_SINGLETON": "1"}) is None


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "8"},  # a batch script
        {**SRUN, "SLURM_STEP_NUM_TASKS": "1"},
        {**MPIRUN, "OMPI_COMM_WORLD_SIZE": "1"},
        {**MPIRUN, "OMPY_SIZE": "2"},
        {"WORLD_SIZE": "4"},
        {"RANK": "high", "WORLD_SIZE": "large"},
        {"PMIX_RANK": "0", "PMIX_NAMESPACE": "n"},
    ],
)
def test_one_world_of_one_is_none(environment):
    assert membership(environment) is None


def test_a_program_says_so():
    code = "from ompy import MPI; print(MPI.COMM_WORLD.size)"
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PMI_RANK": "1", "PMI_SIZE": "8"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "mpiexec started this program 8 times" in done.stderr
    alone = {**environment, "OMPY_SINGLETON": "1"}
    done = subprocess.run(command, env=alone, capture_output=True, text=True)
    assert done.stdout == "1\n"
