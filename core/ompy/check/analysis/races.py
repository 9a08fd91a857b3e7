"""Message races: a receive from anybody that could have taken another message.

A race that the program provides for is none to speak of: it asks who sent, it does the same with
whatever comes (a sum), or all that may come is alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ompy.check.analysis.matching import Messages, Receive, Send
from ompy.check.analysis.order import Order
from ompy.check.analysis.received import is_left, is_status_left, keys_at, use_at
from ompy.check.analysis.rounds import round_findings
from ompy.check.analysis.use_words import Use
from ompy.check.findings import Found
from ompy.check.logs import Place, Record
from ompy.check.record import ADDS, ASKED, BY_STATUS, NAMED, NAMED_AT
from ompy.data.constants import ANY_SOURCE, ANY_TAG


def race_findings(records: Mapping[int, Record], messages: Messages, order: Order) -> list[Found]:
    """The first race of each line."""
    if not order.known:
        return []
    found: dict[tuple[int, int], Found] = {}
    incoming = _by_target(records, messages)
    for rank, receives in messages.receives.items():
        for receive in receives:
            key = (rank, receive.site)
            if receive.source != ANY_SOURCE or receive.got is None or key in found:
                continue
            others = list(
                _candidates(receive, incoming.get((receive.key, rank), []), messages, order)
            )
            other = _overwriting(records[rank], receive, others, messages)
            if other is None and others:
                other = others[0]
                if _provided_for(records[rank], receive, other, messages):
                    continue
            if other is not None:
                found[key] = _race(records, receive, other, messages)
    rounds = round_findings(records, messages, order, incoming)
    lines = [one.sites[0] for one in found.values()]
    return [*found.values(), *(one for one in rounds if one.sites[0] not in lines)]


def _by_target(
    records: Mapping[int, Record], messages: Messages
) -> dict[tuple[str, int], list[Send]]:
    found: dict[tuple[str, int], list[Send]] = {}
    for rank, sends in messages.sends.items():
        comms = {comm.key: comm for comm in records[rank].comms.values()}
        for send in sends:
            members = comms[send.key].members
            if send.target < len(members):
                found.setdefault((send.key, members[send.target]), []).append(send)
    return found


def _candidates(
    receive: Receive, sends: list[Send], messages: Messages, order: Order
) -> Iterator[Send]:
    """Messages of other sources that it could have taken."""
    assert receive.got is not None, "only then is it asked"
    for send in sends:
        if send.source == receive.got[0] or receive.tag not in {ANY_TAG, send.tag}:
            continue
        taken = messages.receive_of.get((send.rank, send.place))
        if taken is not None and taken.place <= receive.place:
            continue
        if not order.before(receive.rank, receive.over, send.rank, send.place):
            yield send


def _overwriting(
    record: Record, receive: Receive, others: Sequence[Send], messages: Messages
) -> Send | None:
    """A message that is put where this one is, by what both say, so that the last one stays."""
    assert receive.got is not None, "only then is it asked"
    place = record.places.get(receive.room[0], Place("", 0, ""))
    if receive.got[3] & ASKED or receive.got[3] & BY_STATUS:
        return None
    parts = dict(*receive.got[5:])
    for name in keys_at(place, record.files) if others and parts else ():
        for other in others:
            taken = messages.receive_of.get((other.rank, other.place))
            got = None if taken is None or taken.site != receive.site else taken.got
            if got is None or name not in parts or got[4] == receive.got[4]:
                continue
            if dict(*got[5:]).get(name) == parts[name]:
                return other
    return None


def _provided_for(record: Record, receive: Receive, other: Send, messages: Messages) -> bool:
    assert receive.got is not None, "only then is it asked"
    known, place = receive.got[3], record.places.get(receive.room[0], Place("", 0, ""))
    if known & ASKED or (known & NAMED and not is_left(place, known >> NAMED_AT)):
        return True
    lines = (place, record.places.get(receive.site, place))
    if known & BY_STATUS and not is_status_left(*lines):
        return True
    taken = messages.receive_of.get((other.rank, other.place))
    digest = receive.got[4]
    if taken is not None and taken.got is not None and digest >= 0 and taken.got[4] == digest:
        return True
    use = use_at(place, record.files)
    return use == Use.ORDER_FREE or (use == Use.ADDED and bool(known & ADDS))


def _race(
    records: Mapping[int, Record], receive: Receive, other: Send, messages: Messages
) -> Found:
    assert receive.got is not None, "only then is it asked"
    sites = [records[receive.rank].site(receive.site, receive.call)]
    sent = messages.send_of.get((receive.rank, receive.place))
    if sent is not None:
        sites.append(records[sent.rank].site(sent.site, sent.call))
    sites.append(records[other.rank].site(other.site, other.call))
    message = (
        f"{receive.call} from any source took the message of rank {receive.got[0]}; that of rank "
        f"{other.source} could have come first, and nothing asks who sent. MPI 4.1, 3.5: which is "
        "taken is not determined; name the source, or look at the Status"
    )
    return Found("message-race", message, tuple(sites))
