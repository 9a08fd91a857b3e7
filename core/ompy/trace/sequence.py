"""A sequence diagram of chosen messages, before it is drawn: life lines, points, arrows.

The vocabulary is the seed's: names of headers, letters of steps. Points are in the order of time
and to no scale. An arrival never stands above its sending: where clocks or the moment of
recording say otherwise, the order of cause and effect wins.

Source of the letters: seed ob1 (Protocol Details).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ompy.trace.amounts import byte_count
from ompy.trace.messages import RECEIVE, SEND, Arrow, Kind, Message
from ompy.trace.reading import RankHeader
from ompy.trace.sink import Event
from ompy.trace.tag_names import tag_text

MOST_MESSAGES: Final = 20  # arbitrary: beyond, nobody finds anything in one picture
_SHOWN_FIRST: Final = 5  # arrows of one name in a row; arbitrary: enough to see the pattern
_SHOWN_LAST: Final = 2  # of them; how it ends
_IMMEDIATE: Final = "Eager Send (Immediate)"


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
    """

    title: str
    subtitle: str
    ranks: list[tuple[int, str]]
    lines: list[Line] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    gaps: list[tuple[int, str]] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    rows: int = 0


@dataclass(eq=False)
class _Entry:
    """A point that has no row yet.

    Attributes:
        point: it.
        after: entries that have to stand above it.
        skipped: what it says instead when it stands for arrows that are left out.
        row: its row, when it has one.
    """

    point: Point
    after: list[_Entry] = field(default_factory=list)
    skipped: str = ""
    row: int = 0


def arrange(messages: Sequence[Message], headers: Mapping[int, RankHeader]) -> Diagram:
    """Lay messages out.

    Args:
        messages: what to show; at least one.
        headers: of the trace.
    """
    origin = min(_times(messages))
    ranks = sorted({rank for m in messages for rank in (m.sender, m.receiver) if rank >= 0})
    title, subtitle = _titles(messages)
    diagram = Diagram(title, subtitle, [(rank, _head(rank, headers)) for rank in ranks])
    entries: list[_Entry] = []
    pairs: list[tuple[Arrow, str, _Entry, _Entry]] = []
    owned: list[list[_Entry]] = []
    for message in messages:
        several = f" #{message.sequence}" if len(messages) > 1 else ""
        mine, arrows = _message(message, origin, several)
        entries += mine
        pairs += arrows
        owned.append([entry for entry in mine if not entry.skipped])
    diagram.rows = _assign_rows(entries)
    diagram.gaps = [(entry.row, entry.skipped) for entry in entries if entry.skipped]
    for arrow, text, start, end in sorted(pairs, key=lambda pair: pair[2].row):
        diagram.lines.append(Line(_placed(start), _placed(end), arrow.kind, text))
    at_arrows = {id(entry) for _, _, *both in pairs for entry in both}
    alone = [e for e in entries if id(e) not in at_arrows and not e.skipped]
    diagram.points = [_placed(entry) for entry in sorted(alone, key=lambda e: e.row)]
    diagram.bars = [bar for mine in owned for bar in _bars(mine)]
    return diagram


def _times(messages: Iterable[Message]) -> list[int]:
    posted = [m.posted.time for m in messages if m.posted is not None]
    return posted + [m.start for m in messages]


def _titles(messages: Sequence[Message]) -> tuple[str, str]:
    if len(messages) > 1:
        names = dict.fromkeys(m.decided or m.protocol for m in messages)
        return f"{len(messages)} messages", ", ".join(names)
    message = messages[0]
    title = (
        f"{byte_count(message.size)} from rank {message.sender} to rank {message.receiver}, "
        f"{tag_text(message.tag)}"
    )
    became = message.decided and message.decided != message.protocol
    return title, message.protocol + (f", which became {message.decided}" if became else "")


def _head(rank: int, headers: Mapping[int, RankHeader]) -> str:
    header = headers.get(rank)
    return f"rank {rank} on {header.host}" if header and header.host else f"rank {rank}"


def _placed(entry: _Entry) -> Point:
    return replace(entry.point, row=entry.row)


def _message(
    message: Message, origin: int, several: str
) -> tuple[list[_Entry], list[tuple[Arrow, str, _Entry, _Entry]]]:
    """The points of a message, and its arrows between them."""
    points: dict[int, _Entry] = {}

    def at(event: Event, text: str = "") -> _Entry:
        return points.setdefault(id(event), _entry(message, event, origin, text))

    events = message.events()
    if message.posted is not None:
        at(message.posted, f"receive posted{several}")
        events.insert(0, message.posted)
    for event in events:
        if event.name == "COMPLETE":
            side = "send" if _field(event, "side") == SEND else "receive"
            at(event, f"{side} complete{several}")
    for event in message.breaks:
        at(event, f"rail {_field(event, 'rail')} broke")
    shown, hidden = _thin(message.arrows())
    known = message.failed_over and message.sends and message.receives
    missing = "not received" if known else ""
    pairs = [_ends(_told(arrow, message), origin, at, several, missing) for arrow in shown]
    for own in (message.sends, [e for e in events if _field(e, "side") == RECEIVE]):
        _chain([points[id(event)] for event in own if id(event) in points])
    gaps = [_gap(arrow, count, size, origin) for arrow, count, size in hidden]
    extra = [entry for _, _, *both in pairs for entry in both]
    return list(dict.fromkeys((*points.values(), *extra, *gaps))), pairs


