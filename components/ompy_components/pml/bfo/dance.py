"""The restart dance as tables: what a message that something of failed does next, without I/O.

Both tables have ob1's rows (`ob1/states.py`) and those for failures. A message is in one of ob1's
states while its bytes flow, and in one of these while it dances. A pair that is absent is an error
that carries the message's story: it cannot be, as `failed_message.py` drops what is stale by its
ids and restart sequence numbers. What may come twice, or late, has a row that does nothing and says
why.

    sender:    ob1's --FAILED--> DRAINING --DRAINED--> NOTIFIED --ACK--> STARTED (a restart)
               AWAIT_ACK, AWAIT_GET --FIRST_LOST--> STARTED
               NOTIFIED --NACK--> DONE;  ob1's --NACK--> ENDING --DRAINED--> DONE
    receiver:  RECEIVING --FAILED--> REPORTED --ALL_HERE--> DONE
               RECEIVING, REPORTED --NOTIFY--> DRAINING --DRAINED--> ACKNOWLEDGED
               any but DRAINING --RESTART--> REPLACING --DRAINED--> POSTED, and matched anew

A NOTIFY is about a generation that a receive has answered. So a newer one finds the message in a
receive that takes it, or over; and no restart finds a receive that drains: it has promised none.

Source: seed bfo (8); reference openmpi.md 4.7.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ompy_components.pml.ob1 import states
from ompy_components.pml.ob1.states import (
    Event,
    ReceiveEvent,
    ReceiveState,
    SendState,
    State,
    Table,
)


class SenderState(State):
    """Of a message that is sent, while nothing new of it is begun."""

    DRAINING = "draining"
    NOTIFIED = "notified"
    ENDING = "ending"


class SenderEvent(Event):
    """What happens to it."""

    FAILED = "a fragment or put failed, or the receiver has reported an error"
    DRAINED = "nothing of it is under way"
    NOTIFY_LOST = "RNDVRESTARTNOTIFY may not have arrived"
    FIRST_LOST = "MATCH, RNDV or RGET may not have arrived, and no answer names a receive"
    FIRST_ARRIVED = "RNDV or RGET failed, and was answered"
    ACK = "RNDVRESTARTACK"
    NACK = "RNDVRESTARTNACK"


class ReceiverState(State):
    """Of a message that is received, from the first failure that this side knows of."""

    REPORTED = "reported"
    DRAINING = "draining"
    ACKNOWLEDGED = "acknowledged"
    REPLACING = "replacing"


class Place(State):
    """Of a message that no receive has: it is not here, waits for one, or is over."""

    UNSEEN = "unseen"
    QUEUED = "queued"  # its RNDV or RGET
    WHOLE = "whole"  # its MATCH
    OVER = "over"


class ReceiverEvent(Event):
    """What happens to it."""

    FAILED = "an ACK, PUT or get failed"
    REPORT_LOST = "RECVERRNOTIFY may not have arrived"
    NOTIFY = "RNDVRESTARTNOTIFY, newer"
    RESTART = "restarted RNDV or RGET, newer"
    DRAINED = "nothing of it is under way"


class Action(Enum):
    """What is to be done."""

    NOTHING = "nothing"
    STOP = "forget the old id, wait until drained"
    NOTIFY = "send RNDVRESTARTNOTIFY"
    AGAIN = "send the first fragment again"
    ANEW = "send RNDV or RGET anew, under a new id"
    RESUME = "the same; the receiver reads nothing of what it was offered before"
    ARRIVED = "go on: the fragment is there"
    COMPLETE = "complete the send"
    GIVE_UP = "fail the send: it was begun too often"
    REPORT = "send RECVERRNOTIFY"
    ACK = "send RNDVRESTARTACK"
    NACK = "send RNDVRESTARTNACK"
    ANSWER = "answer the restarted RNDV or RGET"
    TAKE = "match it, as if it had come for the first time"
    REPLACE = "have the queued message begin as it was begun the last time"
    DROP = "nothing: it is stale"


Rows = dict[tuple[State, Event], tuple[State, Action]]

S, D, E, A = SendState, SenderState, SenderEvent, Action
SENDER_ROWS: Final[Rows] = {
    # a MATCH, or a rendezvous that waits for room: there is nothing to forget
    (S.STARTED, E.FIRST_LOST): (S.STARTED, A.AGAIN),
    (S.AWAIT_ACK, E.FIRST_LOST): (S.STARTED, A.ANEW),
    (S.AWAIT_GET, E.FIRST_LOST): (S.STARTED, A.ANEW),
    (S.STREAMING, E.FIRST_LOST): (S.STREAMING, A.ARRIVED),  # a FIN answers, too, and names nothing
    (S.AWAIT_ACK, E.FIRST_ARRIVED): (S.AWAIT_ACK, A.ARRIVED),  # a PUT that does not acknowledge
    (S.STREAMING, E.FIRST_ARRIVED): (S.STREAMING, A.ARRIVED),
    (S.AWAIT_ACK, E.FAILED): (D.DRAINING, A.STOP),
    (S.AWAIT_GET, E.FAILED): (D.DRAINING, A.STOP),
    (S.STREAMING, E.FAILED): (D.DRAINING, A.STOP),
    (S.AWAIT_ACK, E.NACK): (D.ENDING, A.STOP),
    (S.AWAIT_GET, E.NACK): (D.ENDING, A.STOP),
    (S.STREAMING, E.NACK): (D.ENDING, A.STOP),
    (D.DRAINING, E.DRAINED): (D.NOTIFIED, A.NOTIFY),
    (D.NOTIFIED, E.NOTIFY_LOST): (D.NOTIFIED, A.NOTIFY),
    (D.NOTIFIED, E.ACK): (S.STARTED, A.RESUME),
    (D.NOTIFIED, E.NACK): (S.DONE, A.COMPLETE),  # nothing is under way, it has said so
    (D.ENDING, E.DRAINED): (S.DONE, A.COMPLETE),
    # of several that end in one round each is told of, the first time when none is under way
    (D.NOTIFIED, E.DRAINED): (D.NOTIFIED, A.NOTHING),
    (S.STARTED, E.DRAINED): (S.STARTED, A.NOTHING),
    (S.AWAIT_ACK, E.DRAINED): (S.AWAIT_ACK, A.NOTHING),
    (S.AWAIT_GET, E.DRAINED): (S.AWAIT_GET, A.NOTHING),
    (S.STREAMING, E.DRAINED): (S.STREAMING, A.NOTHING),
}

R, W, V = ReceiveState, ReceiverState, ReceiverEvent
RECEIVER_ROWS: Final[Rows] = {
    (R.RECEIVING, V.FAILED): (W.REPORTED, A.REPORT),
    (R.RECEIVING, V.NOTIFY): (W.DRAINING, A.STOP),
    (R.RECEIVING, V.RESTART): (W.REPLACING, A.STOP),
    (R.RECEIVING, V.DRAINED): (R.RECEIVING, A.NOTHING),  # a get of the time before the restart
    (W.REPORTED, V.FAILED): (W.REPORTED, A.NOTHING),  # more of what the same rail lost
    (W.REPORTED, V.REPORT_LOST): (W.REPORTED, A.REPORT),
    (W.REPORTED, V.NOTIFY): (W.DRAINING, A.STOP),
    (W.REPORTED, V.RESTART): (W.REPLACING, A.STOP),
    (W.REPORTED, V.DRAINED): (W.REPORTED, A.NOTHING),  # a get of the time before the restart
    (W.DRAINING, V.DRAINED): (W.ACKNOWLEDGED, A.ACK),
    (W.ACKNOWLEDGED, V.DRAINED): (W.ACKNOWLEDGED, A.NOTHING),
    (W.ACKNOWLEDGED, V.RESTART): (W.REPLACING, A.NOTHING),
    (W.REPLACING, V.RESTART): (W.REPLACING, A.NOTHING),
    (W.REPLACING, V.DRAINED): (R.POSTED, A.ANSWER),
    # where no receive has it
    (Place.UNSEEN, V.RESTART): (Place.QUEUED, A.TAKE),
    (Place.QUEUED, V.RESTART): (Place.QUEUED, A.REPLACE),
    (Place.WHOLE, V.RESTART): (Place.WHOLE, A.NACK),
    (Place.OVER, V.RESTART): (Place.OVER, A.NACK),
    (Place.OVER, V.NOTIFY): (Place.OVER, A.NACK),
}

# what ob1's halves go by: theirs, and more
SEND_TABLE: Final[Table] = {
    **states.SEND_TABLE,
    **{pair: state for pair, (state, _) in SENDER_ROWS.items()},
}
RECEIVE_TABLE: Final[Table] = {
    **states.RECEIVE_TABLE,
    **{pair: state for pair, (state, _) in RECEIVER_ROWS.items()},
    (W.REPORTED, ReceiveEvent.ALL_HERE): R.DONE,  # everything that still comes is taken
}

FLOWING: Final = "flowing"  # what the trace calls ob1's states
SMALL: Final = (Action.NOTHING, Action.AGAIN, Action.ARRIVED)  # in these the trace shows no step


def dance_name(state: State) -> str:
    """The name of a state in the trace."""
    if state is SendState.DONE:
        return "finished"
    return state.value if isinstance(state, SenderState | ReceiverState) else FLOWING
