"""The members of a communicator as a client and its workers: `MPICommExecutor`."""

from __future__ import annotations

from typing import Any

from ompy import MPI
from ompy.addons.futures.client import Workers, WorkersPool
from ompy.addons.futures.executor import MPIPoolExecutor
from ompy.addons.futures.pools import Pool, ThreadPool
from ompy.addons.futures.worker import serve_tasks
from ompy.addons.futures.world_pool import WorldPool, split_members


class MPICommExecutor:
    """One member gets an executor; the others do its tasks until it ends, then go on.

        with MPICommExecutor(MPI.COMM_WORLD, root=0) as executor:
            if executor is not None:
                print(list(executor.map(abs, range(-5, 0))))

    All members enter it together. Where there is one member, a thread of it does the tasks.

    Args:
        comm: the members; COMM_WORLD if there is none.
        root: who gets the executor.
        kwargs: as for `MPIPoolExecutor`.

    Raises:
        ValueError: `comm` has two groups, or no rank `root`.
    """

    def __init__(self, comm: MPI.Intracomm | None = None, root: int = 0, **kwargs: Any) -> None:
        self._comm = MPI.COMM_WORLD if comm is None else comm
        if self._comm.Is_inter():
            raise ValueError("MPICommExecutor is for a communicator of one group")
        if not 0 <= root < self._comm.Get_size():
            raise ValueError(f"there is no rank {root} among {self._comm.Get_size()}")
        self._root = root
        self._options = kwargs
        self._executor: MPIPoolExecutor | None = None

    def __enter__(self) -> MPIPoolExecutor | None:
        if self._executor is not None:
            raise RuntimeError("MPICommExecutor: it has been entered")
        if WorldPool.active is not None:
            self._executor = MPIPoolExecutor(**self._options)
        elif self._comm.Get_size() == 1:
            self._executor = _OneMember(**self._options)
        else:
            self._executor = self._split()
        return self._executor

    def __exit__(self, *exc: object) -> bool:
        """At the client, wait until all is done; at a worker, whatever the body raised is over."""
        executor, self._executor = self._executor, None
        if executor is None:
            return True
        executor.shutdown(wait=True)
        return False

    def _split(self) -> MPIPoolExecutor | None:
        other, own = split_members(self._comm, self._root)
        try:
            if self._comm.Get_rank() == self._root:
                return _Client(Workers(other), **self._options)
            serve_tasks(other, own)
        finally:
            own.Free()
        other.Free()
        return None


class _OneMember(MPIPoolExecutor):
    """An executor of a communicator with one member."""

    def _make_pool(self) -> Pool:
        self._options["max_workers"] = 1
        return ThreadPool(self)


class _Client(MPIPoolExecutor):
    """An executor whose workers serve already: they are told when it ends, used or not."""

    def __init__(self, workers: Workers, **options: Any) -> None:
        self._workers = workers
        super().__init__(**options)
        self._pool = WorkersPool(self, workers)
