"""Performance variables of this rank: what its components have counted.

    from ompy import pvars
    before = pvars.read()
    ...
    sent = pvars.read()["pml_ob1_messages_sent"] - before["pml_ob1_messages_sent"]

Reading them changes nothing and sends nothing. `ompy-info --pvars` lists all there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.mpi.processes.life import current
from ompy.runtime.ranks.performance import declared, measured

if TYPE_CHECKING:
    from ompy.mca.performance import PerformanceVariable


def describe() -> dict[str, PerformanceVariable]:
    """What the components in use have, by full name: each with help, unit and kind.

    Raises:
        MPIException: MPI is not initialised, or over.
    """
    return declared(current().process)


def read() -> dict[str, int]:
    """The value of each, by full name, since the rank began.

    Raises:
        MPIException: MPI is not initialised, or over.
    """
    return measured(current().process)
