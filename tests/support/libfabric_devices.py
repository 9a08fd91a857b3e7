"""libfabric's devices without a job, and whether there are any here."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from ompy.frameworks.nic.base import Nic
from ompy.mca.component import NotAvailable
from ompy.mca.parameter import Values
from ompy.net.base import Network
from ompy.runtime.launching.singleton import SingletonWireUp
from ompy_components.nic.libfabric.component import COMPONENT

DEFAULTS: dict[str, Any] = {parameter.name: parameter.default for parameter in COMPONENT.parameters}


@cache
def missing() -> str:
    """Why the library cannot be used here; empty when it can."""
    from ompy_components.nic.libfabric.library import load_library

    try:
        load_library(DEFAULTS["library"], DEFAULTS["sockets_waittime"])
    except NotAvailable as problem:
        return str(problem)
    return ""


needs_libfabric = pytest.mark.skipif(bool(missing()), reason=missing())


def devices(network: Network, **settings: Any) -> list[Nic]:
    """The component's, over loopback."""
    from ompy_components.nic.libfabric.device import make_devices
    from ompy_components.nic.libfabric.library import load_library

    values = Values({**DEFAULTS, **settings})
    library = load_library(values.library, values.sockets_waittime, values.compiled)
    loopback = [interface for interface in network.interfaces() if interface.loopback]
    context: Any = SimpleNamespace(network=network, wireup=SingletonWireUp())
    return make_devices(context, library, loopback, values)


def fabric_nic(network: Network, **settings: Any) -> Any:
    """The one with all providers."""
    return devices(network, **settings)[0]


def datagram_nic(network: Network, **settings: Any) -> Any:
    """The one with the provider udp."""
    return devices(network, **settings)[1]
