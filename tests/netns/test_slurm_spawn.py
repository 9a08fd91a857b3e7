"""Processes that are spawned in a Slurm allocation, on all of its hosts, and somebody is killed.

Each kind of victim while the new processes start, and when all are up.
"""

import contextlib
import os
import shutil
import signal
import sys
import time

import pytest

from tests.support.effort import THOROUGH

from .conftest import PATIENCE
from .test_kills import START_TIMEOUT, await_nobody, await_victims

pytestmark = [
    pytest.mark.proc,
    pytest.mark.netns,
    pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it"),
    pytest.mark.skipif(shutil.which("slurmctld") is None, reason="Slurm is not installed"),
]

PARENTS, CHILDREN = 2, 6
PROGRAM = """
import os, sys, time
from ompy import MPI
world, parent = MPI.COMM_WORLD, MPI.Comm.Get_parent()
def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())
kind = "child" if parent != MPI.COMM_NULL else "parent"
if kind == "parent":
    say(kind, os.getpid(), os.uname().nodename)
    parent = world.Spawn(sys.executable, [__file__, *sys.argv[1:]], maxprocs=6)
else:
    say(kind, os.getpid(), os.uname().nodename)
both = parent.Merge(kind == "child")
both.Barrier()
say("up", both.rank)
try:
    both.recv(source=(both.rank + 1) % both.size)
except MPI.Exception as problem:
    if "survive" not in sys.argv:
        raise
    say("told", both.rank, problem.Get_error_class() == MPI.ERR_PROC_FAILED)
both.Revoke()
rest = both.Shrink()
say("rest", rest.size, rest.allreduce(1))
"""
RING = "both.recv(source=(both.rank + 1) % both.size)"
ANY = "both.recv(source=MPI.ANY_SOURCE)"


@pytest.fixture
def begin(slurm_lab, tmp_path):
    """Begins the job; the words of each rank that has said who it is."""

    def call(*options, program=PROGRAM, words=()):
        path = tmp_path / "program.py"
        path.write_text(program)
        await_nobody(slurm_lab)
        rails = ("--mca", "btl_tcp_if_include", "10.77.0.0/16")
        options = ("-n", PARENTS, "--map-by", "node", *rails, *START_TIMEOUT, *options)
        return slurm_lab.ompy_run(*options, sys.executable, path, *words)

    return call


def said(job, count, what):
    """So many lines that begin so, as words."""
    found = []
    while len(found) < count:
        line = job.stdout.readline()
        assert line, job.stderr.read()
        if line.split()[0] == what:
            found.append(line.split())
    return found


@pytest.mark.parametrize("moment", ["starting", "up"])
@pytest.mark.parametrize("victim", ["parent", "child", "ompy-agent", "slurmstepd", "launcher"])
def test_nothing_is_left(slurm_lab, begin, victim, moment):
    job = begin()
    first = said(job, PARENTS, "parent")
    pids = {"parent": int(first[1][1])}
    if moment == "up" or victim == "child":
        pids["child"] = int(said(job, 1, "child")[0][1])
    if moment == "up":
        said(job, PARENTS + CHILDREN, "up")
    pid = pids[victim] if victim in pids else await_victims(slurm_lab, victim)[-1].pid
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    _, err = job.communicate(timeout=PATIENCE)
    slurm_lab.assert_empty(within=20)
    time.sleep(0.2)
    slurm_lab.assert_empty(within=0)  # nor does anything begin that was on its way
    if victim in ("parent", "child"):
        assert job.returncode == 128 + signal.SIGKILL, err
        assert "was killed by signal 9" in err
        assert victim == "parent" or "that rank 0 spawned" in err
    elif victim != "launcher":  # of the launcher's end salloc tells nothing
        assert job.returncode == 1, err
        gone = "The process that looks after the ranks of a host is gone"
        assert gone in err or "MPI_ERR_PROC_FAILED" in err  # a rank may notice it first


@pytest.mark.parametrize("victim", ["parent", "child"])
@pytest.mark.parametrize("receive", [RING, ANY])
def test_the_others_are_told_and_go_on(slurm_lab, begin, victim, receive):
    job = begin(
        "--mca", "mpi_ft_enable", 1, program=PROGRAM.replace(RING, receive), words=["survive"]
    )
    pids = {"parent": int(said(job, PARENTS, "parent")[1][1])}
    pids["child"] = int(said(job, 1, "child")[0][1])
    said(job, PARENTS + CHILDREN, "up")
    os.kill(pids[victim], signal.SIGKILL)
    out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 0, err
    left = PARENTS + CHILDREN - 1
    assert out.count(f"rest {left} {left}") == left, (out, err)
    assert "told" in out
    slurm_lab.assert_empty(within=20)
