"""Which conduit GASNet runs over: asked for once, when a rank initialises it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ompy.data.errors import ERR_OTHER, MPIError
from ompy.frameworks.conduit import Conduit, ConduitComponent, ThreadMode
from ompy.runtime.ranks.isolation import expect, isolated

if TYPE_CHECKING:
    from ompy.runtime.ranks.process import RankProcess


def select_conduit(process: RankProcess, mode: ThreadMode) -> Conduit:
    """The available conduit with the highest priority, bootstrapped.

    All ranks call it together. They have the same components in the same order, as the launcher
    has looked for them and has resolved their parameters.

    Args:
        process: the rank; its engine polls the conduit from now on.
        mode: threads that may call.

    Raises:
        MPIError: there is none, or another rank has ended.
        UsageError: the selection is not valid.
        ComponentError: the user asked by name for one that cannot be used.
    """
    registry = process.registry
    components = list(registry.open("conduit"))
    for index, component in enumerate(components):
        assert isinstance(component, ConduitComponent)
        made = isolated(registry, component, "init", partial(_conduit, component, process, mode))
        if made is not None:
            registry.select_over(component, components[index + 1 :])
            process.conduit = made
            return made
    reasons = [
        f"{record.name}: {record.reason}"
        for record in registry.records_of("conduit")
        if record.reason
    ]
    why = "; ".join(dict.fromkeys(reasons)) or "none is selected, see ompy-info --why conduit"
    raise MPIError(ERR_OTHER, f"no conduit can be used: {why}")


def _conduit(component: ConduitComponent, process: RankProcess, mode: ThreadMode) -> Conduit:
    return expect(component.init(process.context, mode), Conduit, component)
