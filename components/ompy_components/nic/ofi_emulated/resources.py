"""What the parts of one domain share, beside the domain itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections import Counter

    from ompy.frameworks.context import RankContext
    from ompy.frameworks.nic.base import EventKind
    from ompy.frameworks.nic.fabric import FabricDomain, FabricInfo
    from ompy.frameworks.nic.stations import Stations
    from ompy.mca.parameter import Values
    from ompy.net.base import Interface, Link, Readiness

    from ompy_components.nic.ofi_emulated.memory import Regions
    from ompy_components.nic.ofi_emulated.providers import Traits
    from ompy_components.nic.ofi_emulated.refusals import Refusals


class DeviceServices(NamedTuple):
    """What a domain has of its device.

    Attributes:
        context: of the rank.
        values: of the component's parameters.
        counts: what the device has counted, all its domains together.
        clocked: the device has a clock of its own in simulated worlds.
        carries: the link of the NIC that is built on this one; None: none is.
        fails_over: whether the device's user goes on over another rail when a path is dead.
        report: tells whoever uses the device of an event: what it is, a sentence, what it is of.
        closed: hears of a domain that it is closed.
    """

    context: RankContext
    values: Values
    counts: Counter[str]
    clocked: bool
    carries: Link | None
    fails_over: Callable[[], bool]
    report: Callable[[EventKind, str, object], None]
    closed: Callable[[FabricDomain], None]


class Resources(NamedTuple):
    """Of one domain while it is open.

    Attributes:
        context: of the rank.
        info: what the domain was made of.
        interface: where its connections go.
        traits: how the provider behaves.
        wire: the link its connections go over in simulated worlds; None for the network's own.
        handshake_timeout: ns a connection may take to prove itself.
        readiness: all its sockets.
        regions: its memory.
        stations: what its work takes in simulated worlds.
        counts: of the device.
        refusals: posts that the device refuses by habit.
        usable: raises FabricError unless the domain is open and there.
        lost: the device under it is gone, and why.
        notice: something broke that nothing was under way on: an error's number, and the detail.
        wake_in: see that the rank is awake in so many ns.
    """

    context: RankContext
    info: FabricInfo
    interface: Interface
    traits: Traits
    wire: Link | None
    handshake_timeout: int
    readiness: Readiness
    regions: Regions
    stations: Stations
    counts: Counter[str]
    refusals: Refusals
    usable: Callable[[], None]
    lost: Callable[[str], None]
    notice: Callable[[int, str], None]
    wake_in: Callable[[int], None]
