"""Which ranks a module reaches, and the endpoints that were made for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.frameworks.nic.fabric import FabricError

from ompy_components.btl.ofi.endpoint import OfiEndpoint
from ompy_components.btl.ofi.selection.providers import SHARED_MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable

    from ompy.frameworks.btl import BtlModule
    from ompy.frameworks.nic.fabric import AddressVector
    from ompy.frameworks.paths.path_keeper import KeptPath
    from ompy.frameworks.proc import Proc

    from ompy_components.btl.ofi.failures.device import Device
    from ompy_components.btl.ofi.selection.bring_up import Place


class Peers:
    """Of one module.

    Attributes:
        endpoints: by rank.
    """

    __slots__ = (
        "_device",
        "_keep",
        "_module",
        "_node",
        "_note",
        "_on_host_only",
        "_place",
        "_vector",
        "endpoints",
    )

    def __init__(
        self,
        module: BtlModule,
        provider: str,
        place: Place,
        vector: AddressVector,
        device: Device,
        keep: Callable[[OfiEndpoint], KeptPath],
        note: Callable[..., None],
    ) -> None:
        """Reach nobody yet.

        Args:
            module: whose endpoints they are.
            provider: of the module.
            place: of the module among those of its rank.
            vector: takes the peers' addresses.
            device: reaches nobody new once it has failed.
            keep: makes the path of an endpoint.
            note: records an event.
        """
        self._module = module
        self._node = module.context.me.node
        self._on_host_only = provider.startswith(SHARED_MEMORY)
        self._place = place
        self._vector = vector
        self._device = device
        self._keep = keep
        self._note = note
        self.endpoints: dict[int, OfiEndpoint] = {}

    def all(self) -> list[OfiEndpoint]:
        """All endpoints there are."""
        return list(self.endpoints.values())

    def reach(self, proc: Proc, *, proven: bool = False) -> OfiEndpoint | None:
        """A rank with a module for this one: on the same provider, and of the same mode.

        Args:
            proc: the rank.
            proven: a message of the rank has come, so the way works.
        """
        found = self.endpoints.get(proc.rank)
        if found is not None:
            return found
        if self._device.dead or (self._on_host_only and proc.node != self._node):
            return None
        partner = self._place.ways.partner(proc, self._place.position, proven=proven)
        if partner is None:
            return None
        index, record = partner
        try:
            address = self._vector.insert(record.name)
        except FabricError as problem:
            self._note("NOT_REACHED", peer=proc.rank, why=str(problem))
            return None
        made = OfiEndpoint(self._module, proc, index, record, address)
        made.path = self._keep(made)
        self.endpoints[proc.rank] = made
        return made

    def departed(self) -> list[OfiEndpoint]:
        """Peers that have ended while something for them is under way."""
        return [
            endpoint
            for endpoint in self.endpoints.values()
            if endpoint.proc.departed and not endpoint.broken and endpoint.busy()
        ]
