"""Showing which rails carry what between the hosts of a job, when the user asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy import outputs
from ompy.runtime.rails.comm_methods import all_rows, table

if TYPE_CHECKING:
    from ompy.mpi.communicators.intracomm import Intracomm
    from ompy.runtime.ranks.process import RankProcess


def display(world: Intracomm, process: RankProcess) -> None:
    """Show the table on standard error of rank 0. All ranks call it."""
    rows = all_rows(process) if process.context.me.local_rank == 0 else []
    gathered = world.gather(rows)
    if gathered is not None:
        outputs.tell(table([row for part in gathered for row in part]), "connections")
