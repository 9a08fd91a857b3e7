"""The receiver of a small message: bfo's `ReceiveMessage`, and what `BfoReceiving` does."""

from __future__ import annotations

from typing import Final

from ompy.data.convertor import ContiguousConvertor
from ompy_components.pml.bfo.dance import (
    RECEIVE_TABLE,
    Action,
    Place,
    ReceiverEvent,
)
from ompy_components.pml.bfo.failed_message import STOPPED, Doing, ReceiveMessage, Unreceived
from ompy_components.pml.ob1.fragment import fragment_of
from ompy_components.pml.ob1.headers import RNDV
from ompy_components.pml.ob1.matching import receive_request
from ompy_components.pml.ob1.rendezvous.rdma_put import Incoming
from ompy_components.pml.ob1.states import ReceiveEvent, rows_of

from tests.support.dance_world import (
    BOTH,
    SIZE,
    WORLD,
    Both,
    Get,
    Message,
    Pair,
    Way,
    fewer,
    more,
    size,
)

NOWHERE: Final = ContiguousConvertor(memoryview(b""))  # the bytes themselves do not matter


class Receiver:
    """One end; `used` are the rows that were."""

    def __init__(self, way: Way, used: set[Pair]) -> None:
        self.way = way
        self.used = used

    def machine(self, both: Both) -> ReceiveMessage:
        """The product's machine in this state."""
        request = receive_request(WORLD, NOWHERE, 0, 0)
        request.open_rendezvous(both.receive_id, both.peer)
        request.state, request.complete = both.receiver, both.done
        request.arrived, request.length, request.sequence = both.arrived, SIZE, 1
        request.incoming = Incoming.__new__(Incoming)
        request.incoming.outstanding = both.outstanding
        made = ReceiveMessage(request, both.seen)
        if both.waiting:
            made.fragment = fragment_of(RNDV, 0, 0, 0, 1, SIZE, both.waiting, b"")
        return made

    def after(self, both: Both, made: ReceiveMessage, doing: Doing = ()) -> Both:
        """What becomes of both when the half does what the machine says."""
        request = made.request
        waiting = made.fragment.sender_request if made.fragment is not None else 0
        assert request.incoming is not None
        both = both._replace(
            receiver=request.state,
            seen=made.generation,
            peer=made.peer,
            waiting=waiting,
            outstanding=request.incoming.outstanding,
        )
        for did in doing:
            self.used.add((did.before, did.event))
            if did.action is Action.REPORT:
                both = both.say("RECVERR", made.generation, made.peer, request.id)
            elif did.action is Action.STOP:
                both = both._replace(wanted=0)
            elif did.action is Action.ACK:
                both = both.say("RESTARTACK", made.generation, made.peer, request.id)
            elif did.action is Action.ANSWER:
                kind = "RNDV" if self.way.first == "MATCH" else self.way.first
                both = self.match(both._replace(waiting=0), made.generation, waiting, kind)
        return self.finished(both)

    def finished(self, both: Both) -> Both:
        """As `finish_if_here`, of a receive that takes something."""
        if both.done or both.place is not None or both.receiver in STOPPED:
            return both
        made = self.machine(both)
        if not made.request.is_here():
            return both
        made.request.advance(rows_of(RECEIVE_TABLE), ReceiveEvent.ALL_HERE)
        assert both.here == BOTH, "the receive has ended before the message"
        return self.ends(both._replace(receiver=made.request.state))

    def ends(self, both: Both) -> Both:
        """The receive is complete."""
        return both._replace(done=True, place=Place.OVER, todo=())

    def takes(self, both: Both, receive_id: int) -> bool:
        """Whether an id names a receive that ob1 knows."""
        stopped = both.done or both.receiver in STOPPED
        return both.place is None and not stopped and both.receive_id == receive_id

    # -- the first fragment

    def match(self, both: Both, generation: int, send_id: int, kind: str) -> Both:
        """A receive takes it, and answers."""
        way, number = self.way, both.receive_id + 1
        assert not both.outstanding, "something of the older generation is under way"
        if kind == "MATCH":
            return self.ends(both._replace(here=BOTH))
        made = self.machine(both)
        made.request.advance(rows_of(RECEIVE_TABLE), ReceiveEvent.MATCHED)
        both = both._replace(
            place=None,
            receiver=made.request.state,
            receive_id=number,
            arrived=size(way.brings),
            here=way.brings,
            peer=send_id,
            seen=generation,
            todo=(),
        )
        if way.answer == "get":
            assert send_id in both.lent, "the memory it offers was given back"
            return both._replace(todo=tuple(Get(number, send_id, piece) for piece in (1, 2)))
        if way.answer == "copy":
            return self.finished(both.say("ACK", generation, send_id, number, BOTH ^ way.brings))
        whole = way.answer == "put"
        both = both._replace(wanted=BOTH if whole else 1, outstanding=SIZE if whole else 1)
        other = "PUT" if whole else "ACK"
        both = both.say("PUT, ACK" if whole else "PUT", generation, send_id, number, 1)
        return both.say(other, generation, send_id, number, 2)

    def begins(self, both: Both, message: Message) -> Both:
        """A first fragment or a NOTIFY arrives."""
        kind, generation, send_id, _, _ = message
        if kind != "NOTIFY" and (kind == "MATCH" or not generation):
            if both.place is not Place.UNSEEN:
                return both  # ob1's: a second one is dropped by its number
            place = Place.WHOLE if kind == "MATCH" else Place.QUEUED
            return both._replace(place=place, queued=(0, send_id, kind))
        event = ReceiverEvent.NOTIFY if kind == "NOTIFY" else ReceiverEvent.RESTART
        if both.place is None:
            made, promised = self.machine(both), size(both.wanted)
            if event is ReceiverEvent.NOTIFY:
                doing = made.notified(generation, send_id, promised)
                assert not doing or message.receive_id == both.receive_id, "it names another"
                return self.after(both, made, doing)
            fragment = fragment_of(RNDV, 0, 0, 0, 1, SIZE, send_id, b"")
            return self.after(both, made, made.restarted(generation, fragment, promised))
        return self.unreceived(both, both.place, event, message)

    def unreceived(self, both: Both, place: Place, event: ReceiverEvent, message: Message) -> Both:
        """A NOTIFY or restart of a message that no receive has."""
        kind, generation, send_id, _, _ = message
        action = Unreceived(place, both.queued[0], 0, 0, 1).told(event, generation)
        self.used.add((place, event))
        if action is Action.NACK:
            return both.say("NACK", generation, send_id, 0)
        if action is Action.DROP:
            return both
        assert action in (Action.TAKE, Action.REPLACE)
        return both._replace(place=Place.QUEUED, queued=(generation, send_id, kind))

    # -- what comes behind it

    def arrives(self, both: Both, message: Message) -> Both:
        """A FRAG, or a FIN of a put."""
        pieces = message.pieces
        if not self.takes(both, message.receive_id):
            return both
        if message.kind == "PUT DONE":
            if not both.wanted & pieces:
                return both
            both = both._replace(wanted=both.wanted & ~pieces, outstanding=both.outstanding - 1)
        else:
            both = both._replace(here=both.here | pieces)
        return self.finished(both._replace(arrived=both.arrived + size(pieces)))

    def written(self, both: Both, message: Message) -> Both:
        """A put moves its bytes."""
        mine = both.receive_id == message.receive_id
        assert mine, "a put into memory of an older generation"
        assert not both.done, "a put into memory that was given back"
        return both._replace(here=both.here | message.pieces)

    # -- gets

    def get(self, both: Both, get: Get) -> list[Both]:
        """A get that waits for room: it is begun, or its piece comes as a FRAG."""
        both = both._replace(todo=fewer(both.todo, get))
        if not self.takes(both, get.receive_id):
            return [both]
        assert get.send_id in both.lent, "a get of memory that was given back"
        reads = both._replace(outstanding=both.outstanding + 1, reads=more(both.reads, get))
        asks = both.say("ACK", both.seen, get.send_id, get.receive_id, get.piece)
        return [reads, asks]

    def got(self, both: Both, get: Get, well: bool) -> Both:
        """A get is no longer under way."""
        both = both._replace(reads=fewer(both.reads, get), outstanding=both.outstanding - 1)
        if not self.takes(both, get.receive_id):
            assert not both.done, "a get of a receive that is complete"
            return both.receiver_hears_later("ended", 0)
        if not well:
            return both.receiver_hears_later("failed", both.receive_id)
        assert get.send_id in both.lent, "a get of memory that was given back"
        both = both._replace(arrived=both.arrived + 1, here=both.here | get.piece)
        return self.finished(both.say("GOT", both.seen, get.send_id, get.receive_id, get.piece))

    # -- what failed

    def heeds(self, both: Both, what: str, number: int) -> Both:
        """What the BTL has said of a get."""
        both = both._replace(receive_later=fewer(both.receive_later, (what, number)))
        if both.done:
            return both
        made = self.machine(both)
        doing = made.failed(number) if what == "failed" else made.ended()
        stale = number != both.receive_id
        reports = any(did.action is Action.REPORT for did in doing)
        assert not (stale and reports), "what was over has failed"
        return self.after(both, made, doing)

    def lost(self, both: Both, message: Message) -> Both:
        """A message to the sender may not have arrived."""
        kind, _, send_id, receive_id, pieces = message
        if kind == "ACK" and (both.done or both.receive_id != receive_id):
            return both.say("NACK", 0, send_id, 0)  # by the id alone
        if kind in ("ACK", "PUT", "PUT, ACK"):
            answered = kind != "ACK" and not both.wanted & pieces
            if answered or not self.takes(both, receive_id):
                return both
            made = self.machine(both)
            return self.after(both, made, made.failed(receive_id))
        if kind == "RECVERR":
            if not self.takes(both, receive_id):
                return both
            made = self.machine(both)
            return self.after(both, made, made.report_lost())
        return both.say(*message)  # from its own bytes
