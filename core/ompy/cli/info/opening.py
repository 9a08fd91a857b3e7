"""Opens components as a job would, to see which of them it would use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ompy.data.errors import MPIError
from ompy.mca.component import Component
from ompy.mca.errors import ComponentError, UsageError
from ompy.mca.groups import HOOKS
from ompy.mca.registry import Registry
from ompy.runtime.ranks.pml_selection import sort_out

# of these a job uses one component, the opened one with the highest priority
SINGLE: Final = frozenset({"bml", "plm"})


def open_as_a_job(registry: Registry, frameworks: Iterable[str]) -> list[str]:
    """Import, open, select and close again; the records tell how far each component came.

    What only a job finds out (that a PML's `init` declines, that a BTL reaches nobody) is not found
    out here. Frameworks that are not the registry's are passed over.

    Returns:
        Why a job could not start, for each framework where that is so.
    """
    problems = []
    for framework in frameworks:
        known = registry.frameworks.get(framework)
        if known is None:
            continue
        if known.api is not None and framework != HOOKS.name:
            try:
                _open(registry, framework)
            except ComponentError as problem:
                problems.append(str(problem))
            except MPIError as problem:
                problems.append(problem.detail)
            except UsageError:
                pass  # whoever checks the settings has heard of it
        registry.load(framework)
    registry.close()
    return problems


def _open(registry: Registry, framework: str) -> None:
    if framework == "pml":
        selectable, wrappers = sort_out(registry)
        _select_first(registry, selectable)
        for wrapper in wrappers:
            registry.select(wrapper)
    elif framework in SINGLE:
        _select_first(registry, registry.open(framework))
    else:
        registry.open(framework)


def _select_first(registry: Registry, opened: Sequence[Component]) -> None:
    if opened:
        registry.select_over(opened[0], opened[1:])
