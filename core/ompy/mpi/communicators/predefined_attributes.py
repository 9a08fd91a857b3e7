"""Attributes every communicator has from the start."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

from ompy.data.constants import ANY_SOURCE
from ompy.data.constants import TAG_UB as TAG_MAX
from ompy.mpi import constants
from ompy.mpi.errors import last_used_code
from ompy.mpi.state import World

UNKNOWN: Final = object()


def attribute_value(world: World, keyval: int) -> Any:
    """The value of a predefined attribute that is no `CONSTANT`; UNKNOWN for other keys."""
    known = _VALUES.get(keyval)
    return UNKNOWN if known is None else known(world)


def _application(world: World) -> int:
    """Number of the program among those of the command line."""
    job = getattr(world.context.wireup, "job", None)
    if job is None:
        return 0
    rank = world.context.rank
    return int(job.placements[rank].app) - int(job.world_of(rank).app)


def _universe(world: World) -> int:
    text = os.environ.get("OMPI_UNIVERSE_SIZE", "")
    return int(text) if text.isdigit() else len(world.context.world)


# what is the same in all worlds
CONSTANT: Final[dict[int, Any]] = {
    constants.TAG_UB: TAG_MAX,
    constants.IO: ANY_SOURCE,  # every process can do input and output
    constants.WTIME_IS_GLOBAL: 0,  # an integer, as mpi4py has it
}
_VALUES: Final[dict[int, Callable[[World], Any]]] = {
    constants.APPNUM: _application,
    constants.UNIVERSE_SIZE: _universe,
    constants.LASTUSEDCODE: lambda _: last_used_code(),
}
