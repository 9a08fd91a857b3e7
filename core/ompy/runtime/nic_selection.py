"""Which NICs a rank has: the devices of every nic component that is selected."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ompy.frameworks.nic.base import Nic, NicComponent
from ompy.runtime.isolation import expect, isolated

if TYPE_CHECKING:
    from ompy.frameworks.context import RankContext
    from ompy.mca.registry import Registry


def find_nics(registry: Registry, context: RankContext) -> list[Nic]:
    """The devices of all nic components, none of them open; new ones each time.

    The first call imports and opens the components.

    Raises:
        UsageError: the selection is not valid.
        ComponentError: the user asked by name for one that cannot be used.
    """
    found: list[Nic] = []
    for component in registry.open("nic"):
        assert isinstance(component, NicComponent)
        made = isolated(registry, component, "devices", partial(_devices, component, context))
        if made:
            registry.select(component)
            found += made
        elif made is not None:
            registry.pass_over(component, "it has no device here")
    return found


def _devices(component: NicComponent, context: RankContext) -> list[Nic]:
    devices: list[Nic] = expect(component.devices(context), list, component)
    return [expect(device, Nic, component) for device in devices]
