"""Everything a rank imports at its start, for an agent that ranks are forked from.

Importing this initialises nothing: no rank, no thread, no loop, no random state. Of components
only those that come with ompy are imported, and what they say every rank imports with them;
whether one is used is decided in each rank as ever.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from ompy.frameworks.catalog import CATALOG
from ompy.mca.plugins.discovery import scan_entry_points
from ompy.mca.plugins.loading import import_ahead

NEEDED: Final = (  # imported for those who come later
    "ompy.frameworks.btl_base.active_messages",
    "ompy.mpi.collectives.operation",
    "ompy.mpi.communicators.cartesian",
    "ompy.mpi.communicators.comm",
    "ompy.mpi.communicators.graphs",
    "ompy.mpi.communicators.intracomm",
    "ompy.mpi.communicators.predefined_comms",
    "ompy.mpi.datatypes.predefined",
    "ompy.mpi.point_to_point.grequest",
    "ompy.mpi.point_to_point.matched",
    "ompy.mpi.point_to_point.request",
    "ompy.mpi.processes.environment",
    "ompy.mpi.processes.life",
    "ompy.net.carrier",
    "ompy.net.sockets",
    "ompy.runtime.diagnosis.rank_report",
    "ompy.runtime.diagnosis.uncaught",
    "ompy.runtime.ranks.client",
    "ompy.runtime.ranks.rank_start",
)
IN_RANKS: Final = frozenset({"pml", "bml", "btl", "coll"})  # frameworks every rank opens


def _import_components() -> None:
    for record in scan_entry_points(frozenset(framework.name for framework in CATALOG)):
        if record.in_tree and record.framework in IN_RANKS:
            module, _, name = record.target.partition(":")
            component = getattr(import_ahead(module), name, None)
            for needed in component.rank_modules if component is not None else ():
                import_ahead(needed)


def _import_needed() -> None:
    for name in NEEDED:
        import_module(name)


_import_needed()
_import_components()
