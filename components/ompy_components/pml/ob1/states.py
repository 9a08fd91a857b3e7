"""The rendezvous state machines: the sender's request, the receiver's, and one RDMA fragment's.

States and events as tables; a pair that is absent is an error that carries the request's
story, which is told only then. The eager protocols have no states: a
request is begun and finished.

    sender:    STARTED --RNDV_SENT--> AWAIT_ACK --ACK, PUT_ACK--> STREAMING --DELIVERED--> DONE
               STARTED --RGET_SENT--> AWAIT_GET --FIN, ACK, PUT--> STREAMING
    receiver:  POSTED --MATCHED--> RECEIVING --ALL_HERE--> DONE
               POSTED --CANCEL--> CANCELLED
    put:       receiver's PLANNED --ASKED--> AWAIT_FIN --MOVED--> MOVED
               sender's   PLANNED --STARTED--> UNDER_WAY --MOVED--> MOVED
    get:       receiver's PLANNED --STARTED--> UNDER_WAY --MOVED--> MOVED
    any:       --FAILED--> FELL_BACK: the bytes come as FRAGs

Source: seed ob1 (Protocol Details); reference openmpi.md 3.6.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Protocol, TypeVar

from ompy.compiled import ccall
from ompy.data.errors import ERR_INTERN, MPIError

E = TypeVar("E", bound=Enum)


class Storied(Protocol):
    """What has such a state, and says more of itself when something is wrong."""

    def story(self) -> str:
        """What is known of it, for messages to people."""


class State(Enum):
    """Where a message or a piece of it is. Whoever builds on ob1 has more of them."""

    __hash__ = object.__hash__  # members are keys of tables; Enum's own is a call of Python code


class Event(Enum):
    """What happens to a message or a piece of it."""

    __hash__ = object.__hash__


def direct(members: type[E]) -> type[E]:
    """Make members plain attributes of their class, as they are from Python 3.12 on.

    In 3.11 each is found by a hook that takes longer than the transition itself.
    """
    for name, member in members.__members__.items():
        type.__setattr__(members, name, member)
    return members


@direct
class SendState(State):
    """Of a send request with a rendezvous."""

    STARTED = "started"
    AWAIT_ACK = "await-ack"
    AWAIT_GET = "await-get"
    STREAMING = "streaming"
    DONE = "done"


@direct
class SendEvent(Event):
    """What happens to a send request."""

    RNDV_SENT = "RNDV accepted by a BTL"
    RGET_SENT = "RGET accepted by a BTL"
    ACK = "ACK received"
    PUT = "PUT received"
    PUT_ACK = "PUT received that acknowledges the RNDV"
    FIN = "FIN received"
    DELIVERED = "every byte delivered"


@direct
class ReceiveState(State):
    """Of a receive request."""

    POSTED = "posted"
    RECEIVING = "receiving"
    DONE = "done"
    CANCELLED = "cancelled"


@direct
class ReceiveEvent(Event):
    """What happens to a receive request."""

    MATCHED = "RNDV or RGET matched"
    ALL_HERE = "every byte arrived"
    CANCEL = "cancelled by the user"


@direct
class RdmaState(State):
    """Of one RDMA fragment, on the side that keeps it."""

    PLANNED = "planned"
    AWAIT_FIN = "await-fin"
    UNDER_WAY = "under-way"
    MOVED = "moved"
    FELL_BACK = "fell-back"


@direct
class RdmaEvent(Event):
    """What happens to an RDMA fragment."""

    ASKED = "the peer was asked to move it"
    STARTED = "handed to a BTL"
    NO_ROOM = "the BTL had no room"
    MOVED = "bytes moved"
    FAILED = "could not be moved by RDMA"


Table = dict[tuple[State, Event], State]
Rows = dict[State, dict[Event, State]]  # the same, as it is asked

SEND_TABLE: Final[Table] = {
    (SendState.STARTED, SendEvent.RNDV_SENT): SendState.AWAIT_ACK,
    (SendState.STARTED, SendEvent.RGET_SENT): SendState.AWAIT_GET,
    (SendState.AWAIT_ACK, SendEvent.ACK): SendState.STREAMING,
    (SendState.AWAIT_ACK, SendEvent.PUT): SendState.AWAIT_ACK,  # another rail was faster
    (SendState.AWAIT_ACK, SendEvent.PUT_ACK): SendState.STREAMING,
    (SendState.AWAIT_GET, SendEvent.ACK): SendState.STREAMING,
    (SendState.AWAIT_GET, SendEvent.PUT): SendState.STREAMING,
    (SendState.AWAIT_GET, SendEvent.FIN): SendState.STREAMING,
    # what a get or a registration could not do, one ACK for each piece
    (SendState.STREAMING, SendEvent.ACK): SendState.STREAMING,
    (SendState.STREAMING, SendEvent.PUT): SendState.STREAMING,
    # the ACK for what cannot be put any more was faster, over another rail
    (SendState.STREAMING, SendEvent.PUT_ACK): SendState.STREAMING,
    (SendState.STREAMING, SendEvent.FIN): SendState.STREAMING,
    (SendState.STREAMING, SendEvent.DELIVERED): SendState.DONE,
}

RECEIVE_TABLE: Final[Table] = {
    (ReceiveState.POSTED, ReceiveEvent.MATCHED): ReceiveState.RECEIVING,
    (ReceiveState.POSTED, ReceiveEvent.CANCEL): ReceiveState.CANCELLED,
    (ReceiveState.RECEIVING, ReceiveEvent.ALL_HERE): ReceiveState.DONE,
}

RDMA_TABLE: Final[Table] = {
    (RdmaState.PLANNED, RdmaEvent.ASKED): RdmaState.AWAIT_FIN,
    (RdmaState.PLANNED, RdmaEvent.STARTED): RdmaState.UNDER_WAY,
    (RdmaState.PLANNED, RdmaEvent.FAILED): RdmaState.FELL_BACK,
    (RdmaState.AWAIT_FIN, RdmaEvent.MOVED): RdmaState.MOVED,
    (RdmaState.AWAIT_FIN, RdmaEvent.FAILED): RdmaState.FELL_BACK,
    (RdmaState.UNDER_WAY, RdmaEvent.NO_ROOM): RdmaState.PLANNED,
    (RdmaState.UNDER_WAY, RdmaEvent.MOVED): RdmaState.MOVED,
    (RdmaState.UNDER_WAY, RdmaEvent.FAILED): RdmaState.FELL_BACK,
}


def rows_of(table: Table) -> Rows:
    """A table as `next_state` asks it: to look twice takes less than to make a pair."""
    rows: Rows = {}
    for (state, event), following in table.items():
        rows.setdefault(state, {})[event] = following
    return rows


@ccall
def next_state(
    rows: dict[State, dict[Event, State]], state: State, event: Event, whose: Storied
) -> State:
    """The state after `event`. Raises MPIError ERR_INTERN, with a story, when there is none."""
    row: dict[Event, State] | None = rows.get(state)
    following: State | None = None
    if row is not None:
        following = row.get(event)
    if following is None:
        raise MPIError(ERR_INTERN, f"ob1: {event.value} in state {state.value}: {whose.story()}")
    return following
