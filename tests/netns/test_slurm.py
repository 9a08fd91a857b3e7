"""Jobs inside a Slurm allocation of the laboratory, agents started by srun."""

import os
import shutil
import sys

import pytest

from tests.support.effort import THOROUGH

pytestmark = [
    pytest.mark.proc,
    pytest.mark.netns,
    pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it"),
    pytest.mark.skipif(shutil.which("slurmctld") is None, reason="Slurm is not installed"),
]
PROGRAM = (
    "import os; from ompy import MPI; c = MPI.COMM_WORLD\n"
    "print(os.uname().nodename, c.rank, c.allreduce(c.rank), flush=True)"
)


def test_hosts_and_slots_are_those_of_the_allocation(slurm_lab):
    rails = ("--mca", "btl_tcp_if_include", "10.77.0.0/16")
    code, out, err = slurm_lab.run(*rails, sys.executable, "-c", PROGRAM)
    assert code == 0, err
    assert sorted(out.splitlines()) == [f"h{1 + rank // 2} {rank} 28" for rank in range(8)]
    slurm_lab.assert_empty()


def test_exit_codes_and_signals_are_reported_by_agents(slurm_lab):
    code, _, err = slurm_lab.run("sh", "-c", "test $OMPI_COMM_WORLD_RANK != 5 || exit 7")
    assert code == 7
    assert "host        h3" in err
    code, _, err = slurm_lab.run("sh", "-c", "test $OMPI_COMM_WORLD_RANK != 2 || kill -SEGV $$")
    assert "Rank 2 was killed by signal 11" in err


def test_much_output(slurm_lab):
    program = (
        "import sys\nfor i in range(5000): print('x' * 60)\nsys.stdout.buffer.write(b'\\r\\n')"
    )
    code, out, err = slurm_lab.run(sys.executable, "-c", program)
    assert code == 0, err
    assert out.count("x" * 60 + "\n") == 40_000


def test_ranks_are_bound_within_what_the_step_has(slurm_lab):
    program = "import os; print(os.uname().nodename, *sorted(os.sched_getaffinity(0)), flush=True)"
    code, out, err = slurm_lab.run(
        "--bind-to", "core", "--report-bindings", "python", "-c", program
    )
    assert code == 0, err
    cores = sorted(os.sched_getaffinity(0))[:2]
    assert sorted(out.splitlines()) == [f"h{host} {core}" for host in range(1, 5) for core in cores]
    assert err.count(" is bound to ") == 8, err
    slurm_lab.assert_empty()
