"""Which PML a rank uses, and which wrappers stand around it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ompy.data.errors import ERR_OTHER, MPIError
from ompy.frameworks.pml import Pml, PmlComponent, PmlWrapperComponent
from ompy.runtime.isolation import expect, isolated

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
        registry.select(component)
        for other in components[index + 1 :]:
            registry.pass_over(other, f"{component.name} has the higher priority")
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
        MPIError: there are wrappers and no PML.
        UsageError: the selection is not valid.
        ComponentError: the user asked by name for one that cannot be used, or that declines.
    """
    selectable: list[PmlComponent] = []
    wrappers: list[PmlWrapperComponent] = []
    for component in registry.open("pml"):
        if isinstance(component, PmlComponent):
            selectable.append(component)
        else:
            assert isinstance(component, PmlWrapperComponent)
            wrappers.append(component)
    if not selectable:
        _nothing_to_wrap(registry, wrappers)
    return selectable, [wrapper for wrapper in wrappers if _is_wanted(registry, wrapper)]


def _nothing_to_wrap(registry: Registry, wrappers: list[PmlWrapperComponent]) -> None:
    """Complain if there are wrappers and no PML: the user's selection is to blame."""
    for wrapper in wrappers:
        registry.pass_over(wrapper, "there is no PML it could wrap")
    if wrappers:
        name = wrappers[0].name
        raise MPIError(
            ERR_OTHER,
            f"{name} is no PML by itself and the parameter pml leaves none it could wrap: "
            f"name one beside it, such as ob1,{name}",
        )


def _is_wanted(registry: Registry, wrapper: PmlWrapperComponent) -> bool:
    """Whether it wraps; to ask by name for one that declines is an error."""
    reason = isolated(registry, wrapper, "declines", wrapper.declines)
    if reason is None:
        return False
    if reason and registry.selection("pml").asks_for(wrapper.name):
        registry.refuse(wrapper, reason)
    elif reason:
        registry.pass_over(wrapper, reason)
    return not reason
