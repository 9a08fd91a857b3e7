"""The rendezvous state machines: one for the sender's request, one for the receiver's.

States and events as tables; a pair that is absent is an error that carries the request's
story. The eager protocols have no states: a request is begun and finished.

    sender:    STARTED --RNDV_SENT--> AWAIT_ACK --ACK--> STREAMING --DELIVERED--> DONE
    receiver:  POSTED --MATCHED--> RECEIVING --ALL_HERE--> DONE
               POSTED --CANCEL--> CANCELLED

Source: seed ob1-protocols, Send/Receive Pipeline, steps A to G.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ompy.data.errors import ERR_INTERN, MPIError


class SendState(Enum):
    """Of a send request in the Send/Receive Pipeline."""

    STARTED = "started"
    AWAIT_ACK = "await-ack"
    STREAMING = "streaming"
    DONE = "done"


class SendEvent(Enum):
    """What happens to a send request."""

    RNDV_SENT = "RNDV accepted by a BTL"  # step A
    ACK = "ACK received"  # step E
    DELIVERED = "RNDV and every FRAG completed"  # step F


class ReceiveState(Enum):
    """Of a receive request."""

    POSTED = "posted"
    RECEIVING = "receiving"
    DONE = "done"
    CANCELLED = "cancelled"


class ReceiveEvent(Enum):
    """What happens to a receive request."""

    MATCHED = "RNDV matched"  # step C
    ALL_HERE = "every byte arrived"  # step G
    CANCEL = "cancelled by the user"


SEND_TABLE: Final = {
    (SendState.STARTED, SendEvent.RNDV_SENT): SendState.AWAIT_ACK,
    (SendState.AWAIT_ACK, SendEvent.ACK): SendState.STREAMING,
    (SendState.STREAMING, SendEvent.DELIVERED): SendState.DONE,
}

RECEIVE_TABLE: Final = {
    (ReceiveState.POSTED, ReceiveEvent.MATCHED): ReceiveState.RECEIVING,
    (ReceiveState.POSTED, ReceiveEvent.CANCEL): ReceiveState.CANCELLED,
    (ReceiveState.RECEIVING, ReceiveEvent.ALL_HERE): ReceiveState.DONE,
}


def next_send_state(state: SendState, event: SendEvent, story: str) -> SendState:
    """The state after `event`. Raises MPIError ERR_INTERN with `story` when there is none."""
    following = SEND_TABLE.get((state, event))
    if following is None:
        raise MPIError(ERR_INTERN, f"ob1: {event.value} in state {state.value}: {story}")
    return following


def next_receive_state(state: ReceiveState, event: ReceiveEvent, story: str) -> ReceiveState:
    """The state after `event`. Raises MPIError ERR_INTERN with `story` when there is none."""
    following = RECEIVE_TABLE.get((state, event))
    if following is None:
        raise MPIError(ERR_INTERN, f"ob1: {event.value} in state {state.value}: {story}")
    return following
