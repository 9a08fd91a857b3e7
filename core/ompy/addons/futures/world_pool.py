"""All ranks of the job as one pool: `python -m mpi4py.futures`.

Rank 0 runs the program and is the client of all others; each executor there has all workers. A
task that makes an executor itself gets threads of its own process.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

from ompy import MPI
from ompy.addons.futures.client import WorkerLost, Workers, run_dispatcher
from ompy.addons.futures.pools import Pool, ThreadPool
from ompy.addons.futures.worker import serve_tasks


class WorldPool:
    """The workers of rank 0, shared by its executors.

    Args:
        workers: the other ranks; None if there are none, or if this is one of them.
        lost: why there are none, if one of them has died before they could serve.

    Attributes:
        active: the one of this process, if the program runs under `mpi4py.futures`.
    """

    active: ClassVar[WorldPool | None] = None

    def __init__(self, workers: Workers | None, lost: str = "") -> None:
        self._workers = workers
        self._lost = lost
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._prepared = False
        self._pools: weakref.WeakSet[Pool] = weakref.WeakSet()

    def pool_for(self, executor: Any) -> Pool:
        """What does the tasks of one more executor."""
        if self._workers is None and not self._lost:
            executor._options["max_workers"] = 1
            pool: Pool = ThreadPool(executor)
        else:
            pool = _SharedPool(executor, self)
        self._pools.add(pool)
        return pool

    def run_pool(self, pool: Pool) -> None:
        """Have the tasks of one executor done."""
        if self._workers is None:
            pool.give_up(f"there are no workers: {self._lost}")
            return
        try:
            with self._lock:
                if not self._prepared:
                    self._workers.prepare_all(pool.options, main=True)
                    self._prepared = True
                number = next(self._numbers)
            run_dispatcher(pool, self._workers, number)
        except WorkerLost as problem:
            pool.give_up(str(problem))

    def close(self) -> None:
        """Wait until all is done, and let the workers go."""
        for pool in list(self._pools):
            pool.finish()
        for pool in list(self._pools):
            pool.join()
        if self._workers is not None:
            self._workers.stop_all()


class _SharedPool(Pool):
    """Tasks are done by workers that other executors have too."""

    def __init__(self, executor: Any, world: WorldPool) -> None:
        self._world = world
        super().__init__(executor)

    def run(self) -> None:
        self._world.run_pool(self)


def split_members(comm: MPI.Intracomm, root: int) -> tuple[MPI.Intercomm, MPI.Intracomm]:
    """One member on one side, all others on the other; all members call it.

    Args:
        comm: more than one member.
        root: the one.

    Returns:
        The other side, and the own one.
    """
    own = MPI.Intracomm(comm.Split(int(comm.Get_rank() != root), comm.Get_rank()))
    other_leader = (0 if root else 1) if comm.Get_rank() == root else root
    return own.Create_intercomm(0, comm, other_leader), own


def run_program(program: Callable[[], None]) -> None:
    """Run a program at rank 0 with all other ranks for workers; all ranks call it.

    Args:
        program: called at rank 0 alone.
    """
    world = MPI.COMM_WORLD
    if world.Get_size() == 1:
        _run_as_client(program, None)
        return
    is_client = world.Get_rank() == 0
    if not is_client:
        MPI._set_expendable(True)  # the client hears of it, and breaks its pools
    try:
        other, own = split_members(world, 0)
    except MPI.Exception as problem:
        if problem.Get_error_class() != MPI.ERR_PROC_FAILED:
            raise
        if is_client:
            _run_as_client(program, None, str(problem))
        return
    if is_client:
        _run_as_client(program, Workers(other))
    else:
        WorldPool.active = WorldPool(None)
        try:
            serve_tasks(other, own)
            WorldPool.active.close()
        finally:
            WorldPool.active = None
        other.Free()
    own.Free()


def _run_as_client(program: Callable[[], None], workers: Workers | None, lost: str = "") -> None:
    WorldPool.active = WorldPool(workers, lost)
    try:
        program()
    finally:
        WorldPool.active.close()
        WorldPool.active = None
