"""Which conduit serves a rank's GASNet."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ompy.data.errors import ERR_OTHER, MPIError
from ompy.frameworks.conduit import Conduit, ConduitComponent, ThreadMode
from ompy.runtime.isolation import expect, isolated

if TYPE_CHECKING:
    from ompy.frameworks.context import RankContext
    from ompy.mca.registry import Registry


def select_conduit(registry: Registry, context: RankContext, mode: ThreadMode) -> Conduit:
    """The conduit of the highest priority that can be used here, bootstrapped.

    All ranks call it together. They have the same components in the same order, as the launcher
    has looked for them and has resolved their parameters.

    Raises:
        MPIError: there is none.
        ComponentError: the user asked by name for one that cannot be used.
    """
    for component in registry.open("conduit"):
        assert isinstance(component, ConduitComponent)
        made = isolated(registry, component, "init", partial(_conduit, component, context, mode))
        if made is not None:
            registry.select(component)
            return made
    raise MPIError(ERR_OTHER, "no conduit can be used: see ompy-info --plugins for the reasons")


def _conduit(component: ConduitComponent, context: RankContext, mode: ThreadMode) -> Conduit:
    return expect(component.init(context, mode), Conduit, component)
