"""A worker: calls what the client sends, one after another, and sends what came of it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ompy import MPI
from ompy.addons.futures.failures import packed
from ompy.addons.futures.main_module import import_main

CLIENT: Final = 0  # its rank among the one of the other group
Task = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
_here = threading.local()


def get_comm_workers() -> MPI.Intracomm:
    """The communicator of all workers, in a task.

    Raises:
        RuntimeError: this is no worker.
    """
    comm: MPI.Intracomm | None = getattr(_here, "workers", None)
    if comm is None:
        raise RuntimeError("get_comm_workers: this is no worker; call it in a task")
    return comm


def set_comm_workers(comm: MPI.Intracomm | None) -> None:
    """Say who the workers are, in this thread; None when it is a worker no more."""
    _here.workers = comm


def serve_tasks(client: MPI.Intercomm, workers: MPI.Intracomm) -> None:
    """Do what the client says until it says that this is all.

    Args:
        client: the client, as the other group.
        workers: all workers.

    Raises:
        MPI.Exception: of a call, but for the client's end, which is the end of the work.
    """
    set_comm_workers(workers)
    MPI._set_expendable(True)  # the client hears of it, and breaks the pool
    try:
        status = MPI.Status()
        while True:
            task = _received(client, workers, status)
            if task is None:
                return
            _send_result(client, workers, status.Get_tag(), _called(task, workers))
    except MPI.Exception as problem:
        if problem.Get_error_class() != MPI.ERR_PROC_FAILED:
            raise
    finally:
        if not MPI.Is_finalized():
            MPI._set_expendable(False)
        set_comm_workers(None)


def _received(client: MPI.Intercomm, workers: MPI.Intracomm, status: MPI.Status) -> Any:
    """The next task; None at the end; the exception, packed, of one that cannot be unpickled."""
    try:
        return client.recv(None, CLIENT, MPI.ANY_TAG, status)
    except MPI.Exception:
        raise
    except BaseException as problem:
        return packed(problem, workers)


def _called(task: Task | BaseException, workers: MPI.Intracomm) -> tuple[Any, Any]:
    """The result of a task, and its exception."""
    if isinstance(task, BaseException):
        return None, task
    function, arguments, named = task
    try:
        return function(*arguments, **named), None
    except BaseException as problem:
        return None, packed(problem, workers)


def _send_result(
    client: MPI.Intercomm, workers: MPI.Intracomm, tag: int, result: tuple[Any, Any]
) -> None:
    try:
        client.send(result, CLIENT, tag)
    except MPI.Exception:
        raise
    except BaseException as problem:  # it cannot be pickled
        client.send((None, packed(problem, workers)), CLIENT, tag)


# --- tasks of the pool's own


def prepare_worker(options: Mapping[str, Any]) -> None:
    """Make this process what the client's program expects.

    Args:
        options: `path`, `wdir` and `env` as `MPIPoolExecutor` has them; `place` of the main module
            and `globals` for it, if there is one.
    """
    sys.path.extend(options.get("path") or ())
    if options.get("wdir"):
        os.chdir(options["wdir"])
    os.environ.update(options.get("env") or {})
    if options.get("place"):
        name, path = options["place"]
        import_main(name, path, options.get("globals") or {})


def initialize_worker(initializer: Callable[..., Any], arguments: Iterable[Any]) -> str:
    """Call the user's initializer; what it raised, in words, or nothing."""
    try:
        initializer(*arguments)
    except BaseException as problem:
        return f"{type(problem).__name__}: {problem}"
    return ""
