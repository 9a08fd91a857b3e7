"""Which component of coll would serve which operation: asked in virtual worlds.

A component decides for each communicator, by its members and the BTLs in use. So small worlds are
brought up with the job's settings, and their COMM_WORLD's table is shown: of one process, of two
on one host, of two on two hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ompy.cli.info.model import Choice
from ompy.engine.virtual_engine import RankFailed
from ompy.frameworks.catalog import CATALOG
from ompy.frameworks.collectives.coll_selection import (
    LACKS,
    LOWER,
    NOT_AVAILABLE,
    Row,
    SelectedColl,
    Verdict,
)
from ompy.mca.errors import ComponentError, UsageError
from ompy.mca.plugins.component_records import ComponentRecord
from ompy.mca.registry import Registry
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob

# communicators by the host of each member
WHERE: Final = {
    "one process": [0],
    "processes of a host": [0, 0],
    "processes of several hosts": [0, 1],
}


def choices(registry: Registry) -> list[Choice]:
    """The choices of a job with this registry's components and settings."""
    try:
        snapshot = registry.snapshot()
    except (ComponentError, UsageError) as problem:
        return [Choice(where, (), str(problem)) for where in WHERE]
    made = []
    for where, hosts in WHERE.items():
        try:
            world = VirtualJob(len(hosts), Registry.from_snapshot(CATALOG, snapshot), hosts=hosts)
            made.append(Choice(where, world.run(_table)[0]))
        except (ComponentError, UsageError) as problem:
            made.append(Choice(where, (), str(problem)))
        except RankFailed as problem:
            made.append(Choice(where, (), str(problem.__cause__ or problem)))
    return made


def _table(process: RankProcess) -> list[Row]:
    world = process.communicator(0, process.context.procs, "MPI_COMM_WORLD")
    assert isinstance(world.coll, SelectedColl)
    return world.coll.table()


def reasons(row: Row) -> str:
    """Why a component has an operation and the others have not, for people."""
    by = {verdict: [v for v in row.verdicts if v.verdict == verdict] for verdict in (LOWER, LACKS)}
    text = "no component has it"
    if row.blocking:
        text = f"priority {_priority(row, row.blocking)}"
    if by[LOWER]:
        text += f", before {_named(by[LOWER])}"
    if row.nonblocking != row.blocking:
        name = row.nonblocking
        other = f"{name} ({_priority(row, name)})" if name else "none"
        text += f"; nonblocking: {other}"
    return f"{text}; lacking: {_named(by[LACKS])}" if by[LACKS] else text


def _priority(row: Row, component: str) -> str:
    return next(f"{v.priority:g}" for v in row.verdicts if v.component == component)


def _named(verdicts: Sequence[Verdict]) -> str:
    return ", ".join(f"{verdict.component} ({verdict.priority:g})" for verdict in verdicts)


def not_available(rows: Sequence[Row]) -> list[Verdict]:
    """The components that have nothing for a communicator; they say so once for all operations."""
    return [verdict for verdict in rows[0].verdicts if verdict.verdict == NOT_AVAILABLE]


def not_asked(records: Sequence[ComponentRecord], rows: Sequence[Row]) -> list[ComponentRecord]:
    """The components that no communicator asks: excluded ones, and those that failed."""
    asked = {verdict.component for row in rows for verdict in row.verdicts}
    return [record for record in records if record.name not in asked]
