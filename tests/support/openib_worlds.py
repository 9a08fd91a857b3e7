"""Worlds of openib with two ports, of which one can be cut at any packet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ompy.conformance.btl.btl_worlds import World
from ompy.conformance.btl.driver import SECOND, Driver
from ompy.conformance.btl.suite import Worlds
from ompy.net.faults.middleware import Fault, FaultCounter
from ompy.net.virtual.virtual_network import Rail
from ompy_components.btl.openib.component import COMPONENT
from ompy_components.btl.openib.module import OpenibModule

from tests.support.switched_rails import (
    RAILS,
    Errors,
    RailFault,
    Switch,
    Transfers,
    delivered,
    taken_or_back,
)

# every kind of queue, small ones, so that everything is used up soon; rings and coalescing
SETTINGS: Final = {
    "btl_openib_receive_queues": "P,256,4,2,2,2:S,1024,8,6,4:S,12288,8,6,4:P,65536,2",
    "btl_openib_use_message_coalescing": 1,
    "btl_openib_eager_rdma_num": 3,
    "btl_openib_eager_rdma_threshold": 3,
}


def openib(driver: Driver, index: int = 0) -> OpenibModule:
    """One of a rank's modules."""
    module = driver.modules[index]
    assert isinstance(module, OpenibModule)
    return module


def world(
    ranks: int = 2,
    *,
    seed: int = 0,
    switch: Switch | None = None,
    rails: Sequence[Rail] = RAILS,
    plan: Callable[[Driver], Sequence[Fault]] | None = None,
    **settings: object,
) -> World:
    """A world of ranks with openib; `switch` breaks one rail."""
    full = {**SETTINGS, **{f"btl_openib_{name}": value for name, value in settings.items()}}
    chosen: Any = plan or (lambda driver: [RailFault(driver, switch)] if switch else [])
    return Worlds(COMPONENT, {}).make(ranks, seed=seed, rails=rails, plan=chosen, settings=full)


__all__ = [
    "SECOND",
    "Errors",
    "FaultCounter",
    "RailFault",
    "Switch",
    "Transfers",
    "delivered",
    "openib",
    "taken_or_back",
    "world",
]
