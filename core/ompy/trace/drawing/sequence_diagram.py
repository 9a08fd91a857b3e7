"""A sequence diagram of chosen messages of MPI, before it is drawn.

The vocabulary is the seed's: names of headers, letters of steps.

Source of the letters: seed ob1 (Protocol Details).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Final

from ompy.trace.amounts import byte_count
from ompy.trace.drawing.diagram import (
    Diagram,
    Entry,
    Line,
    Point,
    assign_rows,
    bars,
    chain,
    head,
    placed,
)
from ompy.trace.message_events import RECEIVE, SEND, Arrow, Kind, Message
from ompy.trace.reading import RankHeader
from ompy.trace.sink import Event
from ompy.trace.tag_names import tag_text

_SHOWN_FIRST: Final = 5  # arrows of one name in a row; arbitrary: enough to see the pattern
_SHOWN_LAST: Final = 2  # of them; how it ends
_IMMEDIATE: Final = "Eager Send (Immediate)"


def arrange(
    messages: Sequence[Message],
    headers: Mapping[int, RankHeader],
    numbers: Sequence[int] | None = None,
) -> Diagram:
    """Lay messages out.

    Args:
        messages: what to show; at least one.
        headers: of the trace.
        numbers: of the messages, as the list of `ompy trace` has them; from 1 on if left out.
    """
    origin = min(_times(messages))
    ranks = sorted({rank for m in messages for rank in (m.sender, m.receiver) if rank >= 0})
    title, subtitle = _titles(messages)
    diagram = Diagram(title, subtitle, [(rank, head(rank, headers)) for rank in ranks])
    entries: list[Entry] = []
    pairs: list[tuple[Arrow, str, Entry, Entry]] = []
    owned: list[list[Entry]] = []
    for number, message in zip(numbers or count(1), messages, strict=False):
        several = f" #{number}" if len(messages) > 1 else ""
        mine, arrows = _message(message, origin, several)
        entries += mine
        pairs += arrows
        owned.append([entry for entry in mine if not entry.skipped])
    diagram.rows = assign_rows(entries)
    diagram.gaps = [(entry.row, entry.skipped) for entry in entries if entry.skipped]
    for arrow, text, start, end in sorted(pairs, key=lambda pair: pair[2].row):
        diagram.lines.append(Line(placed(start), placed(end), arrow.kind, text))
    at_arrows = {id(entry) for _, _, *both in pairs for entry in both}
    alone = [e for e in entries if id(e) not in at_arrows and not e.skipped]
    diagram.points = [placed(entry) for entry in sorted(alone, key=lambda e: e.row)]
    diagram.bars = [bar for mine in owned for bar in bars(mine)]
    diagram.letters = _letters_told(pairs, entries)
    return diagram


def _letters_told(
    pairs: Iterable[tuple[Arrow, str, Entry, Entry]], entries: Iterable[Entry]
) -> list[str]:
    """What happens at the points of each letter: `C: ACK sent, PUT sent`."""
    told: dict[str, dict[str, None]] = {}
    for arrow, _, start, end in pairs:
        name = arrow.name.partition(" (")[0]
        begins = f"{name} begins" if arrow.kind is Kind.RDMA else f"{name} sent"
        told.setdefault(start.point.letter, {})[begins] = None
        told.setdefault(end.point.letter, {})[f"{name} arrives"] = None
    for entry in entries:
        if entry.point.text:
            told.setdefault(entry.point.letter, {})[entry.point.text.partition(" #")[0]] = None
    return [f"{letter}: {', '.join(told[letter])}" for letter in sorted(told) if letter]


def _times(messages: Iterable[Message]) -> list[int]:
    posted = [m.posted.time for m in messages if m.posted is not None]
    return posted + [m.start_time for m in messages]


def _titles(messages: Sequence[Message]) -> tuple[str, str]:
    if len(messages) > 1:
        names = dict.fromkeys(m.decided or m.protocol for m in messages)
        return f"{len(messages)} messages", ", ".join(filter(None, names))  # of one never sent: ""
    message = messages[0]
    title = (
        f"{byte_count(message.size)} from rank {message.sender} to rank {message.receiver}, "
        f"{tag_text(message.tag)}"
    )
    became = message.decided and message.decided != message.protocol
    return title, message.protocol + (f", which became {message.decided}" if became else "")


def _message(
    message: Message, origin: int, several: str
) -> tuple[list[Entry], list[tuple[Arrow, str, Entry, Entry]]]:
    """The points of a message, and its arrows between them."""
    points: dict[int, Entry] = {}

    def at(event: Event, text: str = "") -> Entry:
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
    shown, hidden = thin_arrows(message.arrows())
    known = message.failed_over and message.sends and message.receives
    missing = "not received" if known else ""
    pairs = [_ends(_told(arrow, message), origin, at, several, missing) for arrow in shown]
    for own in (message.sends, [e for e in events if _field(e, "side") == RECEIVE]):
        chain([points[id(event)] for event in own if id(event) in points])
    gaps = [_gap(arrow, count, size, origin) for arrow, count, size in hidden]
    extra = [entry for _, _, *both in pairs for entry in both]
    return list(dict.fromkeys((*points.values(), *extra, *gaps))), pairs


def _told(arrow: Arrow, message: Message) -> Arrow:
    """A first fragment that goes again says so."""
    if any(arrow.sent is event for event in message.restarts):
        return arrow._replace(name=f"{arrow.name} (restart)")
    return arrow


def _gap(arrow: Arrow, count: int, size: int, origin: int) -> Entry:
    moved = f", {byte_count(size)}" if size else ""
    text = f"{count} more {arrow.name}{moved}"
    return Entry(Point(-1, arrow.sent.time - origin), skipped=text)


def _ends(
    arrow: Arrow, origin: int, at: Callable[..., Entry], several: str, missing: str
) -> tuple[Arrow, str, Entry, Entry]:
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
            start = Entry(Point(arrow.source, arrow.sent.time - origin), [begun])
        end = Entry(Point(arrow.target, last - origin), [start])
        if arrow.arrived is not None:  # the FIN that tells of it
            at(arrow.arrived).after.append(end)
        return arrow, text, start, end
    start = at(arrow.sent)
    if arrow.arrived is None:
        nowhere = Point(arrow.target, arrow.sent.time - origin, text=missing)
        return arrow, text, start, Entry(nowhere, [start])
    end = at(arrow.arrived)
    end.after.append(start)
    return arrow, text, start, end


def _entry(message: Message, event: Event, origin: int, text: str) -> Entry:
    letter = str(_field(event, "step") or "")
    if message.protocol == _IMMEDIATE and _field(event, "side") == RECEIVE and letter:
        letter = "B"  # the receiver cannot tell the three eager sends apart and says C
    return Entry(Point(event.rank, event.time - origin, letter, text))


def _field(event: Event, name: str) -> Any:
    return dict(event.fields).get(name)


def thin_arrows(arrows: list[Arrow]) -> tuple[list[Arrow], list[tuple[Arrow, int, int]]]:
    """Leave out the middle of many arrows of one name.

    Args:
        arrows: of one message.

    Returns:
        Those that are shown; for each name of others the first left out, how many, their bytes.
    """
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
