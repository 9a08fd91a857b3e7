"""How the ranks of a job stand, asked once: the autopsy of what is not proven.

What is told of ranks that never go on (`autopsy.py`) is told here of any: who waits for whom, each
rank's call with its line of the program, messages that are here beside what is waited for. Ranks
that do not sleep say their line and what is not complete. Two answers are of two moments, so
nothing is concluded from them; a deadlock is proven by `machines/diagnosis/proving.py` alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from ompy.frameworks.needs import COLLECTIVE, LOCK
from ompy.runtime.diagnosis.autopsy import (
    PENDING,
    SHOWN,
    circle_text,
    lines_of_groups,
    ranks_elsewhere,
    waits_as_json,
)
from ompy.runtime.diagnosis.rank_spans import ranks_in_words
from ompy.runtime.machines.diagnosis.deadlock import (
    Deadlock,
    Need,
    Said,
    Waits,
    find_deadlock,
    has_begun,
    keeps_lock,
)

UNKNOWN: Final[Need] = {"what": "", "ranks": [], "text": "something that is not known"}
NOTHING: Final[Said] = {"live": "", "waits": [], "tasks": [], "begun": {}, "unmatched": []}


class Survey(NamedTuple):
    """What ranks have said once.

    Attributes:
        said: by rank, how those stand that sleep (`standing.py`).
        where: by rank, what it says wherever it is: `line`, `waits`, and what `more_of` in
            `rank_report.py` has found.
        silent: who has not answered.
    """

    said: Mapping[int, Said]
    where: Mapping[int, Mapping[str, Any]]
    silent: frozenset[int]


def seen_waits(survey: Survey) -> Deadlock:
    """Everybody who has answered, with whom he waits for; a circle only of who may never go on."""
    return _seen(survey, _lost(survey), _facts(survey))


def _seen(survey: Survey, found: Deadlock | None, facts: Mapping[int, Said]) -> Deadlock:
    lost = {waits.rank: waits for waits in found.waits} if found is not None else {}
    ranks = sorted(survey.said.keys() | survey.where.keys())
    waits = [lost.get(rank) or _waits(rank, survey, facts) for rank in ranks]
    return Deadlock(tuple(waits), found.cycle if found is not None else ())


def _lost(survey: Survey) -> Deadlock | None:
    """Who may never go on, if nobody else comes."""
    everybody = survey.said.keys() | survey.where.keys() | survey.silent
    return find_deadlock(survey.said, everybody=everybody)


def _facts(survey: Survey) -> dict[int, Said]:
    """By rank, what is known of its calls and messages."""
    facts: dict[int, Said] = {}
    for rank in survey.said.keys() | survey.where.keys():
        said = survey.said.get(rank)
        if said is None or said["live"]:
            said = {**NOTHING, "begun": survey.where.get(rank, {}).get("begun", {})}
        facts[rank] = said
    return facts


def _waits(rank: int, survey: Survey, facts: Mapping[int, Said]) -> Waits:
    """What a rank waits for that may go on, or begun and has not completed."""
    where = survey.where.get(rank, {})
    sleeps = facts[rank]["waits"]
    if not sleeps:
        return Waits(rank, where.get("at", {}), _pending(where), ())
    found: list[Need] = []
    for sleep in sleeps:
        known = sleep["needs"]
        found += (_pending(where) or [UNKNOWN]) if known is None else known
    awaited = dict.fromkeys(other for need in found for other in _awaited(rank, need, facts))
    return Waits(rank, sleeps[0]["at"], tuple(found), tuple(awaited))


def _pending(where: Mapping[str, Any]) -> tuple[Need, ...]:
    """What a rank has begun that is not complete, as it says; nothing is concluded from it."""
    lines = where.get("pending") or [line for line in (where.get("waits", ""),) if line]
    return tuple({**UNKNOWN, "what": PENDING, "text": line} for line in lines)


def _awaited(who: int, need: Need, facts: Mapping[int, Said]) -> Iterable[int]:
    """Whom a need names: not who has begun a collective call, nor who does not have a lock."""
    if need["what"] == LOCK:
        return [rank for rank in need["ranks"] if keeps_lock(facts, who, need, rank)]
    if need["what"] != COLLECTIVE:
        return list(need["ranks"])
    return [rank for rank in need["ranks"] if not has_begun(facts.get(rank, NOTHING), need)]


def survey_lines(survey: Survey, *, proven: bool = False, events: int = 0) -> list[str]:
    """The story, a line for each thing; bounded, however many ranks there are.

    Args:
        survey: what ranks have said.
        proven: nothing can happen any more, as a virtual world knows.
        events: of so many ranks show also what the flight recorder has.
    """
    lost, facts = _lost(survey), _facts(survey)
    seen = _seen(survey, lost, facts)
    lines: list[str] = []
    if lost is not None:
        who = ranks_in_words(lost.ranks)
        can = "can never go on" if proven else "cannot go on, it seems (asked once: no proof)"
        lines = [f"{'deadlock: ' if proven else ''}{who} {can}{circle_text(lost)}"]
        lines += lines_of_groups(lost, facts, SHOWN)
    gone = lost.ranks if lost is not None else frozenset[int]()
    rest = Deadlock(tuple(each for each in seen.waits if each.rank not in gone), ())
    if rest.waits:
        asked = "how they stand:" if proven else "asked once, which proves nothing:"
        head = "and the others:" if lost is not None else asked
        lines += [head, *lines_of_groups(rest, facts, SHOWN)]
    odd = ranks_elsewhere(seen)
    lines += [f"  {odd}"] if odd else []
    if survey.silent:
        has = "has" if len(survey.silent) == 1 else "have"
        who = ranks_in_words(survey.silent)
        lines.append(f"  {who} {has} not said where, in native code perhaps, or stopped")
    return [*lines, *_recent_lines(survey, events)] or ["no rank is in MPI"]


def _recent_lines(survey: Survey, most: int) -> list[str]:
    """What some ranks did last."""
    lines: list[str] = []
    for rank in [rank for rank in sorted(survey.where) if survey.where[rank].get("recent")][:most]:
        recent = survey.where[rank]["recent"]
        events = f"{len(recent)} event{'s' * (len(recent) > 1)}"
        lines.append(f"  rank {rank}'s last {events}, ms before now:")
        lines += [f"    {line}" for line in recent]
    return lines


def survey_as_json(survey: Survey, why: str = "") -> dict[str, Any]:
    """All of it, for programs.

    Args:
        survey: what ranks have said.
        why: they were asked: `interrupted`, `timeout`, `signal`; may be empty.
    """
    lost, facts = _lost(survey), _facts(survey)
    seen = _seen(survey, lost, facts)
    waits = waits_as_json(seen, facts)
    for each in waits:
        where = survey.where.get(each["rank"], {})
        each["recent"] = list(where.get("recent", ()))
    return {
        "class": "standing",
        "proven": False,
        "why": why,
        "ranks": sorted(lost.ranks) if lost is not None else [],
        "cycle": list(seen.cycle),
        "waits": waits,
        "silent": sorted(survey.silent),
    }