def _told(arrow: Arrow, message: Message) -> Arrow:
    """A first fragment that goes again says so."""
    if any(arrow.sent is event for event in message.restarts):
        return arrow._replace(name=f"{arrow.name} (restart)")
    return arrow


def _chain(entries: list[_Entry]) -> None:
    """What one side did in this order stands in this order, were the times equal."""
    for before, behind in itertools.pairwise(entries):
        behind.after.append(before)


def _gap(arrow: Arrow, count: int, size: int, origin: int) -> _Entry:
    moved = f", {byte_count(size)}" if size else ""
    text = f"{count} more {arrow.name}{moved}"
    return _Entry(Point(-1, arrow.sent.time - origin), skipped=text)


def _ends(
    arrow: Arrow, origin: int, at: Callable[..., _Entry], several: str, missing: str
) -> tuple[Arrow, str, _Entry, _Entry]:
    """The two points of an arrow. What a put or get does at the other side is nobody's event.

    `missing` is what stands at the end of one that has not arrived.
    """
    amount = f" {byte_count(arrow.size)}" if arrow.size else ""
    rail = _field(arrow.sent, "rail")
    over = f" over {rail}" if rail and arrow.kind is Kind.RDMA else ""
    text = f"{arrow.name}{amount}{over}{several}"
    if arrow.kind is Kind.RDMA:
        last = arrow.arrived.time if arrow.arrived is not None else arrow.sent.time
        if arrow.source == arrow.sent.rank:
            start = at(arrow.sent)
        else:  # a get: the bytes come from the other side
            begun = at(arrow.sent, f"get begins{several}")
            start = _Entry(Point(arrow.source, arrow.sent.time - origin), [begun])
        end = _Entry(Point(arrow.target, last - origin), [start])
        if arrow.arrived is not None:  # the FIN that tells of it
            at(arrow.arrived).after.append(end)
        return arrow, text, start, end
    start = at(arrow.sent)
    if arrow.arrived is None:
        nowhere = Point(arrow.target, arrow.sent.time - origin, text=missing)
        return arrow, text, start, _Entry(nowhere, [start])
    end = at(arrow.arrived)
    end.after.append(start)
    return arrow, text, start, end


def _entry(message: Message, event: Event, origin: int, text: str) -> _Entry:
    letter = str(_field(event, "step") or "")
    if message.protocol == _IMMEDIATE and _field(event, "side") == RECEIVE and letter:
        letter = "B"  # the receiver cannot tell the three eager sends apart and says C
    return _Entry(Point(event.rank, event.time - origin, letter, text))


def _field(event: Event, name: str) -> Any:
    return dict(event.fields).get(name)


def _thin(arrows: list[Arrow]) -> tuple[list[Arrow], list[tuple[Arrow, int, int]]]:
    """Leave out the middle of many arrows of one name: the first left out, how many, bytes."""
    shown: list[Arrow] = []
    hidden: list[tuple[Arrow, int, int]] = []
    for name in dict.fromkeys(arrow.name for arrow in arrows):
        same = [arrow for arrow in arrows if arrow.name == name]
        if len(same) <= _SHOWN_FIRST + _SHOWN_LAST + 1:
            shown += same
            continue
        left_out = same[_SHOWN_FIRST:-_SHOWN_LAST]
        shown += same[:_SHOWN_FIRST] + same[-_SHOWN_LAST:]
        hidden.append((left_out[0], len(left_out), sum(arrow.size for arrow in left_out)))
    return sorted(shown, key=lambda arrow: arrow.sent[:2]), hidden


def _assign_rows(entries: list[_Entry]) -> int:
    """Give each entry a row of its own: causes above effects, and else in the order of time.

    In a damaged trace something may be its own cause: of such the earliest comes first.
    """
    number = {entry: index for index, entry in enumerate(entries)}
    waits = {entry: len(entry.after) for entry in entries}
    effects: dict[_Entry, list[_Entry]] = {entry: [] for entry in entries}
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


def _bars(entries: list[_Entry]) -> list[Bar]:
    rows: dict[int, list[int]] = {}
    for entry in entries:
        rows.setdefault(entry.point.rank, []).append(entry.row)
    return [Bar(rank, min(own), max(own)) for rank, own in sorted(rows.items())]
