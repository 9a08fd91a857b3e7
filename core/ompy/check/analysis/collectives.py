"""Collective calls: members that make different ones, or give them different arguments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ompy.check.findings import Found
from ompy.check.logs import Comm, Record
from ompy.check.operations import ALONG_EDGES, EXCHANGES, FROM_ROOT, REDUCTIONS, ROOTED, stem_of
from ompy.check.signatures import Signature, elements, first_difference, surplus, text
from ompy.data.constants import ROOT
from ompy.runtime.diagnosis.rank_spans import ranks_in_words


class Call(NamedTuple):
    """One member's call.

    Attributes:
        record: where it stands.
        comm: its communicator.
        sends, receives: signatures, as `record.py` has them.
    """

    record: Record
    comm: Comm
    site: int
    call: str
    kind: str
    root: int
    op: str
    sends: Any
    receives: Any

    @property
    def where(self) -> dict[str, Any]:
        """Its site."""
        return self.record.site(self.site, self.call)


def calls_by_comm(records: Mapping[int, Record]) -> dict[str, dict[int, list[Call]]]:
    """The collective calls of each communicator's members, in their order."""
    found: dict[str, dict[int, list[Call]]] = defaultdict(dict)
    for rank, record in records.items():
        for comm in record.comms.values():
            if comm.key:
                found[comm.key].setdefault(rank, [])
        for event in record.events:
            if event[0] == "coll":
                site, call, number, *rest = event[1:]
                comm_of = record.comms.get(number)
                if comm_of is not None and comm_of.key:
                    made = Call(record, comm_of, site, call, *rest[:-1])
                    found[comm_of.key][rank].append(made)
    return found


def collective_findings(records: Mapping[int, Record]) -> list[Found]:
    """What is wrong with them; of each communicator the first of each kind."""
    over = {rank: record.complete for rank, record in records.items()}
    found: list[Found] = []
    for calls in calls_by_comm(records).values():
        found += _of_comm(calls, over)
    return found


def _of_comm(calls: Mapping[int, list[Call]], over: Mapping[int, bool]) -> list[Found]:
    members = sorted(calls)
    if len(members) < 2:
        return []
    found: dict[str, Found] = {}
    shortest = min(len(calls[rank]) for rank in members)
    # a job that is ended early has members that had not begun a call: those that had are compared
    for number in range(sorted(len(calls[rank]) for rank in members)[-2]):
        row = [calls[rank][number] for rank in members if number < len(calls[rank])]
        order = _different_calls(row, number)
        if order is not None:
            return [*found.values(), order]
        for one in _different_arguments(row, whole=number < shortest):
            found.setdefault(one.kind, one)
        if "root-mismatch" in found:
            break
    if not found and _all_known(calls, members):
        ended = [rank for rank in members if len(calls[rank]) == shortest and over[rank]]
        more = [rank for rank in members if len(calls[rank]) > shortest]
        if ended and more:
            found["collective-order"] = missing = _missing(calls, more, ended[0], shortest)
            if not any(over[rank] for rank in more):
                found["deadlock"] = _standing(missing, ended[0])
    return list(found.values())


def _standing(missing: Found, ended: int) -> Found:
    """Those who wait for a member that has ended never go on."""
    site = missing.sites[0]
    message = (
        f"rank {site['rank']} can never go on: {site['call']} waits for rank {ended}, which has "
        "ended without that call. MPI 4.1, 6.14: all members make the same collective calls"
    )
    return Found("deadlock", message, missing.sites)


def _all_known(calls: Mapping[int, list[Call]], members: list[int]) -> bool:
    """Whether all members of the communicator have told."""
    own = next((calls[rank][0].comm.own for rank in members if calls[rank]), [])
    return set(own) <= set(members)


def _different_calls(row: list[Call], number: int) -> Found | None:
    by_kind: dict[str, list[Call]] = defaultdict(list)
    for call in row:
        by_kind[call.kind].append(call)
    if len(by_kind) == 1:
        return None
    groups = sorted(by_kind.values(), key=len)
    said = ", ".join(f"rank {call.record.rank} calls {call.kind}" for call in _one_of_each(groups))
    message = (
        f"collective call {number + 1} of {row[0].comm.name} is not the same in all members: "
        f"{said}. MPI 4.1, 6.14: all members make the same collective calls in the same order"
    )
    return Found(
        "collective-order", message, tuple(call.where for group in groups for call in group)
    )


def _one_of_each(groups: list[list[Call]]) -> Iterator[Call]:
    for group in groups:
        yield group[0]


