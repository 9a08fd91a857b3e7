"""How a job is gone about."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ompy.runtime.launching.kills import Kill


class JobRules(NamedTuple):
    """How a job is gone about.

    Attributes:
        grace_ms: from SIGTERM to SIGKILL when ranks are ended.
        timeout_s: end it after so many seconds; 0 for never.
        timeout_source: what set that, for the message.
        quiet: say nothing about how it ended.
        heartbeat_s: how often agents of other hosts and we let each other hear from us.
        misses: how often nothing is heard before one is lost.
        start_s: how long they may take until the first time.
        display_rails: say at the end what became of rails.
        fault_strict: a fault of the script that never struck is an error.
        still_s: how long a rank sleeps before it says so.
        survives: ranks may die (mpi_ft_enable), and hosts with theirs: the job goes on.
        kills: who is killed on purpose, in the order of time.
        stacks: at a timeout, tell where each thread of each rank is.
    """

    grace_ms: int
    timeout_s: float = 0.0
    timeout_source: str = ""
    quiet: bool = False
    heartbeat_s: float = 0.0
    misses: int = 0
    start_s: float = 0.0
    display_rails: bool = False
    fault_strict: bool = False
    still_s: float = 0.25
    survives: bool = False
    kills: tuple[Kill, ...] = ()
    stacks: bool = False
