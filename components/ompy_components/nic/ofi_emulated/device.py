"""The device: a library of providers, each at each interface."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ompy.frameworks.nic.base import Identity
from ompy.frameworks.nic.fabric import (
    FabricDomain,
    FabricInfo,
    FabricNic,
    Hints,
    Mode,
    MrMode,
    Progress,
)
from ompy.net.base import Interface

from ompy_components.nic.ofi_emulated.domain import listening
from ompy_components.nic.ofi_emulated.errors import ENOSYS, EOPBADSTATE, refusal
from ompy_components.nic.ofi_emulated.providers import (
    UNUSABLE,
    Provider,
    Traits,
    caps_of,
    meets,
)
from ompy_components.nic.ofi_emulated.resources import DeviceServices

if TYPE_CHECKING:
    from ompy.frameworks.context import RankContext
    from ompy.mca.parameter import Values

US: Final = 1_000  # ns; Linux counts so
VERSION: Final = "1.17"  # libfabric 1.17: what it emulates


class EmulatedFabric(FabricNic):
    """Emulated libfabric over some interfaces.

    Attributes:
        context: of the rank.
        values: of the component's parameters.
        counts: what it has done of its own accord: `again` (posts refused by habit or for want of
            room), `connecting` (refused while a connection is made), `full` (receives refused),
            `delayed` (completions), `overruns`, `stalled` (messages without a place), `refused`
            (requests of peers).
        failover: whoever uses it goes on over another rail when a path is dead.
        domains: that are open.
    """

    def __init__(
        self,
        context: RankContext,
        interfaces: Sequence[Interface],
        providers: Sequence[Provider],
        values: Values,
    ) -> None:
        first = interfaces[0]
        super().__init__(Identity.behind(first, "ofi_emulated", emulated=True))
        self.context = context
        self.values = values
        self.counts: Counter[str] = Counter()
        self.failover = False
        self.domains: dict[FabricDomain, None] = {}
        self._interfaces = interfaces
        self._providers = providers
        self._is_open = False

    def open(self) -> None:
        """Nothing is needed before a domain is."""
        self._is_open = True

    def close(self) -> None:
        """Close the domains."""
        self._is_open = False
        for domain in list(self.domains):
            domain.close()

    def _forget_domain(self, domain: FabricDomain) -> None:
        """It is closed."""
        self.domains.pop(domain, None)

    def infos(self, hints: Hints) -> Sequence[FabricInfo]:
        """Each provider that meets the hints, at each interface."""
        self._usable()
        return [
            self._info(provider, interface, hints)
            for provider in self._providers
            if meets(provider, hints)
            for interface in self._interfaces
        ]

    def _info(self, provider: Provider, interface: Interface, hints: Hints) -> FabricInfo:
        values = self.values
        return FabricInfo(
            provider=provider.name,
            fabric=f"{interface.name}/{interface.prefix}",
            domain=interface.name,
            caps=caps_of(provider),
            mode=Mode(0),
            mr_mode=provider.mr_mode,
            op_flags=hints.op_flags,
            delivery_complete=provider.delivery == "honoured",
            inject_size=values.inject_size,
            tx_size=values.tx_size,
            rx_size=values.rx_size,
            max_message=values.max_message,
            tx_contexts_max=values.tx_contexts if provider.scalable else 1,
            progress=Progress.MANUAL,
            version=VERSION,
            source=b"",
            native=(provider, interface),
        )

    def domain(self, info: FabricInfo) -> FabricDomain:
        """Listen at the interface of an info."""
        self._usable()
        if not isinstance(info.native, tuple) or info.native[0] not in self._providers:
            raise refusal(EOPBADSTATE, f"{info.provider} is no info of this device")
        if info.mr_mode & UNUSABLE:
            modes = MrMode(info.mr_mode & UNUSABLE)
            raise refusal(ENOSYS, f"there are no calls for memory with FI_MR_{modes.name}")
        provider, interface = info.native
        traits = Traits(
            atomics=provider.atomics == "yes",
            local=bool(info.mr_mode & MrMode.LOCAL),
            completion_delay=self.values.completion_delay_us * US,
        )
        made = listening(self._services(), info, interface, traits)
        self.domains[made] = None
        return made

    def _services(self) -> DeviceServices:
        """What a domain has of it."""
        return DeviceServices(
            self.context,
            self.values,
            self.counts,
            self.clocked,
            self.carries,
            lambda: self.failover,
            self.report,
            self._forget_domain,
        )

    def _usable(self) -> None:
        if self.gone or not self._is_open:
            raise refusal(EOPBADSTATE, self.gone or "the device is not open")
