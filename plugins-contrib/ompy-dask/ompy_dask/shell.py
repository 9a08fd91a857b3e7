"""A remote shell by Dask: `python -m ompy_dask.shell SCHEDULER HOST COMMAND...`.

Runs the command as a child of a worker on that host. Its standard input, output and error are this
process's. It ends with this process, and this process ends with it, or with the worker.

The worker connects to this process by Dask's own connections, with the TLS of Dask's configuration.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import sys
from collections.abc import Sequence
from typing import Any, Final

from distributed import Client
from distributed.comm.core import CommClosedError, listen

from ompy_dask.serving import ENDED, INPUT_ENDED, serve
from ompy_dask.workers import first_worker_of

_LOST: Final = 255  # OpenSSH ssh(1), EXIT STATUS: "if an error occurred"; *arbitrary* otherwise
_BLOCK: Final = 1 << 16  # arbitrary: bytes read at a time


class Shell:
    """One command on one host."""

    def __init__(self, scheduler: str, host: str, words: Sequence[str]) -> None:
        self._code = _LOST
        self._host = host
        self._over = asyncio.Event()
        self._scheduler = scheduler
        self._token = secrets.token_hex(16)
        self._used = False
        self._words = list(words)

    async def run(self) -> int:
        """Run it.

        Returns:
            Its exit code, or 255 when the worker was lost.
        """
        async with Client(self._scheduler, asynchronous=True, set_as_default=False) as client:
            known = await client.scheduler.identity(n_workers=-1)
            worker = first_worker_of(known, self._host)
            security = client.security.get_listen_args("client")
            own = client.scheduler.address.partition("://")[0]
            place = f"{own}://{_own_host(client)}:0"
            async with listen(place, self._serve_worker, **security) as listener:
                future = client.submit(
                    serve,
                    listener.contact_address,
                    self._token,
                    self._words,
                    key=f"ompy-{self._token}",
                    workers=[worker],
                    allow_other_workers=False,
                    pure=False,
                    retries=0,
                )
                ended = asyncio.ensure_future(self._over.wait())
                failed = asyncio.ensure_future(_failure(future))
                await asyncio.wait({ended, failed}, return_when=asyncio.FIRST_COMPLETED)
                if failed.done() and not ended.done() and failed.result():
                    print(f"ompy_dask: {worker}: {failed.result()}", file=sys.stderr)
                ended.cancel()
                failed.cancel()
                with contextlib.suppress(Exception):
                    await future.cancel()
        return self._code

    async def _serve_worker(self, comm: Any) -> None:
        """The worker has called back: pass on what comes, both ways."""
        if self._used or await comm.read() != self._token:
            await comm.close()  # Dask tries a task again whose worker was lost; once is enough
            return
        self._used = True
        await comm.write("welcome")
        feeding = asyncio.ensure_future(_feed(comm))
        try:
            while True:
                kind, content = await comm.read()
                if kind == ENDED:
                    self._code = content
                    break
                _write_all(kind, content)
        except (CommClosedError, OSError):
            pass  # the worker is gone, or who reads our output
        finally:
            feeding.cancel()
            self._over.set()


async def _feed(comm: Any) -> None:
    """Our standard input is the command's."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(0, "rb"))
    with contextlib.suppress(CommClosedError):
        while block := await reader.read(_BLOCK):
            await comm.write(block)
        await comm.write(INPUT_ENDED)


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


async def _failure(future: Any) -> str:
    """Why the task failed; empty when it did not."""
    problem = await future.exception()
    return "" if problem is None else f"{type(problem).__name__}: {problem}"


def _own_host(client: Any) -> str:
    """The address by which the scheduler knows this host, and workers, too."""
    address: str = client.scheduler_comm.comm.local_address
    return address.partition("://")[2].rpartition(":")[0]


def main() -> None:
    """Run it, and exit as the command does."""
    scheduler, host, *words = sys.argv[1:]
    try:
        code = asyncio.run(Shell(scheduler, host, words).run())
    except (OSError, ValueError) as problem:
        sys.exit(f"ompy_dask: {problem}")
    sys.stdout.flush()
    os._exit(code)  # nothing is left to be told to anybody


if __name__ == "__main__":
    main()
