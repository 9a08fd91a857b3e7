"""Jobs on several nodes: of one machine, and of two hosts, which are network namespaces."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="there is no ray; tools/sweep engines has it")

pytestmark = pytest.mark.filterwarnings("default")  # Ray has many of its own
LAB = Path(__file__).resolve().parents[3] / "tools" / "lab"
BINARIES = Path(sys.executable).parent
PATIENCE = 600.0  # s; far beyond what anything here takes, beside many others too
HEAD = "10.99.0.1:6379"
FUNCTIONS = """
import os, sys, time
import ray, ompy_ray

def hosts(start):
    import socket
    from mpi4py import MPI
    comm = MPI.COMM_WORLD
    return socket.gethostname(), start + comm.allreduce(comm.rank)

def stays(path):
    import time
    from mpi4py import MPI
    comm = MPI.COMM_WORLD
    comm.barrier()
    if comm.rank == 0:
        open(path, "w").close()
    time.sleep(600)
"""
ONE_MACHINE = """
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
cluster.add_node(num_cpus=2)
ray.init(address=cluster.address)
assert len(ray.nodes()) == 2
print([total for _, total in ompy_ray.run(4, hosts, 10, strategy="SPREAD")])
ray.shutdown()
cluster.shutdown()
"""
TWO_HOSTS = """
ray.init(address=sys.argv[1])
while sum(node["Alive"] for node in ray.nodes()) < 2:
    time.sleep(0.1)
if sys.argv[2] == "whole":
    print(ompy_ray.run(4, hosts, 10))
    options = ["--mca", "btl", "self,tcp", "--fault-strict", "--fault", "delay:nth=3,delay=1ms"]
    print(ompy_ray.run(2, hosts, 20, options=options, strategy="STRICT_SPREAD"))
else:
    try:
        ompy_ray.run(4, stays, sys.argv[2])
    except ompy_ray.JobFailed as failed:
        print("failed with", failed.code)
"""


@pytest.fixture(name="folder")
def fixture_folder() -> Iterator[Path]:
    """Ray's sockets are below it, so its name is short."""
    folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def environment(folder: Path) -> dict[str, str]:
    mine = {"TMPDIR": str(folder), "RAY_AUTH_MODE": "disabled"}
    # beside others nodes are slow, and may say nothing for seconds
    mine["OMPY_MCA_plm_base_start_timeout_ms"] = "200000"
    mine["OMPY_MCA_plm_base_heartbeat_misses"] = "100"
    return {**os.environ, **mine, "RAY_raylet_start_wait_time_s": "200"}


def test_two_nodes_of_one_machine(folder: Path) -> None:
    program = folder / "driver.py"
    program.write_text(FUNCTIONS + ONE_MACHINE)
    done = subprocess.run(
        [sys.executable, str(program)], env=environment(folder),
        capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "[16, 16, 16, 16]" in done.stdout


class Cluster:
    """A laboratory with a Ray node on each of two hosts."""

    def __init__(self, folder: Path) -> None:
        self.name = f"ray{os.getpid()}"
        self.folder = folder
        self.driver = folder / "driver.py"
        self.driver.write_text(FUNCTIONS + TWO_HOSTS)
        self._started: list[subprocess.Popen[bytes]] = []
        self.do("up", "--hosts", "2", "--rails", "1")

    def words(self, *words: str) -> list[str]:
        return [sys.executable, str(LAB), "--name", self.name, *words]

    def do(self, *words: str) -> None:
        subprocess.run(self.words(*words), check=True, capture_output=True, timeout=PATIENCE)

    def begin(self) -> None:
        port = HEAD.rpartition(":")[2]
        head = ("--head", f"--port={port}", "--include-dashboard=false")
        for host, words in (("h1", head), ("h2", (f"--address={HEAD}",))):
            place = (f"--node-ip-address=10.99.0.{host[1:]}", f"--temp-dir={self.folder}/{host}")
            start = (str(BINARIES / "ray"), "start", *words, *place, "--num-cpus=2", "--block")
            with (self.folder / f"{host}.log").open("wb") as log:
                self._started.append(
                    subprocess.Popen(
                        self.words("exec", host, "--", *start), env=environment(self.folder),
                        stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    )
                )  # fmt: skip
            self._await(host)

    def _await(self, host: str) -> None:
        until = time.monotonic() + PATIENCE
        log = self.folder / f"{host}.log"
        while "Ray runtime started" not in log.read_text():
            assert self._started[-1].poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)

    def drive(self, word: str) -> subprocess.Popen[str]:
        words = (sys.executable, str(self.driver), HEAD, word)
        return subprocess.Popen(
            self.words("exec", "h1", "--", *words), env=environment(self.folder),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def left(self, host: str) -> str:
        """Ranks and agents that run on a host."""
        found = subprocess.run(
            self.words("processes", host), capture_output=True, text=True, check=True
        ).stdout
        return "\n".join(line for line in found.splitlines() if "ompy_ray.call" in line)

    def end(self) -> None:
        self.do("down")
        for process in self._started:
            process.wait(PATIENCE)


@pytest.fixture(name="cluster")
def fixture_cluster(folder: Path) -> Iterator[Cluster]:
    if not LAB.exists():
        pytest.skip("tools/lab is not here")
    why_not = subprocess.run(
        [sys.executable, str(LAB), "why-not"], capture_output=True, text=True, check=False
    )
    if why_not.returncode:
        pytest.skip(why_not.stdout)
    cluster = Cluster(folder)
    try:
        cluster.begin()
        yield cluster
    finally:
        cluster.end()


def test_two_hosts(cluster: Cluster, folder: Path) -> None:
    driver = cluster.drive("whole")
    out, err = driver.communicate(timeout=PATIENCE)
    assert driver.returncode == 0, err
    whole, spread = (line for line in out.splitlines() if line.startswith("["))
    assert sorted(eval(whole)) == [("h1", 16), ("h1", 16), ("h2", 16), ("h2", 16)]
    assert sorted(eval(spread)) == [("h1", 21), ("h2", 21)]
    # a node that is cut off ends the job, and leaves nothing
    path = folder / "all are here"
    driver = cluster.drive(str(path))
    until = time.monotonic() + PATIENCE
    while not path.exists():
        assert driver.poll() is None, driver.communicate()
        assert time.monotonic() < until
        time.sleep(0.1)
    cluster.do("crash", "h2")
    out, err = driver.communicate(timeout=PATIENCE)
    assert "failed with 1" in out, err
    while left := cluster.left("h1") + cluster.left("h2"):
        assert time.monotonic() < until, left
        time.sleep(0.1)
