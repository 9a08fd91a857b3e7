"""Agents by the real prterun, on this host. Over ssh to others: `tests/netns/test_prrte.py`."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.prterun import PRTERUN, needs_prterun, variables

pytestmark = pytest.mark.proc

HERE = f"{socket.gethostname()}:2"
SUM = "from ompy import MPI\nc = MPI.COMM_WORLD\nprint(c.allreduce(c.rank))"
WAIT = (
    "import os, time\nfrom ompy import MPI\nc = MPI.COMM_WORLD\nc.barrier()\n"
    "print(os.getpid(), flush=True)\ntime.sleep(600)"
)
PATIENCE = 90.0  # s; far beyond what anything here takes


@pytest.fixture
def prrte(launch, tmp_path):
    environment = variables(tmp_path / "key")

    def run(code, *options, begin=False, env=None):
        words = ("--host", HERE, *options, sys.executable, "-c", code)
        start = launch.start if begin else launch
        return start(*words, env={**environment, **(env or {})})

    run.environment = {**launch.environment, **environment}
    run.temporary = Path(launch.environment["TMPDIR"])
    return run


@needs_prterun
def test_a_job_and_nothing_stays_of_prterun(prrte):
    result = prrte(SUM)
    assert (result.code, result.out) == (0, "1\n1\n"), result
    assert list(prrte.temporary.iterdir()) == []


@needs_prterun
def test_the_exit_code_is_the_ranks(prrte):
    result = prrte(f"{SUM}\nif c.rank: raise SystemExit(6)")
    assert result.code == 6, result
    assert "Rank 1 ended with exit code 6" in result.err


def children_of(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def command_of(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes()


@needs_prterun
@pytest.mark.parametrize("whom", ["launcher", "dialer", "prterun", "agent", "told"])
def test_whoever_is_killed_nothing_is_left(prrte, whom):
    job = prrte(WAIT, begin=True)
    ranks = [int(job.line()) for _ in range(2)]
    (dialer,) = [pid for pid in children_of(job.pid) if b"starting_dialer" in command_of(pid)]
    (prterun,) = [pid for pid in children_of(dialer) if b"prterun" in command_of(pid)]
    (agent,) = [pid for pid in children_of(prterun) if b"agent" in command_of(pid)]
    pid = {"launcher": job.pid, "dialer": dialer, "prterun": prterun, "agent": agent}
    if whom == "told":
        os.kill(job.pid, signal.SIGTERM)
    else:
        os.kill(pid[whom], signal.SIGKILL)
    result = job.end()
    assert result.code == {"launcher": -signal.SIGKILL, "told": 143}.get(whom, 1), result
    until = time.monotonic() + PATIENCE
    while left := [
        one for one in (*ranks, dialer, prterun, agent) if Path(f"/proc/{one}").exists()
    ]:
        assert time.monotonic() < until, left
        time.sleep(0.05)
    if whom in ("dialer", "prterun"):  # what is killed cannot remove its own folder
        for folder in prrte.temporary.glob("prtrn.*"):
            shutil.rmtree(folder)


@needs_prterun
def test_what_prterun_does_not_take(prrte):
    result = prrte(SUM, "--mca", "plm_prrte_args", "--no-such-option")
    assert (result.code, result.out) == (1, ""), result
    assert "no agent was started" in result.err
    assert "Traceback" not in result.err


def test_without_prterun(prrte):
    result = prrte(SUM, env={"OMPY_MCA_plm_prrte_agent": "no-such-prterun"})
    assert (result.code, result.out) == (1, ""), result
    assert "there is no no-such-prterun in PATH (plm_prrte_agent)" in result.err


@needs_prterun
@pytest.mark.parametrize("code", [0, 9])
def test_prterun_starts_launcher_and_agents(prrte, launch, tmp_path, code):
    """The other way round: one process of prterun on each host; the first becomes ompy-run."""
    with socket.create_server(("", 0)) as found:
        port = found.getsockname()[1]
    (tmp_path / "app.py").write_text(f"{SUM}\nraise SystemExit({code})")
    run = [sys.executable, "-m", "ompy.cli.run", "--mca", "plm", "dial"]
    run += ["--mca", "plm_dial_port", str(port), "--host", "127.0.0.2:2", sys.executable, "app.py"]
    wait = [sys.executable, "-m", "ompy.cli.start", "agent", "--port", str(port)]
    # in a file: prterun puts words of its own in the place of --mca, wherever it stands
    (tmp_path / "each.sh").write_text(
        f'if [ "$PMIX_RANK" = 0 ]; then exec {shlex.join(run)}; fi; exec {shlex.join(wait)}\n'
    )
    done = subprocess.run(
        [PRTERUN, "-n", "2", "--map-by", ":OVERSUBSCRIBE", "sh", "each.sh"],
        env=prrte.environment, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (code, "1\n1\n"), done


@needs_prterun
def test_a_launcher_that_prterun_has_started_uses_it_in_turn(prrte, tmp_path):
    words = [sys.executable, "-m", "ompy.cli.run", "--host", HERE, sys.executable, "-c", SUM]
    # prterun keeps these to itself; they are root's alone
    allowed = "export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1"
    (tmp_path / "only.sh").write_text(f"{allowed}\nexec {shlex.join(words)}\n")
    done = subprocess.run(
        [PRTERUN, "-n", "1", "sh", "only.sh"],
        env=prrte.environment, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "1\n1\n"), done
