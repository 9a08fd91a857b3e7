"""Which of the infos a device offers is used.

Source: reference ofi.md A2, C2, C4; seed ofi (component).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from ompy.frameworks.btl import (
    ATOMIC_FOPS,
    ATOMIC_OPS,
    FAILOVER_SUPPORT,
    GET,
    PUT,
    RDMA_COMPLETION,
    SEND,
)
from ompy.frameworks.nic.fabric import Caps, FabricInfo, Hints, Mode, MrMode, Progress


class BtlMode(IntEnum):
    """What the BTL is for; the numbers are Open MPI's."""

    ONE_SIDED = 0
    TWO_SIDED = 1
    BOTH = 2


NEEDED: Final = {
    BtlMode.ONE_SIDED: Caps.RMA | Caps.ATOMIC,
    BtlMode.TWO_SIDED: Caps.MSG,
    BtlMode.BOTH: Caps.MSG | Caps.RMA | Caps.ATOMIC,
}
# seed ofi: the modes that are supported; LOCAL, MMU_NOTIFY, RMA_EVENT and ENDPOINT are not
OFFERED: Final = MrMode.ALLOCATED | MrMode.PROV_KEY | MrMode.VIRT_ADDR
STOCK: Final = "stock"
# reference ofi.md A0.1: what Open MPI excludes; what is on top of ofi_rxm as well
STOCK_LIST: Final = ("shm", "sockets", "tcp", "udp", "rstream", "usnic", "net")
STOCK_REFUSED: Final = "ofi_rxm"
SLOW: Final = ("udp;ofi_rxd", "sockets")  # reference ofi.md C2: by factors
SHARED_MEMORY: Final = "shm"
# 1.17 crashes the target of an atomic that comes between puts and gets of more than a packet
UNRELIABLE_ATOMICS: Final = "udp;ofi_rxd"


class Wishes(NamedTuple):
    """What the user says about providers.

    Attributes:
        include: prefixes of names, without regard to case; if there are any, only these.
        exclude: prefixes of those not to use.
        domains: names of domains; if there are any, only these.
    """

    include: tuple[str, ...]
    exclude: tuple[str, ...]
    domains: tuple[str, ...] = ()


def wishes(include: str, exclude: str, domains: str = "") -> Wishes:
    """From the parameters' texts."""
    return Wishes(tuple(_words(include)), tuple(_words(exclude)), tuple(_words(domains)))


def hints(mode: BtlMode, progress: Progress, *, delivery: bool) -> Hints:
    """What is asked for; with `delivery`, that completion means that the peer's memory has it."""
    return Hints(
        NEEDED[mode],
        mode=Mode.CONTEXT | Mode.CONTEXT2,
        mr_mode=OFFERED,
        op_flags=Caps.DELIVERY_COMPLETE if delivery else Caps(0),
        progress=progress,
    )


def refusal(info: FabricInfo, mode: BtlMode, wished: Wishes) -> str:
    """Why an info cannot be used; empty when it can."""
    unwanted = _unwanted(info, wished)
    if unwanted:
        return unwanted
    lacking = NEEDED[mode] & ~info.caps
    if lacking:
        return f"it has no {lacking!r}"
    wants = info.mode & ~(Mode.CONTEXT | Mode.CONTEXT2)
    if wants:
        return f"it asks for {wants!r}"
    # BASIC and SCALABLE are older ways to say what is offered, and what asks for nothing
    wanted = info.mr_mode & ~(OFFERED | MrMode.BASIC | MrMode.SCALABLE)
    if wanted:
        return f"registering memory would need {wanted!r}"
    return ""


def _unwanted(info: FabricInfo, wished: Wishes) -> str:
    """What the user has against it."""
    name = info.provider.lower()
    if wished.include and not _named(name, wished.include):
        return "it is not in btl_ofi_provider_include"
    if not wished.include and _excluded(name, wished.exclude):
        return "it is in btl_ofi_provider_exclude"
    if not wished.include and info.exposed:
        return f"it is off unless btl_ofi_provider_include names it: {info.exposed}"
    if wished.domains and info.domain.lower() not in wished.domains:
        return f"its domain {info.domain} is not in btl_ofi_domain_include"
    return ""


def owner_makes_atomics(info: FabricInfo) -> bool:
    """Whether accumulates of windows may be its atomics: the target makes them as it reads its CQ.

    A thread of the provider's own would make them beside the rank's.
    """
    unreliable = info.provider.lower().startswith(UNRELIABLE_ATOMICS)
    return info.progress is Progress.MANUAL and not unreliable


def ordered(infos: Iterable[FabricInfo], *, one_host: bool) -> list[FabricInfo]:
    """By what is to be preferred; among equals the library's order stays."""

    def place(info: FabricInfo) -> int:
        name = info.provider.lower()
        if name.startswith(SHARED_MEMORY):
            return 0 if one_host else 4
        if name.startswith(SLOW):
            return 3
        return 1 if info.delivery_complete else 2

    return sorted(infos, key=place)


def _words(text: str) -> list[str]:
    return [word.strip().lower() for word in text.split(",") if word.strip()]


def _named(name: str, prefixes: Sequence[str]) -> bool:
    return name.startswith(tuple(prefixes))


def _excluded(name: str, prefixes: Sequence[str]) -> bool:
    if STOCK in prefixes and (_named(name, STOCK_LIST) or STOCK_REFUSED in name):
        return True
    return _named(name, [prefix for prefix in prefixes if prefix != STOCK])


def abilities(mode: BtlMode, delivery_complete: bool) -> int:
    """The flags of a mode; without DELIVERY_COMPLETE nothing would tell when a put is there."""
    flags = FAILOVER_SUPPORT
    if mode is not BtlMode.ONE_SIDED:
        flags |= SEND
    if mode is not BtlMode.TWO_SIDED:
        flags |= GET | ATOMIC_OPS | ATOMIC_FOPS
        if delivery_complete:
            flags |= PUT | RDMA_COMPLETION
    return flags
