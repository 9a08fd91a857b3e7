"""Messages: both ends have to agree on types and amounts, and what is sent has to be received."""

from __future__ import annotations

from collections.abc import Mapping

from ompy.check.analysis.matching import Messages, Receive, Send
from ompy.check.findings import Found
from ompy.check.logs import Record
from ompy.check.record import REFUSED
from ompy.check.signatures import OBJECT, elements, first_difference, surplus, text


def message_findings(records: Mapping[int, Record], messages: Messages) -> list[Found]:
    """What is wrong with them."""
    found = []
    for send, receive in messages.pairs:
        one = _disagreement(records, send, receive)
        if one is not None:
            found.append(one)
    for send in messages.unmatched:
        sites = records[send.rank].sites(send.site, send.call)
        message = (
            f"{send.call}: the message to rank {send.target} with tag {send.tag} was never "
            "received. MPI 4.1, 11.2.2: all communication is complete before Finalize; receive it, "
            "or do not send it"
        )
        found.append(Found("leak", message, sites))
    return found


def _went_on(record: Record, receive: Receive) -> bool:
    """Whether a rank did not end by what a receive was refused."""
    if record.complete:
        return True
    lines = [event[3][0][0] for event in record.events if event[0] == "raised"]
    return receive.site in lines and receive.site != lines[-1]


def _disagreement(records: Mapping[int, Record], send: Send, receive: Receive) -> Found | None:
    if send.signature is None or receive.signature is None:
        return None
    refused = receive.got is not None and receive.got[3] & REFUSED
    if refused and _went_on(records[receive.rank], receive):
        return None  # it was told so
    sites = (
        *records[send.rank].sites(send.site, send.call),
        *records[receive.rank].sites(*receive.room),
    )
    both = (
        f"rank {send.rank} sends {text(send.signature)} with tag {send.tag}, rank {receive.rank} "
        f"receives {text(receive.signature)}"
    )
    differ = first_difference(send.signature, receive.signature) is not None
    if differ and elements(send.signature) and elements(receive.signature):
        why = "MPI 4.1, 3.3.1: both ends name the same types"
        return Found("type-mismatch", f"{both}. {why}", sites)
    # who receives an object has room for as many bytes as come
    more = surplus(send.signature, receive.signature)
    if receive.signature != OBJECT and (more > 0 or (refused and more)):
        why = "MPI 4.1, 3.2.4: a message may not be longer than the receive"
        return Found("count-mismatch", f"{both}. {why}", sites)
    return None
