"""The sink everything may emit events to. Off, it costs its user one attribute test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple


class Event(NamedTuple):
    """One thing that happened.

    Attributes:
        time: nanoseconds of the rank's engine clock.
        rank: world rank it happened on.
        layer: who says so, as `pml.ob1` or `btl.sm`.
        name: what happened, in the seeds' vocabulary (MATCH, RNDV, ACK, FRAG, ...).
        fields: the values that belong to it, in the order given.
    """

    time: int
    rank: int
    layer: str
    name: str
    fields: tuple[tuple[str, object], ...]

    def line(self) -> str:
        """The event as one line of text, equal for equal events."""
        values = " ".join(f"{key}={value}" for key, value in self.fields)
        return f"{self.time:>12} {self.rank:>3} {self.layer:<10} {self.name} {values}".rstrip()


class Trace:
    """One rank's end of the event stream.

    Emitters test `active` first, then call `record`; nothing is built when nobody listens.
    """

    __slots__ = ("_clock", "_events", "active", "rank")

    def __init__(self, rank: int, clock: Callable[[], int]) -> None:
        self.active = False
        self.rank = rank
        self._clock = clock
        self._events: list[Event] = []

    def start(self) -> None:
        """Keep events from now on."""
        self.active = True

    def record(self, layer: str, name: str, **fields: object) -> None:
        """Keep one event, stamped with the engine's clock. Call only while `active`."""
        self._events.append(Event(self._clock(), self.rank, layer, name, tuple(fields.items())))

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)
