"""Which receive of an explored world takes which message, where that is a choice; and cancelling.

Pure: no clock, no network, no process.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any

from ompy.data.constants import ANY_TAG
from ompy.frameworks.osc_base.headers import COMMAND_TAG
from ompy.runtime.exploration.boxes import Box, Message, Operation, Receive
from ompy.runtime.exploration.events import CANCEL, FROM, MATCH, NOTHING, Event, Value
from ompy.runtime.exploration.matching.knowledge import joined
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

    def _match(
        self, box: Box, receive: Receive, message: Message, event: int = 0, past: int = -1
    ) -> None:
        """A receive takes a message; both may be complete by that, and by an event's bit.

        Args:
            box: where.
            receive: which.
            message: what.
            event: bits of events that it depends on besides.
            past: what `past_of` says of the two; -1 if it was not asked yet.
        """
        if isinstance(box, WindowBox) and message.tag == COMMAND_TAG:
            self._serve_message(box, receive, message)
            return
        if receive.released:
            event |= self._matches[receive.operation]
        if past < 0:
            past = self.past_of(box, receive, message)
        self._take(box, receive, message, past | event)

    def past_of(self, box: Box, receive: Receive, message: Message) -> int:
        """The events without which these two would not meet."""
        return box.past_of(receive, message, self._matches)

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
        state = self._ranks[rank]
        place, box, receive = self._find_receive((rank, number))
        if receive.message is not None:
            if not (receive.doubtful or receive.message.known or box.ours):
                self.parts.learn_cancelled(receive.operation)
            return False
        if not (receive.doubtful or box.ours or receive.tag < ANY_TAG):
            self.parts.learn_cancelled(receive.operation)
        if not receive.doubtful or receive.released:
            self._withdraw(state, place, receive, own)
            return True
        if not receive.held:
            state.wait = Wait(CANCEL, own, box=place, site=site, receive=number)
            return True
        here = box.candidates(held=True).get(receive, [])
        known = [one for one in here if one.known]
        if known:
            receive.held = False
            self._match(box, receive, known[0], self._matches[receive.operation])
            return False
        self._withdraw(state, place, receive, own)
        return True

    def _find_receive(self, operation: Operation) -> tuple[tuple[int, int], Box, Receive]:
        for place, box in self._boxes.items():
            receive = box.find_receive(operation) if box.rank == operation[0] else None
            if receive is not None:
                return place, box, receive
        raise AssertionError("who cancels it has posted it")

    def _withdraw(self, state: Rank, place: tuple[int, int], receive: Receive, own: int) -> None:
        """A receive is cancelled in time."""
        rank, number = receive.operation
        self._boxes[place].remove_posted(receive)
        state.open.discard(number)
        state.past |= self._matches.get(receive.operation, 0)
        self._matches[receive.operation] = state.past  # of whatever takes its message
        self._news.setdefault(rank, []).append((NOTHING, own))
        self._changed.add(place)

    def _offer_of(self, box: Box, receive: Receive, of: Sequence[Message]) -> Offer:
        """What a receive may take; nothing, if it may be cancelled before anything is known."""
        values: dict[Value, Any] = {(FROM, *one.sender): (box, receive, one) for one in of}
        if not receive.doubtful:
            return Offer(receive.operation, MATCH, values)
        scripted = self.script.get(receive.operation) == (NOTHING,)
        if scripted or not any(one.known for one in of):
            values[(NOTHING,)] = box, receive, None
        return Offer(receive.operation, CANCEL, values)

    def _cancel_offers(self, offered: Container[Operation]) -> Iterator[Offer]:
        """Receives that are cancelled now, and have nothing that they could take."""
        for rank, state in enumerate(self._ranks):
            wait = state.wait
            if wait is not None and wait.kind == CANCEL and (rank, wait.receive) not in offered:
                box = self._boxes[wait.box]
                receive = box.find_receive((rank, wait.receive))
                assert receive is not None, "it is cancelled"
                yield self._offer_of(box, receive, [])

    def _release_held(self) -> bool:
        """Let those take something that were to be cancelled before. Whether there was any.

        As nothing else can go on, they would not be cancelled ever.
        """
        found = False
        for place, box in self._boxes.items():
            for receive in box.candidates(held=True):
                receive.held, receive.released = False, True
                self._changed.add(place)
                found = True
        return found

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
        self._match(box, receive, message, 1 << number, past)
        for place, other in self._boxes.items():
            if other is box:
                self._changed.add(place)

    def _choose_cancel(
        self, offer: Offer, value: Value, box: Box, receive: Receive, message: Message | None
    ) -> None:
        """Whether a receive takes nothing before it is cancelled, or what it takes."""
        key = offer.key
        offered = (NOTHING,) in offer.values and len(offer.values) > 1
        number = receive.event if receive.event >= 0 else self._new_number()
        past, sent = receive.past, ""
        if message is not None:
            past, sent = self.past_of(box, receive, message), message.site
        event = Event(
            number, key, CANCEL, value, past, receive.past, receive.site, offered, sent=sent
        )
        self.events.append(event)
        self._asked[key] = box, receive
        self._matches[key] = past | 1 << number
        self._changed |= {place for place, other in self._boxes.items() if other is box}
        if message is None:
            receive.held = True
        else:
            self._match(box, receive, message, 1 << number)
        state = self._ranks[key[0]]
        wait = state.wait
        if wait is None or wait.kind != CANCEL or wait.receive != key[1]:
            return
        state.wait = None
        if message is None:
            self._withdraw(state, wait.box, receive, wait.number)
            return
        state.past |= self._matches[key]
        self._tell_arrival(box, message, state)
        what = (FROM, wait.number, message.source, message.tag, len(message.data))
        self._news.setdefault(key[0], []).append(what)

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
            box.add_probe(probe)
            box.take_message(probe, message)
            self._turn_taken(message)
            self._finish_send(probe, message, event.past | 1 << event.number)
            what = (*what, message.data)
        state.nothings = state.idle = 0
        state.spin.reset()
        self._news.setdefault(rank, []).append(what)
