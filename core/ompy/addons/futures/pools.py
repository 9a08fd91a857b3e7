"""What runs the tasks of an executor: a thread of this process at first, which knows workers."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from typing import TYPE_CHECKING, Any

from ompy import MPI
from ompy.addons.futures.task_queue import TaskQueue, setup_mpi_threads
from ompy.addons.futures.worker import initialize_worker, set_comm_workers

if TYPE_CHECKING:
    from ompy.addons.futures.executor import MPIPoolExecutor

_running: weakref.WeakSet[Pool] = weakref.WeakSet()


class Pool:
    """A thread that has the tasks of one executor done.

    Args:
        executor: whose tasks these are. It may go while tasks are left; they are done all the same.

    Attributes:
        size: how many workers there are, once `event` is set.
        event: set when the workers are ready, or never will be.
        queue: tasks that wait.
        thread: the thread.
    """

    def __init__(self, executor: MPIPoolExecutor) -> None:
        setup_mpi_threads()
        self.size = 0
        self.event = threading.Event()
        self.queue = queue = TaskQueue()
        self._executor = weakref.ref(executor, lambda _: queue.put_item(None))
        self.options = dict(executor._options)
        self.thread = threading.Thread(target=self._run_and_end, name="mpi4py.futures")
        self.thread.start()
        _running.add(self)

    def run(self) -> None:
        """Have tasks done, until there is None for one."""
        raise NotImplementedError

    def _run_and_end(self) -> None:
        try:
            self.run()
        except BaseException as problem:
            self.give_up(f"the pool failed: {type(problem).__name__}: {problem}")
            raise

    def set_ready(self, size: int) -> None:
        """The workers are there."""
        self.size = size
        self.event.set()

    def wait_ready(self) -> None:
        """Wait until the workers are ready, or never will be."""
        self.event.wait()

    def push(self, future: Future[Any], task: tuple[Any, ...]) -> None:
        """Have a task done."""
        self.queue.put_item((future, task))

    def finish(self) -> None:
        """No more tasks will come."""
        self.queue.put_item(None)

    def join(self) -> None:
        """Wait until all is done."""
        self.thread.join()

    def cancel(self) -> None:
        """Cancel what no worker has yet."""
        self._empty_queue(_cancelled)

    def give_up(self, message: str) -> None:
        """Let all futures, and all calls that come, raise BrokenExecutor."""
        executor = self._executor()
        if executor is not None:
            executor._broken = message
        self.event.set()  # who waits for the workers has the executor's lock

        def fail(future: Future[Any]) -> None:
            if future.set_running_or_notify_cancel():
                future.set_exception(BrokenExecutor(message))

        if executor is None:
            self._empty_queue(fail)
        else:
            with executor._lock:  # so that no task comes behind this
                self._empty_queue(fail)

    def _empty_queue(self, treat: Callable[[Future[Any]], None]) -> None:
        ended = False
        while self.queue:
            try:
                item = self.queue.pop()
            except IndexError:  # the pool's thread was quicker
                break
            if item is None:
                ended = True
            else:
                treat(item[0])
        if ended:
            self.queue.put_item(None)


def _cancelled(future: Future[Any]) -> None:
    future.cancel()
    future.set_running_or_notify_cancel()


class ThreadPool(Pool):
    """Tasks are done by threads of this process; one, if nothing else is said."""

    def run(self) -> None:
        """Have tasks done in this thread, and in others when there are tasks for them."""
        self._threads: list[threading.Thread] = []
        self.set_ready(self.options.get("max_workers") or 1)
        self._serve()
        for thread in self._threads:
            thread.join()
        while self.queue:
            self.queue.pop()

    def _serve(self) -> None:
        set_comm_workers(MPI.COMM_SELF)
        initializer = self.options.get("initializer")
        if initializer is not None:
            problem = initialize_worker(initializer, self.options.get("initargs", ()))
            if problem:
                self.give_up(f"initializer failed: {problem}")
                self.queue.put_item(None)
                return
        while True:
            item = self._next_item()
            if item is None:
                self.queue.put_item(None)  # for the next thread
                return
            if self.queue and len(self._threads) < self.size - 1:
                thread = threading.Thread(target=self._serve, name="mpi4py.futures")
                self._threads.append(thread)
                thread.start()
            run_task(*item)
            del item

    def _next_item(self) -> Any:
        while True:
            try:
                return self.queue.pop()
            except IndexError:
                self.queue.sleep(None)


def run_task(future: Future[Any], task: tuple[Any, ...]) -> None:
    """Do a task here."""
    if not future.set_running_or_notify_cancel():
        return
    function, arguments, named = task
    try:
        future.set_result(function(*arguments, **named))
    except BaseException as problem:
        future.set_exception(problem)


def join_pools() -> None:
    """Wait until what was submitted is done, before the interpreter ends."""
    for pool in list(_running):
        pool.finish()
    for pool in list(_running):
        pool.join()


threading._register_atexit(join_pools)  # type: ignore[attr-defined]  # as concurrent.futures does
