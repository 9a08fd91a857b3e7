"""Calls on files that all members make together, and what they have to say alike in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from ompy.check.analysis.collectives import odd_places
from ompy.check.findings import Found
from ompy.check.logs import Record

# what is wrong where the members differ, and why
_RULES: Final = {
    "file": ("invalid-argument", "MPI 4.1, 14.2.1: all members name the same file"),
    "amode": ("invalid-argument", "MPI 4.1, 14.2.1: all members give the same amode"),
    "etype": (
        "type-mismatch",
        "MPI 4.1, 14.3: the etypes of all members have the same extent; what differs goes into "
        "the filetype or the displacement",
    ),
    "datarep": ("invalid-argument", "MPI 4.1, 14.3: all members give the same representation"),
    "size": ("count-mismatch", "MPI 4.1, 14.2.4 and 14.2.5: all members give the same size"),
    "flag": ("invalid-argument", "MPI 4.1, 14.6.1: all members give the same flag"),
    "offset": ("invalid-argument", "MPI 4.1, 14.4.4: all members move it to the same place"),
    "whence": ("invalid-argument", "MPI 4.1, 14.4.4: all members move it to the same place"),
}


class Said(NamedTuple):
    """What one member says in one call.

    Attributes:
        values: by name: what is compared, and as people read it.
        identity: of the file that it opens; empty where that is not known.
        refused: the call has raised, and the program went on.
    """

    record: Record
    site: int
    call: str
    kind: str
    values: dict[str, tuple[Any, str]]
    identity: str
    refused: bool


def argument_findings(records: Mapping[int, Record]) -> list[Found]:
    """Of each communicator the first call of each kind of difference."""
    found: list[Found] = []
    for members in _by_comm(records).values():
        told: dict[str, Found] = {}
        for row in zip(*members.values(), strict=False):
            if len({each.kind for each in row}) > 1:
                break  # the order of their calls is wrong
            for name, one in _differences(row):
                told.setdefault(name, one)
        found += told.values()
    return found


def _by_comm(records: Mapping[int, Record]) -> dict[str, dict[int, list[Said]]]:
    found: dict[str, dict[int, list[Said]]] = defaultdict(dict)
    for rank, record in records.items():
        for index, event in enumerate(record.events):
            if event[0] == "said":
                comm = record.comms.get(event[3])
                if comm is not None and comm.key:
                    found[comm.key].setdefault(rank, []).append(_said(record, index, event))
    return {key: members for key, members in found.items() if len(members) > 1}


def _said(record: Record, index: int, event: tuple[Any, ...]) -> Said:
    _, site, call, _, kind, values = event
    identity, refused = "", False
    for later in record.events[index + 1 : index + 2]:
        if later[0] == "file" and later[1] == site:
            identity = later[6]
        elif later[0] == "raised" and record.complete:
            refused = any(each[0] == site for each in later[3])
    by_name = {name: (value, text) for name, value, text in values}
    return Said(record, site, call, kind, by_name, identity, refused)


def _differences(row: tuple[Said, ...]) -> Iterator[tuple[str, Found]]:
    for name, (kind, why) in _RULES.items():
        if any(name not in each.values or each.refused for each in row):
            continue
        compared = [each.values[name][0] for each in row]
        if name == "file" and all(each.identity for each in row):
            compared = _files_of(row)
        odd = odd_places(compared)
        if odd:
            said = " and ".join(
                f"{row[i].values[name][1]} on rank {row[i].record.rank}"
                for i in _one_of_each(odd, compared)
            )
            text = f"{row[0].kind}: the {name} is {said}. {why}"
            sites = tuple(row[i].record.site(row[i].site, row[i].call) for i in odd)
            yield name, Found(kind, text, sites)
            return  # one call, one finding


def _files_of(row: tuple[Said, ...]) -> list[Any]:
    """Numbers of files: one path is one file, and so is one identity."""
    known: dict[Any, int] = {}
    found = []
    for each in row:
        keys = (each.values["file"][0], ("identity", each.identity))
        number = next((known[key] for key in keys if key in known), len(known))
        known.update(dict.fromkeys(keys, number))
        found.append(number)
    return found


def _one_of_each(places: list[int], values: list[Any]) -> Iterator[int]:
    shown = set()
    for place in places:
        if values[place] not in shown:
            shown.add(values[place])
            yield place
