"""Ranks that another launcher has started: one host, by torchrun's variables."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.proc

PATIENCE = 90.0  # s; far beyond what anything here takes, beside many others too
RING = """
import os
from ompy import MPI
c = MPI.COMM_WORLD
left = c.sendrecv(c.rank, dest=(c.rank + 1) % c.size, source=(c.rank - 1) % c.size)
print(c.rank, c.size, left, c.allreduce(c.rank), os.environ["OMPI_COMM_WORLD_RANK"], flush=True)
"""


class Ranks:
    """So many processes, started as torchrun would."""

    def __init__(self, size, name, *words, **more):
        self.name = f"{name}-{os.getpid()}"
        self.processes = [
            subprocess.Popen(
                [sys.executable, *words],
                env={**os.environ, **self.variables(rank, size), **more},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(size)
        ]

    def variables(self, rank, size):
        return {
            "RANK": str(rank),
            "WORLD_SIZE": str(size),
            "LOCAL_RANK": str(rank),
            "LOCAL_WORLD_SIZE": str(size),
            "TORCHELASTIC_RUN_ID": self.name,
        }

    def wait(self):
        """Exit codes, outputs and all errors."""
        said = [process.communicate(timeout=PATIENCE) for process in self.processes]
        codes = [process.returncode for process in self.processes]
        return codes, [out for out, _ in said], "".join(err for _, err in said)

    def agents(self):
        """Processes that have the variables of this job and are no rank of it."""
        found = []
        ranks = {process.pid for process in self.processes}
        for entry in os.listdir("/proc"):
            if entry.isdigit() and int(entry) not in ranks:
                with contextlib.suppress(OSError), open(f"/proc/{entry}/environ") as file:
                    if f"TORCHELASTIC_RUN_ID={self.name}\0" in file.read():
                        found.append(int(entry))
        return found

    def assert_no_agent(self):
        deadline = time.monotonic() + 20
        while self.agents():
            assert time.monotonic() < deadline, self.agents()
            time.sleep(0.02)


def test_processes_of_torchrun_become_one_job():
    ranks = Ranks(3, "ring", "-c", RING)
    codes, outputs, err = ranks.wait()
    assert codes == [0, 0, 0], err
    assert outputs == [f"{rank} 3 {(rank - 1) % 3} 3 {rank}\n" for rank in range(3)]
    ranks.assert_no_agent()


def test_the_end_of_one_is_the_end_of_all():
    program = (
        "import os, signal\nfrom ompy import MPI\nc = MPI.COMM_WORLD; c.Barrier()\n"
        "if c.rank == 1: os.kill(os.getpid(), signal.SIGKILL)\n"
        "c.recv()\n"
    )
    ranks = Ranks(2, "killed", "-c", program)
    codes, _, err = ranks.wait()
    assert codes == [-signal.SIGTERM, -signal.SIGKILL]
    assert err.count("ended without MPI_Finalize") == 1, err
    assert "rank        1" in err
    ranks.assert_no_agent()


def test_abort_ends_with_its_own_code():
    program = "from ompy import MPI\nc = MPI.COMM_WORLD\nc.rank or c.Abort(7)\nc.recv()"
    ranks = Ranks(2, "abort", "-c", program)
    codes, _, err = ranks.wait()
    assert codes == [7, -signal.SIGTERM]
    assert "Rank 0 aborted the job with code 7" in err
    ranks.assert_no_agent()


def test_ranks_that_wait_for_each_other_for_ever():
    program = "from ompy import MPI; c = MPI.COMM_WORLD; c.recv(source=(c.rank + 1) % 3)"
    ranks = Ranks(3, "stuck", "-c", program)
    codes, _, err = ranks.wait()
    assert codes == [-signal.SIGTERM] * 3, err
    assert "ompy: deadlock: ranks 0-2 can never go on; each waits for the next: 0 -> 1" in err
    ranks.assert_no_agent()


def test_the_end_of_the_agent_is_the_end_of_its_ranks():
    program = "from ompy import MPI\nMPI.COMM_WORLD.Barrier(); print('up', flush=True)\nwhile 1: 0"
    ranks = Ranks(2, "agent", "-c", program)
    for process in ranks.processes:
        assert process.stdout.readline() == "up\n"
    (agent,) = ranks.agents()
    os.kill(agent, signal.SIGKILL)
    assert ranks.wait()[0] == [-signal.SIGKILL] * 2
    ranks.assert_no_agent()


def test_a_parameter_that_does_not_exist_is_said_once():
    ranks = Ranks(2, "wrong", "-c", "from ompy import MPI", OMPY_MCA_btl_tcp_link="2")
    codes, _, err = ranks.wait()
    assert codes == [2, 2]  # as ompy-run ends
    assert err.count("btl_tcp_links?") == 1, err
    ranks.assert_no_agent()


def test_programs_of_one_step_one_after_the_other():
    twice = f"{sys.executable} -c '{RING}' && {sys.executable} -c '{RING}'"
    program = f"import os; os.execlp('sh', 'sh', '-c', {twice!r})"
    ranks = Ranks(2, "twice", "-c", program)
    codes, outputs, err = ranks.wait()
    assert codes == [0, 0], err
    assert outputs == [f"{rank} 2 {1 - rank} 1 {rank}\n" * 2 for rank in range(2)]
    ranks.assert_no_agent()


def test_lines_of_json():
    """Of coordinator and agent, with host and job; of ranks, with their rank too."""
    program = (
        "import os, signal\nfrom ompy import MPI\nc = MPI.COMM_WORLD; c.Barrier()\n"
        "if c.rank == 1: os.kill(os.getpid(), signal.SIGKILL)\n"
        "c.recv()\n"
    )
    settings = {"OMPY_MCA_mca_base_log_format": "json", "OMPY_MCA_btl_base_verbose": "component"}
    ranks = Ranks(2, "json", "-c", program, **settings)
    codes, _, err = ranks.wait()
    assert codes == [-signal.SIGTERM, -signal.SIGKILL]
    events = [json.loads(line) for line in err.splitlines()]
    (failed,) = [event for event in events if event["event"] == "job failed"]
    assert (failed["host"], failed["level"], failed["rank"]) == (os.uname().nodename, "error", 1)
    assert "ended without MPI_Finalize" in failed["text"]
    opened = [event for event in events if event["event"] == "mca:btl: sm opened"]
    assert {(event["rank"], event["job"]) for event in opened} == {
        (0, failed["job"]),
        (1, failed["job"]),
    }
    ranks.assert_no_agent()


def test_a_wrong_parameter_in_json():
    settings = {"OMPY_MCA_mca_base_log_format": "json", "OMPY_MCA_btl_tcp_link": "2"}
    ranks = Ranks(2, "wrongjson", "-c", "from ompy import MPI", **settings)
    codes, _, err = ranks.wait()
    assert codes == [2, 2]
    (failed,) = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    assert "btl_tcp_links?" in failed["text"], err
