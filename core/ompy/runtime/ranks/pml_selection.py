"""Which PML a rank uses, and which wrappers stand around it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ompy.data.errors import ERR_OTHER, MPIError
from ompy.frameworks.pml import Pml, PmlComponent, PmlWrapperComponent
from ompy.runtime.ranks.isolation import expect, isolated

if TYPE_CHECKING:
    from ompy.frameworks.bml import Bml
    from ompy.frameworks.context import RankContext
    from ompy.mca.registry import Registry


def select_pml(registry: Registry, context: RankContext, bml: Bml) -> Pml:
    """The available PML with the highest priority, inside the wrappers there are.

    `context.pml_name` becomes the name of the PML alone: wrappers change nothing on the wire.

    Raises:
        MPIError: there is none.
        UsageError: the selection is not valid.
        ComponentError: the user asked by name for one that cannot be used.
    """
    components, wrappers = sort_out(registry)
    for index, component in enumerate(components):
        context.pml_name = component.name
        pml = isolated(registry, component, "init", partial(_pml, component, context, bml))
        if pml is None:
            continue
        registry.select_over(component, components[index + 1 :])
        return _wrapped(registry, context, pml, wrappers)
    raise MPIError(ERR_OTHER, "no PML can be used: see ompy-info --plugins for the reasons")


def _wrapped(
    registry: Registry, context: RankContext, pml: Pml, wrappers: Sequence[PmlWrapperComponent]
) -> Pml:
    """The PML inside its wrappers, the first of them closest to it."""
    for wrapper in wrappers:
        wrapped = isolated(registry, wrapper, "wrap", partial(_wrapper, wrapper, context, pml))
        if wrapped is not None:
            registry.select(wrapper)
            pml = wrapped
    return pml


def _pml(component: PmlComponent, context: RankContext, bml: Bml) -> Pml:
    return expect(component.init(context, bml), Pml, component)


def _wrapper(component: PmlWrapperComponent, context: RankContext, pml: Pml) -> Pml:
    return expect(component.wrap(context, pml), Pml, component)


def sort_out(registry: Registry) -> tuple[list[PmlComponent], list[PmlWrapperComponent]]:
    """The open PML components that may be selected, and the wrappers that are to wrap.

    Both with the highest priority first. The records of the others say why they are not in use.

    Raises:
        UsageError: the selection is not valid.
        ComponentError: the user asked by name for one that cannot be used, that declines, or
            that has no PML to wrap.
    """
    selectable: list[PmlComponent] = []
    wrappers: list[PmlWrapperComponent] = []
    for component in registry.open("pml"):
        if isinstance(component, PmlComponent):
            selectable.append(component)
        else:
            assert isinstance(component, PmlWrapperComponent)
            wrappers.append(component)
    if selectable:
        return selectable, [wrapper for wrapper in wrappers if _is_wanted(registry, wrapper)]
    for wrapper in wrappers:
        name = wrapper.name
        alone = f"it wraps a PML and the parameter pml leaves none: name one too, as in ob1,{name}"
        _leave_out(registry, wrapper, alone)
    return [], []


def _is_wanted(registry: Registry, wrapper: PmlWrapperComponent) -> bool:
    """Whether it wraps in this job."""
    reason = isolated(registry, wrapper, "declines", partial(_reason, wrapper))
    if reason:
        _leave_out(registry, wrapper, reason)
    return reason == ""


def _reason(wrapper: PmlWrapperComponent) -> str:
    return expect(wrapper.declines(), str, wrapper)


def _leave_out(registry: Registry, wrapper: PmlWrapperComponent, reason: str) -> None:
    """Record that it does not wrap; an error when the user asked for it by name."""
    if registry.selection("pml").asks_for(wrapper.name):
        registry.refuse(wrapper, reason)
    else:
        registry.pass_over(wrapper, reason)
