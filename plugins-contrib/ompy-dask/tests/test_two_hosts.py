"""Jobs on the workers of two hosts, which are network namespaces."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip(
    "distributed", reason="there is no distributed; tools/nightly.py runs these tests with it"
)

LAB = Path(__file__).resolve().parents[3] / "tools" / "lab"
PATIENCE = 600.0  # s; far beyond what anything here takes, beside many others too
CLIENT = """
import os, sys
from distributed import Client
import ompy_dask

def hosts(start):
    import socket
    from mpi4py import MPI
    comm = MPI.COMM_WORLD
    return socket.gethostname(), start + comm.allreduce(comm.rank)

def stays(path):
    import os, time
    from mpi4py import MPI
    comm = MPI.COMM_WORLD
    comm.barrier()
    if comm.rank == 0:
        open(path, "w").close()
    time.sleep(600)

if __name__ == "__main__":
    client = Client("tcp://10.99.0.1:8786")
    client.wait_for_workers(2)
    if sys.argv[1] == "whole":
        print(ompy_dask.run(client, 4, hosts, 10))
        options = ["--mca", "btl", "self,tcp", "--fault-strict", "--fault", "delay:nth=3,delay=1ms"]
        print(ompy_dask.run(client, 4, hosts, 20, options=options))
    else:
        try:
            ompy_dask.run(client, 4, stays, sys.argv[2])
        except ompy_dask.JobFailed as failed:
            print("failed with", failed.code)
"""


class Cluster:
    """A laboratory with a scheduler on its first host, and a worker on each."""

    def __init__(self, folder: Path) -> None:
        self.name = f"dask{os.getpid()}"
        self.client = folder / "client.py"
        self.client.write_text(CLIENT)
        self._started: list[subprocess.Popen[bytes]] = []
        self.do("up", "--hosts", "2", "--rails", "1")

    def words(self, *words: str) -> list[str]:
        return [sys.executable, str(LAB), "--name", self.name, *words]

    def do(self, *words: str) -> None:
        subprocess.run(self.words(*words), check=True, capture_output=True, timeout=PATIENCE)

    def on(self, host: str, *words: str) -> list[str]:
        return self.words("exec", host, "--", sys.executable, *words)

    def begin(self) -> None:
        nowhere = subprocess.DEVNULL
        scheduler = (
            "-m",
            "distributed.cli.dask_scheduler",
            "--host",
            "10.99.0.1",
            "--no-dashboard",
        )
        worker = ("-m", "distributed.cli.dask_worker", "tcp://10.99.0.1:8786", "--nthreads", "2")
        commands = [self.on("h1", *scheduler)]
        commands += [
            self.on(f"h{n}", *worker, "--host", f"10.99.0.{n}", "--no-dashboard") for n in (1, 2)
        ]
        self._started += [
            subprocess.Popen(one, stdin=nowhere, stdout=nowhere, stderr=nowhere) for one in commands
        ]

    def left(self, host: str) -> str:
        """Ranks and agents that run on a host."""
        found = subprocess.run(
            self.words("processes", host), capture_output=True, text=True, check=True
        ).stdout
        return "\n".join(line for line in found.splitlines() if "ompy" in line)

    def end(self) -> None:
        self.do("down")
        for process in self._started:
            process.wait(PATIENCE)


@pytest.fixture(scope="module", name="cluster")
def fixture_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if not LAB.exists():
        pytest.skip("tools/lab is not here")
    why_not = subprocess.run(
        [sys.executable, str(LAB), "why-not"], capture_output=True, text=True, check=False
    )
    if why_not.returncode:
        pytest.skip(why_not.stdout)
    cluster = Cluster(tmp_path_factory.mktemp("dask"))
    try:
        cluster.begin()
        yield cluster
    finally:
        cluster.end()


def test_ranks_are_on_both_hosts_and_a_fault_strikes_between_them(cluster: Cluster) -> None:
    done = subprocess.run(
        cluster.on("h1", str(cluster.client), "whole"),
        capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    places = "[('h1', {0}), ('h1', {0}), ('h2', {0}), ('h2', {0})]"
    lines = [line for line in done.stdout.splitlines() if line.startswith("[")]
    assert lines == [places.format(16), places.format(26)]


def test_a_host_that_is_cut_off_ends_the_job_and_leaves_nothing(
    cluster: Cluster, tmp_path: Path
) -> None:
    path = tmp_path / "all are here"
    client = subprocess.Popen(
        cluster.on("h1", str(cluster.client), "stays", str(path)),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until = time.monotonic() + PATIENCE
    while not path.exists():
        assert client.poll() is None, client.communicate()
        assert time.monotonic() < until
        time.sleep(0.1)
    cluster.do("crash", "h2")
    out, err = client.communicate(timeout=PATIENCE)
    assert "failed with 1" in out, err
    while left := cluster.left("h1") + cluster.left("h2"):
        assert time.monotonic() < until, left
        time.sleep(0.1)
