"""The sink everything may emit events to. Off, it costs its user one attribute test.

Beside the events, which are kept only when somebody wants them, there is the flight recorder: a
ring of the last few things that happened, on unless it is turned off, and so cheap that it may
be: a few numbers each, made into text only when the rank is asked what it was doing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic_ns
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ompy import raw
from ompy.compiled import ccall, cclass
from ompy.trace import entries

if TYPE_CHECKING:
    from typing import Any

CHUNK: Final = 4096  # events; arbitrary: a few MB of memory, and seldom a write
RECENT: Final = 64  # entries; arbitrary: what a screen or two can show


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


class Recent(NamedTuple):
    """One entry of the flight recorder.

    Attributes:
        time: nanoseconds of the rank's clock.
        what: `>` and a header or call for what went out, `<` and a header for what came in.
        context: id of the communicator, or -1 when the entry does not know it.
        peer: rank in that communicator; without one, in the world.
        tag: of the message; 0 without a communicator.
        sequence: of the message; 0 without a communicator.
        size: bytes.
    """

    time: int
    what: str
    context: int
    peer: int
    tag: int
    sequence: int
    size: int


Listener = Callable[[str, int, int, int, int, int], object]  # the values of a Recent but its time


class EventWriter(Protocol):
    """Where a trace spills what it would otherwise have to keep in memory."""

    def write(self, events: list[Event]) -> bool:
        """Take over these events, which come behind all earlier ones.

        Returns whether more are of any use.
        """

    def close(self, reason: str) -> None:
        """There are no more; harmless the second time."""


class _Both:
    """Two writers, of which each goes on until it wants no more."""

    def __init__(self, *writers: EventWriter) -> None:
        self._writers = list(writers)

    def write(self, events: list[Event]) -> bool:
        """Hand them to both."""
        self._writers = [writer for writer in self._writers if writer.write(events)]
        return bool(self._writers)

    def close(self, reason: str) -> None:
        """Close both."""
        for writer in self._writers:
            writer.close(reason)


@cclass
class Trace:
    """One rank's end of the event stream.

    Emitters test `active` first, then call `record`; nothing is built when nobody listens. The
    flight recorder likewise: test `noting`, then call `note`.

    Attributes:
        active: somebody listens.
        rank: whose.
        clock: the rank's.
        noting: there is a flight recorder, or somebody who listens to it.
    """

    _events: list[Event]
    _listeners: list[Callable[[str, int, int, int, int, int], object]]
    _monotonic: bool
    _noted: int
    _recent: Any
    _ticks_began: int
    _time_began: int
    _writer: EventWriter | None
    active: bool
    clock: Callable[[], int]
    noting: bool
    rank: int
    __slots__ = tuple(__annotations__)

    def __init__(self, rank: int, clock: Callable[[], int], recent: int = RECENT) -> None:
        """Make a trace that is off.

        Args:
            rank: whose.
            clock: nanoseconds; never runs backwards.
            recent: entries the flight recorder keeps; 0 for none.
        """
        self.active = False
        self.rank = rank
        self.clock = clock
        self._events = []
        self._writer = None
        self._monotonic = clock is monotonic_ns
        self._recent = entries.ring(recent)
        self._listeners = []
        self._noted = 0
        self._time_began, self._ticks_began = raw.clock(), raw.ticks()
        self.noting = recent > 0

    def start(self, writer: EventWriter | None = None) -> None:
        """Keep events from now on: in memory, or with a writer that gets them now and then."""
        self._writer = writer
        self.active = True

    def also(self, writer: EventWriter) -> None:
        """Have another writer get the events from now on, beside the one there may be.

        It goes on until it wants no more; what is kept in memory already is not for it.
        """
        self.flush()
        first = self._writer
        self.start(writer if first is None else _Both(first, writer))

    def record(self, layer: str, name: str, **fields: object) -> None:
        """Keep one event, stamped with the rank's clock. Call only while `active`."""
        self.record_at(self.clock(), layer, name, **fields)

    def record_at(self, time: int, layer: str, name: str, **fields: object) -> None:
        """Keep one event that began earlier: what takes time is known only when it is done."""
        self._events.append(Event(time, self.rank, layer, name, tuple(fields.items())))
        if len(self._events) >= CHUNK:
            self.flush()

    def flush(self) -> None:
        """Hand what is kept to the writer, if there is one."""
        if self._writer is not None and self._events:
            events, self._events = self._events, []
            if not self._writer.write(events):
                self.forget()

    def finish(self, reason: str) -> None:
        """Keep no more events; what is kept goes to the writer, which is closed.

        Args:
            reason: why, a word or two.
        """
        writer = self._writer
        if writer is not None:
            self.active = False
            self.flush()
            writer.close(reason)

    def forget(self) -> None:
        """Keep nothing from now on, and nothing of what there is.

        In a child of the rank's process, whose events and file are the parent's; and when what is
        to take them can no more.
        """
        self.active = False
        self._writer = None
        self._events = []

    @ccall
    def note(self, what: str, context: int, peer: int, tag: int, sequence: int, size: int) -> None:
        """Add an entry to the flight recorder, see `Recent`. Call only while `noting`."""
        if self._listeners:
            for listener in self._listeners:
                listener(what, context, peer, tag, sequence, size)
        time: int = raw.ticks() if self._monotonic else self.clock()
        entries.put(self._recent, self._noted, time, what, context, peer, tag, sequence, size)
        self._noted += 1

    def listen(self, listener: Listener) -> None:
        """Have `listener` called with every entry, also where none is kept."""
        self._listeners.append(listener)
        self.noting = True

    def recent(self) -> list[Recent]:
        """What the flight recorder holds, the oldest first."""
        kept = [Recent(*entry) for entry in entries.entries(self._recent, self._noted)]
        if not self._monotonic:
            return kept
        began, ticks = self._time_began, self._ticks_began
        rate = (raw.clock() - began) / max(raw.ticks() - ticks, 1)
        return [one._replace(time=began + round((one.time - ticks) * rate)) for one in kept]

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)
