"""The environment variables of a rank (reference openmpi.md 2.4.1)."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Final

import ompy
from ompy.frameworks.job import Job, Placement
from ompy.runtime.connections.control import ATTACH_MS, PLACE

# options of each Python that runs our own code: it imports nothing from the directory it is in
OWN_CODE: Final = ("-P",)


def rank_environment(
    job: Job, placement: Placement, base: Mapping[str, str], universe: int
) -> dict[str, str]:
    """Everything but the number of the agent's descriptor.

    Args:
        job: what runs.
        placement: of the rank.
        base: the launcher's own environment.
        universe: how many ranks the hosts are meant for.
    """
    app = job.apps[placement.app]
    found = dict(base)
    found.pop(PLACE, None)  # a rank that has started this job has one of its own
    if "VIRTUAL_ENV" not in base:
        _put_first(found, "PATH", os.path.dirname(sys.executable))
    if app.directory:
        found["PWD"] = app.directory
    found.update(app.environment)
    if job.mpi4py:
        _put_first(found, "PYTHONPATH", os.path.join(os.path.dirname(ompy.__file__), "dropin"))
    found.update(identity(job, placement, universe))
    return found


def ranks_variables(job: Job, placement: Placement, start: Mapping[str, Any]) -> dict[str, str]:
    """The variables that an agent gives a rank, from its own and what START has said."""
    found = rank_environment(job, placement, os.environ, start["universe"])
    found[ATTACH_MS] = str(start["attach_timeout_ms"])
    return found


def identity(job: Job, placement: Placement, universe: int) -> dict[str, str]:
    """Who a rank is, under the names Open MPI's users know and under ours."""
    app, world = job.apps[placement.app], job.world_of(placement.rank)
    apps = job.apps_of(world)
    counts = [entry.ranks for entry in apps]
    firsts = [sum(counts[:index]) for index in range(len(counts))]
    members = job.placements[world.first : world.first + world.size]
    here = [other.rank for other in members if other.node == placement.node]
    local_rank = str(here.index(placement.rank))
    rank, size = str(placement.rank - world.first), str(world.size)
    return {
        "OMPI_COMM_WORLD_RANK": rank,
        "OMPI_COMM_WORLD_SIZE": size,
        "OMPI_COMM_WORLD_LOCAL_RANK": local_rank,
        "OMPI_COMM_WORLD_LOCAL_SIZE": str(len(here)),
        "OMPI_COMM_WORLD_NODE_RANK": str(placement.local_rank),
        "OMPI_UNIVERSE_SIZE": str(universe),
        "OMPI_NUM_APP_CTX": str(len(apps)),
        "OMPI_FIRST_RANKS": " ".join(map(str, firsts)),
        "OMPI_APP_CTX_NUM_PROCS": " ".join(map(str, counts)),
        "OMPI_COMMAND": app.argv[0],
        "OMPI_ARGV": " ".join(app.argv[1:]),
        "OMPY_RANK": rank,
        "OMPY_SIZE": size,
    }


def own_import_path(base: Mapping[str, str]) -> str:
    """PYTHONPATH of a Python that runs our own code: where ompy is, then the user's.

    Parts that depend on the working directory, an empty one among them, are for the user's
    programs only.
    """
    parts = base.get("PYTHONPATH", "").split(os.pathsep)
    own = os.path.dirname(os.path.dirname(os.path.abspath(ompy.__file__)))
    return os.pathsep.join([own, *(part for part in parts if os.path.isabs(part))])


def _put_first(environment: dict[str, str], name: str, entry: str) -> None:
    """Make `entry` the first of a search path."""
    rest = [part for part in environment.get(name, "").split(os.pathsep) if part not in {"", entry}]
    environment[name] = os.pathsep.join([entry, *rest])


def search_path(environment: tuple[tuple[str, str], ...]) -> str:
    """The PATH programs of an app are looked for in: as `rank_environment` will set it."""
    found = {"PATH": os.environ.get("PATH", os.defpath)}
    if "VIRTUAL_ENV" not in os.environ:
        _put_first(found, "PATH", os.path.dirname(sys.executable))
    found.update((name, value) for name, value in environment if name == "PATH")
    return found["PATH"]
