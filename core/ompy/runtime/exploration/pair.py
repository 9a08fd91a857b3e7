"""A schedule that fails beside one that ends well: what `trace/drawing/schedule_pair.py` draws."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterator

from ompy.runtime.exploration.boxes import Operation
from ompy.runtime.exploration.events import FROM, NOTHING, SERVE, Event
from ompy.runtime.exploration.explorer import Failure
from ompy.runtime.exploration.trunk import Result
from ompy.trace.drawing.schedule_pair import Pair, Panel, Step, shortened


def pair_of(failure: Failure, title: str) -> Pair | None:
    """Both schedules; None where no decision tells them apart.

    Args:
        failure: what was found.
        title: of the picture.
    """
    turn, instead, well = failure.turn, failure.instead, failure.well
    if turn is None or instead is None or well is None:
        return None
    other = Event(
        turn.number, turn.key, turn.kind, instead.value, 0, 0, turn.site, sent=instead.site
    )
    good = Panel("it ends well", list(_steps(well, other)))
    bad = Panel(_what(failure.result), [*_steps(failure.result, turn), *_ends(failure.result)])
    steps = [*good.steps, *bad.steps]
    sites = dict.fromkeys(site for step in steps for site in (step.site, step.sent) if site)
    ranks = sorted({rank for step in steps for rank in (step.rank, step.sender) if rank >= 0})
    source = [(site, _source_at(site)) for site in sorted(sites, key=_place)]
    return shortened(Pair(title, ranks, good, bad, source))


def _what(result: Result) -> str:
    return "deadlock" if result.kind == "deadlock" else "it fails"


def _steps(result: Result, decides: Event) -> Iterator[Step]:
    """What meets, with the decision that is no meeting where it was made."""
    met = [_asker(decides) in {one.receiver, one.sender} for one in result.meetings]
    alone = not any(met)
    place = _place_of(result, decides) if alone else -1
    for number, one in enumerate(result.meetings):
        if number == place:
            yield _said(decides)
        yield Step(
            one.receiver[0],
            short_site(one.received),
            one.sender[0],
            short_site(one.sent),
            decides=met[number],
        )
    if alone and place >= len(met):
        yield _said(decides)


def _asker(decides: Event) -> Operation:
    """What has met something by a decision: its operation, or what was asked of a window."""
    if decides.kind == SERVE and decides.value[0] == FROM:
        return decides.value[1], decides.value[2]
    return decides.key


def _place_of(result: Result, decides: Event) -> int:
    """How many messages had been taken when a rank decided what takes none.

    At the latest then it had what it has begun to receive before and has got.
    """
    rank, own = decides.key
    mine = [
        number
        for number, one in enumerate(result.meetings)
        if one.receiver[0] == rank and one.receiver[1] < own
    ]
    return max(mine, default=-1) + 1


def _said(event: Event) -> Step:
    if event.value == (NOTHING,):
        what = "finds nothing yet at"
    elif event.value[0] == FROM:
        what = f"finds the message of rank {event.value[1]} at"
    else:
        what = f"is told first of operation {event.value[1]} at"
    return Step(event.key[0], short_site(event.site), text=what, decides=True)


def _ends(result: Result) -> Iterator[Step]:
    """What fails: where ranks wait, or what is said of the end."""
    waits = False
    for rank, place in _standing(result.text):
        waits = True
        yield Step(rank, place, text="waits at", fails=True)
    if not waits:
        first = result.text.partition("\n")[0]
        word = first.removeprefix("rank ").partition(":")[0]
        number = int(word) if first.startswith("rank ") and word.isdigit() else -1
        said = first.partition(": ")[2].removeprefix("it ") if number >= 0 else first
        yield Step(number, "", text=said[:60].rstrip(" :"), fails=True)


def _standing(text: str) -> Iterator[tuple[int, str]]:
    """Where ranks stand, of a report (`survey.py`)."""
    for line in text.splitlines():
        words = line.split()
        if line.startswith("  rank ") and words[2:4] == ["is", "at"] and words[1].isdigit():
            yield int(words[1]), words[4]


def short_site(site: str) -> str:
    """A place in the program, below the working directory where it is."""
    return os.path.relpath(site) if site.startswith(os.getcwd() + os.sep) else site


def _place(site: str) -> tuple[str, int]:
    path, _, line = site.rpartition(":")
    return path, int(line) if line.isdigit() else 0


def _source_at(site: str) -> str:
    path, line = _place(site)
    return linecache.getline(path, line).strip()
