"""Which of the infos of a provider become modules: one for each domain that is wanted.

As btl/tcp chooses among interfaces: by `if_include` or `if_exclude`, whose words are names or
`address/bits`. Providers over IP have a domain for each interface, named after it; a domain that is
no interface's can be meant by its name only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ompy.data.errors import ERR_ARG, MPIError
from ompy.frameworks.btl_base.interface_words import in_named_network, words_of
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.fabric import FabricInfo
from ompy.net.base import Interface

from ompy_components.btl.ofi.component import EXCLUDED


def behind(context: RankContext, info: FabricInfo) -> Interface:
    """The network interface a domain has its name from; without an address where there is none."""
    for interface in context.network.interfaces():
        if interface.name == info.domain:
            return interface
    return Interface(info.domain, "", 0, loopback=False)


def wanted(
    context: RankContext, infos: Sequence[FabricInfo], include: str, exclude: str
) -> list[FabricInfo]:
    """The infos whose interfaces are to be used.

    Args:
        context: the rank.
        infos: what there is.
        include: value of `btl_ofi_if_include`; where it names some, only these.
        exclude: value of `btl_ofi_if_exclude`.

    Raises:
        MPIError: ERR_ARG, `include` names what is not there, or a word is no network.
    """
    if include:
        return _included(context, infos, words_of(include))
    one_host = context.one_host
    if exclude == EXCLUDED and one_host:
        return list(infos)  # loopback alone is offered there
    words = words_of(exclude)
    return [one for one in infos if not any(_is(context, one, word) for word in words)]


def one_a_domain(infos: Iterable[FabricInfo], most: int) -> list[FabricInfo]:
    """The first info of each domain of the first one's provider, `most` of them at most."""
    found: dict[str, FabricInfo] = {}
    provider = ""
    for info in infos:
        provider = provider or info.provider
        if info.provider == provider:
            found.setdefault(info.domain, info)
    return list(found.values())[:most]


def _included(
    context: RankContext, infos: Sequence[FabricInfo], words: Sequence[str]
) -> list[FabricInfo]:
    for word in words:
        if not any(_is(context, one, word) for one in infos):
            there = dict.fromkeys(_described(context, one) for one in infos)
            raise MPIError(
                ERR_ARG,
                f"btl_ofi_if_include names {word}, which is not here or has no cable; there are "
                f"{', '.join(there)}",
            )
    return [one for one in infos if any(_is(context, one, word) for word in words)]


def _described(context: RankContext, info: FabricInfo) -> str:
    interface = behind(context, info)
    where = f" ({interface.address}/{interface.prefix})" if interface.address else ""
    return interface.name + where


def _is(context: RankContext, info: FabricInfo, word: str) -> bool:
    """Whether the interface behind an info is meant by its name or by address/bits."""
    if "/" not in word:
        return info.domain == word
    address, parameters = behind(context, info).address, "btl_ofi_if_include or btl_ofi_if_exclude"
    return bool(address) and in_named_network(context.network, address, word, parameters)
