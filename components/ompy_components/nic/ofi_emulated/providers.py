"""The providers there are: which modes each shows, and which of them meet some hints."""

from __future__ import annotations

from typing import Final, NamedTuple

from ompy.frameworks.nic.fabric import Caps, Hints, MrMode, Progress

# seed ofi (Memory Registration)
BASIC: Final = MrMode.VIRT_ADDR | MrMode.ALLOCATED | MrMode.PROV_KEY
RMA: Final = Caps.RMA | Caps.READ | Caps.WRITE | Caps.REMOTE_READ | Caps.REMOTE_WRITE
MESSAGES: Final = Caps.MSG | Caps.SEND | Caps.RECV
# what a caller has to do with calls that the interface does not have
UNUSABLE: Final = MrMode.MMU_NOTIFY | MrMode.RMA_EVENT | MrMode.ENDPOINT | MrMode.RAW | MrMode.HMEM


class Provider(NamedTuple):
    """One provider.

    Attributes:
        name: of it.
        mr_mode: what it asks of who registers memory.
        atomics: `yes`; `no`; or `claimed`: it says so and cannot (reference ofi.md C1, net).
        delivery: DELIVERY_COMPLETE is `honoured`, `ignored` (reference ofi.md C4, net), or
            `unsupported`: not for hints that ask for it.
        scalable: it has scalable endpoints.
    """

    name: str
    mr_mode: MrMode
    atomics: str = "yes"
    delivery: str = "honoured"
    scalable: bool = True


PROVIDERS: Final = (
    Provider("emulated", MrMode.VIRT_ADDR),  # as shm: reference ofi.md C1
    Provider("emulated;offset", MrMode(0), scalable=False),  # as tcp;ofi_rxm
    Provider("emulated;prov_key", BASIC),
    Provider("emulated;basic", MrMode.BASIC),
    Provider("emulated;scalable", MrMode.SCALABLE),
    Provider("emulated;offset_prov_key", MrMode.PROV_KEY | MrMode.ALLOCATED),
    Provider("emulated;early", MrMode(0), atomics="claimed", delivery="ignored", scalable=False),
    Provider("emulated;plain", MrMode.VIRT_ADDR, atomics="no", delivery="unsupported"),
    Provider("emulated;local", MrMode.VIRT_ADDR | MrMode.LOCAL),
    Provider("emulated;mmu_notify", MrMode.VIRT_ADDR | MrMode.MMU_NOTIFY),
    Provider("emulated;rma_event", MrMode.VIRT_ADDR | MrMode.RMA_EVENT),
    Provider("emulated;endpoint", MrMode.VIRT_ADDR | MrMode.ENDPOINT),
)
NAMES: Final = tuple(provider.name for provider in PROVIDERS)


class Traits(NamedTuple):
    """How a domain behaves.

    Attributes:
        atomics: it has them, whatever it says.
        local: local memory has to be registered.
        completion_delay: ns from the end of work until its completion can be read.
    """

    atomics: bool
    local: bool
    completion_delay: int


def virtual(mr_mode: MrMode) -> bool:
    """Whether operations name virtual addresses."""
    return bool(mr_mode & (MrMode.VIRT_ADDR | MrMode.BASIC))


def caps_of(provider: Provider) -> Caps:
    """What it says it can do."""
    return MESSAGES | RMA | (Caps(0) if provider.atomics == "no" else Caps.ATOMIC)


def meets(provider: Provider, hints: Hints) -> bool:
    """Whether it can do all that is asked for, and asks for nothing that is not offered."""
    offered = hints.mr_mode
    if offered & MrMode.BASIC:
        offered |= BASIC
    asked = provider.mr_mode & ~MrMode.SCALABLE
    if asked & MrMode.BASIC:
        asked = asked & ~MrMode.BASIC | BASIC
    wants_delivery = bool(hints.op_flags & Caps.DELIVERY_COMPLETE)
    return (
        not hints.datagram
        and hints.provider in ("", provider.name)
        and hints.progress is not Progress.AUTO
        and not hints.caps & ~caps_of(provider)
        and not asked & ~offered
        and not (wants_delivery and provider.delivery == "unsupported")
    )
