"""Counters in Chrome's JSON: how long queues are, and what is on rails.

Of each rank: receives that are posted, messages that are here and unexpected, sends under way, and
what waits because a BTL has no room for it. Of each rail of a rank: bytes that are on their way,
bytes a second that it has been given, and how many peers are reached over it.

All are made of events that a trace has anyway, but for what waits (PENDING, `pml/ob1/pending.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from ompy.trace.calls import fields_of
from ompy.trace.matching_queues import matching_queues
from ompy.trace.message_events import Arrow, Message
from ompy.trace.sink import Event

SENDING: Final = "sends under way"
PENDING: Final = "waits for room"
IN_FLIGHT: Final = "bytes in flight"
RATE: Final = "bytes a second"
PEERS: Final = "peers reached"
_WINDOWS: Final = 200  # of a trace, in which bytes are counted; arbitrary: so many points are seen
_LEAST: Final = 1000  # ns of a window; arbitrary
_SECOND: Final = 1_000_000_000  # ns

Change = tuple[int, int]  # when, and by how much
Key = tuple[int, str]  # rank, name of the counter


class _Counters:
    """Changes of counters, as they are found."""

    def __init__(self) -> None:
        self.changes: dict[Key, list[Change]] = {}
        self.values: dict[Key, list[Change]] = {}  # those that are known as a whole

    def add_change(self, rank: int, name: str, time: int, by: int) -> None:
        """One change."""
        self.changes.setdefault((rank, name), []).append((time, by))

    def add_period(self, rank: int, name: str, began: int, ended: int | None) -> None:
        """One more, for a time or for good."""
        self.add_change(rank, name, began, 1)
        if ended is not None:
            self.add_change(rank, name, max(began, ended), -1)


def counters(events: Sequence[Event], found: Sequence[Message]) -> Iterator[dict[str, Any]]:
    """The counters' events, by rank, name and time.

    Args:
        events: of the trace, in order.
        found: its messages.
    """
    made = _Counters()
    _count_waiting(events, found, made)
    for message in found:
        _count_sending(message, made)
    arrows = [arrow for message in found for arrow in message.arrows()]
    _count_rails(arrows, made)
    _count_rates(arrows, events[-1].time if events else 0, made)
    _count_states(events, made)
    for key, changes in made.changes.items():
        made.values[key] = list(_levels(changes))
    for rank, name in sorted(made.values):
        for time, value in made.values[rank, name]:
            yield {
                "name": name,
                "ph": "C",
                "pid": rank,
                "tid": 0,
                "ts": time / 1000,
                "args": {"value": value},
            }


def _levels(changes: Iterable[Change]) -> Iterator[Change]:
    """From changes to levels: one for each moment at which something changes."""
    by_time: dict[int, int] = {}
    for time, by in changes:
        by_time[time] = by_time.get(time, 0) + by
    level = 0
    for time, by in sorted(by_time.items()):
        level += by
        yield time, level


def _count_waiting(events: Sequence[Event], found: Sequence[Message], made: _Counters) -> None:
    """Receives that wait for a message, and messages that nobody had posted a receive for."""
    for waiting in matching_queues(events, found):
        ended = None if waiting.ended is None else waiting.ended.time
        made.add_period(waiting.rank, waiting.queue, waiting.began.time, ended)


def _count_sending(message: Message, made: _Counters) -> None:
    """A message that is being sent."""
    if message.sends:
        done = next((event for event in message.sends if event.name == "COMPLETE"), None)
        began = message.sends[0]
        made.add_period(began.rank, SENDING, began.time, None if done is None else done.time)


def _rail(event: Event) -> str:
    return str(fields_of(event).get("rail", ""))


def _count_rails(arrows: Iterable[Arrow], made: _Counters) -> None:
    """Bytes that have left and have not arrived, as far as it is known when they did."""
    for arrow in arrows:
        rail = _rail(arrow.sent)
        if rail and arrow.size and arrow.arrived is not None:
            name = f"rail {rail}: {IN_FLIGHT}"
            made.add_change(arrow.sent.rank, name, arrow.sent.time, arrow.size)
            made.add_change(
                arrow.sent.rank, name, max(arrow.arrived.time, arrow.sent.time), -arrow.size
            )


def _count_rates(arrows: Iterable[Arrow], end: int, made: _Counters) -> None:
    """Bytes given to a rail in each of some windows, by the time that a window has."""
    width = max(end // _WINDOWS + 1, _LEAST)
    windows: dict[Key, dict[int, int]] = {}
    for arrow in arrows:
        rail = _rail(arrow.sent)
        if rail and arrow.size:
            key = (arrow.sent.rank, f"rail {rail}: {RATE}")
            sums = windows.setdefault(key, {})
            place = arrow.sent.time // width
            sums[place] = sums.get(place, 0) + arrow.size
    for key, sums in windows.items():
        values = dict.fromkeys((place + 1 for place in sums), 0)
        values |= {place: size * _SECOND // width for place, size in sums.items()}
        made.values[key] = [(place * width, value) for place, value in sorted(values.items())]


def _rail_names(text: str) -> Iterator[str]:
    """Names of modules as messages have them: numbered where there are several of a name."""
    names = [name for name in text.split(",") if name]
    for place, name in enumerate(names):
        several = names.count(name) > 1
        yield f"{name}[{names[:place].count(name)}]" if several else name


def _count_states(events: Iterable[Event], made: _Counters) -> None:
    """How many peers a rail reaches, and what waits for room."""
    for event in events:
        fields = fields_of(event)
        if event.name == "PENDING":
            made.values.setdefault((event.rank, PENDING), []).append((event.time, fields["count"]))
        elif event.name == "ADD_PROC":
            for rail in _rail_names(str(fields.get("rails", ""))):
                made.add_change(event.rank, f"rail {rail}: {PEERS}", event.time, 1)
        elif event.name == "RAIL" and fields.get("what") in ("broke", "healed"):
            by = 1 if fields["what"] == "healed" else -1
            made.add_change(event.rank, f"rail {fields.get('rail', '')}: {PEERS}", event.time, by)
