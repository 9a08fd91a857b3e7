"""The agent of the launcher's own host, started before anything is known of the job.

While the launcher reads its command line and resolves parameters, the agent imports what ranks
need, on another core if there is one. It is a fork of a process that has imported next to
nothing, which is what makes a fork of it in turn a good start for a rank (`runtime/ranks/warm.py`).
So this is lean at import too: each of the two imports what it needs after they have parted.
"""

from __future__ import annotations

import _socket
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from ompy.runtime.ranks.warm import WarmStart

if TYPE_CHECKING:
    from ompy.frameworks.plm import AgentLink
    from ompy.runtime.ranks.forked import ForkedRank

_waiting: list[tuple[int, int]] = []  # descriptor of the connection, process


def start_early() -> ForkedRank | None:
    """Fork it, for `take` to hand out. Does nothing where its forks could not be ranks.

    The caller has one thread, and has not begun anything that a rank should not have.

    Returns:
        None in the launcher. In a fork of the agent that is a rank: what to run.
    """
    start = WarmStart()
    if start.problem:
        return None
    ours, theirs = (end.detach() for end in _socket.socketpair())
    pid = os.fork()
    if pid == 0:
        os.close(ours)  # or the end of the launcher would go unseen
        import socket

        from ompy.runtime.agents.agent import serve

        return serve(socket.socket(fileno=theirs), start)
    os.close(theirs)
    _waiting.append((ours, pid))
    return None


def take(host: str) -> AgentLink | None:
    """The early agent, once, as the agent of `host`; None if there is none."""
    if not _waiting:
        return None
    import socket

    from ompy.frameworks.plm import AgentLink

    channel, pid = _waiting.pop()
    return AgentLink(host, socket.socket(fileno=channel), pid)


def discard() -> None:
    """End it if nobody has taken it and it has not ended yet."""
    while _waiting:
        channel, pid = _waiting.pop()
        os.close(channel)
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
