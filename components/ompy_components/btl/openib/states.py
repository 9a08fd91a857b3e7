"""The states of an endpoint, and what leads from one to the next.

Source: reference openmpi.md 5.1 has the states. There the lower of two that begin at once gives
in; here both use what they have announced (`connection.py`), so that WAITING_ACK is reached when
two announcements cross.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class State(Enum):
    """Of an endpoint."""

    CLOSED = "CLOSED"  # no queue pairs
    CONNECTING = "CONNECTING"  # ours are announced, the peer's are not known
    CONNECT_ACK = "CONNECT_ACK"  # the peer asked: connected, and not known to be so at its end
    WAITING_ACK = "WAITING_ACK"  # both asked at once: the same
    CONNECTED = "CONNECTED"  # at both ends
    FAILED = "FAILED"  # until everything of the connection is completed and given back


class Event(Enum):
    """What happens to an endpoint."""

    WANTED = "something is to be sent"
    ANNOUNCED = "the peer's queue pairs are here; it does not know ours"
    ANSWERED = "the peer's queue pairs are here; it knows ours"
    HEARD = "something came through a queue pair"
    BROKEN = "a failure"
    CLEARED = "nothing is left of the broken connection"


class NoTransition(Exception):
    """An event that cannot happen in a state."""


_S, _E = State, Event

TRANSITIONS: Final[dict[tuple[State, Event], State]] = {
    (_S.CLOSED, _E.WANTED): _S.CONNECTING,
    (_S.CLOSED, _E.ANNOUNCED): _S.CONNECT_ACK,
    (_S.CLOSED, _E.ANSWERED): _S.CLOSED,  # to an attempt that was given up
    (_S.CLOSED, _E.BROKEN): _S.FAILED,  # the port is down before anything was tried
    (_S.CONNECTING, _E.WANTED): _S.CONNECTING,
    (_S.CONNECTING, _E.ANNOUNCED): _S.WAITING_ACK,
    (_S.CONNECTING, _E.ANSWERED): _S.CONNECTED,
    (_S.CONNECTING, _E.BROKEN): _S.FAILED,
    (_S.CONNECT_ACK, _E.WANTED): _S.CONNECT_ACK,
    (_S.CONNECT_ACK, _E.ANNOUNCED): _S.CONNECT_ACK,
    (_S.CONNECT_ACK, _E.ANSWERED): _S.CONNECTED,
    (_S.CONNECT_ACK, _E.HEARD): _S.CONNECTED,
    (_S.CONNECT_ACK, _E.BROKEN): _S.FAILED,
    (_S.WAITING_ACK, _E.WANTED): _S.WAITING_ACK,
    (_S.WAITING_ACK, _E.ANNOUNCED): _S.WAITING_ACK,
    (_S.WAITING_ACK, _E.ANSWERED): _S.CONNECTED,
    (_S.WAITING_ACK, _E.HEARD): _S.CONNECTED,
    (_S.WAITING_ACK, _E.BROKEN): _S.FAILED,
    (_S.CONNECTED, _E.WANTED): _S.CONNECTED,
    (_S.CONNECTED, _E.ANNOUNCED): _S.CONNECTED,  # repeated
    (_S.CONNECTED, _E.ANSWERED): _S.CONNECTED,
    (_S.CONNECTED, _E.HEARD): _S.CONNECTED,
    (_S.CONNECTED, _E.BROKEN): _S.FAILED,
    (_S.FAILED, _E.WANTED): _S.FAILED,
    (_S.FAILED, _E.ANNOUNCED): _S.FAILED,  # it will be repeated
    (_S.FAILED, _E.ANSWERED): _S.FAILED,
    (_S.FAILED, _E.HEARD): _S.FAILED,  # a straggler
    (_S.FAILED, _E.BROKEN): _S.FAILED,
    (_S.FAILED, _E.CLEARED): _S.CLOSED,
}


def after(state: State, event: Event) -> State:
    """The state that follows. Raises NoTransition where the event cannot happen."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise NoTransition(f"{event.name} in {state.name}: {event.value}") from None
