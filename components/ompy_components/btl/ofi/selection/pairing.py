"""Which module of a peer each of ours talks to.

Modules are paired by network: the first of ours in a network with the first of theirs there, and so
on. What is left over is paired in order: hosts whose networks differ are joined by routers. Both
ends put the lower rank's modules first, so both come to the same pairs; a message names its sender
by rank, and each module has one path to a rank.

An address that both hosts have is no way from one to the other: bridges such as docker0 have the
same one everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ompy.net.base import Network

from ompy_components.btl.ofi.modex import PeerRecord


class Pair(NamedTuple):
    """Two modules that talk to each other.

    Attributes:
        left, right: their positions.
        near: both are in one network, or their addresses are not known.
    """

    left: int
    right: int
    near: bool


def pairs(
    network: Network,
    left: Sequence[PeerRecord],
    right: Sequence[PeerRecord],
    *,
    same_host: bool,
) -> list[Pair]:
    """The pairs, by position.

    Args:
        network: of the rank; asked about addresses only.
        left: modules of the lower rank.
        right: those of the other one.
        same_host: both ranks are on it.
    """
    shared: set[str] = set()
    if not same_host:
        shared = {one.address for one in left} & {one.address for one in right} - {""}
    lefts = _without(left, shared)
    rights = _without(right, shared)
    found: list[Pair] = []
    for near in (True, False):
        for one in list(lefts):
            partner = _first(network, left[one], right, rights, near=near)
            if partner is not None:
                found.append(Pair(one, partner, near or not left[one].address))
                lefts.remove(one)
                rights.remove(partner)
    return sorted(found)


def _without(records: Sequence[PeerRecord], addresses: set[str]) -> list[int]:
    """Positions of those that have none of the addresses; all where nothing would be left."""
    everyone = list(range(len(records)))
    return [place for place in everyone if records[place].address not in addresses] or everyone


def _first(
    network: Network,
    one: PeerRecord,
    records: Sequence[PeerRecord],
    places: Sequence[int],
    *,
    near: bool,
) -> int | None:
    """The first of the other side's that this one can be paired with."""
    for place in places:
        other = records[place]
        if (one.provider, one.mode) != (other.provider, other.mode):
            continue
        if not near or (
            one.address
            and other.address
            and network.in_network(other.address, f"{one.address}/{one.prefix}")
        ):
            return place
    return None
