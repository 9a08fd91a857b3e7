"""From the parameters and the devices to a module, with the warnings that go with it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, NamedTuple

from ompy import outputs
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.fabric import (
    FabricDomain,
    FabricError,
    FabricInfo,
    FabricNic,
    Progress,
)
from ompy.mca.component import NotAvailable
from ompy.net.base import Interface

from ompy_components.btl.ofi import modex, providers, receiving
from ompy_components.btl.ofi.contexts import Contexts
from ompy_components.btl.ofi.module import OfiModule
from ompy_components.btl.ofi.providers import BtlMode

if TYPE_CHECKING:
    from ompy.mca.parameter import Values

REAL: Final = "libfabric"
EMULATED: Final = "ofi_emulated"


class Opened(NamedTuple):
    """What a module is made of.

    Attributes:
        context: the rank.
        mode: what the module is for.
        nic, info, domain, contexts: the device and what was opened of it.
        interface: the network interface behind it; without an address where there is none.
        window: fragments each peer may send before they are acknowledged.
        shared_wire: others than this host's owner may listen: messages carry a MAC.
    """

    context: RankContext
    mode: BtlMode
    nic: FabricNic
    info: FabricInfo
    domain: FabricDomain
    contexts: Contexts
    interface: Interface
    window: int
    shared_wire: bool


def warn(context: RankContext, text: str) -> None:
    """Tell the user, once for the job."""
    if context.rank == 0:
        outputs.tell(f"ompy: {text}\n", "warning", "warning")


def module(context: RankContext, values: Values) -> OfiModule:
    """The module; publishes what peers have to know.

    Raises:
        NotAvailable: no device has a provider that can be used; the text says why.
        NicError: the provider refuses.
    """
    mode = BtlMode(values.mode)
    nic, info = choose(context, values)
    peers = context.size - 1
    window = receiving.window_size(values.rd_num, values.rd_max, peers)
    receives = receiving.buffers_needed(window, peers) if mode is not BtlMode.ONE_SIDED else 0
    with ExitStack() as undo:
        undo.callback(nic.close)
        domain = nic.domain(info)
        undo.callback(domain.close)
        contexts = _contexts(context, values, domain, receives)
        undo.callback(contexts.close)
        seal = values.seal
        one_host = len(context.local_procs()) == context.size
        shared_wire = seal == "mac" or (seal == "auto" and not one_host)
        interface = _interface(context, info)
        opened = Opened(context, mode, nic, info, domain, contexts, interface, window, shared_wire)
        made = OfiModule(opened, values)
        undo.pop_all()
    record = modex.PeerRecord(info.provider, mode, window, contexts.name, interface.address)
    context.wireup.publish(modex.KEY, modex.pack(record))
    made.note("OPENED", domain=info.domain, contexts=len(contexts))
    return made


def _interface(context: RankContext, info: FabricInfo) -> Interface:
    """The network interface that a domain has its name from."""
    for interface in context.network.interfaces():
        if interface.name == info.domain:
            return interface
    return Interface(info.domain, "", 0, loopback=False)


def choose(context: RankContext, values: Values) -> tuple[FabricNic, FabricInfo]:
    """The device, open, and the info of it to use. Other devices are closed again.

    Raises:
        NotAvailable: there is none.
    """
    name = values.nic or (EMULATED if context.network.virtual else REAL)
    nics = list(context.find_nics(FabricNic, name))
    if not nics:
        raise NotAvailable(f"nic {name} has no fabric device here; ompy-info --plugins says why")
    mode = BtlMode(values.mode)
    wished = providers.wishes(
        values.provider_include, values.provider_exclude, values.domain_include
    )
    one_host = len(context.local_procs()) == context.size
    reasons: list[str] = []
    chosen: tuple[FabricNic, FabricInfo] | None = None
    for nic in nics:
        if chosen is None:
            nic.open()
            usable = _usable(nic, mode, values, wished, reasons)
            if usable:
                chosen = nic, providers.ordered(usable, one_host=one_host)[0]
                continue
        nic.close()
    if chosen is None:
        said = "; ".join(dict.fromkeys(reasons)) or "the library offers none"
        raise NotAvailable(f"no provider of {name} can be used: {said}")
    _warn_of_strangers(context, chosen[1])
    return chosen


def _warn_of_strangers(context: RankContext, info: FabricInfo) -> None:
    if info.exposed:
        warn(
            context,
            f"btl_ofi: {info.provider} is used because btl_ofi_provider_include names it: "
            f"{info.exposed}; shm and tcp;ofi_rxm are not known for that",
        )


def _usable(
    nic: FabricNic,
    mode: BtlMode,
    values: Values,
    wished: providers.Wishes,
    reasons: list[str],
) -> list[FabricInfo]:
    """Infos that pass; of a provider without DELIVERY_COMPLETE only where it has none with it."""
    found: list[FabricInfo] = []
    for delivery in (True, False):
        hints = providers.hints(mode, Progress(values.progress_mode), delivery=delivery)
        known = {info.provider for info in found}
        try:
            infos = nic.infos(hints)
        except FabricError as problem:
            reasons.append(str(problem))
            continue
        for info in infos:
            why = providers.refusal(info, mode, wished)
            if why:
                reasons.append(f"{info.provider}: {why}")
            elif info.provider not in known:
                found.append(info)
    return found


def _contexts(
    context: RankContext, values: Values, domain: FabricDomain, receives: int
) -> Contexts:
    """The contexts that are asked for, as far as there can be several."""
    wanted = values.num_contexts_per_module
    most = domain.info.tx_contexts_max
    scalable = most > 1 and not values.disable_sep
    if scalable and wanted > most:
        raise NotAvailable(
            f"btl_ofi_num_contexts_per_module is {wanted}, and {domain.info.provider} has "
            f"{most} transmit contexts"
        )
    if not scalable and wanted > 1:
        why = "btl_ofi_disable_sep is set" if most > 1 else f"{domain.info.provider} has none"
        warn(context, f"btl_ofi: no scalable endpoint ({why}): one context instead of {wanted}")
        wanted = 1
    return Contexts(domain, wanted, scalable=scalable, receives=receives)
