"""Calls of the API in Chrome's JSON: a slice for each, and in it one for each step of its schedule.

They are on a track of their own, above those of messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ompy.trace.calls import API, COLL, Call, JointCall, fields_of
from ompy.trace.sink import Event

TRACK: Final = "calls"
LAYERS: Final = (API, COLL)  # events that make these slices


def call_slices(calls: Iterable[JointCall], track: int, end: int) -> Iterator[dict[str, Any]]:
    """The slices.

    Args:
        calls: of the trace.
        track: number of their track.
        end: of the trace, where calls end that have not ended.
    """
    for number, call in enumerate(calls, 1):
        for part in call.parts:
            last = part.ended.time if part.ended is not None else max(end, part.began.time)
            arguments = {"call": number, **part.fields}
            for name in ("number", "group", "context", "internal"):
                arguments.pop(name, None)
            if part.served:
                served = [fields_of(event) for event in part.served]
                arguments["served by"] = "; ".join(
                    f"{each['component']}: {each['algorithm']}" for each in served
                )
            if part.error:
                arguments["error"] = part.error
            arguments |= {} if part.ended is not None else {"ended": False}
            yield _slice(part.name, API, part.began, last, track, arguments)
            yield from _steps(part, last, track)


def _steps(part: Call, end: int, track: int) -> Iterator[dict[str, Any]]:
    """Steps within the call; those of nonblocking calls may come later, and are left out."""
    within = [event for event in part.steps if part.began.time <= event.time <= end]
    if not within:
        return
    for event, following in zip(within, [*(e.time for e in within[1:]), end], strict=True):
        fields = fields_of(event)
        yield _slice(f"step {fields['step']}", COLL, event, following, track, {})


def _slice(
    name: str, category: str, began: Event, end: int, track: int, arguments: dict[str, Any]
) -> dict[str, Any]:
    return {
        "name": name,
        "cat": category,
        "ph": "X",
        "pid": began.rank,
        "tid": track,
        "ts": began.time / 1000,
        "dur": (end - began.time) / 1000,
        "args": arguments,
    }
