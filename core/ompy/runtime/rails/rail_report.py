"""What became of rails, from the ranks to the user: a line for each time one broke, and a file.

A PML that fails over keeps `RailEvent`s and tells of each when a rail breaks and when it is healed
(`context.tell_rail`). They go rank -> agent -> launcher as the news of lost paths do; at its end a
rank says all of them once more, with the figures as they are then. In a simulated world the ranks
hand them over with their last word.

Times are counted from when the rank was brought up: hosts have no clock in common.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ompy.frameworks.paths.rail_events import RailEvent

CAUSE_MAX: Final = 300  # characters; arbitrary: interface, addresses and host are in it
MS: Final = 1_000_000  # ns; Linux counts so
FIELDS: Final = (
    "rank",
    "peer",
    "rail",
    "cause",
    "noticed_ns",
    "messages",
    "bytes",
    "pause_ns",
    "healed_ns",
    "began_ns",
    "last",
)  # of an event as it travels and in the file; healed_ns is 0 while the rail is not; began_ns is
# when the rank came up, on its host's monotonic clock: what the other times are counted from


def plain(event: RailEvent, began: int) -> dict[str, Any]:
    """An event as values that JSON carries.

    Args:
        event: of a rank.
        began: when that rank was, on its engine's clock.
    """
    healed = event.healed - began if event.healed else 0
    values = (
        event.rank,
        event.peer,
        event.rail,
        event.cause[:CAUSE_MAX],
        event.noticed - began,
        event.messages,
        event.bytes,
        event.pause,
        healed,
        began,
        event.last,
    )
    return dict(zip(FIELDS, values, strict=True))


LOST: Final = "lost"
HEALED: Final = "healed"


class RailTeller:
    """The rank's side: tells of its events, each under a number of its own."""

    def __init__(
        self,
        events: Sequence[RailEvent],
        began: int,
        tell: Callable[[dict[str, Any]], object],
    ) -> None:
        """Prepare.

        Args:
            events: of the rank; more come.
            began: when the rank was brought up, ns.
            tell: sends one to the launcher; waits for nothing.
        """
        self._events = events
        self._began = began
        self._tell = tell

    def tell(self, event: RailEvent) -> None:
        """Something has become of a rail."""
        for number, known in enumerate(self._events):
            if known is event:
                self._tell({**plain(event, self._began), "number": number})

    def tell_all(self) -> None:
        """The rank ends: the figures are what they are now."""
        for event in self._events:
            self.tell(event)


class RailTally:
    """The launcher's side: the last that was said of each event."""

    def __init__(self) -> None:
        self._events: dict[tuple[int, int], dict[str, Any]] = {}

    def told(self, header: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """A rank tells of an event.

        Returns:
            What has happened since it was told the last time, `LOST`, `HEALED` or nothing, and
            the event.
        """
        key = int(header["rank"]), int(header["number"])
        before = self._events.get(key)
        event = {name: header[name] for name in FIELDS}
        self._events[key] = event
        if before is None:
            return LOST, event
        return (HEALED if event["healed_ns"] and not before["healed_ns"] else ""), event

    @property
    def events(self) -> list[dict[str, Any]]:
        """All of them, by rank and in the order they happened there."""
        return [self._events[key] for key in sorted(self._events)]

    def lines(self, dead: frozenset[int] = frozenset()) -> list[str]:
        """The report; empty when no rail has broken.

        Args:
            dead: ranks that have died while the job went on: their ends of rails broke with them.
        """
        events = [event for event in self.events if event["peer"] not in dead]
        if not events:
            return []
        broken, healed = len(events), sum(bool(e["healed_ns"]) for e in events)
        times = f"{broken} time{'' if broken == 1 else 's'}"
        head = f"rails broke {times}, {healed} healed (each rank counts its end of a rail):"
        return [head, *(f"  {line(event)}" for event in events)]

    def document(self) -> str:
        """The report as JSON."""
        return json.dumps({"rails": self.events}, indent=2) + "\n"


def line(event: Mapping[str, Any]) -> str:
    """What became of one rail, in a line."""
    healed = f"healed at {event['healed_ns'] / MS:.1f} ms" if event["healed_ns"] else "not healed"
    return (
        f"rank {event['rank']} to {event['peer']}, {event['rail']}, at "
        f"{event['noticed_ns'] / MS:.1f} ms: {event['cause']}; {_went(event)}; {healed}"
    )


def _went(event: Mapping[str, Any]) -> str:
    """What became of the messages that were under way."""
    if event["last"]:
        return "no other rail was left, and what was under way failed"
    count = event["messages"]
    if not count:
        return "nothing had to go again"
    size = event["bytes"]
    again = f"with {size} bytes already sent" if size else "with no bytes already sent from here"
    what = "1 message or piece" if count == 1 else f"{count} messages or pieces"
    return f"{what} went again, {again}, the first {event['pause_ns'] / MS:.1f} ms later"


def healed_line(event: Mapping[str, Any]) -> str:
    """That a rail is in use again."""
    return (
        f"rank {event['rank']} to {event['peer']}, {event['rail']}: healed at "
        f"{event['healed_ns'] / MS:.1f} ms"
    )
