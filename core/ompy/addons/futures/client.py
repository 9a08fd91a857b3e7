"""The client's side of workers at other ranks.

A task goes to a worker that is idle, with the number of its executor for a tag; its result comes
back with the same one. A receive from that worker is under way for as long as it has a task, so
that the worker's end, whatever the cause, is that receive's error.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, Future
from typing import Any, Final, NamedTuple

from ompy import MPI
from ompy.addons.futures.main_module import main_place
from ompy.addons.futures.pools import Pool
from ompy.addons.futures.task_queue import (
    BACKOFF,
    Backoff,
    TaskQueue,
    environment_value,
    serialized,
)
from ompy.addons.futures.worker import initialize_worker, prepare_worker

_FIRST: Final = 0  # the tag of the first executor


class WorkerLost(Exception):
    """A worker has ended; the text says which."""


class Workers:
    """The workers of one or more executors of this process.

    Args:
        comm: the workers, as the other group.

    Attributes:
        idle: those that have no task, by rank.
        lost: what became of the first that ended; None as long as all are there.
    """

    def __init__(self, comm: MPI.Intercomm) -> None:
        self.comm = comm
        self.size = comm.Get_remote_size()
        self.idle: deque[int] = deque(range(self.size))
        self.lost: str | None = None

    def prepare_all(self, options: Mapping[str, Any], *, main: bool) -> None:
        """Make the workers what the program expects.

        Args:
            options: of the executor.
            main: they do not run this process's main module of themselves.

        Raises:
            WorkerLost: one has ended.
            Exception: what one raised.
        """
        told = {name: options[name] for name in ("path", "wdir") if options.get(name)}
        told |= {name: dict(options[name]) for name in ("env", "globals") if options.get(name)}
        if "wdir" in told:
            told["wdir"] = os.fspath(told["wdir"])
        if main and options.get("main", True):
            told["place"] = main_place()
        elif main:
            main_place()
            told["place"] = (None, None)
        if told:
            self.call_all(_FIRST, prepare_worker, told)

    def initialize(self, options: Mapping[str, Any], tag: int) -> str:
        """Call the user's initializer at every worker; what the first raised, or nothing.

        Raises:
            WorkerLost: one has ended.
        """
        initializer = options.get("initializer")
        if initializer is None:
            return ""
        found = self.call_all(tag, initialize_worker, initializer, options.get("initargs", ()))
        return next(filter(None, found), "")

    def call_all(self, tag: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Call a function at every worker, each when it has done what it was sent before."""
        calls = [self.begin_call(rank, tag, (function, arguments, {})) for rank in range(self.size)]
        backoff = Backoff()
        results = []
        for call in calls:
            while (found := self.ended(call)) is None:
                time.sleep(backoff.next_pause())
            result, problem = found
            if problem is not None:
                raise problem
            results.append(result)
        return results

    def begin_call(self, rank: int, tag: int, task: tuple[Any, ...]) -> _Call:
        """Send a task.

        Raises:
            WorkerLost: the worker has ended.
            Exception: the task cannot be pickled.
        """
        comm = self.comm
        try:
            sent = serialized(comm.isend)(task, rank, tag)
            return _Call(rank, sent, serialized(comm.irecv)(None, rank, tag))
        except MPI.Exception as problem:
            raise self._found_lost(rank, problem) from problem

    def ended(self, call: _Call) -> tuple[Any, Any] | None:
        """The result and the exception of a task, or None as long as it has none.

        Raises:
            WorkerLost: the worker has ended.
        """
        try:
            done, found = serialized(call.receive.test)()
        except MPI.Exception as problem:
            raise self._found_lost(call.rank, problem) from problem
        except BaseException as problem:  # it cannot be unpickled
            done, found = True, (None, problem)
        if not done:
            return None
        serialized(call.sent.wait)()
        return found  # type: ignore[no-any-return]

    def _found_lost(self, rank: int, problem: MPI.Exception) -> WorkerLost:
        if self.lost is None:
            self.lost = f"worker {rank} of {self.size} has ended: {problem}"
        return WorkerLost(self.lost)

    def stop_all(self) -> None:
        """Tell the workers that this is all; those that are gone need not hear it."""
        for rank in range(self.size):
            with contextlib.suppress(MPI.Exception):
                serialized(self.comm.send)(None, rank, _FIRST)
        serialized(self.comm.Free)()


