"""`ompy sim --cluster`: programs take the time that the file says, twice the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.proc

SIM = [sys.executable, "-m", "ompy.cli.main", "sim"]
PATIENCE = 200.0  # s; far beyond what anything here takes, beside many others too
HEAD = "from mpi4py import MPI\ncomm = MPI.COMM_WORLD\n"
LOOK = 100  # ns that a look at a clock takes
CLUSTER = """
hosts = 8
[network]
bandwidth = "8Gbit/s"
rank_bandwidth = "16Gbit/s"
[[network.messages]]
latency = "10us"
overhead = "2us"
gap = "1us"
bandwidth = "8Gbit/s"
[[network.messages]]
from = 50000
latency = "30us"
overhead = "2us"
gap = "1us"
bandwidth = "8Gbit/s"
rendezvous = true
[memory]
bandwidth = "80Gbit/s"
messages = [{latency = "1us", overhead = "500ns", bandwidth = "8Gbit/s"}]
"""


class Sim:
    """Runs `ompy sim --cluster` on a program's text."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "cluster.toml").write_text(CLUSTER)

    def __call__(self, code: str, *options: object) -> subprocess.CompletedProcess[str]:
        (self.folder / "program.py").write_text(HEAD + textwrap.dedent(code))
        words = ["--cluster", "cluster.toml", *map(str, options), "program.py"]
        return subprocess.run(
            [*SIM, *words],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            cwd=self.folder,
        )

    def predicted(self, code: str, *options: object) -> dict[str, object]:
        """The report, for programs."""
        done = self(code, "--log-format", "json", *options)
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stderr.splitlines()]
        return next(line for line in lines if "predicted_ns" in line)


@pytest.fixture
def sim(tmp_path: Path) -> Sim:
    return Sim(tmp_path)


PING_PONG = """
    import sys
    for size in 1, 1001, 49_999, 50_000:
        data = bytearray(size)
        begin = MPI.Wtime()
        if comm.rank == 0:
            comm.Send(data, 1)
            comm.Recv(data, 1)
            print(size, round((MPI.Wtime() - begin) * 1e9))
        else:
            comm.Recv(data, 0)
            comm.Send(data, 0)
"""


def test_a_ping_pong_takes_what_loggp_says(sim: Sim) -> None:
    done = sim(PING_PONG, "-n", 2)
    assert done.returncode == 0, done.stderr
    found = dict(tuple(map(int, line.split())) for line in done.stdout.splitlines())
    # 2 (L + 2 o + (n - 1) G), and the second look at the clock
    expected = {
        size: 2 * (latency + 2 * 2000 + size - 1) + LOOK
        for size, latency in {1: 10_000, 1001: 10_000, 49_999: 10_000, 50_000: 30_000}.items()
    }
    # the rank that answers has looked at its clock before it receives, and waits since
    assert found == expected


def test_ranks_of_a_host_use_its_memory(sim: Sim) -> None:
    done = sim(PING_PONG, "-n", 2, "--ranks-per-host", 2)
    assert done.stdout.splitlines()[0] == f"1 {2 * (1000 + 2 * 500) + LOOK}"
    assert "between hosts 0 messages of 0 bytes" in done.stderr


FUNNEL = """
    import sys
    pairs = int(sys.argv[1])
    if comm.rank < pairs:
        comm.Send(bytearray(40_001), comm.rank + 4)
    elif 4 <= comm.rank < 4 + pairs:
        comm.Recv(bytearray(40_001), comm.rank - 4)
"""


