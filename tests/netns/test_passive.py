"""Jobs of ranks that others have started: by hand with a secret file, and by srun alone."""

import os
import shutil
import signal
import sys
import time

import pytest

from tests.support.effort import THOROUGH

from .conftest import PATIENCE
from .test_faults import name_of

pytestmark = [pytest.mark.proc, pytest.mark.netns]
by_slurm = pytest.mark.skipif(
    not THOROUGH or shutil.which("slurmctld") is None, reason="tools/nightly.py does it, with Slurm"
)
PROGRAM = (
    "import os; from ompy import MPI; c = MPI.COMM_WORLD\n"
    "here = c.Split_type(MPI.COMM_TYPE_SHARED).size\n"
    "print(os.uname().nodename, c.rank, here, c.allreduce(c.rank), flush=True)"
)
WAITING = (
    "import subprocess; from ompy import MPI; c = MPI.COMM_WORLD; c.Barrier()\n"
    "print('up', flush=True)\n"
    "if c.rank % 2: c.recv(source=c.rank)\n"
    "while True: pass\n"
)


def by_hand(lab, secret, program, **more):
    """Rank 0 and 1 on h1, rank 2 on h3, as torchrun would start them."""
    secret.write_bytes(os.urandom(32))
    secret.chmod(0o600)
    started = []
    for rank, host, local, count in ((0, "h1", 0, 2), (1, "h1", 1, 2), (2, "h3", 0, 1)):
        variables = {
            "RANK": rank,
            "WORLD_SIZE": 3,
            "LOCAL_RANK": local,
            "LOCAL_WORLD_SIZE": count,
            "MASTER_ADDR": "10.99.0.1",
            "OMPY_SECRET_FILE": secret,
            **more.get(host, {}),
        }
        words = [f"{name}={value}" for name, value in variables.items()]
        started.append(lab.start(host, "env", *words, sys.executable, "-c", program))
    return started


def test_by_hand_over_two_hosts_with_a_secret_file(lab, tmp_path):
    ranks = by_hand(lab, tmp_path / "secret", PROGRAM)
    said = [rank.communicate(timeout=PATIENCE) for rank in ranks]
    assert [out for out, _ in said] == ["h1 0 2 3\n", "h1 1 2 3\n", "h3 2 1 3\n"], said
    assert [rank.returncode for rank in ranks] == [0, 0, 0]
    lab.assert_empty()


@pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
def test_a_host_with_another_secret_does_not_get_in(lab, tmp_path):
    """It tries again and again; nobody is told the job, and the ranks end when they are ended."""
    other = tmp_path / "other"
    other.write_bytes(os.urandom(32))
    other.chmod(0o600)
    ranks = by_hand(lab, tmp_path / "secret", PROGRAM, h3={"OMPY_SECRET_FILE": other})
    time.sleep(3)
    assert [rank.poll() for rank in ranks] == [None] * 3
    for host in ("h1", "h3"):
        for pid in lab.processes(host):
            if name_of(pid).startswith("python"):
                os.kill(pid, signal.SIGTERM)
    assert [rank.communicate(timeout=PATIENCE)[0] for rank in ranks] == ["", "", ""]
    lab.assert_empty()


@pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
def test_pods_of_an_indexed_job_of_kubernetes(lab, tmp_path):
    """A host each, with the variables such a pod has and those docs/hosts.md asks for."""
    secret = tmp_path / "secret"
    secret.write_bytes(os.urandom(32))
    secret.chmod(0o440)
    pods = []
    for index, host in enumerate(lab.hosts):
        words = [f"JOB_COMPLETION_INDEX={index}", "WORLD_SIZE=4", "MASTER_ADDR=10.99.0.1"]
        words += [f"OMPY_SECRET_FILE={secret}", sys.executable, "-c", PROGRAM]
        pods.append(lab.start(host, "env", *words))
    said = [pod.communicate(timeout=PATIENCE) for pod in pods]
    assert [out for out, _ in said] == [f"h{1 + rank} {rank} 1 6\n" for rank in range(4)], said
    lab.assert_empty()


