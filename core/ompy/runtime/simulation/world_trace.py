"""The trace of a simulated world: the facts of its job, before the first event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy import outputs

if TYPE_CHECKING:
    from ompy.runtime.simulation.simulated_world import Scenario


def begin_trace(scenario: Scenario) -> Scenario:
    """Write them; nothing in them differs from run to run.

    Returns:
        The scenario; one without a trace, if there is no room for it.
    """
    from ompy.trace.trace_files import prepare_directory, write_job

    job = scenario.job
    facts = {
        "world": "virtual",
        "seed": scenario.seed,
        "hosts": list(job.hosts),
        "program": list(job.apps[0].argv),
        "ranks": [{"rank": p.rank, "node": p.node} for p in job.placements],
        "rails": [rail.name for rail in scenario.rails],
        "faults": [rule["text"] for rule in job.faults],
    }
    directory = scenario.trace_directory
    try:
        prepare_directory(directory)
        write_job(directory, facts)
    except OSError as problem:  # a trace only observes
        why = f"{problem.strerror}; nothing is traced"
        outputs.warn(f"--trace {directory}: {why}", ("ompy sim",))
        return scenario._replace(trace_directory="")
    return scenario