def _missing(
    calls: Mapping[int, list[Call]], more: list[int], without: int, shortest: int
) -> Found:
    extra = [calls[rank][shortest] for rank in more]
    message = (
        f"{extra[0].kind}, collective call {shortest + 1} of {extra[0].comm.name}, is made by rank "
        f"{extra[0].record.rank} and not by rank {without}. MPI 4.1, 6.14: all members make the "
        "same collective calls in the same order"
    )
    return Found("collective-order", message, tuple(call.where for call in extra))


def _different_arguments(row: list[Call], *, whole: bool) -> Iterator[Found]:
    stem = stem_of(row[0].kind)
    between = _is_between(row)
    if stem in ROOTED:
        # the group that has the root says so itself, and not which one it is
        named = [call for call in row if not between or call.root >= 0]
        odd = odd_places([call.root for call in named])
        if odd:
            said = _on_ranks([(str(named[i].root), named[i].record.rank) for i in odd])
            message = (
                f"{row[0].kind}: the root is {said}. MPI 4.1, 6.1: all members name the same root"
            )
            yield Found("root-mismatch", message, tuple(named[i].where for i in odd))
            return
        other = (_other_root(row) or _root_count(row, whole=whole)) if between else None
        if other is not None:
            yield other
            return
    giving = [call for call in row if not between or stem != "reduce" or call.root >= 0]
    odd = odd_places([call.op for call in giving]) if stem in REDUCTIONS else []
    if odd:
        said = _on_ranks([(giving[i].op, giving[i].record.rank) for i in odd])
        message = f"{row[0].kind}: the operation is {said}. MPI 4.1, 6.9: all give the same one"
        yield Found("op-mismatch", message, tuple(giving[i].where for i in odd))
    if whole:  # whose data meet is told by the members' places in the row
        yield from _different_data(stem, row)


def _other_root(row: list[Call]) -> Found | None:
    """Who says that it is the root, and is not the one that the other group names."""
    named = [call for call in row if 0 <= call.root < len(call.comm.members)]
    for root in row:
        for call in named:
            if root.root == ROOT and call.root != root.comm.rank:
                message = (
                    f"{row[0].kind}: the root is {call.root} of the other group on rank "
                    f"{call.record.rank}, and rank {root.record.rank}, which is {root.comm.rank} "
                    "there, says that it is the root. MPI 4.1, 6.1: all members name the same root"
                )
                return Found("root-mismatch", message, (root.where, call.where))
    other = next((call for call in named if call.comm.own != named[0].comm.own), None)
    if other is None:
        return None
    message = (
        f"{row[0].kind}: the root is {named[0].root} of the other group on rank "
        f"{named[0].record.rank}, and {other.root} of the other group on rank {other.record.rank}. "
        "MPI 4.1, 6.1: in the group of the root it says ROOT, and the others say PROC_NULL"
    )
    return Found("root-mismatch", message, (named[0].where, other.where))


def _root_count(row: list[Call], *, whole: bool) -> Found | None:
    """Several members that say that they are the root, or none where one is named."""
    roots = [call for call in row if call.root == ROOT]
    named = [call for call in row if 0 <= call.root < len(call.comm.members)]
    rule = "MPI 4.1, 6.1: in the group of the root it says ROOT, and the others say PROC_NULL"
    if len(roots) > 1:
        who = " and ".join(f"rank {call.record.rank}" for call in roots[:4])
        message = f"{row[0].kind}: {who} say that they are the root. {rule}"
        return Found("root-mismatch", message, tuple(call.where for call in roots))
    if roots or not named or not whole:
        return None
    first = named[0]
    root = next((call for call in row if call.record.rank == first.comm.members[first.root]), first)
    message = (
        f"{row[0].kind}: the root is {first.root} of the other group on rank {first.record.rank}, "
        f"and rank {root.record.rank}, which is {first.root} there, does not say ROOT. {rule}"
    )
    return Found("root-mismatch", message, _both(root, first))


def _is_between(row: list[Call]) -> bool:
    """Whether two groups make the call."""
    return row[0].comm.own != row[0].comm.members


def _on_ranks(said: list[tuple[str, int]]) -> str:
    """Who says what: `1 on rank 2 and 0 on ranks 0, 1`; four of it at most."""
    ranks: dict[str, list[int]] = {}
    for what, rank in said:
        ranks.setdefault(what, []).append(rank)
    parts = [f"{what} on {ranks_in_words(who)}" for what, who in ranks.items()]
    return " and ".join(parts[:4])


def odd_places(values: list[Any]) -> list[int]:
    """One place of each value, the rarest first; empty if all are the same."""
    places: dict[Any, list[int]] = defaultdict(list)
    for place, value in enumerate(values):
        places[value].append(place)
    if len(places) == 1:
        return []
    return [place for group in sorted(places.values(), key=len) for place in group]


