"""The two machines of a message, and every order of what happens with every loss of up to three.

The machines are the product's, with its requests: only what lies between them is a model. Messages
travel over any rail, so any may overtake any other. Each may arrive, or fail: then who sent it
hears so at any time later, and it arrives before that, after that, or never.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count, product
from typing import Any

import pytest
from ompy.data.convertor import ContiguousConvertor
from ompy.data.errors import ERR_INTERN, MPIError
from ompy_components.pml.bfo.dance import (
    RECEIVE_TABLE,
    RECEIVER_ROWS,
    SEND_TABLE,
    SENDER_ROWS,
    Action,
    Place,
    ReceiverEvent,
    ReceiverState,
    SenderEvent,
    SenderState,
)
from ompy_components.pml.bfo.messages import ReceiveMessage, SendMessage, row, unreceived
from ompy_components.pml.ob1 import states
from ompy_components.pml.ob1.fragment import fragment_of
from ompy_components.pml.ob1.headers import FRAG, RNDV
from ompy_components.pml.ob1.matching import RecvRequest
from ompy_components.pml.ob1.rdma_put import Incoming
from ompy_components.pml.ob1.sendrequest import SendRequest
from ompy_components.pml.ob1.states import (
    ReceiveEvent,
    ReceiveState,
    SendEvent,
    SendState,
    State,
)

SIZE, FIRST = 2, 1  # bytes: one goes with the RNDV, one as a FRAG
LOSSES = 3
Message = tuple[str, int, int, int]  # kind, generation, sender's id, receiver's id
Pair = tuple[State, object]


@dataclass(frozen=True)
class Both:
    """The sender, the receiver, and what is between them; ids are numbers given in turn.

    Those messages that fail are among the reports, and the ghosts.
    """

    sender: State = SendState.STARTED
    send_id: int = 1
    peer_request: int = 0
    in_flight: int = 0
    delivered: int = 0
    sent_done: bool = False
    sent: int = 0
    known: int = 0
    next_send: int = 2
    place: Place | None = Place.UNSEEN
    queued: tuple[int, int] = (0, 0)  # generation and sender's id of the message that waits
    receiver: State = ReceiveState.POSTED
    receive_id: int = 0
    arrived: int = 0
    reading: int = 0
    done: bool = False
    seen: int = 0
    peer: int = 0
    waiting: int = 0  # sender's id of a restart that waits
    wire: tuple[Message, ...] = ()
    reports: tuple[Message, ...] = ()
    ghosts: tuple[Message, ...] = ()
    losses: int = 0

    def say(self, *message: Any) -> Both:
        return replace(self, wire=tuple(sorted((*self.wire, message))))


class Model:
    """Does with the machines what the halves do, and notes which rows were used."""

    def __init__(self, *, gets: bool) -> None:
        self.gets = gets
        self.used: set[Pair] = set()

    # -- the sender

    def message(self, both: Both) -> SendMessage:
        request = SendRequest.__new__(SendRequest)
        request.reset()
        request.convertor = ContiguousConvertor(bytes(SIZE))
        request.open_rendezvous(both.send_id)
        request.state, request.peer_request = both.sender, both.peer_request
        request.in_flight, request.writing = both.in_flight, 0
        request.delivered, request.complete = both.delivered, both.sent_done
        numbers = count(both.next_send)
        made = SendMessage(request, lambda: next(numbers), 0)
        made.generation, made.peer = both.sent, both.known
        return made

    def sent(self, both: Both, made: SendMessage, doing: Any = ()) -> Both:
        request = made.request
        for did in doing:
            self.used.add((did.before, did.event))
        complete = request.complete or any(did.action is Action.COMPLETE for did in doing)
        both = replace(
            both,
            sent=made.generation,
            known=made.peer,
            next_send=max(both.next_send, request.id + 1),
            sent_done=complete,
        )
        for did in doing:
            if did.action is Action.NOTIFY:
                both = both.say("NOTIFY", made.generation, request.id, 0)
            elif did.action in (Action.ANEW, Action.RESUME, Action.AGAIN):
                if did.action is Action.RESUME:  # nothing of the older is under way on either side
                    assert not request.in_flight
                    assert not both.reading or both.receiver is ReceiveState.RECEIVING
                both = both.say("RNDV", made.generation, request.id, 0)
                request.in_flight += 1
                request.advance(SEND_TABLE, SendEvent.RNDV_SENT)
        if request.is_delivered():
            request.advance(SEND_TABLE, SendEvent.DELIVERED)
            both = replace(both, sent_done=True)
        return replace(
            both,
            sender=request.state,
            send_id=request.id,
            peer_request=request.peer_request,
            in_flight=request.in_flight,
            delivered=request.delivered,
        )

    # -- the receiver

    def receive(self, both: Both) -> ReceiveMessage:
        request = RecvRequest.__new__(RecvRequest)
        request.reset()
        request.open_rendezvous(both.receive_id, both.peer)
        request.state, request.complete = both.receiver, both.done
        request.arrived, request.length, request.sequence = both.arrived, SIZE, 1
        request.incoming = Incoming.__new__(Incoming)
        request.incoming.outstanding = both.reading
        made = ReceiveMessage(request, both.seen)
        if both.waiting:
            made.fragment = fragment_of(RNDV, 0, 0, 0, 1, SIZE, both.waiting, b"")
        return made

    def received(self, both: Both, made: ReceiveMessage, doing: Any = ()) -> Both:
        request = made.request
        waiting = made.fragment.sender_request if made.fragment is not None else 0
        assert request.incoming is not None
        both = replace(
            both,
            receiver=request.state,
            seen=made.generation,
            peer=made.peer,
            waiting=waiting,
            arrived=request.arrived,
            reading=request.incoming.outstanding,
        )
        for did in doing:
            self.used.add((did.before, did.event))
            if did.action is Action.REPORT:
                both = both.say("RECVERR", made.generation, made.peer, request.id)
            elif did.action is Action.ACK:
                both = both.say("RESTARTACK", made.generation, made.peer, request.id)
            elif did.action is Action.ANSWER:
                both = self.match(replace(both, waiting=0), made.generation, waiting)
        return self.finished(both)

    def finished(self, both: Both) -> Both:
        made = self.receive(both)
        stopped = both.receiver not in (ReceiveState.RECEIVING, ReceiverState.REPORTED)
        if both.done or stopped or not made.request.is_here():
            return both
        made.request.advance(RECEIVE_TABLE, ReceiveEvent.ALL_HERE)
        return replace(both, done=True, receiver=made.request.state, place=Place.OVER)

    def match(self, both: Both, generation: int, send_id: int) -> Both:
        """A receive takes the message's first fragment, and answers it."""
        number = both.receive_id + 1
        both = replace(
            both,
            place=None,
            receiver=ReceiveState.RECEIVING,
            receive_id=number,
            arrived=FIRST,
            peer=send_id,
            seen=generation,
            reading=1 if self.gets else 0,
        )
        return both.say("ACK", generation, send_id, number)

    # -- what arrives, or fails

    def deliver(self, both: Both, message: Message) -> Both:
        kind, generation, send_id, receive_id = message
        if kind in ("RNDV", "NOTIFY"):
            return self.to_receiver(both, kind, generation, send_id)
        if kind == "FRAG":
            if (
                both.done
                or both.receive_id != receive_id
                or both.receiver
                not in (
                    ReceiveState.RECEIVING,
                    ReceiverState.REPORTED,
                )
            ):
                return both
            return self.finished(replace(both, arrived=both.arrived + SIZE - FIRST))
        made = self.message(both)
        if kind == "ACK":
            if both.sent_done or both.send_id != send_id:
                return both
            made.request.advance(SEND_TABLE, SendEvent.ACK)
            made.request.peer_request = receive_id
            made.request.in_flight += 1
            return self.sent(both, made).say("FRAG", generation, send_id, receive_id)
        if kind == "RECVERR":
            return self.sent(both, made, made.reported(send_id, receive_id))
        event = SenderEvent.ACK if kind == "RESTARTACK" else SenderEvent.NACK
        return self.sent(both, made, made.answered(event, send_id, receive_id))

    def to_receiver(self, both: Both, kind: str, generation: int, send_id: int) -> Both:
        event = ReceiverEvent.RESTART if kind == "RNDV" else ReceiverEvent.NOTIFY
        if kind == "RNDV" and not generation:  # ob1's: a second one is dropped by its number
            if both.place is Place.UNSEEN and not both.receive_id:
                return replace(both, place=Place.QUEUED, queued=(0, send_id))
            return both
        if both.place is None:
            made = self.receive(both)
            if event is ReceiverEvent.NOTIFY:
                doing = made.notified(generation, send_id, 0)
            else:
                fragment = fragment_of(RNDV, 0, 0, 0, 1, SIZE, send_id, b"")
                doing = made.restarted(generation, fragment, 0)
            return self.received(both, made, doing)
        action = unreceived(both.place, event, generation, both.queued[0])
        self.used.add((both.place, event))
        if action is Action.NACK:
            return both.say("NACK", generation, send_id, 0)
        if action is Action.ACK:
            return both.say("RESTARTACK", generation, send_id, 0)
        if action is Action.DROP:
            return both
        return replace(both, place=Place.QUEUED, queued=(generation, send_id))

    def lost(self, both: Both, message: Message) -> Both:
        """Who sent a message hears that it may be lost."""
        kind, generation, send_id, receive_id = message
        if kind in ("RNDV", "FRAG"):
            made = self.message(both)
            made.request.in_flight -= 1
            tag, payload = (RNDV, FIRST) if kind == "RNDV" else (FRAG, SIZE - FIRST)
            return self.sent(both, made, made.lost(send_id, tag, payload))
        if kind == "NOTIFY":
            made = self.message(both)
            return self.sent(both, made, made.notify_lost(send_id))
        if kind in ("ACK", "RECVERR"):
            receive = self.receive(both)
            if kind == "RECVERR":
                doing = receive.report_lost(receive_id, generation)
                return self.received(both, receive, doing)
            if both.done:  # all is here: it says so by the id
                return both.say("NACK", generation, send_id, 0)
            if both.receive_id != receive_id:
                return both
            return self.received(both, receive, receive.failed(receive_id))
        return both.say(*message)  # an answer of the dance, from its own bytes

    def well(self, both: Both, message: Message) -> Both:
        """Who sent a message hears that it arrived."""
        if message[0] not in ("RNDV", "FRAG"):
            return both
        made = self.message(both)
        made.request.ended(FIRST if message[0] == "RNDV" else SIZE - FIRST)
        return self.sent(both, made, made.ended() if made.dances else ())

    def steps(self, both: Both) -> list[Both]:
        """All that may happen next."""
        found = []
        for index, message in enumerate(both.wire):
            left = replace(both, wire=both.wire[:index] + both.wire[index + 1 :])
            found.append(self.well(self.deliver(left, message), message))
            if both.losses < LOSSES:
                reports = tuple(sorted((*left.reports, message)))
                ghosts = tuple(sorted((*left.ghosts, message)))
                more = both.losses + 1
                found.append(replace(left, losses=more, reports=reports, ghosts=ghosts))
        for index, message in enumerate(both.reports):
            left = replace(both, reports=both.reports[:index] + both.reports[index + 1 :])
            found.append(self.lost(left, message))
        for index, message in enumerate(both.ghosts):
            left = replace(both, ghosts=both.ghosts[:index] + both.ghosts[index + 1 :])
            found.append(self.deliver(left, message))
        if both.place is Place.QUEUED:
            found.append(self.match(both, *both.queued))
        if both.reading:  # a get ends, well or with its rail
            made = self.receive(replace(both, reading=0))
            stopped = both.receiver not in (ReceiveState.RECEIVING, ReceiverState.REPORTED)
            found.append(self.received(both, made, made.ended() if stopped else ()))
            if both.losses < LOSSES:
                made = self.receive(replace(both, reading=0, losses=both.losses + 1))
                worse = replace(both, losses=both.losses + 1)
                found.append(self.received(worse, made, made.failed(both.receive_id)))
        return found


