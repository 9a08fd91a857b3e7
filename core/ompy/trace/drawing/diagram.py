"""A sequence diagram before it is drawn: life lines, points, arrows; which row each point has.

Points are in the order of time and to no scale. An arrival never stands above its sending: where
clocks or the moment of recording say otherwise, the order of cause and effect wins.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ompy.trace.message_events import Kind
from ompy.trace.reading import RankHeader

MOST_MESSAGES: Final = 20  # arbitrary: beyond, nobody finds anything in one picture
LEGEND: Final = ("fragment with data", "control message", "put or get")  # as `Kind` has them


@dataclass(frozen=True)
class Point:
    """A place on a life line.

    Attributes:
        rank: whose line.
        time: nanoseconds from the diagram's first point.
        letter: of the seed's step, or "".
        text: what happened there, beside what the arrow says; may be "".
        row: from 0, down the page.
    """

    rank: int
    time: int
    letter: str = ""
    text: str = ""
    row: int = 0


@dataclass(frozen=True)
class Line:
    """An arrow between two points."""

    start: Point
    end: Point
    kind: Kind
    text: str


@dataclass(frozen=True)
class Bar:
    """A message on a life line: from its first to its last point there."""

    rank: int
    first: int
    last: int


@dataclass
class Diagram:
    """What to draw.

    Attributes:
        title: the message, or how many there are.
        subtitle: the protocol, and what became of it.
        ranks: the life lines from left to right, with the text of their heads.
        lines: arrows, in the order of their starts.
        points: places that belong to no arrow.
        gaps: rows that stand for arrows left out, with what they were.
        bars: messages on life lines.
        rows: how many there are.
        legend: what arrows of each kind are.
        note: what else is to be known.
        letters: what each letter at a point stands for, in the order of the alphabet.
    """

    title: str
    subtitle: str
    ranks: list[tuple[int, str]]
    lines: list[Line] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    gaps: list[tuple[int, str]] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    rows: int = 0
    legend: tuple[str, str, str] = LEGEND
    note: str = "Down the page is later, to no scale."
    letters: list[str] = field(default_factory=list)


@dataclass(eq=False)
class Entry:
    """A point that has no row yet.

    Attributes:
        point: it.
        after: entries that have to stand above it.
        skipped: what it says instead when it stands for arrows that are left out.
        row: its row, when it has one.
    """

    point: Point
    after: list[Entry] = field(default_factory=list)
    skipped: str = ""
    row: int = 0


def head(rank: int, headers: Mapping[int, RankHeader]) -> str:
    """The text over a life line."""
    header = headers.get(rank)
    return f"rank {rank} on {header.host}" if header and header.host else f"rank {rank}"


def placed(entry: Entry) -> Point:
    """The point of an entry that has its row."""
    return replace(entry.point, row=entry.row)


def chain(entries: list[Entry]) -> None:
    """What one side did in this order stands in this order, were the times equal."""
    for before, behind in itertools.pairwise(entries):
        behind.after.append(before)


def assign_rows(entries: list[Entry]) -> int:
    """Give each entry a row of its own: causes above effects, and else in the order of time.

    In a damaged trace something may be its own cause: of such the earliest comes first.
    """
    number = {entry: index for index, entry in enumerate(entries)}
    waits = {entry: len(entry.after) for entry in entries}
    effects: dict[Entry, list[Entry]] = {entry: [] for entry in entries}
    for entry in entries:
        for cause in entry.after:
            effects[cause].append(entry)
    ready = [(entry.point.time, number[entry], entry) for entry in entries if not waits[entry]]
    heapq.heapify(ready)
    row = 0
    while row < len(entries):
        if not ready:
            ready = [min((e.point.time, number[e], e) for e, left in waits.items() if left > 0)]
        _, _, entry = heapq.heappop(ready)
        entry.row, waits[entry] = row, 0
        row += 1
        for effect in effects[entry]:
            waits[effect] -= 1
            if not waits[effect]:
                heapq.heappush(ready, (effect.point.time, number[effect], effect))
    return row


def bars(entries: list[Entry]) -> list[Bar]:
    """What some entries that have their rows span, on each life line."""
    rows: dict[int, list[int]] = {}
    for entry in entries:
        rows.setdefault(entry.point.rank, []).append(entry.row)
    return [Bar(rank, min(own), max(own)) for rank, own in sorted(rows.items())]
