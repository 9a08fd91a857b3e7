"""A message that something of failed, on either side, as a machine without I/O.

A machine has ob1's request, whose state, id and counts it moves on by `dance.py`, and what ob1 does
not know: the restart sequence number, the ids of older generations, the peer's request. It is told
what happened and gives back what is to be done, step by step. It knows by ids what is stale: an id
is of one generation, so what names another is over, and what it had under way has ended.

Source: seed bfo (6, 8); reference openmpi.md 4.6 and 4.7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ompy.data.errors import ERR_INTERN, MPIError

from ompy_components.pml.bfo.dance import (
    RECEIVER_ROWS,
    SENDER_ROWS,
    Action,
    Place,
    ReceiverEvent,
    ReceiverState,
    Rows,
    SenderEvent,
    SenderState,
)
from ompy_components.pml.bfo.headers import following, newer
from ompy_components.pml.ob1.fragment import Fragment
from ompy_components.pml.ob1.headers import FRAG
from ompy_components.pml.ob1.matching import RecvRequest
from ompy_components.pml.ob1.rendezvous.striping import Share
from ompy_components.pml.ob1.sendrequest import SendRequest
from ompy_components.pml.ob1.states import Event, SendState, State, Storied


class Did(NamedTuple):
    """A step of a machine.

    Attributes:
        before, now: states.
        event: that happened.
        action: for the half to do.
    """

    before: State
    event: Event
    now: State
    action: Action


Doing = tuple[Did, ...]
NEW_GENERATION: Final = (Action.AGAIN, Action.ANEW, Action.RESUME)
NEW_ID: Final = (Action.STOP, Action.ANEW, Action.RESUME)
UNANSWERED: Final = (ReceiverState.DRAINING, ReceiverState.ACKNOWLEDGED)  # no restart has come
STOPPED: Final = (*UNANSWERED, ReceiverState.REPLACING)  # it has no place in ob1's tables


def row(rows: Rows, state: State, event: Event, whose: Storied) -> tuple[State, Action]:
    """What follows. Raises MPIError ERR_INTERN, with a story, when the event cannot be."""
    found = rows.get((state, event))
    if found is None:
        raise MPIError(ERR_INTERN, f"bfo: {event.value} in state {state.value}: {whose.story()}")
    return found


class SendMessage:
    """A message at its sender, from the first failure to its end.

    Attributes:
        request: its state, id, and what is under way.
        generation: restart sequence number.
        ids: of older generations, the last one last.
        peer: the receiver's request, as far as it is known.
        retired: registrations of older generations, which the receiver may still use; the half's.
    """

    __slots__ = ("_fresh", "_most", "_times", "generation", "ids", "peer", "request", "retired")

    def __init__(self, request: SendRequest, fresh: Callable[[], int], most: int) -> None:
        """Begin.

        Args:
            request: the message.
            fresh: gives ids that no request has had.
            most: generations that are allowed; 0 for any number.
        """
        self.request = request
        self.generation = 0
        self.ids: list[int] = []
        self.peer = 0
        self.retired: list[Share] = []
        self._fresh = fresh
        self._most = most
        self._times = 0
        if not request.id:  # an eager message has neither in ob1
            request.state = SendState.STARTED
            request.peer_request = 0

    @property
    def dances(self) -> bool:
        """Whether nothing new of it is begun now."""
        return isinstance(self.request.state, SenderState)

    def lost(self, number: int, tag: int, payload: int) -> Doing:
        """A fragment may not have arrived.

        Args:
            number: id of the request when the BTL said so.
            tag: of the fragment.
            payload: its bytes of the message.
        """
        request = self.request
        if request.complete:
            return ()
        if number != request.id or self.dances:  # of the generation before
            return self.ended()
        if tag == FRAG:
            return self._handle(SenderEvent.FAILED)
        answered = SenderEvent.FIRST_ARRIVED if request.peer_request else SenderEvent.FIRST_LOST
        doing = self._handle(answered)
        if doing[0].action is Action.ARRIVED:
            request.delivered += payload
        return doing

    def put_lost(self, number: int) -> Doing:
        """A put that was begun under this id may not have been done, or no rail takes a FRAG."""
        if self.request.complete:
            return ()
        if number != self.request.id:
            return self.ended()
        return self._handle(SenderEvent.FAILED)

    def ended(self) -> Doing:
        """Something of it is no longer under way."""
        request = self.request
        if request.complete or request.in_flight or request.writing:
            return ()
        return self._handle(SenderEvent.DRAINED)

    def reported(self, number: int, receive_id: int) -> Doing:
        """RECVERRNOTIFY: the receiver had an error."""
        request = self.request
        if request.complete or number != request.id:
            return ()
        if not request.peer_request:
            request.peer_request = receive_id
        return self._handle(SenderEvent.FAILED)

    def answered(self, event: SenderEvent, number: int, receive_id: int) -> Doing:
        """RNDVRESTARTACK or RNDVRESTARTNACK."""
        if self.request.complete or number != self.request.id:
            return ()
        if receive_id:
            self.peer = receive_id
        return self._handle(event)

    def notify_lost(self, number: int) -> Doing:
        """RNDVRESTARTNOTIFY may not have arrived."""
        if self.request.complete or number != self.request.id:
            return ()
        return self._handle(SenderEvent.NOTIFY_LOST)

    def _handle(self, event: SenderEvent) -> Doing:
        request = self.request
        before = request.state
        now, action = row(SENDER_ROWS, before, event, request)
        grows = action in NEW_GENERATION or now is SenderState.DRAINING
        if grows and not self._grow():
            return (Did(before, event, before, Action.GIVE_UP),)
        request.state = now
        if action in NEW_ID:
            self._renew()
        if action in (Action.ANEW, Action.RESUME):
            request.delivered = 0
        self._check()
        did = Did(before, event, now, action)
        return (did, *self.ended()) if action is Action.STOP else (did,)

    def _check(self) -> None:
        """What cannot be, whatever has happened."""
        request = self.request
        assert request.in_flight >= 0 <= request.writing, "no more ends than was begun"
        assert request.id not in self.ids, "an id is of one generation"
        if self.dances:
            assert self.ids, "what is drained has another id"
            assert not request.peer_request, "the new generation names no receive"
        if request.state is SenderState.NOTIFIED:
            assert not request.in_flight + request.writing, "nothing is begun meanwhile"

    def _grow(self) -> bool:
        """The next generation; false when it is one too many."""
        self.generation = following(self.generation)
        self._times += 1
        return not 0 < self._most < self._times

    def _renew(self) -> None:
        """A new id: what names the old one is stale from now on."""
        request = self.request
        self.ids.append(request.id)
        self.peer = request.peer_request or self.peer
        request.id = self._fresh()
        request.peer_request = 0


class ReceiveMessage:
    """A message that a receive has, from the first failure on either side to its end.

    Attributes:
        request: its state, id, and what is under way.
        generation: restart sequence number of the sender's last message.
        peer: the sender's request.
        fragment: a restarted RNDV or RGET to be answered as soon as nothing is under way.
    """

    __slots__ = ("fragment", "generation", "peer", "request")

    def __init__(self, request: RecvRequest, generation: int) -> None:
        self.request = request
        self.generation = generation
        self.peer = request.peer_request
        self.fragment: Fragment | None = None

    def failed(self, number: int) -> Doing:
        """An ACK, a PUT or a get failed that the receive had begun under this id."""
        if self.request.complete:
            return ()
        if number != self.request.id or self.request.state in STOPPED:
            return self.ended()
        return (self._step(ReceiverEvent.FAILED),)

    def notified(self, generation: int, peer: int, promised: int) -> Doing:
        """RNDVRESTARTNOTIFY; nothing is done when it is not newer.

        Args:
            generation: restart sequence number.
            peer: the sender's request.
            promised: of the pieces that are outstanding, those that the sender was to put: it
                touches the memory no more when it says this.
        """
        return self._newer(ReceiverEvent.NOTIFY, generation, peer, promised, None)

    def restarted(self, generation: int, fragment: Fragment, promised: int) -> Doing:
        """A RNDV or RGET that was begun anew; arguments and result as in `notified`."""
        peer = fragment.sender_request
        return self._newer(ReceiverEvent.RESTART, generation, peer, promised, fragment)

    def ended(self) -> Doing:
        """Something of it is no longer under way."""
        incoming = self.request.incoming
        if self.request.complete or (incoming is not None and incoming.outstanding):
            return ()
        return (self._step(ReceiverEvent.DRAINED),)

    def report_lost(self) -> Doing:
        """RECVERRNOTIFY of the receive's id, which it still has, may not have arrived."""
        return (self._step(ReceiverEvent.REPORT_LOST),)

    def _newer(
        self,
        event: ReceiverEvent,
        generation: int,
        peer: int,
        promised: int,
        fragment: Fragment | None,
    ) -> Doing:
        if self.request.complete or not newer(generation, self.generation):
            return ()
        self.generation, self.peer, self.fragment = generation, peer, fragment
        did = self._step(event)
        incoming = self.request.incoming
        if did.action is Action.STOP and incoming is not None:
            incoming.outstanding -= promised
            assert incoming.outstanding >= 0, "no more was promised than is outstanding"
        return (did, *self.ended())

    def _step(self, event: ReceiverEvent) -> Did:
        before = self.request.state
        now, action = row(RECEIVER_ROWS, before, event, self.request)
        self.request.state = now
        restarted = self.fragment is not None
        assert now is not ReceiverState.REPLACING or restarted, "there is something to answer"
        assert now not in UNANSWERED or not restarted, "a restart ends what waits for it"
        return Did(before, event, now, action)


class Unreceived(NamedTuple):
    """A message that no receive has.

    Attributes:
        place: where it is.
        generation: of what is queued of it.
        context_id, source, sequence: what it is known by.
    """

    place: Place
    generation: int
    context_id: int
    source: int
    sequence: int

    def told(self, event: ReceiverEvent, generation: int) -> Action:
        """What to do with a NOTIFY or a restart of this generation."""
        _, action = row(RECEIVER_ROWS, self.place, event, self)
        if action is Action.REPLACE and not newer(generation, self.generation):
            return Action.DROP
        return action

    def story(self) -> str:
        """What is known of it, for messages to people."""
        return (
            f"message {self.sequence} of rank {self.source} in context {self.context_id}, "
            f"restart {self.generation}"
        )
