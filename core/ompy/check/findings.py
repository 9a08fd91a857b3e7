"""Findings: one thing that is wrong, where, and what is made of all of them for people."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from ompy.runtime.diagnosis.rank_spans import ranks_in_words

CLASSES: Final = (
    "deadlock",
    "buffering-dependent",
    "collective-order",
    "root-mismatch",
    "op-mismatch",
    "type-mismatch",
    "count-mismatch",
    "invalid-argument",
    "message-race",
    "buffer-in-use",
    "request-lifecycle",
    "epoch",
    "rma-race",
    "leak",
)
EXIT: Final = 5  # exit code of a job with findings; arbitrary: none of a program's usual ones
SHOWN: Final = 20  # findings told of one by one; arbitrary: a terminal or two
SITES: Final = 8  # of one finding; arbitrary
STANDARD: Final = "MPI 4.1, "  # where in a message its reason begins
_EXPECTED: Final = re.compile(r"#\s*ompy:\s*expect\s+([a-z, -]+)")


class Found(NamedTuple):
    """One finding.

    Attributes:
        kind: one of `CLASSES`.
        message: what, why by the standard, and what would be right.
        sites: rank, file, line and call of each place, the guilty one first.
    """

    kind: str
    message: str
    sites: tuple[dict[str, Any], ...]


def merged(found: Iterable[Found]) -> list[Found]:
    """Each once: what several ranks have at the same lines is one finding, in the order found."""
    known: dict[Any, Found] = {}
    for one in found:
        key = (one.kind, tuple(sorted({(site["file"], site["line"]) for site in one.sites})))
        before = known.get(key)
        if before is None:
            known[key] = one
        elif len(before.sites) < SITES:
            new = [site for site in one.sites if site not in before.sites]
            known[key] = before._replace(sites=(*before.sites, *new)[:SITES])
    return list(known.values())


def expected(found: Found) -> bool:
    """Whether the program says on one of its lines that it expects this."""
    for site in found.sites:
        said = _EXPECTED.search(linecache.getline(site["file"], site["line"]))
        if said and found.kind in re.split(r"[\s,]+", said.group(1).strip()):
            return True
    return False


def as_json(found: Sequence[Found]) -> dict[str, Any]:
    """The report for programs."""
    return {
        "findings": [
            {"class": one.kind, "message": one.message, "sites": list(one.sites)} for one in found
        ]
    }


def lines_of(found: Sequence[Found]) -> list[str]:
    """The report for people."""
    if not found:
        return ["check: nothing was found"]
    many = "1 finding" if len(found) == 1 else f"{len(found)} findings"
    lines = [f"check: {many}"]
    for one in found[:SHOWN]:
        what, _, why = one.message.partition(f". {STANDARD}")
        lines.append(f"{one.kind}: {what}")
        lines += _site_lines(one.sites)
        if why:
            lines.append(f"  {STANDARD}{why}")
    if len(found) > SHOWN:
        lines.append(f"and {len(found) - SHOWN} more; --check-report FILE has them all")
    return lines


def _site_lines(sites: Sequence[dict[str, Any]]) -> list[str]:
    """A line for each line of the program, with all ranks that were there."""
    ranks: dict[tuple[str, int, str], list[int]] = {}
    for site in sites:
        ranks.setdefault((site["file"], site["line"], site["call"]), []).append(site["rank"])
    return [f"  {_place_text(sorted(set(who)), *place)}" for place, who in ranks.items()]


def _place_text(ranks: list[int], file: str, line: int, call: str) -> str:
    who = ranks_in_words(ranks)
    if not file:
        return f"{who}: {call}"
    source = linecache.getline(file, line).strip() or call
    here = os.path.join(os.getcwd(), "")
    return f"{who} at {file.removeprefix(here)}:{line}: {source}"