@pytest.mark.parametrize("pairs", [1, 2, 4])
def test_messages_that_share_a_link_take_their_turns(sim: Sim, pairs: int) -> None:
    """Four senders on a host, four receivers on another: one link carries all of it."""
    (sim.folder / "program.py").write_text(HEAD + textwrap.dedent(FUNNEL))
    command = [*SIM, "--cluster", "cluster.toml", "-n", "8", "--ranks-per-host", "4"]
    done = subprocess.run(
        [*command, "--log-format", "json", "program.py", str(pairs)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=sim.folder,
    )
    report = next(
        line for line in map(json.loads, done.stderr.splitlines()) if "predicted_ns" in line
    )
    assert report["predicted_ns"] == 2000 + pairs * 40_000 + 10_000 + 2000
    assert report["bytes"] == {"network": pairs * 40_001, "memory": 0}


VARIED = """
    import random
    data = bytearray(random.randrange(100_000))
    sizes = comm.allgather(len(data))
    requests = [comm.Irecv(bytearray(size), source) for source, size in enumerate(sizes)]
    for other in range(comm.size):
        comm.Send(data, other)
    MPI.Request.Waitall(requests)
    print(comm.rank, MPI.Wtime(), comm.reduce(len(data)))
"""


@pytest.mark.nightly
def test_a_seed_is_a_run(sim: Sim) -> None:
    one, same, other = (sim(VARIED, "-n", 6, "--seed", seed) for seed in (3, 3, 4))
    assert one.returncode == 0, one.stderr
    assert (one.stdout, one.stderr) == (same.stdout, same.stderr)
    assert one.stdout != other.stdout


@pytest.mark.nightly
def test_sleeping_takes_time_and_is_no_communication(sim: Sim) -> None:
    code = "import time\ntime.sleep(0.003)\ncomm.Barrier()"
    report = sim.predicted(code, "-n", 2)
    assert 3_000_000 < report["predicted_ns"] < 3_100_000
    assert max(report["communication"]) < 0.05


@pytest.mark.nightly
def test_computing_takes_time_if_it_is_asked_for(sim: Sim) -> None:
    code = "sum(range(300_000))\ncomm.Barrier()"
    free = sim.predicted(code, "-n", 2)
    scaled = sim.predicted(code, "-n", 2, "--compute-scale", 1)
    hundred = sim.predicted(code, "-n", 2, "--compute-scale", 100)
    assert free["predicted_ns"] < 100_000
    assert scaled["predicted_ns"] > 300_000  # 1 ns each: no interpreter is so fast
    assert hundred["predicted_ns"] > 10 * scaled["predicted_ns"]


EVERYTHING = """
    import array
    n, right, left = comm.size, (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    assert comm.allreduce(comm.rank) == n * (n - 1) // 2
    assert comm.sendrecv({"at": comm.rank}, right, source=left) == {"at": left}
    assert comm.alltoall([comm.rank] * n) == list(range(n))
    big = bytearray(200_000) if comm.rank else bytearray(b"x" * 200_000)
    comm.Bcast(big)
    assert big == b"x" * 200_000
    request = comm.Ibarrier()
    while not request.Test():
        pass
    if comm.rank == 0:
        for _ in range(1, n):
            status = MPI.Status()
            comm.Probe(status=status)
            got = bytearray(status.Get_count())
            comm.Recv(got, status.source)
            assert len(got) == status.source * 30_000
        while not comm.iprobe(source=1, tag=9):
            pass
        message = comm.mprobe(source=1, tag=9)
        assert len(message.recv()) == 100_000
    else:
        comm.Ssend(bytearray(comm.rank * 30_000), 0)
        if comm.rank == 1:
            comm.send(b"y" * 100_000, dest=0, tag=9)
    window = MPI.Win.Create(memory := bytearray(8), comm=comm)
    window.Fence()
    window.Put(b"12345678", right)
    window.Fence()
    assert memory == b"12345678"
    window.Free()
    part = comm.Split(comm.rank % 2)
    assert part.allreduce(1) == len(range(comm.rank % 2, n, 2))
    near = comm.Split_type(MPI.COMM_TYPE_SHARED)
    assert near.size == 2
"""


@pytest.mark.nightly
def test_calls_of_all_kinds(sim: Sim) -> None:
    done = sim(EVERYTHING, "-n", 6, "--ranks-per-host", 2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"predicted: \d+\.\d+ ms for 6 ranks on 3 hosts of cluster", done.stderr)
    assert "an extrapolation: nothing was compared with a real machine" in done.stderr


def test_a_deadlock_is_one(sim: Sim) -> None:
    done = sim("comm.Ssend(b'x', 1 - comm.rank)", "-n", 2)
    assert done.returncode == 4
    assert "0 -> 1 -> 0" in done.stderr
    assert "predicted" not in done.stderr


@pytest.mark.nightly
def test_a_program_that_fails_is_kept(sim: Sim) -> None:
    done = sim("assert comm.rank == 0", "-n", 2)
    assert done.returncode == 1
    kept = next((sim.folder / "sim-failures").glob("*.json"))
    again = subprocess.run(
        [sys.executable, "-m", "ompy.cli.main", "replay", str(kept)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=sim.folder,
    )
    assert again.returncode == 1
    assert "AssertionError" in again.stderr


WRONG = {
    "too many": (["-n", "9", "--ranks-per-host", "1"], "8 hosts of 1 ranks: 8 at most"),
    "faults": (["--fault", "lossy"], "--fault has no meaning with --cluster"),
    "seeds": (["--seeds", "3"], "--seeds has no meaning with --cluster"),
    "explore": (["--explore"], "--explore has no meaning with --cluster"),
    "pml": (["--mca", "pml", "ob1"], "--mca pml ob1: --cluster has a PML of its own"),
    "file": (["--cluster", "none.toml"], "--cluster none.toml: No such file"),
    "scale": (["--compute-scale", "-1"], "--compute-scale"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_asked(sim: Sim, name: str) -> None:
    options, text = WRONG[name]
    done = sim("", *options)
    assert done.returncode == 2
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_computing_without_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(HEAD)
    done = subprocess.run(
        [*SIM, "--compute-scale", "1", "program.py"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "--compute-scale has no meaning without --cluster" in done.stderr
