"""Everything a rank imports at its start, for an agent that ranks are forked from.

Importing this initialises nothing: no rank, no thread, no loop, no random state. Of components
only those that come with ompy are imported, and what they say every rank imports with them;
whether one is used is decided in each rank as ever.
"""

from __future__ import annotations

from typing import Final

import ompy.mpi.cartesian
import ompy.mpi.comm
import ompy.mpi.environment
import ompy.mpi.graphs
import ompy.mpi.grequest
import ompy.mpi.intracomm
import ompy.mpi.life
import ompy.mpi.matched
import ompy.mpi.operation
import ompy.mpi.predefined
import ompy.mpi.predefined_comms
import ompy.mpi.request
import ompy.net.carrier
import ompy.net.sockets
import ompy.runtime.client
import ompy.runtime.rank_report
import ompy.runtime.rank_start
import ompy.runtime.uncaught  # noqa: F401 - all of these are imported for those who come later
from ompy.frameworks.catalog import CATALOG
from ompy.mca.discovery import scan_entry_points
from ompy.mca.loading import import_ahead

IN_RANKS: Final = frozenset({"pml", "bml", "btl", "coll"})  # frameworks every rank opens


def _import_components() -> None:
    for record in scan_entry_points(frozenset(framework.name for framework in CATALOG)):
        if record.in_tree and record.framework in IN_RANKS:
            module, _, name = record.target.partition(":")
            component = getattr(import_ahead(module), name, None)
            for needed in component.rank_modules if component is not None else ():
                import_ahead(needed)


_import_components()
