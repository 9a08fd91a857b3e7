"""Which ports openib uses, and which port of a peer each of ours talks to.

Ports of one subnet reach each other: the first of ours there talks to the first of theirs, and so
on (reference openmpi.md 5.1: an endpoint joins two ports of one subnet).
"""

from __future__ import annotations

from collections.abc import Sequence

from ompy.frameworks.btl_base.interface_words import in_named_network, words_of
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.verbs import VerbsNic
from ompy.mca.parameter import Values

from ompy_components.btl.openib.modex import PortRecord


def choose_devices(
    context: RankContext, found: Sequence[VerbsNic], values: Values
) -> tuple[list[VerbsNic], list[str]]:
    """The devices to use.

    `if_include` and `if_exclude` name devices or interfaces, `ipaddr_include` and `ipaddr_exclude`
    networks.

    Returns:
        The devices, and names that nothing has.

    Raises:
        MPIError: ERR_ARG, a word is a network nobody can read.
    """
    left = list(found)
    unknown: list[str] = []
    for include, exclude, is_network in (
        (values.if_include, values.if_exclude, False),
        (values.ipaddr_include, values.ipaddr_exclude, True),
    ):
        words = words_of(include or exclude)
        if not words:
            continue
        matched = {
            nic: [word for word in words if _is(context, nic, word, is_network=is_network)]
            for nic in found
        }
        unknown += [word for word in words if not any(word in got for got in matched.values())]
        left = [nic for nic in left if bool(matched[nic]) is bool(include)]
    return left[: values.max_btls if values.max_btls >= 0 else None], unknown


def _is(context: RankContext, nic: VerbsNic, word: str, *, is_network: bool) -> bool:
    identity = nic.identity
    if not is_network:
        return word.partition(":")[0] in (identity.name, identity.interface)
    parameters = "btl_openib_ipaddr_include or btl_openib_ipaddr_exclude"
    return in_named_network(context.network, identity.address, word, parameters)


def position(records: Sequence[PortRecord], index: int) -> int:
    """The how-manieth of its subnet a port is."""
    subnet = records[index].subnet
    return sum(other.subnet == subnet for other in records[:index])


def find_partner(
    ours: Sequence[PortRecord], index: int, theirs: Sequence[PortRecord]
) -> PortRecord | None:
    """The port of a peer that our port `index` talks to, or None."""
    there = [other for other in theirs if other.subnet == ours[index].subnet]
    at = position(ours, index)
    return there[at] if at < len(there) else None
