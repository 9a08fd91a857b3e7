"""What can do what is asked for: hints in, infos out.

The library is asked twice. Providers over IP are asked for each address of the interfaces in use,
as source, so that a job on one host stays on loopback; the others, such as shm, without any,
because an address would become their endpoint's name. The order is the library's of the second
question. Infos that differ in nothing we tell are told once.

Some wishes are never passed on, because this interface has no calls for them: memory that only one
endpoint may use, or that needs events or page faults to be told of, messages with a prefix. What
providers want of contexts is always offered.

Source: reference ofi.md A2, B1, C1, C7.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from ompy.frameworks.nic.fabric import (
    Caps,
    FabricInfo,
    Hints,
    Mode,
    MrMode,
    Progress,
)

from ompy_components.nic.libfabric.library import OLDEST, Library

EP_DGRAM: Final = 2  # libfabric: FI_EP_DGRAM
EP_RDM: Final = 3  # libfabric: FI_EP_RDM
THREAD_DOMAIN: Final = 3  # libfabric: FI_THREAD_DOMAIN; all calls come with the rank's lock held
FI_SOURCE: Final = 1 << 57  # libfabric: the flag of fi_getinfo
IP_FORMATS: Final = (1, 2, 3)  # libfabric: FI_SOCKADDR, FI_SOCKADDR_IN, FI_SOCKADDR_IN6
ENODATA: Final = 61  # Linux; libfabric: nothing can do it
NEVER: Final = MrMode.RAW | MrMode.MMU_NOTIFY | MrMode.RMA_EVENT | MrMode.ENDPOINT | MrMode.HMEM
INTERFACE: Final = f"{OLDEST[0]}.{OLDEST[1]}"
SIZE_MAX: Final = (1 << 63) - 1  # arbitrary: more is unlimited to everybody
# libfabric 1.17, tried by tools/sweep strangers: what another user of the host did to ranks
SEEN: Final = {
    "udp;ofi_rxd": "junk from anybody who reaches its UDP ports crashes the ranks",
    "sockets": "junk from anybody who connects to its TCP ports hangs the ranks for good",
}
CAPS_KNOWN: Final = sum(Caps)
MODES_KNOWN: Final = sum(Mode)
MR_MODES_KNOWN: Final = sum(MrMode)


class Native(NamedTuple):
    """What `FabricInfo.native` is here.

    Attributes:
        info: libfabric's own; belongs to `owner`.
        owner: the list it came in, freed with the last of its infos.
        source: address of the interface it was asked for; empty where there was none.
    """

    info: Any
    owner: Any
    source: str


def find_infos(
    library: Library,
    hints: Hints,
    addresses: Sequence[str],
    complete: Iterable[str],
    exposed: Sequence[str],
) -> list[FabricInfo]:
    """All that can do what is asked for, the library's best first.

    Args:
        library: the library.
        hints: what is asked for.
        addresses: of the interfaces that may be used.
        complete: providers that are known to honour DELIVERY_COMPLETE.
        exposed: those that a stranger's packets can end or stop.

    Raises:
        FabricError: the library cannot say.
    """
    everywhere = _ask(library, hints, "")
    names = [_provider(library, native) for native in everywhere]
    order = {name: index for index, name in reversed(list(enumerate(names)))}
    found = [native for native in everywhere if native.info.addr_format not in IP_FORMATS]
    for address in addresses:
        asked = _ask(library, hints, address)
        found += [native for native in asked if native.info.addr_format in IP_FORMATS]
    found.sort(key=lambda native: order.get(_provider(library, native), len(names)))
    known = frozenset(complete)
    described: dict[FabricInfo, FabricInfo] = {}
    for native in found:
        info = _described(library, native, known)._replace(
            exposed=what_strangers_do(_provider(library, native), exposed)
        )
        described.setdefault(info._replace(native=None), info)
    return list(described.values())


def what_strangers_do(provider: str, exposed: Iterable[str]) -> str:
    """What those who reach its ports can do to a process that uses a provider; else empty."""
    if provider.lower() not in {name.lower() for name in exposed}:
        return ""
    return SEEN.get(
        provider.lower(), "packets of strangers who reach its ports may end the process"
    )


def _ask(library: Library, hints: Hints, address: str) -> list[Native]:
    """fi_getinfo, from one source address or from any."""
    ffi = library.ffi
    wanted = _wanted(library, hints)
    name = ffi.new("char[]", hints.provider.encode()) if hints.provider else ffi.NULL
    made = ffi.new("struct fi_info **")
    node, flags = (address.encode(), FI_SOURCE) if address else (ffi.NULL, 0)
    wanted.fabric_attr.prov_name = name
    try:
        result = library.functions.fi_getinfo(
            library.interface, node, ffi.NULL, flags, wanted, made
        )
    finally:
        wanted.fabric_attr.prov_name = ffi.NULL  # it would be freed with the info
    if result == -ENODATA:
        return []
    library.check_result(result, f"what providers there are from {address or 'anywhere'}")
    owner = ffi.gc(made[0], library.functions.fi_freeinfo)
    infos = []
    info = made[0]
    while info:
        infos.append(Native(info, owner, address))
        info = info.next
    return infos


def _wanted(library: Library, hints: Hints) -> Any:
    """The hints as libfabric has them."""
    info = library.new_info()
    info.caps = hints.caps
    info.mode = (hints.mode & ~Mode.MSG_PREFIX) | Mode.CONTEXT | Mode.CONTEXT2
    info.ep_attr.type = EP_DGRAM if hints.datagram else EP_RDM
    info.tx_attr.op_flags = hints.op_flags
    info.domain_attr.mr_mode = hints.mr_mode & ~NEVER
    info.domain_attr.threading = THREAD_DOMAIN
    info.domain_attr.data_progress = hints.progress
    info.domain_attr.control_progress = hints.progress
    return info


def _provider(library: Library, native: Native) -> str:
    return library.string(native.info.fabric_attr.prov_name)


def _described(library: Library, native: Native, complete: frozenset[str]) -> FabricInfo:
    """One info in our words."""
    info = native.info
    domain = info.domain_attr
    provider = _provider(library, native)
    source = b""
    if info.src_addr:
        source = bytes(library.ffi.buffer(info.src_addr, info.src_addrlen))
    return FabricInfo(
        provider=provider,
        fabric=library.string(info.fabric_attr.name),
        domain=library.string(domain.name),
        caps=Caps(info.caps & CAPS_KNOWN),
        mode=Mode(info.mode & MODES_KNOWN),
        mr_mode=MrMode(domain.mr_mode & MR_MODES_KNOWN),
        op_flags=Caps(info.tx_attr.op_flags & CAPS_KNOWN),
        delivery_complete=provider in complete,
        inject_size=info.tx_attr.inject_size,
        tx_size=info.tx_attr.size,
        rx_size=info.rx_attr.size,
        max_message=min(info.ep_attr.max_msg_size, SIZE_MAX),
        tx_contexts_max=max(1, domain.max_ep_tx_ctx),
        progress=Progress(domain.data_progress),
        version=INTERFACE,
        source=source,
        native=native,
    )
