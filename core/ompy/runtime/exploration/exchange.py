"""What the ranks of an explored world have under way, and the choices that are open in it.

A rank runs until it waits, polls or probes; the world then asks `match_certain` whom to let go on.
When no rank can, the world is at a *fence*, and one of the open choices is made (`decide`): which
sender's message a receive from ANY_SOURCE takes, which of several requests completes first, whether
a poll finds something. What is chosen is an event; an event knows its past: the events without
which it could not be. `races.py` says afterwards what each could have been instead.

That choices wait for the fence is what ISP calls POE (Vakkalanka et al., CAV 2008); choices that
become possible only later are found by races, as in dynamic partial-order reduction (Flanagan and
Godefroid, POPL 2005). Pure: no clock, no network, no process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ompy.frameworks.direct import waits_as_standard
from ompy.runtime.exploration.boxes import Message, Operation, Receive
from ompy.runtime.exploration.call_journal import (
    LOOK,
    RECEIVE,
    SEND,
    TEST,
    WAIT,
    CallJournal,
)
from ompy.runtime.exploration.events import (
    AGAIN,
    ANY,
    CANCEL,
    DONE,
    FROM,
    FURTHER,
    MATCH,
    NOTHING,
    POLL,
    PROBE,
    SERVE,
    Diverged,
    Event,
    Value,
)
from ompy.runtime.exploration.matching.knowledge import joined
from ompy.runtime.exploration.matching.receives import Receives
from ompy.runtime.exploration.waits import News, Offer, Rank, Wait, next_choice
from ompy.runtime.exploration.windows.box import WindowBox
from ompy.runtime.exploration.windows.parts import Parts

# at a fence: who polls sees what can be seen
_ORDER: Final = {MATCH: 0, CANCEL: 0, SERVE: 0, PROBE: 1, ANY: 2, POLL: 3, FURTHER: 3}
# polls that find nothing, before a receive that is to be cancelled takes something; arbitrary: a
# program that cancels it after more tests of it was not to wait so long
PATIENT: Final = 8


class Exchange(Receives):
    """Messages, receives and choices of one world."""

    def __init__(
        self,
        size: int,
        script: Mapping[Operation, Value] | None = None,
        *,
        buffers: bool = True,
        polls: int = 1,
        unheeded: frozenset[int] = frozenset(),
        parts: Parts | None = None,
    ) -> None:
        """Nothing is under way.

        Args:
            size: ranks.
            script: what is chosen where.
            buffers: a standard send is complete at once; else when it is matched.
            polls: how often in a row a poll finds nothing although it could find something.
            unheeded: tags for which the order of messages makes no difference to a program.
            parts: what is known of windows; None if nothing is.
        """
        super().__init__(size, polls, parts)
        self._unheeded = unheeded
        self.script = dict(script or {})
        self._buffers = buffers
        self.journal: CallJournal | None = None  # of what ranks begin

    def __getstate__(self) -> dict[str, Any]:
        """For copies of a world at a choice: events are shared, the script is another one."""
        return {
            **self.__dict__,
            "events": None,
            "script": None,
            "_reads_of": None,
            "journal": None,
            "parts": None,
        }

    # what ranks do

    def add_rank(self) -> None:
        """One that comes later."""
        self._ranks.append(Rank())

    def send_message(
        self,
        sender: Operation,
        to: tuple[int, int],
        source: int,
        tag: int,
        data: bytes,
        *,
        synchronous: bool = False,
        served: bool = False,
        buffered: bool = False,
        ready: bool = False,
        site: str = "",
    ) -> bool:
        """A rank sends.

        Args:
            sender: the rank and the number of the operation.
            to: context id and rank in the job.
            source: the sender's rank in the communicator.
            tag: of the message; those below 0 are the library's own.
            data: the message.
            synchronous: it is complete only when it is matched, whatever the world's mode is.
            served: the library's own, for a window: it is complete at once, likewise.
            buffered: the sender waits for nothing; it is told with whatever it waits for that its
                memory is free, where standard sends wait when the message is matched.
            ready: the sender says that its receive is posted.
            site: where in the program.

        Returns:
            Whether it is complete.
        """
        rank, number = sender
        self._note(rank, SEND, to[1], tag, site)
        waits = synchronous or not (self._buffers or served or not waits_as_standard(tag))
        state = self._ranks[rank]
        past, knows = self._before(state, number, to[0], tag)
        made = Message(sender, source, tag, data, synchronous=waits, past=past, site=site)
        made.ready, made.knows = ready, knows
        box = self._box(to, served=served)
        self._note_message(to, made, served=served)
        box.add_message(made)
        if waits:
            self._begin(rank, number, inner=tag < 0 or buffered)
            if buffered:
                state.served.add(number)
        return not waits

    def post_receive(
        self,
        operation: Operation,
        at: int,
        source: int,
        tag: int,
        site: str = "",
        *,
        served: bool = False,
    ) -> None:
        """A rank posts a receive in the communicator with context id `at`.

        Its completion is told only to who waits for it; a `served` one's to who waits for anything.
        """
        rank, number = operation
        self._note(rank, RECEIVE, source, tag, site)
        state, box = self._ranks[rank], self._box((at, rank), served=served)
        if not served:
            state.spin.reset()
        past, knows = self._before(state, number, at, tag)
        made = Receive(operation, source, tag, past=past, site=site)
        made.knows = knows
        made.doubtful = operation in self.parts.cancelled
        if (at, tag) in state.wholes:
            state.apart[number] = [state.wholes[at, tag]]
        if made.wild and any(message.known for message in box.unclaimed(source, tag)):
            made.event = self._new_number()
            state.past |= 1 << made.event  # what the rank does from now on depends on the choice
        box.add_receive(made)
        self._begin(rank, number, inner=tag < -1 or served)
        if served and not (tag > 0 and tag % 2):  # else it is an answer, which somebody waits for
            state.served.add(number)

    def forget(self, at: int, rank: int) -> None:
        """A rank has freed a communicator: what is left in it nobody will receive."""
        box = self._boxes.pop((at, rank), None)
        if box is not None:
            self._left.append(box)
        if isinstance(box, WindowBox):
            self._windows.remove(box)

    def await_operations(
        self, operation: Operation, wanted: Sequence[int], *, inner: bool, site: str = ""
    ) -> None:
        """A rank waits until it is told that one of its operations is complete.

        Args:
            operation: this wait, as one of the rank's.
            wanted: the operations.
            inner: any of the library's own suffices, too.
            site: where in the program.
        """
        rank, number = operation
        if number:
            self._note(rank, WAIT, -1, -1, site)
        kind = MATCH if len(wanted) == 1 and not inner else ANY
        self._ranks[rank].wait = Wait(kind, number, tuple(wanted), inner, site=site)

    def poll_operations(
        self, operation: Operation, site: str = "", *, further: bool = False, only: int = 0
    ) -> None:
        """A rank looks whether anything is complete.

        Args:
            operation: this poll, as one of the rank's.
            site: where in the program.
            further: what is found is told of together with what was found last. It comes in the
                order of numbers: another order is no other thing to be told.
            only: it looks for this operation alone; 0 for any.
        """
        rank, number = operation
        self._note(rank, TEST, -1, -1, site)
        state = self._ranks[rank]
        least = state.chosen if further else 0
        users = (state.open | state.done.keys()) - state.inner - state.asked.keys()
        wanted = tuple(sorted(one for one in users if one > least)) if not only else (only,)
        state.wait = Wait(FURTHER if further else POLL, number, wanted, inner=True, site=site)

    def probe_message(
        self,
        operation: Operation,
        at: int,
        source: int,
        tag: int,
        *,
        takes: bool,
        waits: bool,
        site: str = "",
    ) -> None:
        """A rank looks for a message, or takes it out of matching, or waits until it can."""
        rank, number = operation
        self._note(rank, LOOK, source, tag, site)
        asks = (source, tag)
        self._ranks[rank].wait = Wait(
            PROBE, number, (), False, (at, rank), asks, takes, waits, site
        )

    def _note(self, rank: int, what: str, peer: int, tag: int, site: str) -> None:
        if self.journal is not None:
            self.journal.add_call(rank, what, peer, tag, site)

    def end_rank(self, rank: int) -> None:
        """A rank has come to its end."""
        if self.journal is not None:
            self.journal.end_rank(rank)

    def end_wait(self, rank: int) -> None:
        """A rank waits no longer, or has ended."""
        self._ranks[rank].wait = None

    # what the world asks

    def match_certain(self) -> list[int]:
        """Match what no choice decides. Returns the ranks that can go on."""
        while self._changed:
            place = self._changed.pop()
            box = self._boxes.get(place)
            if box is not None:
                for receive, message in box.certain():
                    self._match(box, receive, message)
        return [
            rank
            for rank, state in enumerate(self._ranks)
            if state.done and state.wait is not None and self._serve(rank, state, state.wait)
        ]

    def news(self, rank: int) -> list[News]:
        """What the rank is told now."""
        return self._news.pop(rank, [])

    def decide(self) -> bool:
        """Make one of the open choices, as the script has it. False if none is open."""
        offers = self.offers()
        idle = all(offer.idle for offer in offers)
        if idle and (not offers or self.idle_polls() > PATIENT) and self._release_held():
            return True
        found = next_choice(offers, self.script)
        if found is not None:
            self._choose(*found)
            return True
        if offers:
            self.see_it_can_be()
            missing = ", ".join(f"{one.key}: {self.script[one.key]}" for one in offers)
            raise Diverged(f"what was to be chosen cannot be: {missing}")
        return False

    def see_it_goes_on(self) -> None:
        """Look whether ranks poll without end because of what is to be chosen.

        Raises:
            Diverged: they do.
            Impossible: what is to be chosen cannot be together.
        """
        self.see_it_can_be()
        for offer in self.offers():
            if offer.key in self.script and self.script[offer.key] not in offer.values:
                raise Diverged(f"what was to be chosen cannot be: {offer.key}")

    def take_first_come(self, came: Mapping[Operation, int]) -> bool:
        """Make an open choice as if time decided: what came first, or nothing if nothing has come.

        Args:
            came: when each message was sent, by its operation.
        """
        for offer in self.offers():
            some = [value for value in offer.values if value != (NOTHING,)] or [(NOTHING,)]
            if some[0][0] == FROM:
                some.sort(key=lambda value: came.get((value[1], value[2]), 0))
            self._choose(offer, some[0])
            return True
        return False

    def offers(self) -> list[Offer]:
        """The open choices, in the order in which they are made."""
        found = [
            self._offer_of(box, receive, of)
            for box in self._boxes.values()
            for receive, of in box.candidates().items()
        ]
        found += self._cancel_offers({offer.key for offer in found})
        found += self._command_offers()
        for rank, state in enumerate(self._ranks):
            if state.wait is not None and state.wait.kind not in {MATCH, CANCEL}:
                values = self._values(rank, state.wait)
                if values:
                    found.append(Offer((rank, state.wait.number), state.wait.kind, values))
        return sorted(found, key=self._turn)

    def _turn(self, offer: Offer) -> tuple[Any, ...]:
        """Its place at a fence: of polls that find nothing, whose last was the longest ago."""
        if not offer.idle:
            return False, _ORDER[offer.kind], offer.key
        count = self._ranks[offer.key[0]].idle if offer.spins < 0 else offer.spins
        return True, count, offer.key

    def heeds(self, tag: int) -> bool:
        """Whether the order of messages with this tag makes a difference."""
        return tag not in self._unheeded

    # how it is done

    def _serve(self, rank: int, state: Rank, wait: Wait) -> bool:
        """Tell a rank of what it waits for and has no choice of. Whether it can go on."""
        polls = wait.kind in {POLL, FURTHER}
        mine = state.inner if wait.inner else state.served
        only = wait.wanted[0] if wait.kind == MATCH else 0
        told = [
            number
            for number in sorted(state.done)
            if number == only or number in mine or number in state.apart
        ]
        for number in told:
            self._tell(rank, state, number)
        if told and polls:  # it has work to do, which may be what is polled for
            self._news[rank].append((AGAIN, wait.number))
        if told:
            state.wait = None
        return bool(told)

    def _tell(self, rank: int, state: Rank, number: int) -> None:
        """Tell a rank that an operation is complete."""
        completion = state.done.pop(number)
        what, past, box, message, of, knows = completion
        self._news.setdefault(rank, []).append(what)
        wholes = self._wholes_of(state, number, box, message)
        if wholes:
            for whole in wholes:
                self._tell_part(whole, number, completion)
            state.inner.discard(number)
            state.served.discard(number)
            return
        state.knows = joined(state.knows, knows, of)
        if self._is_heeded(box, message):
            state.past |= past
        if box is not None and message is not None:
            self._tell_arrival(box, message, state)
        if number not in state.inner and number not in state.reads:
            state.spin.reset()
        state.reads.discard(number)
        state.inner.discard(number)
        state.served.discard(number)
        state.kept.pop(number, None)
        state.nothings = state.idle = 0

    def _values(self, rank: int, wait: Wait) -> dict[Value, Any]:
        """What can be chosen for a rank that waits, the likely first."""
        state = self._ranks[rank]
        if wait.kind == PROBE:
            box = self._boxes.get(wait.box)
            here = box.unclaimed(*wait.probe) if box is not None else []
            values: dict[Value, Any] = {(FROM, *one.sender): one for one in here}
            if wait.waits or any(one.known for one in here):
                return values
        else:
            values = {(DONE, one): one for one in wait.wanted if one in state.done}
            if wait.kind == ANY:
                return values
        if wait.kind == FURTHER:
            return values | {(NOTHING,): None}
        chosen = self.script.get((rank, wait.number)) == (NOTHING,)  # when nothing was there
        nothings = state.nothings
        if wait.wanted and wait.wanted[0] in state.asked:
            nothings = state.asked[wait.wanted[0]]
        may = not values or nothings < self.polls or chosen
        self.bounded |= not may
        return values | ({(NOTHING,): None} if may else {})

    def _choose(self, offer: Offer, value: Value) -> None:
        chosen = offer.values[value]
        if offer.kind == MATCH:
            self._choose_message(offer.key, value, *chosen)
            return
        if offer.kind == SERVE:
            self._choose_command(offer.key, value, *chosen)
            return
        if offer.kind == CANCEL:
            self._choose_cancel(offer, value, *chosen)
            return
        rank, _ = offer.key
        state = self._ranks[rank]
        wait, state.wait = state.wait, None
        assert wait is not None, "it has a choice because it waits"
        if offer.kind == PROBE:
            self._choose_probe(offer, wait, value)
        else:
            self._choose_operation(offer, wait, value)

    def _choose_probe(self, offer: Offer, wait: Wait, value: Value) -> None:
        """What a probe finds."""
        rank, number = offer.key
        state, box = self._ranks[rank], self._box(wait.box)
        asked = Receive(offer.key, *wait.probe, past=state.past, site=wait.site)
        asked.place = len(box.all)
        self._asked[offer.key] = (box, asked)
        past, sent = state.past, ""
        here = [one for one in offer.values.values() if one is not None]
        offered = not wait.waits and bool(here) and not any(one.known for one in here)
        message: Message | None = offer.values[value]
        if message is None:
            self._count_nothing(state, offered=bool(here))
            self._news.setdefault(rank, []).append((NOTHING, number))
        else:
            asked.message = message
            past, sent = past | message.past, message.site
        key, own, site = offer.key, asked.past, wait.site
        number = self._new_number()
        event = Event(number, key, PROBE, value, past, own, site, offered, sent=sent)
        self._enter(state, event)
        if message is not None:
            self._find(box, asked, message, event, takes=wait.takes)

    def _choose_operation(self, offer: Offer, wait: Wait, value: Value) -> None:
        """Which operation is complete first, or that none is."""
        rank, _ = offer.key
        state = self._ranks[rank]
        past = own = state.past
        some = any(one != (NOTHING,) for one in offer.values)
        if value == (NOTHING,):
            if offer.kind != FURTHER:
                self._count_nothing(state, offered=some, wanted=wait.wanted)
        else:
            past |= state.done[value[1]].past
            state.chosen = value[1]
            self._tell(rank, state, value[1])
        if wait.wanted:  # else there is nothing that it could ever have found
            offered = some and offer.kind != ANY
            number, of = self._new_number(), wait.wanted
            event = Event(number, offer.key, offer.kind, value, past, own, wait.site, offered, of)
            self._enter(state, event)

    def _count_nothing(self, state: Rank, *, offered: bool, wanted: Sequence[int] = ()) -> None:
        if wanted and wanted[0] in state.asked:  # nothing of this says nothing of others
            state.asked[wanted[0]] += offered
        else:
            state.nothings += offered
        state.idle += not offered
