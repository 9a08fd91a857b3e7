"""GASNet's operations in Chrome's JSON: how long handlers take, spans of operations, arrows.

A span is a put or get from its beginning to its last completion, or a request from its sending, or
from when it began to wait for a credit, to its reply's handler or its credit's return.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ompy.trace.drawing.operation_sequence import operation_text
from ompy.trace.operations import Operation, Operations
from ompy.trace.sink import Event

TrackOf = Callable[[Event], int]


def handler_durations(found: Operations) -> dict[int, int]:
    """How long handlers took, by the identity of the event that began them."""
    return {
        id(each.handled): each.returned.time - each.handled.time
        for each in found.all
        if each.handled is not None and each.returned is not None
    }


def spans(found: Operations) -> Iterator[dict[str, Any]]:
    """A pair of events for each operation that has an end."""
    for number, each in enumerate(found.all, 1):
        end = _end(each)
        began = each.stalled or each.began
        if end is None or began is None:
            continue
        common = {"cat": "gasnet", "id": f"gasnet{number}", "pid": began.rank, "tid": 0}
        text = operation_text(each, found).partition(": ")[2]
        arguments = {"way": each.way, "size": each.size}
        yield {"name": text, "ph": "b", **common, "ts": began.time / 1000, "args": arguments}
        yield {"name": text, "ph": "e", **common, "ts": end.time / 1000, "args": {}}


def _end(each: Operation) -> Event | None:
    if not each.is_message:
        done = [post.done for post in each.posts if post.done is not None]
        return max(done, key=lambda event: event.time) if len(done) == len(each.posts) > 0 else None
    reply = each.answered
    return each.credited if reply is None else reply.handled


def flows(found: Operations, track_of: TrackOf, first: int) -> Iterator[dict[str, Any]]:
    """Arrows of messages to their handlers, and of credits that go back; numbers from `first`."""
    number = first
    for each in found.all:
        kind = "data" if each.size else "control"
        ways = [(each.name, kind, each.began, each.handled)]
        ways.append(("credit", "control", each.hidden, each.credited))
        for name, category, sent, arrived in ways:
            if sent is None or arrived is None:
                continue
            common = {"name": name, "cat": category, "id": number}
            number += 1
            for phase, event in (("s", sent), ("f", arrived)):
                where = {"pid": event.rank, "tid": track_of(event), "ts": event.time / 1000}
                yield {**common, "ph": phase, **where, **({"bp": "e"} if phase == "f" else {})}
