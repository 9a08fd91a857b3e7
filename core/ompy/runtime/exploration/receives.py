"""Which receive of an explored world takes which message, where that is a choice; and cancelling.

Pure: no clock, no network, no process.
"""

from __future__ import annotations

from typing import Any

from ompy.frameworks.osc_base.headers import COMMAND_TAG
from ompy.runtime.exploration.boxes import Box, Message, Operation, Receive
from ompy.runtime.exploration.events import CANCEL, FROM, MATCH, NOTHING, Event, Value
from ompy.runtime.exploration.knowledge import joined
from ompy.runtime.exploration.waits import News, Offer, Rank, Wait
from ompy.runtime.exploration.windows.box import WindowBox
from ompy.runtime.exploration.windows.parts import Parts
from ompy.runtime.exploration.windows.service import Windows


class Receives(Windows):
    """Receives that have a choice, and probes."""

    def __init__(self, size: int, polls: int, parts: Parts | None = None) -> None:
        """Nothing is received yet; the arguments are those of `Windows`."""
        super().__init__(size, polls, parts)
        self._changed: set[tuple[int, int]] = set()
        self._matches: dict[Operation, int] = {}  # past of a choice, and its own bit
        self._asked: dict[Operation, tuple[Box, Receive]] = {}  # receives with a choice, and probes
        self._news: dict[int, list[News]] = {}

    def asked(self, key: Operation) -> tuple[Box, Receive]:
        """What a receive or a probe with a choice has asked for, and where."""
        return self._asked[key]

    def _box(self, place: tuple[int, int], *, served: bool = False) -> Box:
        found = self._boxes.get(place)
        if found is None:
            found = self._boxes[place] = self._make_box(place, served=served)
        self._changed.add(place)
        return found

    def _match(self, box: Box, receive: Receive, message: Message, event: int = 0) -> None:
        """A receive takes a message; both may be complete by that, and by an event's bit."""
        if isinstance(box, WindowBox) and message.tag == COMMAND_TAG:
            self._serve_message(box, receive, message)
        else:
            self._take(box, receive, message, self.past_of(box, receive, message) | event)

    def past_of(self, box: Box, receive: Receive, message: Message) -> int:
        """The events without which these two would not meet."""
        past = receive.past | message.past
        for other in box.before(receive, message):
            past |= self._matches.get(other.operation, 0)
        return past

    def _tell_arrival(self, box: Box, message: Message, state: Rank) -> None:
        """A rank hears of a message. What it does from now on depends on what is chosen by that."""
        for heard in box.tell_arrival(message):
            for receive in list(box.chosen_by(heard)):
                if receive.message is not None:
                    state.past |= self._matches.get(receive.operation, 0)
                else:
                    receive.event = self._new_number()
                    state.past |= 1 << receive.event

    def cancel_receive(self, operation: Operation, number: int, site: str = "") -> bool:
        """A rank cancels a receive. Its news say whether that is in time; False if it is matched.

        Args:
            operation: the cancelling, as one of the rank's.
            number: of the receive.
            site: where in the program.
        """
        rank, own = operation
        for place, box in self._boxes.items():
            receive = box.find_posted((rank, number)) if box.rank == rank else None
            if receive is not None:
                receive.held = True
                self._ranks[rank].wait = Wait(CANCEL, own, box=place, site=site, receive=number)
                return True
        return False

    def _values_of_cancel(self, rank: int, wait: Wait) -> dict[Value, Any]:
        """What a receive may take before it is cancelled; it does if that is known to be here."""
        box = self._boxes[wait.box]
        receive = box.find_posted((rank, wait.receive))
        assert receive is not None, "it is held"
        here = box.candidates(held=True).get(receive, [])
        values: dict[Value, Any] = {(FROM, *one.sender): (box, receive, one) for one in here}
        if any(one.known for one in here):
            return values
        return values | {(NOTHING,): (box, receive, None)}

    def _choose_message(
        self, key: Operation, value: Value, box: Box, receive: Receive, message: Message
    ) -> None:
        number = receive.event if receive.event >= 0 else self._new_number()
        past = self.past_of(box, receive, message)
        site, sent = receive.site, message.site
        event = Event(number, key, MATCH, value, past, receive.past, site, sent=sent)
        self.events.append(event)
        self._matches[key] = past | 1 << number
        self._asked[key] = (box, receive)
        self._match(box, receive, message, 1 << number)
        for place, other in self._boxes.items():
            if other is box:
                self._changed.add(place)

    def _choose_cancel(
        self,
        offer: Offer,
        wait: Wait,
        value: Value,
        box: Box,
        receive: Receive,
        message: Message | None,
    ) -> None:
        """Whether a receive is cancelled in time, or what it takes before."""
        key = offer.key
        state = self._ranks[key[0]]
        own = past = state.past
        if message is not None:
            past |= self.past_of(box, receive, message)
        offered = (NOTHING,) in offer.values and len(offer.values) > 1
        sent = message.site if message is not None else ""
        number = self._new_number()
        made = Event(number, key, CANCEL, value, past, own, wait.site, offered, sent=sent)
        self._asked[key] = (box, receive)
        self._enter(state, made)
        if message is None:
            box.remove_posted(receive)
            state.open.discard(wait.receive)
            self._news.setdefault(key[0], []).append((NOTHING, key[1]))
        else:
            receive.held = False
            self._tell_arrival(box, message, state)
            self._matches[receive.operation] = made.past | 1 << made.number
            self._match(box, receive, message, 1 << made.number)
            what = (FROM, key[1], message.source, message.tag, len(message.data))
            self._news.setdefault(key[0], []).append(what)
        self._changed.add(wait.box)

    def _find(
        self, box: Box, probe: Receive, message: Message, event: Event, *, takes: bool
    ) -> None:
        """A probe finds a message, and may take it."""
        rank, number = probe.operation
        what: News = (FROM, number, message.source, message.tag, len(message.data))
        state = self._ranks[rank]
        self._tell_arrival(box, message, state)
        probe.knows = state.knows
        state.knows = joined(state.knows, message.knows, message.sender)
        if takes:
            self._matches[probe.operation] = event.past | 1 << event.number
            box.all.append(probe)
            box.take_message(probe, message)
            self._turn_taken(message)
            self._finish_send(probe, message, event.past | 1 << event.number)
            what = (*what, message.data)
        state.nothings = state.idle = 0
        state.spin.reset()
        self._news.setdefault(rank, []).append(what)
