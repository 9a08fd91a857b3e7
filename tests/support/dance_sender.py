"""The sender of a small message: bfo's `SendMessage`, and around it what `BfoSending` does."""

from __future__ import annotations

from itertools import count

from ompy.data.convertor import ContiguousConvertor
from ompy.frameworks.pml import STANDARD
from ompy_components.pml.bfo.dance import SEND_TABLE, Action, Place, SenderEvent
from ompy_components.pml.bfo.failed_message import Doing, SendMessage
from ompy_components.pml.ob1.headers import FRAG, MATCH, RGET, RNDV
from ompy_components.pml.ob1.sendrequest import send_request
from ompy_components.pml.ob1.states import SendEvent, rows_of

from tests.support.dance_world import PEER, SIZE, WORLD, Both, Message, Pair, Way, fewer, size

TAGS = {"MATCH": MATCH, "RNDV": RNDV, "RGET": RGET, "FRAG": FRAG}
BEGINS = {"RNDV": SendEvent.RNDV_SENT, "RGET": SendEvent.RGET_SENT}
ANSWERS = {
    "ACK": SendEvent.ACK,
    "PUT": SendEvent.PUT,
    "PUT, ACK": SendEvent.PUT_ACK,
    "GOT": SendEvent.FIN,
}


class Sender:
    """One end; `used` are the rows that were."""

    def __init__(self, way: Way, used: set[Pair]) -> None:
        self.way = way
        self.used = used

    def machine(self, both: Both) -> SendMessage:
        """The product's machine in this state."""
        data = ContiguousConvertor(memoryview(bytearray(SIZE)))
        request = send_request(WORLD, data, PEER, 1, 0, STANDARD, 1)
        request.open_rendezvous(both.send_id)
        request.state, request.peer_request = both.sender, both.peer_request
        request.in_flight, request.writing = both.in_flight, both.writing
        request.delivered, request.complete = both.delivered, both.sent_done
        numbers = count(both.next_send)
        made = SendMessage(request, lambda: next(numbers), 0)
        made.generation, made.peer = both.sent, both.known
        made.ids = [number for number in range(both.next_send) if number != both.send_id]
        return made

    def after(self, both: Both, made: SendMessage, doing: Doing = ()) -> Both:
        """What becomes of both when the half does what the machine says."""
        request, counted = made.request, both.delivered
        both = both._replace(
            sender=request.state,
            send_id=request.id,
            peer_request=request.peer_request,
            in_flight=request.in_flight,
            writing=request.writing,
            delivered=request.delivered,
            sent=made.generation,
            known=made.peer,
            next_send=max(both.next_send, request.id + 1),
        )
        for did in doing:
            self.used.add((did.before, did.event))
            if did.action is Action.STOP:
                assert request.delivered == counted, "what goes again is not known any more"
            elif did.action is Action.NOTIFY:
                both = both.say("NOTIFY", made.generation, request.id, made.peer)
            elif did.action is Action.ANEW or did.action is Action.AGAIN:
                both = self.waits(both)
            elif did.action is Action.RESUME:
                both = self.waits(self.resumed(both))
            elif did.action is Action.COMPLETE:
                whole = both.done or both.place is Place.WHOLE
                assert whole, "the receiver lacks something"
                both = self.ends(both)
        return self.finished(both)

    def resumed(self, both: Both) -> Both:
        """The receiver has promised to read nothing of what it was offered before."""
        assert not both.in_flight, "something of the older generation is under way"
        assert not both.writing, "a put of the older generation is under way"
        assert not both.reads, "a get of the older generation is under way"
        return both._replace(lent=())

    def waits(self, both: Both) -> Both:
        """The first fragment is to be sent."""
        both = both._replace(begun=False, told=0)
        return both if self.way.held else self.begin(both, self.way.first)

    def begin(self, both: Both, kind: str) -> Both:
        """Send the first fragment."""
        made = self.machine(both)
        request = made.request
        if kind != "MATCH" and not request.id:
            request.id = both.next_send
        request.in_flight += 1
        if kind in BEGINS:
            request.advance(rows_of(SEND_TABLE), BEGINS[kind])
        lent = (*both.lent, request.id) if kind == "RGET" else both.lent
        both = self.after(both._replace(begun=True, lent=lent), made)
        return both.say(kind, both.sent, both.send_id, 0, self.way.brings)

    def ends(self, both: Both) -> Both:
        """The send is complete, and all that it had registered given back."""
        assert not both.reads, "memory was given back under a get"
        return both._replace(sent_done=True, lent=(), begun=True)

    def finished(self, both: Both) -> Both:
        """As `finish_if_delivered`, of a message that does not dance."""
        made = self.machine(both)
        if made.dances or not made.request.is_delivered():
            return both
        made.request.advance(rows_of(SEND_TABLE), SendEvent.DELIVERED)
        assert both.done or size(both.here) == SIZE, "not all that was delivered is there"
        return self.ends(both._replace(sender=made.request.state))

    # -- what arrives

    def arrives(self, both: Both, message: Message) -> Both:
        """A message from the receiver."""
        if both.sent_done or both.send_id != message.send_id:
            return both
        made = self.machine(both)
        request, receive_id = made.request, message.receive_id
        if message.kind in ANSWERS:
            return self.answered(both, made, message)
        if message.kind == "RECVERR":
            return self.after(
                both, made, () if made.dances else made.reported(request.id, receive_id)
            )
        event = SenderEvent.ACK if message.kind == "RESTARTACK" else SenderEvent.NACK
        return self.after(both, made, made.answered(event, request.id, receive_id))

    def answered(self, both: Both, made: SendMessage, message: Message) -> Both:
        """ob1's answers; what names a piece that was told of comes a second time."""
        kind, _, send_id, receive_id, pieces = message
        request = made.request
        if made.dances or (kind == "GOT" and both.told & pieces):
            return both
        request.advance(rows_of(SEND_TABLE), ANSWERS[kind])
        if kind == "GOT":
            request.delivered += size(pieces)
            return self.after(both._replace(told=both.told | pieces), made)
        request.peer_request = receive_id
        if kind == "ACK":
            request.in_flight += 1 if pieces else 0
        else:
            request.writing += 1
        both = self.after(both, made)
        going = "FRAG" if kind == "ACK" else "WRITE"
        return both.say(going, both.sent, send_id, receive_id, pieces) if pieces else both

    # -- what the BTL says, and when it is heeded

    def over(self, both: Both, message: Message, well: bool) -> Both:
        """Something is no longer under way."""
        if message.kind == "WRITE":
            return self.written(both, message, well)
        made = self.machine(both)
        request, pieces = made.request, size(message.pieces)
        if well:
            request.ended(pieces)
        else:
            request.in_flight -= 1
        both = both._replace(in_flight=request.in_flight, delivered=request.delivered)
        if both.sent_done:
            return both
        if not well:
            return both.hear_later("lost", request.id, message.kind, pieces)
        if message.kind == "MATCH":
            return self.ends(both)
        return both.hear_later("ended") if made.dances else self.finished(both)

    def written(self, both: Both, message: Message, well: bool) -> Both:
        """A put is no longer under way."""
        both = both._replace(writing=both.writing - 1)
        if both.sent_done:
            return both
        if both.send_id != message.send_id:
            return both.hear_later("ended")
        if not well:
            return both.hear_later("put", message.send_id)
        both = both._replace(delivered=both.delivered + size(message.pieces))
        return self.finished(both.say("PUT DONE", *message[1:]))

    def heeds(self, both: Both, what: str, *about: object) -> Both:
        """What the BTL has said."""
        both = both._replace(send_later=fewer(both.send_later, (what, *about)))
        if both.sent_done:
            return both
        made = self.machine(both)
        if what == "lost":
            number, kind, pieces = about
            doing = made.lost(number, TAGS[kind], pieces)  # type: ignore[arg-type, index]
        elif what == "put":
            doing = made.put_lost(about[0])  # type: ignore[arg-type]
        else:
            doing = made.ended()
        return self.after(both, made, doing)

    def notify_lost(self, both: Both, message: Message) -> Both:
        """NOTIFY may not have arrived."""
        made = self.machine(both)
        if both.sent_done or not made.dances or both.send_id != message.send_id:
            return both
        return self.after(both, made, made.notify_lost(message.send_id))
