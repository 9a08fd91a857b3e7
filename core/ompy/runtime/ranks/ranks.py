"""The ranks of one host, as their agent knows them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ompy.runtime.ranks.descendants import is_ending

if TYPE_CHECKING:
    import socket

    from ompy.runtime.connections.channel import Channel
    from ompy.runtime.ranks.spawn import Spawned


class AttachedRank:
    """A rank of this host, as far as its agent talks to it. What it has come to is in `machines`.

    Attributes:
        rank: in the world.
        local_rank: among the ranks of this host.
        client_pid: of the MPI process, 0 while there is none.
        client: connection to it, None before and after.
        lifeline: write end of a pipe whose other end the MPI process watches.
        leaves: files of shared memory stay behind if the MPI process is killed (`leftovers.py`).
    """

    def __init__(self, rank: int, local_rank: int) -> None:
        self.rank = rank
        self.local_rank = local_rank
        self.client_pid = 0
        self.client: Channel | None = None
        self.lifeline = -1
        self.leaves = False


class LocalRank(AttachedRank):
    """A rank of this host that its agent has started.

    Attributes:
        process: what was started; it may be a wrapper of the MPI process.
        exited: it has ended.
        adopted: it was not started by the agent, but runs already.
    """

    def __init__(self, rank: int, local_rank: int, process: Spawned) -> None:
        super().__init__(rank, local_rank)
        self.process = process
        self.exited = False
        self.adopted = False

    def send_signal(self, number: int) -> None:
        """To its process group; an adopted process is in another's.

        Raises:
            ProcessLookupError: there is none any more.
        """
        (os.kill if self.adopted else os.killpg)(self.process.pid, number)

    def is_ending(self, *, client: bool) -> bool:
        """Whether it is about to be reaped: others may notice before its agent does.

        Args:
            client: so it is if the MPI process is.
        """
        if self.exited:
            return False
        watched = {self.process.pid}
        if self.client_pid and client:
            watched.add(self.client_pid)
        return any(is_ending(process) for process in watched)


def adopted_rank(pid: int, registration: socket.socket) -> LocalRank:
    """Rank 0 of a job that begins with a process which nobody has launched.

    Args:
        pid: of the process.
        registration: over which it makes itself known.
    """
    from ompy.runtime.ranks.spawn import Spawned

    registration.setblocking(False)
    made = LocalRank(0, 0, Spawned(pid, registration, -1, -1, -1))
    made.adopted = True
    return made
