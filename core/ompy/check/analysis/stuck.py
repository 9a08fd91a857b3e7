"""Deadlocks, as the launcher has proven them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ompy.check.analysis.matching import Messages
from ompy.check.findings import Found
from ompy.check.logs import Record
from ompy.check.record import file_name

LOST: Final = 4  # messages that are told of; arbitrary

_CALL: Final = re.compile(r"[\w.]*\.\w+(?=\()")


def deadlock_findings(proven: Mapping[str, Any], *, synchronous: bool) -> list[Found]:
    """One finding: who waits for what, at which line.

    Args:
        proven: what the launcher has proven, as JSON has it.
        synchronous: standard sends waited for their receives; of sends it is that then.
    """
    sites, told = [], []
    for waits in proven.get("waits", ()):
        file = str(waits.get("file", ""))
        site = {
            "rank": waits["rank"],
            "file": file_name(file) if file else "",
            "line": int(waits.get("line", 0)),
            "call": _call_in(str(waits.get("text", ""))),
        }
        sites.append(site)
        told.append(f"rank {waits['rank']} waits for {' or '.join(waits['for'])}")
    cycle = proven.get("cycle") or []
    circle = " -> ".join(map(str, [*cycle, *cycle[:1]])) if len(cycle) > 1 else ""
    order = {rank: place for place, rank in enumerate(cycle)}
    sites.sort(key=lambda site: order.get(site["rank"], len(order)))
    text = "ranks can never go on"
    text += f", each waits for the next ({circle})" if circle else ""
    text += f": {'; '.join(told[:8])}. MPI 4.1, 3.5: what each waits for another has to do first"
    sends = synchronous and any(site["call"].lower().endswith(".send") for site in sites)
    kind = "buffering-dependent" if sends else "deadlock"
    return [Found(kind, text, tuple(sites))]


def with_lost_messages(found: Found, records: Mapping[int, Record], messages: Messages) -> Found:
    """The same with the sends to ranks that wait, of which they have taken nothing."""
    waiting = {site["rank"] for site in found.sites}
    sites = list(found.sites)
    for rank, sends in messages.sends.items():
        comms = {comm.key: comm for comm in records[rank].comms.values()}
        for send in sends:
            members = comms[send.key].members
            target = members[send.target] if send.target < len(members) else -1
            taken = (send.rank, send.place) in messages.receive_of
            if target in waiting and not taken and len(sites) - len(found.sites) < LOST:
                site = records[rank].site(send.site, send.call)
                sites += [site] if site not in sites else []
    return found._replace(sites=tuple(sites))


def _call_in(line: str) -> str:
    """The call that a line of a program makes, as other findings name it."""
    found = _CALL.search(line)
    return found.group() if found else line
