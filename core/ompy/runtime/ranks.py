"""The ranks of one host, as their agent knows them."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ompy.runtime.descendants import is_ending

if TYPE_CHECKING:
    from ompy.runtime.channel import Channel
    from ompy.runtime.spawn import Spawned


class Stage(StrEnum):
    """How far a rank has come. It never goes back."""

    STARTED = "started"
    ATTACHED = "attached"  # an MPI process has made itself known
    INITIALIZED = "initialized"  # and committed its addresses
    FINALIZED = "finalized"


class AttachedRank:
    """A rank of this host, as far as its agent talks to it.

    Attributes:
        rank: in the world.
        local_rank: among the ranks of this host.
        stage: how far it has come.
        client_pid: of the MPI process, 0 while there is none.
        client: connection to it, None before and after.
        lifeline: write end of a pipe whose other end the MPI process watches.
        calls: the account of its collective calls (`call_account.py`), once it has finalized.
        leaves: files of shared memory stay behind if the MPI process is killed (`leftovers.py`).
        exit_status: as `os.waitstatus_to_exitcode` has it, None while it runs or is unknown.
    """

    def __init__(self, rank: int, local_rank: int) -> None:
        self.rank = rank
        self.local_rank = local_rank
        self.stage = Stage.STARTED
        self.client_pid = 0
        self.client: Channel | None = None
        self.lifeline = -1
        self.leaves = False
        self.calls: dict[str, Any] = {}
        self.exit_status: int | None = None


class LocalRank(AttachedRank):
    """A rank of this host that its agent has started.

    Attributes:
        process: what was started; it may be a wrapper of the MPI process.
    """

    def __init__(self, rank: int, local_rank: int, process: Spawned) -> None:
        super().__init__(rank, local_rank)
        self.process = process

    def is_ending(self) -> bool:
        """Whether it is about to be reaped: others may notice before its agent does."""
        if self.exit_status is not None:
            return False
        watched = {self.process.pid}
        if self.client_pid and self.stage is not Stage.FINALIZED:
            watched.add(self.client_pid)
        return any(is_ending(process) for process in watched)

    def how_it_went(self) -> str:
        """Why a rank that has exited cannot be reached, to follow its name."""
        status = self.exit_status or 0
        if self.stage is Stage.FINALIZED and not status:
            return "has finalized and ended"
        how = f"was killed by signal {-status}" if status < 0 else f"ended with exit code {status}"
        early = self.stage in {Stage.STARTED, Stage.ATTACHED}
        return f"{how} before it initialized MPI" if early else how
