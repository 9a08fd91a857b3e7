"""The agent of the launcher's own host, started before anything is known of the job.

While the launcher reads its command line and resolves parameters, the agent imports what ranks
need, on another core if there is one. It is a fork of a process that has imported next to
nothing, which is what makes a fork of it in turn a good start for a rank (`runtime/warm.py`).
"""

from __future__ import annotations

import os
import signal
import socket
from typing import TYPE_CHECKING

from ompy.frameworks.plm import AgentLink
from ompy.runtime.warm import WarmStart

if TYPE_CHECKING:
    from ompy.runtime.forked import ForkedRank

_waiting: list[tuple[socket.socket, int]] = []


def start_early() -> ForkedRank | None:
    """Fork it, for `take` to hand out. Does nothing where its forks could not be ranks.

    The caller has one thread, and has not begun anything that a rank should not have.

    Returns:
        None in the launcher. In a fork of the agent that is a rank: what to run.
    """
    start = WarmStart()
    if start.problem:
        return None
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()  # or the end of the launcher would go unseen
        from ompy.runtime.agent import serve

        return serve(theirs, start)
    theirs.close()
    _waiting.append((ours, pid))
    return None


def take(host: str) -> AgentLink | None:
    """The early agent, once, as the agent of `host`; None if there is none."""
    if not _waiting:
        return None
    channel, pid = _waiting.pop()
    return AgentLink(host, channel, pid)


def discard() -> None:
    """End it if nobody has taken it."""
    while _waiting:
        channel, pid = _waiting.pop()
        channel.close()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