def explore(model: Model) -> tuple[set[Both], list[Both]]:
    """All states there can be, and those in which nothing has to happen any more."""
    first = model.message(Both())
    first.request.in_flight = 1
    first.request.advance(SEND_TABLE, SendEvent.RNDV_SENT)
    begin = model.sent(Both(), first).say("RNDV", 0, 1, 0)
    seen, todo, ends = {begin}, [begin], []
    while todo:
        both = todo.pop()
        following = model.steps(both)
        waits = both.place is Place.QUEUED or both.reading
        if not both.wire and not both.reports and not waits:
            ends.append(both)
        for other in following:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen, ends


@pytest.mark.parametrize("gets", [False, True])
def test_every_order_and_loss_ends_well(gets: bool) -> None:
    model = Model(gets=gets)
    found, ends = explore(model)
    assert len(found) > 1000
    for both in ends:
        assert both.sent_done, f"the send never ends: {both}"
        assert both.done, f"the receive never ends: {both}"
        assert not both.in_flight, f"something is thought to be under way: {both}"
    assert {both.sender for both in found} >= set(SenderState)
    assert {both.receiver for both in found} >= {ReceiverState.REPORTED, ReceiverState.ACKNOWLEDGED}


def test_the_tables_are_ob1s_and_more() -> None:
    assert states.SEND_TABLE.items() <= SEND_TABLE.items()
    assert states.RECEIVE_TABLE.items() <= RECEIVE_TABLE.items()
    assert not states.SEND_TABLE.keys() & SENDER_ROWS.keys()
    assert not states.RECEIVE_TABLE.keys() & RECEIVER_ROWS.keys()


class Told:
    def story(self) -> str:
        return "the story"


@pytest.mark.parametrize(
    ("rows", "places", "events"),
    [
        (SENDER_ROWS, (*SendState, *SenderState), SenderEvent),
        (RECEIVER_ROWS, (*ReceiveState, *ReceiverState, *Place), ReceiverEvent),
    ],
    ids=["sender", "receiver"],
)
def test_what_cannot_be_is_an_error_with_the_story(rows: Any, places: Any, events: Any) -> None:
    absent = 0
    for state, event in product(places, events):
        if (state, event) not in rows:
            absent += 1
            with pytest.raises(MPIError, match="the story") as raised:
                row(rows, state, event, Told())
            assert raised.value.code == ERR_INTERN
            assert state.value in str(raised.value)
    assert absent


def test_the_end_is_the_end() -> None:
    assert not [pair for pair in SEND_TABLE if pair[0] is SendState.DONE]
    assert not [pair for pair in RECEIVE_TABLE if pair[0] is ReceiveState.DONE]
