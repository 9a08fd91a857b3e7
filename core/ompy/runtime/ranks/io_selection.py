"""Which io component serves a file: asked for each, when it is opened."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ompy.frameworks.io import IoComponent, IoModule, Opening
from ompy.runtime.ranks.isolation import isolated

if TYPE_CHECKING:
    from ompy.runtime.ranks.process import RankProcess


def select_io(process: RankProcess, opening: Opening) -> IoModule | None:
    """The module of the highest priority that can serve a file, or None.

    All members call it together. They have the same components in the same order, as the
    launcher has looked for them and has resolved their parameters.

    Raises:
        ComponentError: the user asked for a component by name, and it cannot be used.
        MPIError: members could not agree.
    """
    registry = process.registry
    for component in registry.open("io"):
        assert isinstance(component, IoComponent)
        made = isolated(registry, component, "query", partial(component.query, opening))
        if made is not None:
            registry.select(component)
            return made
    return None
