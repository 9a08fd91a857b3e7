"""Jobs inside a Slurm allocation of the laboratory, agents started by srun."""

import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.support.effort import THOROUGH

from .conftest import OMPY_RUN, Lab

pytestmark = [
    pytest.mark.proc,
    pytest.mark.netns,
    pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it"),
    pytest.mark.skipif(shutil.which("slurmctld") is None, reason="Slurm is not installed"),
]
TRIALS = int(os.environ.get("OMPY_KILL_TRIALS", "5")) // 5
PROGRAM = (
    "import os; from ompy import MPI; c = MPI.COMM_WORLD\n"
    "print(os.uname().nodename, c.rank, c.allreduce(c.rank), flush=True)"
)
BUSY = (
    "import subprocess; from ompy import MPI; c = MPI.COMM_WORLD\n"
    "subprocess.Popen(['setsid', 'sleep', '1000'])\n"
    "c.Barrier(); print('up', flush=True)\n"
    "while True: pass"
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


KINDS = ("srun", "ompy-agent", "ompy-guard", "slurmstepd", "launcher")


def is_a(pid, kind):
    try:
        name = Path(f"/proc/{pid}/comm").read_text().strip()
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return False
    return words[:3] == OMPY_RUN if kind == "launcher" else name == kind


@pytest.mark.parametrize("seed", range(TRIALS * len(KINDS)))
def test_no_orphan_whoever_is_killed(slurm_lab, seed):
    kind, host = KINDS[seed % len(KINDS)], f"h{2 + seed % 3}"
    job = slurm_lab.ompy_run(sys.executable, "-c", BUSY)
    for _ in range(8):
        assert job.stdout.readline() == "up\n", job.stderr.read()
    where = "h1" if kind in {"launcher", "srun"} else host
    victims = [pid for pid in Lab.processes(slurm_lab, where) if is_a(pid, kind)]
    assert victims, (kind, where)
    time.sleep(seed % 7 / 20)
    os.kill(victims[0], signal.SIGKILL)
    job.communicate(timeout=30)
    assert job.returncode != 0 or kind == "launcher"  # of which salloc tells nothing
    slurm_lab.assert_empty(within=20)
