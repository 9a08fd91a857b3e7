"""What the checker says of one cell after the other.

Analysed is the record of all ranks from the last moment at which nothing was under way: a message
may be sent in one cell and received in the next. After a cell that leaves nothing the record begins
anew, so the records, and the time this takes, do not grow with the notebook.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ompy.check.analysis import findings_of
from ompy.check.findings import Found, expected, lines_of, merged
from ompy.check.logs import Record
from ompy.cli.notebook.ranks import Outcome

LEFT = "left for a later cell, else it is a leak"
UNKNOWN = "messages of cells that were not checked are still there; what they do is not known"


class CellCheck:
    """The checker's state between the cells of one set of ranks.

    Attributes:
        goes_on: something is left over: the next cell belongs to the same record.
    """

    def __init__(self) -> None:
        self.goes_on = False
        self._shown: set[Any] = set()

    def lines_after(self, records: Mapping[int, Record], outcome: Outcome) -> list[str]:
        """What is new after a cell, in lines.

        Args:
            records: of all ranks.
            outcome: of the cell.
        """
        for rank, told in outcome.told.items():
            records[rank].complete = told["status"] == "ok" and not _is_cut(records[rank])
        found = findings_of(records, outcome.deadlock, went_well=outcome.went_well)
        found = [one for one in merged(found) if not expected(one)]
        left = [one for one in found if one.kind == "leak"] + _open_calls(records, outcome)
        new = [one for one in found if one.kind != "leak" and _key(one) not in self._shown]
        idle = all(told["idle"] for told in outcome.told.values())
        self.goes_on = outcome.went_well and not (idle and not left)
        self._shown = {*self._shown, *map(_key, new)} if self.goes_on else set()
        lines = lines_of(new)
        if left and outcome.went_well:
            lines += [LEFT, *(f"  {line}" for one in merged(left) for line in lines_of([one])[1:])]
        if any(told["unknown"] for told in outcome.told.values()):
            lines.append(UNKNOWN)
        return lines


def _is_cut(record: Record) -> bool:
    return any(event[0] == "cut" for event in record.events)


def _key(found: Found) -> Any:
    return (found.kind, tuple(sorted({(site["file"], site["line"]) for site in found.sites})))


def _open_calls(records: Mapping[int, Record], outcome: Outcome) -> list[Found]:
    """What was begun and not completed."""
    return [
        Found("leak", f"{call}: it is not completed yet", (records[rank].site(site, call),))
        for rank, told in outcome.told.items()
        for site, call in told["open"]
    ]
