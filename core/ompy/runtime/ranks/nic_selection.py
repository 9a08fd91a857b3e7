"""Which NICs a rank has: the devices of every nic component that is selected."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ompy.frameworks.nic.base import Nic, NicComponent
from ompy.mca.component import NotAvailable
from ompy.mca.plugins.component_records import State
from ompy.runtime.ranks.isolation import expect, isolated

if TYPE_CHECKING:
    from ompy.frameworks.context import RankContext
    from ompy.mca.registry import Registry

N = TypeVar("N", bound=Nic)


def find_nics(registry: Registry, context: RankContext, kind: type[N], name: str = "") -> list[N]:
    """The devices of one kind of all nic components, none of them open; new ones each time.

    The first call imports the components; those that have no such devices do nothing more.

    Args:
        registry: of the rank.
        context: the rank.
        kind: class of the devices wanted.
        name: of the only component to ask; empty for all.

    Raises:
        UsageError: the selection is not valid.
        ComponentError: the user asked by name for one that cannot be used.
        NotAvailable: the one that is named cannot be used; the text says why.
    """
    found: list[N] = []
    for component in registry.open("nic"):
        assert isinstance(component, NicComponent)
        if not any(issubclass(kind, has) or issubclass(has, kind) for has in component.kinds):
            continue
        if name and component.name != name:
            continue
        made = isolated(registry, component, "devices", partial(_devices, component, context))
        if made:
            registry.select(component)
            found += [device for device in made if isinstance(device, kind)]
        elif made is not None:
            registry.pass_over(component, "it has no device here")
    if name and not found:
        for record in registry.records_of("nic"):
            if record.name == name and record.state is State.NOT_AVAILABLE:
                raise NotAvailable(f"nic {name}: {record.reason}")
    return found


def _devices(component: NicComponent, context: RankContext) -> list[Nic]:
    devices: list[Nic] = expect(component.devices(context), list, component)
    return [expect(device, Nic, component) for device in devices]
