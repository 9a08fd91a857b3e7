"""A trace as Chrome's JSON, which Perfetto and chrome://tracing show.

A process per rank; in it a track for each layer and each rail; a span for each send and receive,
from its beginning (posting) to its completion, and for each operation of GASNet; an arrow for each
fragment, control message and active message; above them the calls of the API, below them counters
of queues and rails.

Source: the Trace Event Format (Google), as Perfetto reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ompy.trace.calls import joint_calls
from ompy.trace.exporting.chrome_calls import LAYERS, TRACK, call_slices
from ompy.trace.exporting.chrome_counters import counters
from ompy.trace.exporting.chrome_operations import flows, handler_durations, spans
from ompy.trace.message_events import Arrow, Kind, Message, messages
from ompy.trace.operations import operations
from ompy.trace.sink import Event
from ompy.trace.tag_names import tag_text
from ompy.trace.trace_files import JobTrace

LEAST: Final = 1000  # ns; arbitrary: what happens at a moment has to be seen, and hold an arrow


def chrome(trace: JobTrace) -> str:
    """The JSON text; the same for the same trace."""
    found = messages(trace.events)
    of_gasnet = operations(trace.events)
    tracks = _Tracks(trace.events)
    arrows = list(_flows(found, tracks))
    events = [
        *_names(trace, tracks),
        *_calls(trace.events, tracks),
        *_slices(trace.events, tracks, _durations(found) | handler_durations(of_gasnet)),
        *_spans(found),
        *spans(of_gasnet),
        *counters(trace.events, found),
        *arrows,
        *flows(of_gasnet, tracks.of, len(arrows) + 1),
    ]
    body = ",\n".join(json.dumps(event, separators=(",", ":")) for event in events)
    job = json.dumps({"ompy": trace.job}, separators=(",", ":"))
    return f'{{"displayTimeUnit":"ns","otherData":{job},"traceEvents":[\n{body}\n]}}\n'


class _Tracks:
    """Numbers of the tracks: the same layer or rail has the same one in every rank."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.used = sorted({(event.rank, _track(event)) for event in events})
        used = {name for _, name in self.used}
        names = sorted(used, key=lambda name: (name != TRACK, " " in name, name))
        self._numbers = {name: number for number, name in enumerate(names, 1)}

    def __getitem__(self, name: str) -> int:
        return self._numbers[name]

    def of(self, event: Event) -> int:
        return self._numbers[_track(event)]


def _calls(events: Sequence[Event], tracks: _Tracks) -> Iterator[dict[str, Any]]:
    found = joint_calls(events)
    return call_slices(found, tracks[TRACK], events[-1].time) if found else iter(())


def _track(event: Event) -> str:
    if event.layer in LAYERS:
        return TRACK
    rail = dict(event.fields).get("rail")
    return event.layer if rail is None or event.name == "PROTOCOL" else f"rail {rail}"


def _us(nanoseconds: int) -> float:
    return nanoseconds / 1000


def _names(trace: JobTrace, tracks: _Tracks) -> Iterator[dict[str, Any]]:
    for rank, header in sorted(trace.headers.items()):
        name = f"rank {rank}" + (f" on {header.host}" if header.host else "")
        yield _meta("process_name", rank, 0, {"name": name})
        yield _meta("process_sort_index", rank, 0, {"sort_index": rank})
    for rank, track in tracks.used:
        yield _meta("thread_name", rank, tracks[track], {"name": track})
        yield _meta("thread_sort_index", rank, tracks[track], {"sort_index": tracks[track]})


def _meta(name: str, rank: int, track: int, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "ph": "M", "pid": rank, "tid": track, "ts": 0, "args": arguments}


def _durations(found: Sequence[Message]) -> dict[int, int]:
    """How long puts and gets took, by the identity of the event that began them."""
    return {
        id(arrow.sent): arrow.arrived.time - arrow.sent.time
        for message in found
        for arrow in message.arrows()
        if arrow.kind is Kind.RDMA and arrow.arrived is not None
    }


def _slices(
    events: Sequence[Event], tracks: _Tracks, durations: dict[int, int]
) -> Iterator[dict[str, Any]]:
    """Every event but those of calls.

    One that takes no time lasts to the next on its track, a moment at most.
    """
    events = [event for event in events if event.layer not in LAYERS]
    following: dict[tuple[int, int], int] = {}
    lengths: list[int] = []
    for event in reversed(events):
        place = (event.rank, tracks.of(event))
        gap = following.get(place, event.time + LEAST) - event.time
        lengths.append(durations.get(id(event), min(gap, LEAST)))
        following[place] = event.time
    for event, length in zip(events, reversed(lengths), strict=True):
        fields = dict(event.fields)
        letter = fields.get("step")
        yield {
            "name": f"{letter} {event.name}" if letter else event.name,
            "cat": event.layer,
            "ph": "X",
            "pid": event.rank,
            "tid": tracks.of(event),
            "ts": _us(event.time),
            "dur": _us(length),
            "args": fields,
        }


def _spans(found: Sequence[Message]) -> Iterator[dict[str, Any]]:
    for number, message in enumerate(found, 1):
        what = f"{message.size} bytes, {tag_text(message.tag)}"
        for side, own, begun, text in (
            ("send", message.sends, None, f"send to {message.receiver}: {what}"),
            ("receive", message.receives, message.posted, f"receive from {message.sender}: {what}"),
        ):
            done = [event for event in own if event.name == "COMPLETE"]
            if not own or not done:
                continue
            first = begun or own[0]
            protocol = message.protocol if side == "send" else message.decided or message.protocol
            common = {"cat": side, "id": f"{side}{number}", "pid": first.rank, "tid": 0}
            arguments = {"protocol": protocol, "context": message.context}
            arguments["sequence"] = message.sequence
            yield {"name": text, "ph": "b", **common, "ts": _us(first.time), "args": arguments}
            yield {"name": text, "ph": "e", **common, "ts": _us(done[0].time), "args": {}}


def _flows(found: Sequence[Message], tracks: _Tracks) -> Iterator[dict[str, Any]]:
    number = 0
    for message in found:
        for arrow in message.arrows():
            if arrow.arrived is None or arrow.kind is Kind.RDMA:
                continue
            number += 1
            yield from _flow(arrow, arrow.arrived, number, tracks)


def _flow(arrow: Arrow, arrived: Event, number: int, tracks: _Tracks) -> Iterator[dict[str, Any]]:
    common = {"name": arrow.name, "cat": arrow.kind.name.lower(), "id": number}
    for phase, event in (("s", arrow.sent), ("f", arrived)):
        where = {"pid": event.rank, "tid": tracks.of(event), "ts": _us(event.time)}
        yield {**common, "ph": phase, **where, **({"bp": "e"} if phase == "f" else {})}
