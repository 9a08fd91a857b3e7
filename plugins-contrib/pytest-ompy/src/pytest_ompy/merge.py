"""One report out of those of several ranks.

A report here is the dictionary of builtin values that pytest makes of a `TestReport`
(`pytest_report_to_serializable`), so that those of real ranks, of virtual ones and of ranks that
never reported are all alike.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

Report = dict[str, Any]

_ADDRESS: Final = re.compile(r"\b0x[0-9a-fA-F]+\b")
STRICT_XPASS: Final = "[XPASS(strict)]"  # how pytest's report of a strict xfail that passed begins
_PLACE: Final = "ompy_place"  # key: see `text_failure`
CONSEQUENCE: Final = "ompy_consequence"  # key: the rank did not end because of what others did


class _Group(NamedTuple):
    """Ranks that failed at the same place, with what they said there."""

    messages: dict[str, list[int]]
    first: Report


def ranks_text(ranks: Iterable[int]) -> str:
    """Numbers of ranks, runs of them shortened: `rank 3`, `ranks 0-2,7`."""
    numbers = sorted(set(ranks))
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return f"{'rank' if len(numbers) == 1 else 'ranks'} {','.join(parts)}"


def kind_of(report: Report) -> str:
    """What a report says: passed, skipped, xfailed, xpassed, xpassed-strict, lost or failed."""
    outcome: str = report["outcome"]
    if "wasxfail" in report:
        return "xfailed" if outcome == "skipped" else "xpassed"
    if outcome == "failed":
        if report.get(CONSEQUENCE):
            return "lost"
        longrepr = report["longrepr"]
        if isinstance(longrepr, str) and longrepr.startswith(STRICT_XPASS):
            return "xpassed-strict"
    return outcome


def merge(reports: Mapping[int, Report], size: int) -> Report:
    """The report of a test for one of its phases.

    Any rank failed: failed. Else any failed as expected: xfailed; its other ranks may have passed
    or been left waiting. Else all skipped: skipped. A test that some ranks skipped and others
    passed has passed, and says so.

    Args:
        reports: of the ranks that have one for this phase; at least one.
        size: how many ranks the test has.
    """
    reports = dict(sorted(reports.items()))
    kinds = {rank: kind_of(report) for rank, report in reports.items()}
    present = set(kinds.values())
    first = next(iter(reports.values()))
    merged = {**first, "longrepr": None, "outcome": "passed", **_times(reports.values())}
    merged["sections"] = _sections(reports)
    merged["user_properties"] = _properties(reports)
    merged.pop("wasxfail", None)
    merged.pop(CONSEQUENCE, None)
    if "failed" in present or ("lost" in present and "xfailed" not in present):
        merged["outcome"] = "failed"
        merged["longrepr"] = _failure(reports, kinds, ("failed", "lost"), size)
    elif "xfailed" in present:
        xfailed = [rank for rank, kind in kinds.items() if kind == "xfailed"]
        merged["outcome"] = "skipped"
        merged["wasxfail"] = reports[xfailed[0]]["wasxfail"]
        merged["longrepr"] = _failure(reports, kinds, ("xfailed", "lost"), size)
    elif present & {"xpassed", "xpassed-strict"}:
        kind = "xpassed-strict" if "xpassed-strict" in present else "xpassed"
        unexpected = next(reports[rank] for rank in kinds if kinds[rank] == kind)
        merged.update({key: unexpected[key] for key in ("outcome", "longrepr")})
        if "wasxfail" in unexpected:
            merged["wasxfail"] = unexpected["wasxfail"]
    elif present == {"skipped"}:
        merged["outcome"] = "skipped"
        merged["longrepr"] = _skips(reports.values())
    if merged["outcome"] == "passed" and "skipped" in present:
        skipped = [rank for rank, kind in kinds.items() if kind == "skipped"]
        merged["ompy_note"] = f"skipped on {ranks_text(skipped)} of {size}"
    return merged


def _times(reports: Iterable[Report]) -> Report:
    """From when the first rank began to when the last one ended."""
    known = list(reports)
    return {
        "start": min(report["start"] for report in known),
        "stop": max(report["stop"] for report in known),
        "duration": max(report["duration"] for report in known),
    }


def _sections(reports: Mapping[int, Report]) -> list[tuple[str, str]]:
    """What ranks printed, each different text once with the ranks that printed it."""
    found: dict[tuple[str, str], list[int]] = {}
    for rank, report in reports.items():
        for name, content in report["sections"]:
            found.setdefault((name, content), []).append(rank)
    return [(f"{name} ({ranks_text(ranks)})", text) for (name, text), ranks in found.items()]


def _properties(reports: Mapping[int, Report]) -> list[tuple[str, Any]]:
    """Properties all ranks agree on as they are, others with the rank in their name."""
    found: list[tuple[str, Any]] = []
    lists = {rank: [tuple(pair) for pair in r["user_properties"]] for rank, r in reports.items()}
    common = [
        pair
        for pair in next(iter(lists.values()))
        if all(pair in pairs for pairs in lists.values())
    ]
    found += common
    for rank, pairs in lists.items():
        found += [
            (f"{name}[rank {rank}]", value) for name, value in pairs if (name, value) not in common
        ]
    return found


def _skips(reports: Iterable[Report]) -> tuple[str, int, str]:
    """Place of the first skip, and all reasons."""
    places = [tuple(report["longrepr"]) for report in reports]
    reasons = dict.fromkeys(place[2].removeprefix("Skipped: ") for place in places)
    path, line, _ = places[0]
    return path, line, f"Skipped: {'; '.join(reasons)}"


# failures


def _failure(
    reports: Mapping[int, Report], kinds: Mapping[int, str], wanted: Sequence[str], size: int
) -> Report:
    """The failures of these kinds as one exception chain: each different one once."""
    groups: dict[Any, _Group] = {}
    present = [kind for kind in wanted if kind in kinds.values()]
    for kind in present:
        for rank in (rank for rank, found in kinds.items() if found == kind):
            report = reports[rank]
            place = (kind, _place(report["longrepr"]))
            group = groups.setdefault(place, _Group({}, report))
            group.messages.setdefault(_message(report["longrepr"]), []).append(rank)
    chain: list[Any] = []
    for group in groups.values():
        chain += _links(group, size, leading="\n" if chain else "")
    crash = _crash([group for (kind, _), group in groups.items() if kind == present[0]])
    chain[-1] = (chain[-1][0], crash, chain[-1][2])
    return _exception(chain)


def _links(group: _Group, size: int, leading: str) -> list[Any]:
    """A group's links of the chain: who, the traceback of the first, what others said there."""
    (_, first), *others = group.messages.items()
    who = f"{ranks_text(first)} of {size}:"
    links = _chain(group.first["longrepr"])
    traceback, crash, description = links[0]
    entries = [_text_entry(f"{leading}{who}\n"), *traceback["reprentries"]]
    links[0] = ({**traceback, "reprentries": entries}, crash, description)
    if others:
        more = [
            f"{ranks_text(ranks)}, at the same place: {message.splitlines()[0]}"
            for message, ranks in others
        ]
        traceback, crash, description = links[-1]
        extra = [traceback["extraline"]] if traceback["extraline"] else []
        links[-1] = ({**traceback, "extraline": "\n".join(extra + more)}, crash, description)
    return links


