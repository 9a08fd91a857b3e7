"""What is told of ranks that never go on: sentences, JSON, a picture of who waits for whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ompy.frameworks.needs import COLLECTIVE, LOCK
from ompy.runtime.diagnosis.rank_report import place_text
from ompy.runtime.diagnosis.rank_spans import ranks_in_words
from ompy.runtime.machines.diagnosis.deadlock import (
    Deadlock,
    Need,
    Said,
    Waits,
    asked_before,
    has_begun,
    holding,
)
from ompy.runtime.machines.diagnosis.nearest import nearest_misses

DEADLOCK: Final = 4  # exit code; arbitrary: none of a program's usual ones, nor another of ours
SHOWN: Final = 16  # ranks told of one by one; arbitrary: a terminal has room
NEEDS_SHOWN: Final = 4  # of one rank; arbitrary
MISSES_SHOWN: Final = 4  # of one rank; arbitrary: who has more sees it by these
PENDING: Final = "pending"  # what a rank has begun that does not sleep; no need that is reasoned of
_BEGIN: Final = {PENDING: "not complete: "}
ADVICE: Final = (
    "All of them were asleep in these calls at one moment, nothing was under way to them, and what "
    "each waits for only another of them could do. --no-deadlock-detection lets such a job stand."
)


def headline(found: Deadlock) -> str:
    """What has happened."""
    who = ranks_in_words(found.ranks)
    return f"Deadlock: {who} can never go on, so the job was ended."


def autopsy_lines(found: Deadlock, said: Mapping[int, Said]) -> list[str]:
    """The story, a line for each thing.

    Args:
        found: who never goes on.
        said: by rank, what these have said.
    """
    lines = [f"deadlock: {ranks_in_words(found.ranks)} can never go on{circle_text(found)}"]
    lines += lines_of_groups(found, said, SHOWN)
    odd = ranks_elsewhere(found)
    return [*lines, f"  {odd}"] if odd else lines


def lines_of_groups(found: Deadlock, said: Mapping[int, Said], most: int) -> list[str]:
    """What ranks wait for; those that say the same are told of together.

    Args:
        found: who.
        said: by rank, what these have said.
        most: so many are told of one by one.
    """
    lines: list[str] = []
    groups = _alike(found)
    for waits, ranks in groups[:most]:
        lines += _of_rank(waits, ranks, said)
    if len(groups) > most:
        rest = [rank for _, ranks in groups[most:] for rank in ranks]
        lines.append(f"  and {ranks_in_words(rest)}, at {len(groups) - most} more places")
    return lines


def circle_text(found: Deadlock) -> str:
    """How they wait for each other, to be put behind who they are."""
    if len(found.cycle) < 2:
        return ""
    way = " -> ".join(str(rank) for rank in (*found.cycle, found.cycle[0]))
    return f"; each waits for the next: {way}" if len(found.cycle) <= SHOWN else ""


def _alike(found: Deadlock) -> list[tuple[Waits, list[int]]]:
    """Ranks at the same line that wait for the same are told of together."""
    groups: dict[tuple[str, tuple[str, ...]], tuple[Waits, list[int]]] = {}
    for waits in found.waits:
        key = (line_text(waits.place), tuple(need["text"] for need in waits.needs))
        groups.setdefault(key, (waits, []))[1].append(waits.rank)
    return list(groups.values())


def line_text(place: Mapping[str, Any]) -> str:
    """A line of the program."""
    return place_text(place) or "no line of the program's own"


def _of_rank(waits: Waits, ranks: list[int], said: Mapping[int, Said]) -> list[str]:
    is_at = "is" if len(ranks) == 1 else "are"
    lines = [f"  {ranks_in_words(ranks)} {is_at} at {line_text(waits.place)}"]
    for place, need in enumerate(waits.needs[:NEEDS_SHOWN]):
        begin = "or " if place and need["what"] != PENDING else ""
        lines.append(f"    {begin or _begin(need)}{need['text']}{_missing(said, need, waits.rank)}")
    if len(waits.needs) > NEEDS_SHOWN:
        lines.append(f"    or {len(waits.needs) - NEEDS_SHOWN} more")
    misses = nearest_misses(said, waits)
    lines += [f"    near: {miss}" for miss in misses[:MISSES_SHOWN]]
    if len(misses) > MISSES_SHOWN:
        lines.append(f"    near: {len(misses) - MISSES_SHOWN} more")
    return lines


def need_text(need: Need) -> str:
    """What would end a wait, in words."""
    return f"{_begin(need)}{need['text']}"


def _begin(need: Need) -> str:
    return _BEGIN.get(need["what"], "waiting for ")


def _missing(said: Mapping[int, Said], need: Need, rank: int) -> str:
    """Who has not come to a collective call, or who has the lock, of those that never go on."""
    if need["what"] == LOCK:
        return _holders_text(said, need, rank)
    if need["what"] != COLLECTIVE:
        return ""
    missing = [rank for rank, each in said.items() if has_begun(each, need) is False]
    return f", where {ranks_in_words(missing)} {_is_missing(missing)}" if missing else ""


def _holders(said: Mapping[int, Said], need: Need) -> list[tuple[int, str]]:
    """Who has a lock that is waited for, and since which line; empty where that is not known."""
    return [(rank, at) for rank, each in said.items() for at in holding(each, need)]


def _holders_text(said: Mapping[int, Said], need: Need, rank: int) -> str:
    """The same in words, those who have it from one place together; or who is to get it first."""
    places: dict[str, list[int]] = {}
    for holder, at in _holders(said, need):
        places.setdefault(at, []).append(holder)
    each = [_has_text(ranks, at) for at, ranks in list(places.items())[:NEEDS_SHOWN]]
    before = [] if each else asked_before(said, rank, need)
    if before:
        each.append(f"{ranks_in_words(before)} asked for before")
    return f", which {' and '.join(each)}" if each else ""


def _has_text(ranks: list[int], at: str) -> str:
    holds = f"{ranks_in_words(ranks)} {'holds' if len(ranks) == 1 else 'hold'}"
    return f"{holds} since {at}" if at else holds


def _is_missing(ranks: list[int]) -> str:
    return "is missing" if len(ranks) == 1 else "are missing"


def ranks_elsewhere(found: Deadlock) -> str:
    """Where most are in the same collective call, who is elsewhere."""
    places: dict[tuple[Any, Any], list[int]] = {}
    elsewhere: list[int] = []
    for waits in found.waits:
        call = next((need for need in waits.needs if need["what"] == COLLECTIVE), None)
        if call is None:
            elsewhere.append(waits.rank)
        else:
            places.setdefault((call["comm"], call["number"]), []).append(waits.rank)
    if not places:
        return ""
    most = max(places.values(), key=len)
    others = sorted(
        elsewhere + [r for ranks in places.values() if ranks is not most for r in ranks]
    )
    if not others or len(most) <= len(others):
        return ""
    is_elsewhere = "is" if len(others) == 1 else "are"
    return f"look first at {ranks_in_words(others)}, which {is_elsewhere} elsewhere than most"


def as_json(found: Deadlock, said: Mapping[int, Said]) -> dict[str, Any]:
    """All of it, for programs."""
    return {
        "class": "deadlock",
        "proven": True,
        "ranks": sorted(found.ranks),
        "cycle": list(found.cycle),
        "waits": waits_as_json(found, said),
    }


def waits_as_json(found: Deadlock, said: Mapping[int, Said]) -> list[dict[str, Any]]:
    """What each rank waits for, for programs.

    Args:
        found: who.
        said: by rank, what these have said.
    """
    return [
        {
            "rank": waits.rank,
            **waits.place,
            "for": [need["text"] for need in waits.needs],
            "ranks": list(waits.ranks),
            "held": [
                {"rank": rank, "since": at}
                for need in waits.needs
                if need["what"] == LOCK
                for rank, at in _holders(said, need)
            ],
            "near": nearest_misses(said, waits),
        }
        for waits in found.waits
    ]
