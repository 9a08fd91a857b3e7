"""From the parameters and the devices to modules, with the warnings that go with it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, NamedTuple

from ompy import outputs
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import NicError
from ompy.frameworks.nic.fabric import (
    FabricDomain,
    FabricError,
    FabricInfo,
    FabricNic,
    Progress,
)
from ompy.mca.component import NotAvailable
from ompy.net.base import Interface

from ompy_components.btl.ofi import modex, receiving
from ompy_components.btl.ofi.contexts import Contexts
from ompy_components.btl.ofi.module import OfiModule
from ompy_components.btl.ofi.selection import interfaces, providers
from ompy_components.btl.ofi.selection.module_pairs import Ways
from ompy_components.btl.ofi.selection.providers import BtlMode

if TYPE_CHECKING:
    from ompy.mca.parameter import Values

REAL: Final = "libfabric"
EMULATED: Final = "ofi_emulated"


class Place(NamedTuple):
    """Where a module stands.

    Attributes:
        position: among those of its rank.
        ways: of all of them.
    """

    position: int
    ways: Ways


class Opened(NamedTuple):
    """What a module is made of.

    Attributes:
        context: the rank.
        mode: what the module is for.
        nic, info, domain, contexts: the device and what was opened of it.
        interface: the network interface behind it; without an address where there is none.
        window: fragments each peer may send before they are acknowledged.
        shared_wire: others than this host's owner may listen: messages carry a MAC.
        place: of the module among those of its rank.
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
    place: Place


def warn(context: RankContext, text: str) -> None:
    """Tell the user, once for the job."""
    if context.rank == 0:
        outputs.tell(f"ompy: {text}\n", "warning", "warning")


def modules(context: RankContext, values: Values) -> list[OfiModule]:
    """The modules, one for each domain; publishes what peers have to know.

    Raises:
        NotAvailable: no device has a provider that can be used; the text says why.
        NicError: the provider refuses the first domain.
        MPIError: ERR_ARG, a parameter names an interface that is not there.
    """
    nic, infos = choose(context, values)
    ways = Ways(context, values.probe_timeout_ms)
    made: list[OfiModule] = []
    with ExitStack() as undo:
        for info in infos:
            try:
                device = _another(context, values, nic) if made else nic
                one = _module(context, values, device, info, Place(len(made), ways))
            except NicError as problem:
                if not made:
                    raise
                warn(context, f"btl_ofi: does without {info.domain}: {problem}")
                continue
            undo.callback(one.finalize)
            made.append(one)
        several_hosts = not context.one_host
        asked = len(made) > 1 and several_hosts and not context.network.virtual
        ports = [ways.listen(one.interface) if asked else 0 for one in made]
        window = _window(context, values)
        records = [_record(one, window, port) for one, port in zip(made, ports, strict=True)]
        context.wireup.publish(modex.KEY, modex.pack(records))
        undo.pop_all()
    return made


def _window(context: RankContext, values: Values) -> int:
    return receiving.window_size(values.rd_num, values.rd_max, context.size - 1)


def _record(module: OfiModule, window: int, port: int) -> modex.PeerRecord:
    """What peers have to know of a module, and where its interface can be tried."""
    interface, contexts = module.interface, module.contexts
    names = module.info.provider, module.mode, window, contexts.name
    return modex.PeerRecord(*names, interface.address, interface.prefix, port)


def _module(
    context: RankContext, values: Values, nic: FabricNic, info: FabricInfo, place: Place
) -> OfiModule:
    """One module on one info of an open device, which is closed where that fails."""
    mode = BtlMode(values.mode)
    peers = context.size - 1
    window = _window(context, values)
    receives = receiving.buffers_needed(window, peers) if mode is not BtlMode.ONE_SIDED else 0
    with ExitStack() as undo:
        undo.callback(nic.close)
        domain = nic.domain(info)
        undo.callback(domain.close)
        contexts = _contexts(context, values, domain, receives, quiet=bool(place.position))
        undo.callback(contexts.close)
        seal = values.seal
        one_host = context.one_host
        shared_wire = seal == "mac" or (seal == "auto" and not one_host)
        interface = interfaces.behind(context, info)
        opened = Opened(
            context, mode, nic, info, domain, contexts, interface, window, shared_wire, place
        )
        made = OfiModule(opened, values)
        undo.pop_all()
    made.note("OPENED", domain=info.domain, contexts=len(contexts))
    return made


def _another(context: RankContext, values: Values, nic: FabricNic) -> FabricNic:
    """The same device once more: a module closes its own, and reads its events alone."""
    found = context.find_nics(FabricNic, _name(context, values))
    made = next(other for other in found if other.identity.name == nic.identity.name)
    made.open()
    return made


def _name(context: RankContext, values: Values) -> str:
    name: str = values.nic or (EMULATED if context.network.virtual else REAL)
    return name


def choose(context: RankContext, values: Values) -> tuple[FabricNic, list[FabricInfo]]:
    """The device, open, and the infos of it to use, all of one provider. Others are closed again.

    Raises:
        NotAvailable: there is none.
        MPIError: ERR_ARG, a parameter names an interface that is not there.
    """
    name = _name(context, values)
    nics = list(context.find_nics(FabricNic, name))
    if not nics:
        raise NotAvailable(f"nic {name} has no fabric device here; ompy-info --plugins says why")
    mode = BtlMode(values.mode)
    wished = providers.wishes(
        values.provider_include, values.provider_exclude, values.domain_include
    )
    one_host = context.one_host
    reasons: list[str] = []
    chosen: tuple[FabricNic, list[FabricInfo]] | None = None
    for nic in nics:
        if chosen is None:
            nic.open()
            usable = _usable(nic, mode, values, wished, reasons)
            if usable:
                usable = interfaces.wanted(context, usable, values.if_include, values.if_exclude)
                reasons.append("btl_ofi_if_exclude leaves no interface")
            if usable:
                best = providers.ordered(usable, one_host=one_host)
                chosen = nic, interfaces.one_a_domain(best, values.max_btls)
                continue
        nic.close()
    if chosen is None:
        said = "; ".join(dict.fromkeys(reasons)) or "the library offers none"
        raise NotAvailable(f"no provider of {name} can be used: {said}")
    _warn_of_strangers(context, chosen[1][0])
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
    context: RankContext, values: Values, domain: FabricDomain, receives: int, *, quiet: bool
) -> Contexts:
    """The contexts that are asked for, as far as there can be several; says so unless `quiet`."""
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
        if not quiet:
            warn(context, f"btl_ofi: no scalable endpoint ({why}): one context instead of {wanted}")
        wanted = 1
    return Contexts(domain, wanted, scalable=scalable, receives=receives)
