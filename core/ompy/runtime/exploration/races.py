"""What the choices of a world could have been instead, as that world has shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ompy.data.constants import ANY_SOURCE
from ompy.runtime.exploration.boxes import Box, Operation
from ompy.runtime.exploration.events import (
    CANCEL,
    DONE,
    FROM,
    FURTHER,
    MATCH,
    NOTHING,
    POLL,
    PROBE,
    SERVE,
    Event,
    Race,
    Value,
)
from ompy.runtime.exploration.exchange import Exchange
from ompy.runtime.exploration.windows.parts import FREE

Known = Callable[[Operation, Value], bool]


def find_races(exchange: Exchange, known: Known | None = None) -> list[Race]:
    """Those of a world that has ended.

    Args:
        exchange: of the world.
        known: whether a value of a choice need not be told of.
    """
    return list(_Races(exchange, known or (lambda _key, _value: False)).find_all())


class _Races:
    def __init__(self, exchange: Exchange, known: Known) -> None:
        self._exchange = exchange
        self._known = known
        self._begins: dict[int, tuple[int, dict[int, int]]] = {}  # of boxes: a place, and `late`'s
        self._events = exchange.events
        self._by_number = {event.number: event for event in self._events}
        self._whole: dict[int, int] = {}  # of events: all that they depend on, and themselves
        for event in self._events:
            self._whole[event.number] = 1 << event.number | self._closed(event.past)

    def find_all(self) -> Iterator[Race]:
        for place, event in enumerate(self._events):
            if event.kind == SERVE:
                yield from self._other_commands(event)
                continue
            if event.kind in {MATCH, PROBE, CANCEL}:
                yield from self._other_messages(event)
            else:
                yield from self._other_operations(event)
            can_be_nothing = event.offered and event.value != (NOTHING,)
            if can_be_nothing and (event.kind in {FURTHER, CANCEL} or self._may_be_nothing(place)):
                yield Race(event, (NOTHING,), self._closed(event.own))

    def _closed(self, past: int) -> int:
        """A past, and what its events depend on."""
        left, found = past, 0
        while left:
            number = left.bit_length() - 1
            whole = self._whole.get(number)
            if whole is not None:
                found |= whole
            else:
                found |= 1 << number
                event = self._by_number.get(number)
                left |= event.past if event is not None else 0
            left &= ~found
        return found

    def _other_messages(self, event: Event) -> Iterator[Race]:
        """Messages that a receive or a probe would have taken, had they been there."""
        box, receive = self._exchange.asked(event.key)
        if receive.source != ANY_SOURCE and event.value != (NOTHING,):
            return
        if not self._exchange.heeds(receive.tag):
            return
        for message in box.late(receive, self._begin_of(box, receive.place)):
            if self._known(event.key, (FROM, *message.sender)):
                continue
            past = self._closed(self._exchange.past_of(box, receive, message))
            if not past >> event.number & 1:
                yield Race(event, (FROM, *message.sender), past, message.site)

    def _other_commands(self, event: Event) -> Iterator[Race]:
        """Commands of the same class that could have been served instead."""
        box, asked = self._exchange.command_of_choice(event.key)
        if asked.of == FREE:
            return
        if asked.reads:
            for value, late, needs in box.other_places(asked):
                past = self._closed(asked.base | needs)
                if not past & late and not self._known(event.key, value):
                    yield Race(event, value, past, event.sent)
            return
        before = box.past_of_place(asked)
        for message in box.late_commands(asked):
            value = (FROM, *message.sender)
            if self._known(event.key, value):
                continue
            past = self._closed(box.asked[message.sender].base | before)
            if not past >> event.number & 1:
                yield Race(event, value, past, message.site)

    def _begin_of(self, box: Box, place: int) -> dict[int, int]:
        """Where `Box.late` need not look: as far as for receives posted before `place`."""
        last, begin = self._begins.get(id(box), (place, {}))
        if place < last:
            begin = {}
        self._begins[id(box)] = (place, begin)
        return begin

    def _other_operations(self, event: Event) -> Iterator[Race]:
        """Operations that could have been complete instead."""
        for one in event.outstanding:
            past = self._exchange.past_of_completion((event.key[0], one))
            value = (DONE, one)
            if past is None or value == event.value or self._known(event.key, value):
                continue
            past = self._closed(past | event.own)
            if not past >> event.number & 1:
                yield Race(event, value, past)

    def _may_be_nothing(self, place: int) -> bool:
        """Whether a poll that found something may have found nothing, within the bound."""
        rank, before = self._events[place].key[0], 0
        of = self._asked_for(self._events[place])
        for event in reversed(self._events[:place]):
            if event.key[0] == rank and event.kind in {POLL, PROBE}:
                if event.value != (NOTHING,):
                    if not of:
                        break
                elif self._asked_for(event) == of:
                    before += event.offered
        return before < self._exchange.polls

    def _asked_for(self, event: Event) -> int:
        """The operation that a poll has looked for alone; 0 if it is told of any."""
        of = event.outstanding[0] if event.outstanding else 0
        return of if of and self._exchange.is_asked((event.key[0], of)) else 0
