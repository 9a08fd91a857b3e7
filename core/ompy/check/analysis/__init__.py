"""From the records of all ranks to findings: pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ompy.check.analysis.buffering import buffering_findings
from ompy.check.analysis.collectives import collective_findings
from ompy.check.analysis.file_arguments import argument_findings
from ompy.check.analysis.file_races import file_findings
from ompy.check.analysis.matching import messages_of
from ompy.check.analysis.messages import message_findings
from ompy.check.analysis.order import Order
from ompy.check.analysis.races import race_findings
from ompy.check.analysis.starts import start_findings
from ompy.check.analysis.stuck import deadlock_findings, with_lost_messages
from ompy.check.analysis.windows import window_findings
from ompy.check.findings import Found
from ompy.check.logs import Record
from ompy.check.record import MET

# what makes a call refuse something, where it is told with the lines of several ranks
CAUSES: Final = frozenset(
    {"type-mismatch", "count-mismatch", "collective-order", "root-mismatch", "message-race"}
    | {"invalid-argument"}  # which members give differently
)


def findings_of(
    records: Mapping[int, Record],
    deadlock: Mapping[str, Any] | None,
    *,
    went_well: bool,
    synchronous: bool = False,
    stopped: bool = False,
) -> list[Found]:
    """All that is wrong.

    Args:
        records: of all ranks.
        deadlock: what the launcher has proven, as JSON has it; or None.
        went_well: the job has ended with 0.
        synchronous: standard sends waited for their receives.
        stopped: a signal or the end of its time has ended it, and nothing that the program did.
    """
    _forget_strangers(records)
    found = [
        one
        for record in records.values()
        for one in _of_rank(record, went_well=went_well, stopped=stopped)
    ]
    messages = messages_of(records)
    order = Order(records, messages)
    calls = collective_findings(records)
    found += calls
    if not any(one.kind == "collective-order" for one in calls):
        found += start_findings(records)
    found += message_findings(records, messages)
    found += race_findings(records, messages, order)
    found += window_findings(dict(records), order)
    found += argument_findings(records)
    found += file_findings(records, order)
    found = _without_echoes(found)
    explained = any(one.kind in {"collective-order", "root-mismatch"} for one in found)
    if deadlock is not None and not explained:
        stuck = deadlock_findings(deadlock, synchronous=synchronous)
        found += [with_lost_messages(one, records, messages) for one in stuck]
    if went_well:
        found += buffering_findings(records, messages)
    return found


def _forget_strangers(records: Mapping[int, Record]) -> None:
    """Communicators with processes of worlds that have not told: what these do is not known."""
    for record in records.values():
        for number, comm in record.comms.items():
            if comm.key.startswith(MET) and not {*comm.members, *comm.own} <= records.keys():
                record.comms[number] = comm._replace(key="")


def _without_echoes(found: list[Found]) -> list[Found]:
    """Without what a call refused where the cause is known: that is told with both lines."""
    causes = [one for one in found if one.kind in CAUSES and len(one.sites) > 1]
    ranks = {site["rank"] for one in causes for site in one.sites}
    lines = {(site["file"], site["line"]) for one in causes for site in one.sites}

    def is_echo(one: Found) -> bool:
        site = one.sites[0]
        if one.kind == "count-mismatch":
            return len(one.sites) == 1 and site["rank"] in ranks
        at_line = (site["file"], site["line"]) in lines
        return one.kind in {"invalid-argument", "deadlock"} and len(one.sites) == 1 and at_line

    return [one for one in found if not one.sites or not is_echo(one)]


def _of_rank(record: Record, *, went_well: bool, stopped: bool) -> list[Found]:
    """What the rank has found itself, and what it ended by.

    A rank that was stopped has not ended by an error behind which it has called anything else.
    """
    events = [event for event in record.events if event[0] == "find"]
    if not went_well and not record.complete:
        rest = [event for event in record.events if event[0] != "find"]
        raised = [event for event in (rest[-1:] if stopped else rest) if event[0] == "raised"]
        events += raised[-1:]
    return [
        Found(kind, text, tuple(record.site(*site) for site in sites))
        for _, kind, text, sites in events
    ]
