"""Which osc component serves a window: asked for each, when it is made."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ompy.frameworks.osc import OscComponent, OscModule, Window
from ompy.runtime.ranks.isolation import isolated

if TYPE_CHECKING:
    from ompy.runtime.ranks.process import RankProcess


def select_osc(process: RankProcess, window: Window) -> OscModule | None:
    """The module of the highest priority that can serve a window, or None.

    All members call it together. They have the same components in the same order, as the
    launcher has looked for them and has resolved their parameters.

    Raises:
        ComponentError: the user asked for a component by name, and it cannot be used.
        MPIError: members could not agree.
    """
    registry = process.registry
    for component in registry.open("osc"):
        assert isinstance(component, OscComponent)
        made = isolated(registry, component, "query", partial(component.query, window))
        if made is not None:
            registry.select(component)
            return made
    return None