def _different_data(stem: str, row: list[Call]) -> Iterator[Found]:
    # what one member gives itself is told of last: others' lines say more
    for sender, sent, receiver, received in sorted(_meeting(stem, row), key=_is_own):
        if sent is None or received is None:
            continue
        difference = first_difference(sent, received)
        if difference is not None and elements(sent) and elements(received):
            yield Found(
                "type-mismatch", _types(sender, sent, receiver, received), _both(sender, receiver)
            )
            return
        if surplus(sent, received):
            yield Found(
                "count-mismatch", _counts(sender, sent, receiver, received), _both(sender, receiver)
            )
            return


def _both(one: Call, other: Call) -> tuple[dict[str, Any], ...]:
    return (one.where, other.where)


def _types(sender: Call, sent: Signature, receiver: Call, received: Signature) -> str:
    return (
        f"{sender.kind}: rank {sender.record.rank} gives {text(sent)}, rank {receiver.record.rank} "
        f"{text(received)}. MPI 4.1, 6.1: the types have to agree"
    )


def _counts(sender: Call, sent: Signature, receiver: Call, received: Signature) -> str:
    return (
        f"{sender.kind}: rank {sender.record.rank} gives {text(sent)}, and rank "
        f"{receiver.record.rank} has {text(received)} for it. MPI 4.1, 6.1: the amounts have to be "
        "equal"
    )


Meeting = tuple[Call, Signature | None, Call, Signature | None]


def _meeting(stem: str, row: list[Call]) -> Iterator[Meeting]:
    """What is sent by one and received by another, pair by pair."""
    if _is_between(row):
        yield from _meeting_between(stem, row)
        return
    by_rank = {call.comm.rank: call for call in row}
    root = by_rank.get(row[0].root)
    if stem in REDUCTIONS:
        yield from ((call, call.sends, row[0], row[0].sends) for call in row)
        for call in row:
            for rank in range(len(row)):
                yield call, _listed(call.receives, rank), row[0], _listed(row[0].receives, rank)
    elif stem in ROOTED and root is not None:
        yield from _with_root(stem, root, row)
    elif stem in ALONG_EDGES:
        yield from _along_edges(row)
    elif stem in EXCHANGES:
        for one in row:
            for other in row:
                sent = _part(one.sends, other.comm.rank)
                yield one, sent, other, _part(other.receives, one.comm.rank)


def _meeting_between(stem: str, row: list[Call]) -> Iterator[Meeting]:
    """The same between two groups: none has anything for a member of its own."""
    root = next((call for call in row if call.root == ROOT), None)
    if stem in REDUCTIONS:
        some = [call for call in row if stem != "reduce" or call.root >= 0]
        yield from ((call, call.sends, some[0], some[0].sends) for call in some[1:])
    elif stem in ROOTED and root is not None:
        yield from _with_root(stem, root, [call for call in row if call.root >= 0])
    elif stem in EXCHANGES:
        for one in row:
            for other in row:
                if one.comm.own != other.comm.own:
                    sent = _part(one.sends, other.comm.rank)
                    yield one, sent, other, _part(other.receives, one.comm.rank)


def _is_own(meeting: Meeting) -> bool:
    """Whether a member gives it itself."""
    return meeting[0] is meeting[2]


def _along_edges(row: list[Call]) -> Iterator[Meeting]:
    """What goes along each edge.

    Which of several edges between two members is which differs between topologies. So these are
    compared only where all of them are alike.
    """
    by_rank = {call.comm.rank: call for call in row}
    for call in row:
        for target in dict(call.sends or ()):
            other = by_rank.get(target)
            if other is None:
                continue
            sent = [part for rank, part in call.sends if rank == target]
            received = [part for rank, part in other.receives or () if rank == call.comm.rank]
            if received and sent == [sent[0]] * len(received) and len(set(received)) == 1:
                yield call, sent[0], other, received[0]


def _with_root(stem: str, root: Call, row: list[Call]) -> Iterator[Meeting]:
    for call in row:
        if stem == "bcast":
            yield root, root.sends, call, call.sends
        elif stem in FROM_ROOT:
            yield root, _part(root.sends, call.comm.rank), call, call.receives
        else:
            yield call, call.sends, root, _part(root.receives, call.comm.rank)


def _listed(side: Any, rank: int) -> Signature | None:
    """The part of one rank, where a member gives one for each."""
    return _part(side, rank) if isinstance(side, list) else None


def _part(side: Any, rank: int) -> Signature | None:
    """The part of one rank: a list has one for each."""
    if isinstance(side, list):
        return side[rank] if rank < len(side) else None
    found: Signature | None = side
    return found
