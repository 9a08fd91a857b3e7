"""Jobs on a local Ray cluster, which is the real one with one node."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import ompy_ray

ray = pytest.importorskip("ray", reason="there is no ray; tools/sweep engines has it")
cloudpickle = pytest.importorskip("cloudpickle")
# ranks do not have this module: its functions have to travel whole
cloudpickle.register_pickle_by_value(sys.modules[__name__])

pytestmark = pytest.mark.filterwarnings("default")  # Ray has many of its own
PATIENCE = 200.0  # s; far beyond what anything here takes
# a driver that waits for a job of which nothing comes
DRIVER = """
import sys, time
import ray, ompy_ray
def sleeping(path):
    import os, time
    from mpi4py import MPI
    with open(f"{path}.{MPI.COMM_WORLD.rank}", "w") as file:
        file.write(str(os.getpid()))
    MPI.COMM_WORLD.barrier()
    time.sleep(600)
ray.init(address=sys.argv[2])
ompy_ray.run(2, sleeping, sys.argv[1])
"""


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """With a folder for temporary files of its own, as others may test this beside us."""
    folder = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # short: Ray's sockets are below it
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        patch.setenv("RAY_AUTH_MODE", "disabled")  # or it writes a token into the home directory
        patch.setenv("RAY_raylet_start_wait_time_s", "200")  # beside others its nodes are slow
        ray.init("local", num_cpus=4, include_dashboard=False)
        yield
        ray.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def leftovers() -> Iterator[None]:
    """No file with a key stays, and no CPU is kept."""
    yield
    folder = Path(tempfile.gettempdir())
    assert list(folder.glob("ompy-ray-*")) == []
    until = time.monotonic() + PATIENCE
    while ray.available_resources().get("CPU") != 4.0:
        assert time.monotonic() < until
        time.sleep(0.1)


def added(start: int) -> tuple[int, int]:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    print(f"rank {comm.rank} is here")
    return comm.rank, start + comm.allreduce(comm.rank)


def sleeping(path: str) -> None:
    import os
    import time

    from mpi4py import MPI

    with open(f"{path}.{MPI.COMM_WORLD.rank}", "w") as file:
        file.write(str(os.getpid()))
    MPI.COMM_WORLD.barrier()
    time.sleep(600)


def test_a_function(capsys: pytest.CaptureFixture[str]) -> None:
    assert ompy_ray.run(2, added, 10) == [(0, 11), (1, 11)]
    said = sorted(line for line in capsys.readouterr().out.splitlines() if "rank" in line)
    assert said == ["rank 0 is here", "rank 1 is here"]


def test_a_program_that_fails_and_a_fault(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\nfrom mpi4py import MPI\nc = MPI.COMM_WORLD\n"
        "for _ in range(50): c.allreduce(bytes(5000), op=lambda a, b: a)\n"
        "sys.exit(int(sys.argv[1]))\n"
    )
    fault = ["--mca", "btl", "self,tcp", "--fault-strict", "--fault", "delay:nth=20,delay=1ms"]
    assert ompy_ray.run(2, str(program), 0, options=fault) == []
    with pytest.raises(ompy_ray.JobFailed, match="ended with exit code 3") as failed:
        ompy_ray.run(2, str(program), 3)
    assert failed.value.code == 3


def test_there_is_no_room() -> None:
    with pytest.raises(TimeoutError, match="no room for 9 ranks with 1 CPUs each within 2 s"):
        ompy_ray.run(9, added, 0, timeout=2)


def ranks_of(path: str) -> list[int]:
    """When all of them run."""
    files = [Path(f"{path}.{rank}") for rank in range(2)]
    until = time.monotonic() + PATIENCE
    while not all(file.exists() and file.read_text() for file in files):
        assert time.monotonic() < until
        time.sleep(0.1)
    return [int(file.read_text()) for file in files]


def assert_gone(pids: list[int]) -> None:
    until = time.monotonic() + PATIENCE
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < until, "a rank is left"
        time.sleep(0.1)


def actor_of(rank: int) -> int:
    """The process of the actor above a rank."""
    pid = rank
    while b"ray::AgentHost" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        assert pid > 1, "no actor is above it"
    return pid


def test_a_killed_actor_ends_the_job_and_leaves_nothing(tmp_path: Path) -> None:
    path, found = str(tmp_path / "rank"), []

    def kill() -> None:
        found.extend(ranks_of(path))
        os.kill(actor_of(found[0]), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(ompy_ray.JobFailed) as failed:
        ompy_ray.run(2, sleeping, path)
    killer.join()
    assert failed.value.code == 1
    assert len(found) == 2
    assert_gone(found)
    for folder in Path(tempfile.gettempdir()).glob("ompy-ray-*"):  # the killed actor's own
        assert [file.name for file in folder.iterdir()] == ["key"]
        shutil.rmtree(folder)


def test_a_killed_driver_leaves_no_rank(tmp_path: Path) -> None:
    """Ray ends its actors and gives its placement group back; the rest is ours."""
    (tmp_path / "driver.py").write_text(DRIVER)
    path = str(tmp_path / "rank")
    words = [sys.executable, str(tmp_path / "driver.py"), path]
    address = ray.get_runtime_context().gcs_address
    with (tmp_path / "said").open("w") as said:
        driver = subprocess.Popen([*words, address], stdout=said, stderr=said)
    try:
        ranks = ranks_of(path)
    finally:
        driver.kill()
        driver.wait()
    assert_gone(ranks)
    for folder in Path(tempfile.gettempdir()).glob("ompy-ray-*"):  # the killed ones' own
        assert {file.name for file in folder.iterdir()} <= {"key", "hosts"}
        shutil.rmtree(folder)
