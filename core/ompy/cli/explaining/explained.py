"""Asks a rank's live PML, or conduit, to explain a message; `ompy explain` runs it as a job.

Started as `python -m ompy.cli.explaining.explained QUESTION`; rank 0 gives the answer.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from ompy.cli.own_jobs import tell_command as give
from ompy.data.errors import MPIError
from ompy.frameworks.explanation import Explanation, OperationAsked
from ompy.gasnet.errors import GasnetError
from ompy.mca.registry import Registry


def main() -> None:
    """Explain on rank 0; the others are there to be reached."""
    question = json.loads(sys.argv[1])
    if "operation" in question:
        explain_operation(OperationAsked(**question["operation"]))
        return
    import ompy.MPI  # noqa: F401 - initialises
    from ompy.mpi.processes.life import COMM_WORLD, current

    process = current().process
    if COMM_WORLD.rank == 0:
        inner = process.communicators[0]
        try:
            found = process.pml.explain(
                inner,
                question["peer"],
                question["size"],
                question["mode"],
                question["contiguous"],
            )
        except MPIError as problem:
            give({"problem": str(problem)})
        else:
            give(explain_values(found, process.registry))
    COMM_WORLD.Barrier()


def explain_operation(asked: OperationAsked) -> None:
    """Have the conduit explain on rank 0."""
    from ompy.gasnet import here

    gasnet = here.rank
    gasnet.init()
    gasnet.attach()
    if gasnet.mynode() == 0:
        registry = here.process().registry
        try:
            found = gasnet.explain(asked)
        except GasnetError as problem:
            cause = problem.__cause__
            give({"problem": cause.detail if isinstance(cause, MPIError) else str(problem)})
        else:
            give(explain_values(found, registry))
    gasnet.barrier()


def explain_values(found: Explanation, registry: Registry) -> dict[str, Any]:
    """The explanation, and each parameter in it with its value and origin."""
    names: dict[str, None] = {}
    for part in (found.branches, found.limits, found.changes):
        names |= dict.fromkeys(name for entry in part for name in entry.parameters)
    return {
        "protocol": found.protocol,
        "branches": [part._asdict() for part in found.branches],
        "receiver": found.receiver,
        "rails": found.rails,
        "limits": [part._asdict() for part in found.limits],
        "changes": [part._asdict() for part in found.changes],
        "sizes": found.sizes,
        "parameters": {name: setting(registry, name) for name in names},
    }


def setting(registry: Registry, name: str) -> dict[str, str]:
    """A parameter's value and where it comes from."""
    variable = registry.variable(name)
    return {"value": variable.text, "origin": variable.origin.place}


if __name__ == "__main__":
    main()