def _chain(longrepr: Any) -> list[Any]:
    """A failure's exceptions, each with traceback, place and relation to the next."""
    if not isinstance(longrepr, dict):  # a text
        return list(text_failure(str(longrepr))["chain"])
    if longrepr["chain"]:
        return [tuple(link) for link in longrepr["chain"]]
    return [(longrepr["reprtraceback"], longrepr["reprcrash"], None)]


def _place(longrepr: Any) -> Any:
    """What two failures at the same place have in common."""
    if not isinstance(longrepr, dict):
        return _plain(str(longrepr))
    if _PLACE in longrepr:
        return longrepr[_PLACE]
    places: list[Any] = []
    for traceback, _, _ in _chain(longrepr):
        for entry in traceback["reprentries"]:
            location = entry["data"].get("reprfileloc")
            if location:
                places.append((location["path"], location["lineno"]))
            else:
                places.append(_plain("\n".join(entry["data"]["lines"])))
    return tuple(places)


def _message(longrepr: Any) -> str:
    """What a failure says in a line or a few."""
    if isinstance(longrepr, dict) and longrepr["reprcrash"]:
        return _plain(longrepr["reprcrash"]["message"])
    lines = _plain(str(longrepr)).splitlines() or [""]
    marked = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
    return (marked or lines)[0]


def _plain(text: str) -> str:
    """A text without what differs between processes for no reason: addresses of objects."""
    return _ADDRESS.sub("0x...", text)


def _crash(groups: Sequence[_Group]) -> Report:
    """The line for the summary: who failed, how, and whether there is more."""
    longrepr = groups[0].first["longrepr"]
    (message, ranks), *others = groups[0].messages.items()
    more = len(others) + sum(len(group.messages) for group in groups[1:])
    text = f"{ranks_text(ranks)}: {message}"
    if more:
        first, newline, rest = text.partition("\n")
        text = f"{first} (and {more} more){newline}{rest}"
    known = longrepr["reprcrash"] if isinstance(longrepr, dict) else None
    path, line = (known["path"], known["lineno"]) if known else ("", 0)
    return {"path": path, "lineno": line, "message": text}


def _text_entry(text: str) -> Report:
    return {"type": "ReprEntryNative", "data": {"lines": [text]}}


def text_failure(text: str, message: str = "", place: Any = None) -> Report:
    """A failure that is no exception, in the form pytest gives to exceptions.

    Args:
        text: to be shown.
        message: of the summary; the first line of `text` if empty.
        place: that failures of several ranks may have in common; the text itself if None.
    """
    crash = {"path": "", "lineno": 0, "message": message or text.partition("\n")[0]}
    entry = _text_entry(text if text.endswith("\n") else f"{text}\n")
    traceback = {"reprentries": [entry], "extraline": None, "style": "native"}
    failure = _exception([(traceback, crash, None)])
    return failure if place is None else {**failure, _PLACE: place}


def with_prefix(failure: Report, prefix: str) -> Report:
    """A merged failure whose line in the summary begins with `prefix`."""
    *links, (traceback, crash, description) = failure["chain"]
    crash = {**crash, "message": prefix + crash["message"]}
    return _exception([*links, (traceback, crash, description)])


def _exception(chain: Sequence[Any]) -> Report:
    """A chain as pytest packs it. Nothing is in it twice: unpacking changes it."""
    traceback, crash, _ = copy.deepcopy(chain[-1])
    return {
        "reprcrash": crash,
        "reprtraceback": traceback,
        "sections": [],
        "chain": [copy.deepcopy(link) for link in chain],
    }
