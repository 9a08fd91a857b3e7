"""The device: all providers of the library, for one rank."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import Identity, Nic
from ompy.frameworks.nic.fabric import FabricDomain, FabricError, FabricInfo, FabricNic, Hints
from ompy.mca.parameter import Values
from ompy.net.base import Interface

from ompy_components.nic.libfabric import infos
from ompy_components.nic.libfabric.datagrams import LibfabricDatagramNic
from ompy_components.nic.libfabric.domain import LibfabricDomain
from ompy_components.nic.libfabric.library import Library

SHARED_MEMORY: Final = "shm"  # libfabric fi_shm(7): its regions are files with our number


def make_devices(
    context: RankContext, library: Library, interfaces: Sequence[Interface], values: Values
) -> list[Nic]:
    """All devices of the component, none of them open."""
    nic = LibfabricNic(context, library, interfaces, values)
    datagrams = [
        LibfabricDatagramNic(index, interface, nic.infos_from, nic.opened)
        for index, interface in enumerate(interfaces)
    ]
    return [nic, *datagrams]


class LibfabricNic(FabricNic):
    """The library's providers, over the interfaces this rank may use."""

    def __init__(
        self,
        context: RankContext,
        library: Library,
        interfaces: Sequence[Interface],
        values: Values,
    ) -> None:
        first = interfaces[0]
        super().__init__(Identity.behind(first, "libfabric_0", emulated=False))
        self.library = library
        self._network = context.network
        self._wireup = context.wireup
        self._addresses = [interface.address for interface in interfaces]
        self._complete = [name for name in values.delivery_complete.split(",") if name]
        self._exposed = [name.strip() for name in values.exposed.split(",") if name.strip()]
        self._may_wait: bool = values.wait
        self._domains: list[LibfabricDomain] = []

    def infos(self, hints: Hints) -> Sequence[FabricInfo]:
        """Ask the library."""
        return self._find(hints, self._addresses)

    def infos_from(self, hints: Hints, address: str) -> list[FabricInfo]:
        """Ask it about one interface."""
        return self._find(hints, [address])

    def _find(self, hints: Hints, addresses: list[str]) -> list[FabricInfo]:
        return infos.find_infos(self.library, hints, addresses, self._complete, self._exposed)

    def domain(self, info: FabricInfo) -> FabricDomain:
        """Open a fabric and a domain."""
        return self.opened(info)

    def opened(self, info: FabricInfo) -> LibfabricDomain:
        """The same."""
        if info.provider == SHARED_MEMORY:
            self._wireup.leaves_shared_memory()
        domain = LibfabricDomain(self.library, self._network, info, may_wait=self._may_wait)
        if not self._domains:
            # a provider that is still at work when the process takes its memory away crashes it
            atexit.register(self._end)
        self._domains.append(domain)
        return domain

    def close(self) -> None:
        """Close the domains, with everything in them."""
        while self._domains:
            self._domains.pop().close()
        atexit.unregister(self._end)

    def _end(self) -> None:
        """At the end of the process."""
        with suppress(FabricError):
            self.close()
