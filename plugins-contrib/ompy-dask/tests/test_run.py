"""Jobs on the workers of a local cluster."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ompy_dask

distributed = pytest.importorskip(
    "distributed", reason="there is no distributed; tools/nightly.py runs these tests with it"
)
cloudpickle = pytest.importorskip("cloudpickle")
# ranks do not have this module: its functions have to travel whole
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module", name="client")
def fixture_client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


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


def test_a_function(client: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert ompy_dask.run(client, 2, added, 10) == [(0, 11), (1, 11)]
    said = sorted(capsys.readouterr().out.splitlines())
    assert said == ["rank 0 is here", "rank 1 is here"]


def test_a_program_that_fails_and_a_fault(client: Any, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\nfrom mpi4py import MPI\nc = MPI.COMM_WORLD\n"
        "for _ in range(50): c.allreduce(bytes(5000), op=lambda a, b: a)\n"
        "sys.exit(int(sys.argv[1]))\n"
    )
    fault = ["--mca", "btl", "self,tcp", "--fault-strict", "--fault", "delay:nth=20,delay=1ms"]
    assert ompy_dask.run(client, 2, str(program), 0, options=fault) == []
    with pytest.raises(ompy_dask.JobFailed, match="ended with exit code 3") as failed:
        ompy_dask.run(client, 2, str(program), 3)
    assert failed.value.code == 3


def test_too_many_ranks(client: Any) -> None:
    with pytest.raises(ompy_dask.JobFailed, match="room for 2") as failed:
        ompy_dask.run(client, 3, added, 0)
    assert failed.value.code == 2


def test_workers_that_are_not_there(client: Any) -> None:
    with pytest.raises(ValueError, match="the cluster has no worker tcp://nowhere:1"):
        ompy_dask.run(client, 1, added, 0, workers=["tcp://nowhere:1"])


def test_a_killed_worker_leaves_nothing(client: Any, tmp_path: Path) -> None:
    """The last test: the nanny starts another worker, and the job must not begin again there."""
    (worker,) = client.run(os.getpid).values()
    path = tmp_path / "rank"
    files = [Path(f"{path}.{rank}") for rank in range(2)]

    def kill() -> None:
        until = time.monotonic() + 200
        while time.monotonic() < until:
            if all(file.exists() and file.read_text() for file in files):
                os.kill(worker, signal.SIGKILL)
                return
            time.sleep(0.1)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(ompy_dask.JobFailed):
        ompy_dask.run(client, 2, sleeping, str(path))
    killer.join()
    assert all(file.exists() for file in files)
    until = time.monotonic() + 20
    pids = [int(file.read_text()) for file in files]
    while any(_lives(pid) for pid in pids):
        assert time.monotonic() < until, "a rank is left"
        time.sleep(0.1)
    again = [file.read_text() for file in files]
    assert [int(text) for text in again] == pids


def _lives(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False
