"""Which NICs usnic uses, and which module of a peer each of ours talks to."""

from __future__ import annotations

from collections.abc import Sequence

from ompy.frameworks.btl_base.interface_words import in_named_network, words_of
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.datagram import DatagramNic
from ompy.frameworks.proc import Proc

from ompy_components.btl.usnic import modex
from ompy_components.btl.usnic.pairing import assign, weight


def choose_devices(
    context: RankContext, found: Sequence[DatagramNic], include: str, exclude: str
) -> list[DatagramNic]:
    """The devices to use: those `include` names, or those `exclude` does not.

    A word is the name of a device or of its interface, or `address/bits`. A network has to be
    the interface's own, bits included (reference usnic.md 2.1).

    Raises:
        MPIError: ERR_ARG, a word is a network nobody can read.
    """
    words = words_of(include or exclude)
    if not words:
        return list(found)
    wanted = bool(include)
    return [nic for nic in found if any(_is(context, nic, word) for word in words) is wanted]


def _is(context: RankContext, nic: DatagramNic, word: str) -> bool:
    identity = nic.identity
    if "/" not in word:
        return word in (identity.name, identity.interface)
    parameters = "btl_usnic_if_include or btl_usnic_if_exclude"
    inside = in_named_network(context.network, identity.address, word, parameters)
    return inside and word.rpartition("/")[2] == str(identity.prefix)


def unreachable(context: RankContext, proc: Proc) -> str:
    """Why no module of ours can reach one of `proc`; empty when one can, or it has none."""
    ours, theirs = _records(context, context.procs[context.rank]), _records(context, proc)
    if not theirs or any(_weight(context, one, other) for one in ours for other in theirs):
        return ""
    here, there = ({record.max_message for record in records} for records in (ours, theirs))
    sizes = [", ".join(map(str, sorted(side))) for side in (here, there)]
    return f"packets have {sizes[0]} bytes here and {sizes[1]} there; make the MTUs equal"


def _records(context: RankContext, proc: Proc) -> list[modex.ModuleRecord]:
    return modex.unpack_records(context.modex(proc).get(modex.KEY, b""))


def find_partner(
    context: RankContext, proc: Proc, index: int
) -> tuple[int, modex.ModuleRecord] | None:
    """The module of `proc` that our module `index` talks to: its index and record, or None."""
    ours, theirs = _records(context, context.procs[context.rank]), _records(context, proc)
    if not theirs:
        return None
    swapped = proc.rank < context.rank  # both sides have to solve the same problem
    left, right = (theirs, ours) if swapped else (ours, theirs)
    pairs = assign([[_weight(context, one, other) for other in right] for one in left])
    if swapped:
        mine = pairs.index(index) if index in pairs else None
    else:
        mine = pairs[index]
    return None if mine is None else (mine, theirs[mine])


def _weight(context: RankContext, one: modex.ModuleRecord, other: modex.ModuleRecord) -> int:
    if one.max_message != other.max_message:
        return 0  # their packets do not fit each other's buffers
    near = context.network.in_network(other.host, f"{one.host}/{one.prefix}")
    return weight(near and one.prefix == other.prefix, min(one.speed, other.speed))
