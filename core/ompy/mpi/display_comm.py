"""Which rails carry what between the hosts of a job, in one table (`--display-comm`).

After Open MPI's `hook_comm_method_display` and PRRTE's `--display-comm` (reference openmpi.md 2.4).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ompy.data.errors import MPIError

if TYPE_CHECKING:
    from ompy.mpi.intracomm import Intracomm
    from ompy.runtime.process import RankProcess

Row = tuple[str, str, list[str]]  # from host, to host, rails


def display(world: Intracomm, process: RankProcess) -> None:
    """Show the table on standard error of rank 0. All ranks call it."""
    rows = rows_of(process) if process.context.me.local_rank == 0 else []
    gathered = world.gather(rows)
    if gathered is not None:
        sys.stderr.write(table([row for part in gathered for row in part]))
        sys.stderr.flush()


def rows_of(process: RankProcess) -> list[Row]:
    """The rails of this rank to one rank of each host, its own included."""
    context = process.context
    others: dict[int, int] = {}
    for proc in context.procs:
        if proc is not context.me:
            others.setdefault(proc.node, proc.rank)
    rows = []
    for _, rank in sorted(others.items()):
        proc = context.procs[rank]
        try:
            rails = process.rails(proc)
        except MPIError as problem:
            rails = [problem.detail or str(problem)]
        rows.append((context.me.hostname, proc.hostname, rails))
    return rows


def table(rows: list[Row]) -> str:
    """The rows under a headline, a line for each rail."""
    lines = [["from", "to", "rails"]]
    for own, other, rails in rows:
        for number, rail in enumerate(rails):
            lines.append([own, other, rail] if number == 0 else ["", "", rail])
    widths = [max(len(line[column]) for line in lines) for column in (0, 1)]
    text = [f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {rail}".rstrip() for a, b, rail in lines]
    return "\n".join([" Rails between hosts:", *text, ""])
