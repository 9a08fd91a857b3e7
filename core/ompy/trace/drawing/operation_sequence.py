"""A sequence diagram of GASNet's operations: active messages with their handlers, puts and gets.

What one rank did stands in the order it did it; a handler begins below the sending of its message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

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
from ompy.trace.message_events import Kind
from ompy.trace.operations import Operation, Operations, Post
from ompy.trace.reading import RankHeader
from ompy.trace.sink import Event

LEGEND: Final = ("message with payload", "short message, credit", "put or get")
NOTE: Final = "GASNet's names. Down the page is later, to no scale."
_SHOWN_FIRST: Final = 5  # posts of a transfer; arbitrary: enough to see the pattern
_SHOWN_LAST: Final = 2  # of them; how it ends


def arrange(
    chosen: Sequence[Operation], found: Operations, headers: Mapping[int, RankHeader]
) -> Diagram:
    """Lay operations out.

    Args:
        chosen: what to show; at least one.
        found: all of the trace.
        headers: of the trace.
    """
    ranks = sorted({rank for each in chosen for rank in (each.source, each.target)})
    title = (
        operation_text(chosen[0], found)
        if len(chosen) == 1
        else f"{len(chosen)} operations of GASNet"
    )
    ways = dict.fromkeys(operation.way for operation in chosen if operation.way)
    subtitle = "; ".join(list(ways)[:4]) + ("; ..." if len(ways) > 4 else "")
    names = [(rank, head(rank, headers)) for rank in ranks]
    layout = _Layout(found, min(operation.start_time for operation in chosen))
    for operation in chosen:
        layout.add_operation(operation)
    diagram = Diagram(title, subtitle, names, legend=LEGEND, note=NOTE)
    layout.fill(diagram)
    return diagram


def operation_text(operation: Operation, found: Operations) -> str:
    """An operation in a few words."""
    what = f" {found.handler_name(operation)}" if operation.is_message else ""
    size = f" {byte_count(operation.size)}" if operation.size else ""
    way = "from" if operation.name == "get" else "to"
    return f"rank {operation.source}: {operation.name}{what}{size} {way} rank {operation.target}"


class _Layout:
    """The points and arrows of some operations, on their way to a diagram."""

    def __init__(self, found: Operations, origin: int) -> None:
        self._found = found
        self._origin = origin
        self._points: dict[int, Entry] = {}
        self._events: dict[int, Event] = {}
        self._others: list[Entry] = []
        self._lines: list[tuple[Entry, Entry, Kind, str]] = []
        self._owned: list[tuple[list[Event], list[Entry]]] = []

    def add_operation(self, operation: Operation) -> None:
        """Take an operation in."""
        before = len(self._others)
        own = operation.events()
        for event in own:
            self._at(event)
        if operation.is_message:
            self._message(operation)
        else:
            self._transfer(operation)
        self._owned.append((own, self._others[before:]))

    def fill(self, diagram: Diagram) -> None:
        """Give all their rows."""
        for rank in {event.rank for event in self._events.values()}:
            mine = [key for key, event in self._events.items() if event.rank == rank]
            mine.sort(key=self._found.order.__getitem__)
            chain([self._points[key] for key in mine])
        entries = [*self._points.values(), *self._others]
        diagram.rows = assign_rows(entries)
        diagram.gaps = [(entry.row, entry.skipped) for entry in entries if entry.skipped]
        for start, end, kind, text in sorted(self._lines, key=lambda line: line[0].row):
            diagram.lines.append(Line(placed(start), placed(end), kind, text))
        at_arrows = {id(entry) for start, end, *_ in self._lines for entry in (start, end)}
        alone = [entry for entry in entries if id(entry) not in at_arrows and not entry.skipped]
        diagram.points = [placed(entry) for entry in sorted(alone, key=lambda e: e.row)]
        for events, others in self._owned:
            own = [self._points[id(event)] for event in events if id(event) in self._points]
            diagram.bars += bars([*own, *(entry for entry in others if not entry.skipped)])

    def _at(self, event: Event, text: str = "") -> Entry:
        known = self._points.get(id(event))
        if known is None:
            known = Entry(Point(event.rank, event.time - self._origin, text=text))
            self._points[id(event)], self._events[id(event)] = known, event
        elif text:
            known.point = Point(known.point.rank, known.point.time, text=text)
        return known

    def _beside(self, rank: int, time: int, after: Iterable[Entry], text: str = "") -> Entry:
        """A point that is nobody's event."""
        made = Entry(Point(rank, time - self._origin, text=text), list(after))
        self._others.append(made)
        return made

    def _message(self, message: Operation) -> None:
        name = self._found.handler_name(message)
        if message.stalled is not None:
            self._at(message.stalled, f"no credit for rank {message.target}: polls")
        if message.returned is not None:
            self._at(message.returned, f"{name} has returned")
        if message.began is None:
            if message.handled is not None:
                self._at(message.handled, f"{name}, of rank {message.source}")
            return
        start = self._at(message.began)
        if message.handled is not None:
            end = self._at(message.handled)
            end.after.append(start)
        else:  # of the own rank, or never handled
            own = message.source == message.target
            lost = "" if own else "not handled"
            end = self._beside(message.target, message.began.time, [start], lost)
        size = f" {byte_count(message.size)}" if message.size else ""
        left = f", {message.credits} credits left" if message.credits >= 0 else ""
        text = f"{message.name} {name}{size} ({message.way}{left})"
        kind = Kind.DATA if message.size else Kind.CONTROL
        self._lines.append((start, end, kind, text))
        self._hidden(message)

    def _hidden(self, message: Operation) -> None:
        """The credit of a request that nobody answered goes back by itself."""
        gone, back = message.hidden, message.credited
        if gone is None:
            return
        if back is None:
            self._at(gone, "its credit is banked" if message.banked else "its credit goes back")
            return
        start, end = self._at(gone), self._at(back)
        end.after.append(start)
        count = dict(gone.fields)["count"]
        text = "a credit" if count == 1 else f"{count} credits"
        self._lines.append((start, end, Kind.CONTROL, text))

    def _transfer(self, transfer: Operation) -> None:
        began = transfer.began
        assert began is not None, "a put or get begins with its event"
        if transfer.is_collective:
            self._at(began, f"{transfer.name}, {transfer.way}")
            if transfer.posts[0].done is not None:
                self._at(transfer.posts[0].done, f"{transfer.way} is over")
            return
        if not transfer.posts:
            start, end = self._at(began), self._beside(transfer.target, began.time, ())
            if transfer.name == "get":
                start, end = end, start
            end.after.append(start)
            self._lines.append((start, end, Kind.RDMA, self._text(transfer, transfer.way)))
            return
        shown = transfer.posts
        if len(shown) == 1:
            self._forget(began)
            self._post(transfer, shown[0], f"{self._text(transfer, '')}: {shown[0].way}")
            return
        self._at(began, f"{self._text(transfer, '')} begins")
        if len(shown) > _SHOWN_FIRST + _SHOWN_LAST + 1:
            hidden = shown[_SHOWN_FIRST:-_SHOWN_LAST]
            self._skip(hidden)
            shown = shown[:_SHOWN_FIRST] + shown[-_SHOWN_LAST:]
        for post in shown:
            self._post(transfer, post)

    def _text(self, transfer: Operation, way: str) -> str:
        return f"{transfer.name} {byte_count(transfer.size)}{f' ({way})' if way else ''}"

    def _skip(self, hidden: Sequence[Post]) -> None:
        moved = byte_count(sum(post.size for post in hidden))
        gap = Entry(Point(-1, hidden[0].began.time - self._origin))
        gap.skipped = f"{len(hidden)} more posts, {moved}"
        self._others.append(gap)
        for post in hidden:  # their points are not shown either
            self._forget(post.began)
            if post.done is not None:
                self._forget(post.done)

    def _forget(self, event: Event) -> None:
        """It is not shown."""
        self._points.pop(id(event), None)
        self._events.pop(id(event), None)

    def _post(self, transfer: Operation, post: Post, text: str = "") -> None:
        text = text or f"{post.way}, {byte_count(post.size)}"
        is_get = transfer.name == "get"
        begun = self._at(post.began, f"get of {byte_count(post.size)} begins" if is_get else "")
        done = self._at(post.done, "complete") if post.done is not None else None
        time = (post.done or post.began).time
        if is_get:
            start = self._beside(transfer.target, post.began.time, [begun])
            end = done or self._beside(transfer.source, time, [start], "not complete")
            end.after.append(start)
        else:
            start = begun
            end = self._beside(transfer.target, time, [start], "" if done else "not complete")
            if done is not None:
                done.after.append(end)
        self._lines.append((start, end, Kind.RDMA, text))
