"""Agents by the real prterun, whose daemons ssh starts on the laboratory's hosts."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support.prterun import PRTERUN, needs_prterun, variables

pytestmark = [pytest.mark.netns, needs_prterun]

SUM = (
    "import os\nfrom ompy import MPI\nc = MPI.COMM_WORLD\n"
    "print(os.uname().nodename, c.allreduce(c.rank))"
)
WAIT = (
    "import time\nfrom ompy import MPI\nc = MPI.COMM_WORLD\nc.barrier()\n"
    "print('waiting', flush=True)\ntime.sleep(600)"
)


@pytest.fixture
def words(lab, tmp_path, monkeypatch):
    """Options of a job on three hosts."""
    for name, value in variables(tmp_path / "key").items():
        monkeypatch.setenv(name, value)
    prefix = Path(PRTERUN).resolve().parents[1]
    ssh = f'--prtemca plm_ssh_args "-F /run/ompy-lab-{lab.name}/ssh_config"'
    monkeypatch.setenv("OMPY_MCA_plm_prrte_args", f"--prefix {prefix} {ssh}")
    hosts = ",".join(f"10.99.0.{number}:1" for number in (1, 2, 3))
    return ("--host", hosts, sys.executable, "-c")


def test_a_job_on_three_hosts(lab, words):
    code, out, err = lab.run(*words, SUM)
    assert (code, sorted(out.splitlines())) == (0, ["h1 3", "h2 3", "h3 3"]), err
    lab.assert_empty()


@pytest.mark.parametrize("whom", ["launcher", "prterun"])
def test_whoever_is_killed_nothing_is_left_anywhere(lab, words, whom):
    job = lab.ompy_run(*words, WAIT)
    for _ in range(3):
        assert job.stdout.readline() == "waiting\n"
    if whom == "launcher":
        job.send_signal(signal.SIGKILL)
    else:
        prterun = [pid for pid, text in lab.processes("h1").items() if f"{PRTERUN} --host" in text]
        os.kill(max(prterun), signal.SIGKILL)
    job.communicate(timeout=90)
    assert job.returncode == (-signal.SIGKILL if whom == "launcher" else 1)
    lab.assert_empty(within=20)
