"""`ompy k8s manifest`: the pods of its jobs, each on a host of the laboratory.

There is no Kubernetes here: `tests/support/pods.py` says what stands for it.
"""

from __future__ import annotations

import json
import signal
import time

import pytest
from click.testing import CliRunner
from ompy.cli.main import main

from tests.support.effort import THOROUGH
from tests.support.pods import IndexedJob

pytestmark = pytest.mark.netns
NIGHTLY = pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")

PROGRAM = """
import os, signal, sys, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
def ended(*_):
    print("rank", comm.rank, "was told to end", flush=True)
    os._exit(0)
signal.signal(signal.SIGTERM, ended)
print("rank", comm.rank, "on", os.uname().nodename, "sum", comm.allreduce(comm.rank), flush=True)
words = sys.argv[1:]
if words == ["fail"] and comm.rank == comm.size - 1:
    sys.exit(7)
if words and words[0] == "loop":
    for turn in range(int(words[1])):
        comm.allreduce(bytes(200_000), op=lambda a, b: a)
        if comm.rank == 0 and turn == 20:
            print("turning", flush=True)
        time.sleep(0.01)
if words == ["wait"]:
    comm.barrier()
    if comm.rank == 0:
        print("waiting", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def started(lab, tmp_path):
    """Starts the job of a command line of `ompy k8s manifest`."""
    jobs = []
    (tmp_path / "app.py").write_text(PROGRAM)

    def start(*words, options=()):
        line = ["k8s", "manifest", "--image", "none", "--workdir", str(tmp_path)]
        made = CliRunner().invoke(main, [*line, *options, "--", "python", "app.py", *words])
        assert made.exit_code == 0, made.output
        jobs.append(IndexedJob(lab, json.loads(made.stdout), tmp_path))
        return jobs[-1]

    yield start
    for job in jobs:
        job.close()
    lab.assert_empty()


EIGHT = ("-n", "8", "--hosts", "4", "--start-timeout", "60")


@pytest.mark.parametrize("more", [(), ("--jobset", "--name", "other", "--mca", "pml", "bfo")])
def test_a_job_runs_and_its_output_is_the_first_pods(started, lab, more):
    job = started("$(HOME)", options=(*EIGHT, *more, "--mca", "plm_base_radix", "2"))
    assert job.finish() == "Complete", job.log(0)
    names = [pod.name for pod in job.pods]
    expected = [f"rank {n} on {names[n // 2]} sum 28" for n in range(8)]
    assert sorted(job.log(0).splitlines()) == expected
    assert [pod.code for pod in job.pods] == [0] * 4
    lab.assert_empty()


def test_a_rank_that_fails_fails_the_first_pod_with_its_code(started, lab):
    job = started("fail", options=EIGHT)
    assert job.finish() == "Failed"
    assert job.pods[0].code == 7, job.log(0)
    assert "Rank 7 ended with exit code 7" in job.log(0)
    lab.assert_empty()


@pytest.mark.nightly
@pytest.mark.parametrize(("index", "code"), [(2, 1), (0, 137)])
def test_a_pod_that_is_killed_ends_all(started, lab, index, code):
    job = started("wait", options=EIGHT)
    job.wait_for("waiting")
    job.pods[index].signal(signal.SIGKILL)
    assert job.finish() == "Failed"
    assert job.pods[0].code == code, job.log(0)
    assert job.pods[index].code == 137
    if index:
        assert f"host        {job.pods[index].name}.ompy-job" in job.log(0)
    lab.assert_empty()


@NIGHTLY
def test_a_pod_that_is_deleted_ends_the_job(started, lab):
    """Kubernetes says SIGTERM to a pod that is evicted, or whose node is drained."""
    job = started("wait", options=EIGHT)
    job.wait_for("waiting")
    job.pods[3].signal(signal.SIGTERM)
    assert job.finish() == "Failed"
    assert (job.pods[3].code, job.pods[0].code) in {(143, 1), (143, 143)}, job.log(0)
    lab.assert_empty()


@NIGHTLY
def test_the_deadline_ends_the_ranks_with_sigterm(started, lab):
    job = started("wait", options=(*EIGHT, "--deadline", "1000"))
    job.wait_for("waiting")
    job._began -= 1000  # it is over
    assert job.finish() == "Failed: DeadlineExceeded"
    assert job.pods[0].code == 143, job.log(0)
    assert "rank 0 was told to end" in job.log(0)
    lab.assert_empty()


@NIGHTLY
def test_a_node_that_goes_down_ends_the_job(started, lab):
    job = started("wait", options=EIGHT)
    job.wait_for("waiting")
    try:
        lab("crash", "h3")
        assert job.finish() == "Failed"
    finally:
        lab("revive", "h3")
    assert job.pods[0].code == 1, job.log(0)
    assert job.pods[2].name in job.log(0)
    lab.assert_empty(within=20)


@NIGHTLY
def test_a_rail_that_is_cut_costs_nothing(started, lab):
    job = started("loop", "100", options=(*EIGHT, "--mca", "pml", "bfo"))
    job.wait_for("turning")
    try:
        lab("cut", "h2", "rail1")
        assert job.finish() == "Complete", job.log(0)
    finally:
        lab("heal", "h2", "rail1")
    assert "tcp rail1 10.77.1.2 - 10.77.1.1: the link is down" in job.log(0)


@NIGHTLY
def test_pods_that_come_late_are_waited_for(started, lab):
    """The launcher calls until they listen; who comes and knows nothing is sent away."""
    job = started(options=EIGHT)
    for pod in job.pods[1:]:
        pod.signal(signal.SIGSTOP)
    time.sleep(1)
    for pod in job.pods[1:]:
        pod.signal(signal.SIGCONT)
    assert job.finish() == "Complete", job.log(0)


@NIGHTLY
def test_a_pod_that_never_comes_is_named(started, lab):
    job = started(options=("-n", "2", "--hosts", "2", "--start-timeout", "3"))
    job.pods[1].signal(signal.SIGKILL)
    assert job.finish() == "Failed"
    assert job.pods[0].code in (1, 143), job.log(0)
