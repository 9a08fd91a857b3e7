"""Agents that start agents, over seven hosts: whoever is in the middle may go.

Kills at random moments are in `test_kills.py`.
"""

import os
import shutil
import subprocess
import sys
import time

import pytest

from tests.support.effort import THOROUGH

from .conftest import LAB, PATIENCE, Lab, SlurmLab
from .test_faults import WAITING, await_up
from .test_jobs import PROGRAM, RAILS

pytestmark = [
    pytest.mark.proc,
    pytest.mark.netns,
    pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it"),
]
SEVEN = ("h1", "h2", "h3", "h4", "h5", "h6", "h7")
HOSTS = ("--host", ",".join(SEVEN))
RADIX = ("--mca", "plm_base_radix")


@pytest.fixture(scope="module")
def seven_hosts():
    why = subprocess.run([sys.executable, LAB, "why-not"], capture_output=True, text=True)
    if why.returncode:
        pytest.skip(f"no laboratory here: {why.stdout.strip()}")
    with_slurm = shutil.which("slurmctld") is not None
    lab = SlurmLab(f"w{os.getpid()}") if with_slurm else Lab(f"w{os.getpid()}")
    lab.hosts = SEVEN
    lab("up", "--hosts", "7", *(["--slurm"] if with_slurm else []))
    try:
        yield lab
    finally:
        lab("down")


@pytest.fixture
def seven(seven_hosts):
    yield seven_hosts
    seven_hosts.clean()


def by_ssh(lab, *words):
    return Lab.ompy_run(lab, *words)


def by_slurm(lab, *words):
    """All seven of an allocation; none of its variables when the test is about ssh."""
    if shutil.which("slurmctld") is None:
        pytest.skip("Slurm is not installed")
    return lab.start("h1", "salloc", "-Q", "-N7", "-n7", *words)


@pytest.mark.parametrize("radix", [1, 2, 64])
@pytest.mark.parametrize("how", ["ssh", "slurm"])
def test_messages_and_output_over_a_tree(seven, how, radix):
    words = (*RADIX, radix, *RAILS, sys.executable, "-c", PROGRAM)
    if how == "ssh":
        job = by_ssh(seven, *HOSTS, *words)
    else:
        job = by_slurm(seven, sys.executable, "-m", "ompy.cli.run", *words)
    began = time.monotonic()
    out, err = job.communicate(timeout=60)
    print(f"{how}, radix {radix}: {time.monotonic() - began:.2f} s")
    assert job.returncode == 0, err
    assert sorted(out.splitlines()) == [f"{host} {rank} 1" for rank, host in enumerate(SEVEN)]
    seven.assert_empty()


# with radix 1 h3 has h4 to h7 below it, with radix 2 (h2: h4 and h5, h3: h6 and h7) two
@pytest.mark.parametrize(("radix", "below"), [(1, "h4, h5, h6, h7"), (2, "h6, h7"), (64, "")])
def test_a_dead_inner_host_ends_the_job_everywhere(seven, tmp_path, radix, below):
    """No packet says so. The launcher ends the others; those below notice by themselves."""
    patience = ("--mca", "plm_base_launcher_misses", "8")
    words = (*RADIX, radix, *patience, sys.executable, "-c", WAITING, tmp_path)
    job = by_ssh(seven, *HOSTS, *words)
    await_up(job, 7)
    time.sleep(0.5)  # the first heartbeats
    seven("crash", "h3")
    died = time.monotonic()
    try:
        gone = await_no_ranks(seven, [host for host in SEVEN if host != "h3"], str(tmp_path))
        took = {host: when - died for host, when in gone.items()}
        print(f"radix {radix}: no rank after", {h: f"{s:.2f} s" for h, s in took.items()})
        assert max(took.values()) < 5  # some 2 s on a machine that does nothing else
        _, err = job.communicate(timeout=30)
        assert job.returncode == 1
        assert "host        h3" in err
        assert f"with it     {below}" in err if below else "with it" not in err
        seven.assert_empty(within=10, but="sshd")  # not ours, and waits for its own network
    finally:
        seven("revive", "h3")


def await_no_ranks(lab, hosts, argument):
    """When the last rank of each host was gone."""
    gone = {}
    deadline = time.monotonic() + PATIENCE
    while len(gone) < len(hosts):
        assert time.monotonic() < deadline, gone
        for host in hosts:
            words = [text for text in lab.processes(host).values() if "ompy.cli" not in text]
            if host not in gone and not any(argument in text for text in words):
                gone[host] = time.monotonic()
    return gone
