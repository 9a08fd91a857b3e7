"""Worlds of usnic with two NICs each, of which one rail can be cut at any packet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ompy.conformance.btl.btl_worlds import World
from ompy.conformance.btl.driver import Driver
from ompy.conformance.btl.suite import Worlds
from ompy.net.faults.middleware import Fault
from ompy.net.virtual.virtual_network import Rail
from ompy_components.btl.usnic.component import COMPONENT
from ompy_components.btl.usnic.endpoint import UsnicEndpoint
from ompy_components.btl.usnic.headers import SEAL_SIZE, Header, parse_packet
from ompy_components.btl.usnic.module import UsnicModule

from tests.support.switched_rails import RAILS, RailFault, Switch


def usnic(driver: Driver, index: int = 0) -> UsnicModule:
    """One of a rank's modules."""
    module = driver.modules[index]
    assert isinstance(module, UsnicModule)
    return module


def path(driver: Driver, index: int = 0) -> UsnicEndpoint:
    """The peer, of two ranks, as one of the modules reaches it."""
    return usnic(driver, index).endpoints[driver.peers[0]]


def header(packet: bytes) -> Header:
    """What a packet says."""
    return parse_packet(memoryview(packet)[SEAL_SIZE:])


def world(
    *,
    seed: int = 0,
    switch: Switch | None = None,
    rails: Sequence[Rail] = RAILS,
    plan: Callable[[Driver], Sequence[Fault]] | None = None,
    **settings: object,
) -> World:
    """Two ranks with usnic; `switch` breaks one rail. Nobody pings unless that is asked for."""
    full = {
        f"btl_usnic_{name}": value for name, value in {"connectivity_check": 0, **settings}.items()
    }
    chosen: Any = plan or (lambda driver: [RailFault(driver, switch)] if switch else [])
    return Worlds(COMPONENT, {}).make(2, seed=seed, rails=rails, plan=chosen, settings=full)