def srun(lab, *words, options=()):
    return lab.start("h1", "srun", "-Q", "-N4", "-n8", *options, sys.executable, "-c", *words)


@by_slurm
@pytest.mark.parametrize("options", [(), ("-m", "cyclic"), ("-K",)])
def test_srun_alone_makes_one_job(slurm_lab, options):
    job = srun(slurm_lab, PROGRAM, options=options)
    out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 0, err
    cyclic = "cyclic" in options
    wanted = [f"h{1 + (rank % 4 if cyclic else rank // 2)} {rank} 2 28" for rank in range(8)]
    assert sorted(out.splitlines()) == sorted(wanted)
    slurm_lab.assert_empty()


@by_slurm
@pytest.mark.parametrize("options", [(), ("-K",)])
def test_abort_ends_the_step(slurm_lab, options):
    program = "from ompy import MPI; c = MPI.COMM_WORLD\nc.rank == 5 and c.Abort(7)\nc.recv()"
    job = srun(slurm_lab, program, options=options)
    _, err = job.communicate(timeout=PATIENCE)
    assert job.returncode != 0
    assert err.count("Rank 5 aborted the job with code 7") == 1
    slurm_lab.assert_empty(within=20)


@by_slurm
def test_a_dead_host_ends_the_ranks_of_all(slurm_lab):
    job = srun(slurm_lab, WAITING)
    for _ in range(8):
        assert job.stdout.readline() == "up\n", job.stderr.read()
    slurm_lab("crash", "h3")
    died = time.monotonic()
    try:
        while left := {h: p for h in slurm_lab.hosts if (p := ranks_of(slurm_lab, h))}:
            assert time.monotonic() - died < 6, left
            time.sleep(0.05)
        print(f"no rank was left after {time.monotonic() - died:.2f} s")
        slurm_lab.clean()  # srun itself waits for the host for minutes
    finally:
        slurm_lab("revive", "h3")


def ranks_of(lab, host):
    """Processes of a job, srun itself excepted."""
    return [pid for pid, words in lab.processes(host).items() if not words.startswith("srun")]


# ranks that fail before they have even looked for MPI, as by a missing package
EARLY = """
import os, sys, time
rank = int(os.environ["SLURM_PROCID"])
if rank in {RANKS}: time.sleep(LATE); print("failed", time.monotonic(), flush=True); sys.exit(3)
from ompy import MPI
MPI.COMM_WORLD.recv()
"""


@by_slurm
@pytest.mark.parametrize("late", [0, 2.5])
@pytest.mark.parametrize("ranks", ["3", "4, 5", "0, 1", "7, 2"])
def test_a_rank_that_fails_before_mpi_ends_the_others_without_k(slurm_lab, ranks, late):
    """One of a host, all of a host, all of the host that leads; soon, and when all others wait."""
    program = EARLY.replace("RANKS", ranks).replace("LATE", str(late))
    job = srun(slurm_lab, program, options=("-K0",))
    out, err = job.communicate(timeout=PATIENCE)
    slurm_lab.assert_empty(within=5)
    failed = float(out.split()[1])
    print(f"ended {time.monotonic() - failed:.2f} s after it failed")
    assert time.monotonic() - failed < 20  # some two to four on a machine that does nothing else
    assert job.returncode != 0
    assert "ended before it began MPI" in " ".join(err.split())


@by_slurm
def test_a_host_that_is_slow_is_waited_for(slurm_lab):
    """It is looked at meanwhile, and its ranks live."""
    slow = "import os, time; time.sleep(4 * (os.environ['SLURM_NODEID'] in SLOW))\n"
    for nodes in ("'2'", "'0'"):
        job = srun(slurm_lab, slow.replace("SLOW", nodes) + PROGRAM, options=("-K0",))
        out, err = job.communicate(timeout=PATIENCE)
        assert job.returncode == 0, err
        assert len(out.splitlines()) == 8
        slurm_lab.assert_empty()
