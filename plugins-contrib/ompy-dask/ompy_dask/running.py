"""`run`: a function or a program on ranks, for a client of a Dask cluster."""

from __future__ import annotations

import base64
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import IO, Any, Final

import cloudpickle
from distributed import Client

from ompy_dask.workers import hosts_of

_TAIL: Final = 4000  # characters of standard error in an exception; arbitrary: a report has room
_GRACE_S: Final = 15.0  # arbitrary: ompy-run ends a job within seconds of SIGTERM


class JobFailed(RuntimeError):
    """A job that did not end well.

    Attributes:
        code: the exit code of ompy-run.
        said: the end of what the job wrote to standard error.
    """

    def __init__(self, code: int, said: str) -> None:
        """Make one of an exit code and what was said."""
        super().__init__(f"the job ended with code {code}\n{said}")
        self.code = code
        self.said = said


def run(
    client: Client,
    n: int,
    target: Callable[..., Any] | str,
    *args: Any,
    options: Sequence[str] = (),
    workers: list[str] | None = None,
) -> list[Any]:
    """Run a function or a program on ranks beside the workers of a cluster, and wait for its end.

    Each host of the cluster has one agent, a child of a worker; the ranks are the agent's. What
    they write comes out here. When this call is interrupted, or a worker with an agent dies, the
    job ends, and nothing of it is left.

    Args:
        client: of the cluster. It is not asynchronous.
        n: how many ranks; at most as many as the workers have threads, without `--oversubscribe`.
        target: a function, which is sent to all ranks; or the path of a Python program, which all
            hosts have.
        args: of the function, or of the program as text.
        options: of ompy-run, such as `["--mca", "pml", "bfo"]`.
        workers: addresses of the workers whose hosts may be used; none for all.

    Returns:
        What the function returned, by rank; nothing for a program.

    Raises:
        JobFailed: it ended with another code than 0.
        ValueError: the cluster has no workers for it.
    """
    hosts = hosts_of(client.scheduler_info(n_workers=-1), workers)
    mark = secrets.token_hex(16)
    sent = b""
    if callable(target):
        command = [sys.executable, "-m", "ompy_dask.call", mark]
        sent = cloudpickle.dumps((target, args))
    else:
        command = [sys.executable, os.path.abspath(target), *map(str, args)]
    assert client.scheduler is not None, "it has just answered"
    named = ",".join(f"{host}:{slots}" for host, slots in hosts.items())
    start = [sys.executable, "-m", "ompy.cli.run", "-n", str(n), "--host", named]
    start += ["--mca", "plm_dask_scheduler", str(client.scheduler.address)]
    start += [*options, *command]
    with subprocess.Popen(  # noqa: S603 - what the user asked for
        start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as job:
        found, said = _conversation(job, sent, mark)
    if job.returncode:
        raise JobFailed(job.returncode, said[-_TAIL:])
    if not callable(target):
        return []
    results: list[Any] = cloudpickle.loads(base64.b64decode(found))
    return results


def _conversation(job: subprocess.Popen[bytes], sent: bytes, mark: str) -> tuple[bytes, str]:
    """Give a job its input, and show what it writes until it ends.

    Returns:
        The results' line, and all of its standard error.
    """
    assert job.stdin is not None
    assert job.stdout is not None
    assert job.stderr is not None
    results: list[bytes] = []
    said: list[str] = []
    threads = [
        threading.Thread(target=_give, args=(job.stdin, sent), daemon=True),
        threading.Thread(target=_show_errors, args=(job.stderr, said), daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        for line in job.stdout:
            before, found, after = line.partition(mark.encode())
            if found:
                results.append(after.strip())
            text = before if found else line
            sys.stdout.write(text.decode(errors="replace"))
        job.wait()
    except BaseException:  # an interrupt above all: the job goes first
        job.terminate()
        try:
            job.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            job.kill()
        raise
    for thread in threads:
        thread.join()
    return b"".join(results), "".join(said)


def _give(stdin: IO[bytes], sent: bytes) -> None:
    try:
        stdin.write(sent)
        stdin.close()
    except BrokenPipeError:
        pass  # the job is over, and says why


def _show_errors(stderr: IO[bytes], said: list[str]) -> None:
    for line in stderr:
        text = line.decode(errors="replace")
        said.append(text)
        sys.stderr.write(text)
