"""What a worker does for a job: one command as its child, connected to who asked for it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final

from distributed import get_worker
from distributed.comm.core import CommClosedError, connect

ENDED: Final = 0  # beside the numbers of standard output and error
INPUT_ENDED: Final = b""
_BLOCK: Final = 1 << 16  # arbitrary: bytes read at a time
_GRACE_S: Final = 10.0  # arbitrary: an agent ends its ranks within seconds when its input ends


def serve(address: str, token: str, words: list[str]) -> int:
    """Run a command until it ends, or until whoever asked for it is gone. A task of Dask.

    Args:
        address: whoever asked for it listens there.
        token: by which it knows this task.
        words: of the command.

    Returns:
        The exit code, or -1 if nobody waits for it any more.
    """
    security = get_worker().security.get_connection_args("worker")
    return asyncio.run(_serve(address, token, words, security))


async def _serve(address: str, token: str, words: list[str], security: dict[str, Any]) -> int:
    try:
        comm = await connect(address, **security)
        await comm.write(token)
        await comm.read()
    except (CommClosedError, OSError):
        return -1
    pipe = asyncio.subprocess.PIPE
    # when this worker dies its end of the pipes does, and so the agent ends
    child = await asyncio.create_subprocess_exec(
        *words, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
    )
    telling = asyncio.ensure_future(_tell_both(comm, child))
    feeding = asyncio.ensure_future(_feed(comm, child.stdin))
    try:
        await asyncio.wait({telling, feeding}, return_when=asyncio.FIRST_COMPLETED)
        with contextlib.suppress(TimeoutError, CommClosedError):
            await asyncio.wait_for(telling, None if not feeding.done() else _GRACE_S)
        code = await asyncio.wait_for(child.wait(), _GRACE_S)
    except TimeoutError:
        child.kill()
        code = await child.wait()
    feeding.cancel()
    with contextlib.suppress(CommClosedError):
        await comm.write((ENDED, max(code, 0) or int(code != 0)))
    await comm.close()
    return code


async def _tell_both(comm: Any, child: asyncio.subprocess.Process) -> None:
    await asyncio.gather(_tell(comm, 1, child.stdout), _tell(comm, 2, child.stderr))


async def _tell(comm: Any, number: int, source: Any) -> None:
    while block := await source.read(_BLOCK):
        await comm.write((number, block))


async def _feed(comm: Any, sink: Any) -> None:
    """Pass input on until it ends, or until whoever gives it is gone."""
    with contextlib.suppress(CommClosedError, ConnectionError):
        while block := await comm.read():
            sink.write(block)
            await sink.drain()
    with contextlib.suppress(ConnectionError):
        sink.close()
