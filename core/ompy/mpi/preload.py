"""Everything a rank imports at its start, for an agent that ranks are forked from.

Importing this initialises nothing: no rank, no thread, no loop, no random state. Of components
only those that come with ompy are imported, and what they say every rank imports with them.
"""

from __future__ import annotations

import ompy.mpi.cartesian
import ompy.mpi.comm
import ompy.mpi.environment
import ompy.mpi.grequest
import ompy.mpi.intracomm
import ompy.mpi.life
import ompy.mpi.matched
import ompy.mpi.operation
import ompy.mpi.predefined
import ompy.mpi.request
import ompy.mpi.world
import ompy.runtime.client
import ompy.runtime.guard
import ompy.runtime.rank_report
import ompy.runtime.world  # noqa: F401 - all of these are imported for those who come later