class _Call(NamedTuple):
    """A task at a worker."""

    rank: int
    sent: MPI.Request
    receive: MPI.Request


class Dispatcher:
    """Hands the tasks of one executor to workers.

    Args:
        workers: which, perhaps those of others too.
        queue: the tasks.
        tag: the number of the executor.
        longest_pause: seconds between two looks for results.
    """

    def __init__(self, workers: Workers, queue: TaskQueue, tag: int, longest_pause: float) -> None:
        self._workers = workers
        self._queue = queue
        self._tag = tag
        self._backoff = Backoff(longest_pause)
        self._calls: dict[int, tuple[_Call, Future[Any]]] = {}  # by the worker's rank
        self._ending = False

    def run_tasks(self) -> None:
        """Go on until the queue says that it has ended, and all results are there.

        Raises:
            WorkerLost: a worker has ended. All futures that had one have BrokenExecutor.
        """
        try:
            while self._calls or not self._ending:
                if self._workers.lost is not None:
                    raise WorkerLost(self._workers.lost)
                begun = self._begin_next()
                if self._end_calls() or begun:
                    self._backoff.reset()
                else:
                    self._pause()
        except BaseException as problem:
            for _, future in self._calls.values():
                future.set_exception(BrokenExecutor(str(problem)))
            raise

    def _pause(self) -> None:
        if self._queue or self._ending:  # all workers are busy
            time.sleep(self._backoff.next_pause())
        else:
            self._queue.sleep(self._backoff.next_pause() if self._calls else None)

    def _begin_next(self) -> bool:
        """Send the next task, if there is one and a worker for it."""
        if self._ending or not self._queue:
            return False
        try:
            rank = self._workers.idle.popleft()
        except IndexError:
            return False
        try:
            item = self._queue.pop()
        except IndexError:  # another thread has cancelled it
            self._workers.idle.append(rank)
            return False
        self._ending = item is None
        if item is None or not self._sent(rank, *item):
            self._workers.idle.append(rank)
        return True

    def _sent(self, rank: int, future: Future[Any], task: tuple[Any, ...]) -> bool:
        """Whether a worker has a task now."""
        if not future.set_running_or_notify_cancel():
            return False
        try:
            self._calls[rank] = self._workers.begin_call(rank, self._tag, task), future
        except WorkerLost as problem:
            future.set_exception(BrokenExecutor(str(problem)))
            raise
        except BaseException as problem:
            future.set_exception(problem)
            return False
        return True

    def _end_calls(self) -> bool:
        """Take results that have come; whether there was one."""
        some = False
        for rank, (call, future) in list(self._calls.items()):
            found = self._workers.ended(call)
            if found is None:
                continue
            some = True
            del self._calls[rank]
            self._workers.idle.append(rank)
            result, problem = found
            if problem is None:
                future.set_result(result)
            else:
                future.set_exception(problem)
        return some


class WorkersPool(Pool):
    """Tasks are done by workers that this executor has for itself, until it ends.

    Args:
        executor: whose tasks.
        workers: which have begun to serve; None if `_find_workers` does.
    """

    def __init__(self, executor: Any, workers: Workers | None = None) -> None:
        self._workers = workers
        super().__init__(executor)

    def _find_workers(self) -> Workers:
        """Called once, by the pool's thread, where none are given; they run another program.

        Raises:
            MPI.Exception: there are none to be had.
        """
        raise NotImplementedError

    def run(self) -> None:
        """Have tasks done, then let the workers go."""
        try:
            workers = self._workers or self._find_workers()
        except MPI.Exception as problem:
            self.give_up(f"there are no workers: {problem}")
            return
        try:
            workers.prepare_all(self.options, main=self._workers is None)
            run_dispatcher(self, workers, _FIRST)
        except WorkerLost as problem:
            self.give_up(str(problem))
        finally:
            workers.stop_all()


def run_dispatcher(pool: Pool, workers: Workers, tag: int) -> None:
    """Initialise workers for a pool and have its tasks done.

    Raises:
        WorkerLost: a worker has ended.
    """
    problem = workers.initialize(pool.options, tag)
    if problem:
        pool.give_up(f"initializer failed: {problem}")
        return
    pause = pool.options.get("backoff")
    if pause is None:
        pause = environment_value("BACKOFF", BACKOFF)
    pool.set_ready(workers.size)
    Dispatcher(workers, pool.queue, tag, float(pause)).run_tasks()
