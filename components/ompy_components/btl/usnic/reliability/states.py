"""The states of a send segment, and what takes it from one to the next.

    FREE       on a free list, unallocated
    TO_SEND    on its endpoint's list of what is to be sent
    IN_FLIGHT   posted to the NIC, awaiting its ACK
    TO_RESEND  on the module's list of what is to be sent again

A segment whose timer runs is IN_FLIGHT, and only such a one. A pair that is not in the table is an
error of ours: what a peer can do leads to events that are in it.

Source: seed usnic (reliability).
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ompy.compiled import ccall


class SegmentState(Enum):
    """Where a send segment is."""

    FREE = "free"
    TO_SEND = "to-send"
    IN_FLIGHT = "in flight"
    TO_RESEND = "to-resend"
    HELD = "held"  # by the peer, who lacks one before it

    __hash__ = object.__hash__  # each packet looks into the table several times


class SegmentEvent(Enum):
    """What happens to a send segment."""

    ENQUEUED = "enqueued"
    POSTED = "posted"
    EXPIRED = "expired"
    MISSED = "missed"  # a duplicate ACK says so
    ARRIVED = "arrived"  # a selective ACK says so: some before it have not
    ACKED = "acked"
    FLUSHED = "flushed"

    __hash__ = object.__hash__


_S, _E = SegmentState, SegmentEvent
# a name of a module is found faster than one of an enumeration
IN_FLIGHT: Final = SegmentState.IN_FLIGHT
TO_RESEND: Final = SegmentState.TO_RESEND
HELD: Final = SegmentState.HELD
POSTED: Final = SegmentEvent.POSTED
ACKED: Final = SegmentEvent.ACKED

TABLE: Final[dict[tuple[SegmentState, SegmentEvent], SegmentState]] = {
    (_S.FREE, _E.ENQUEUED): _S.TO_SEND,
    (_S.FREE, _E.POSTED): _S.IN_FLIGHT,  # a chunk is allocated when it is sent; or a fast send
    (_S.TO_SEND, _E.POSTED): _S.IN_FLIGHT,
    (_S.TO_SEND, _E.FLUSHED): _S.FREE,
    (_S.IN_FLIGHT, _E.EXPIRED): _S.TO_RESEND,
    (_S.IN_FLIGHT, _E.MISSED): _S.TO_RESEND,
    (_S.IN_FLIGHT, _E.ARRIVED): _S.HELD,
    (_S.IN_FLIGHT, _E.ACKED): _S.FREE,
    (_S.IN_FLIGHT, _E.FLUSHED): _S.FREE,
    (_S.TO_RESEND, _E.POSTED): _S.IN_FLIGHT,
    (_S.TO_RESEND, _E.MISSED): _S.TO_RESEND,  # nothing to do: that is pending already
    (_S.TO_RESEND, _E.ARRIVED): _S.HELD,
    (_S.TO_RESEND, _E.ACKED): _S.FREE,  # the ACK came while it waited
    (_S.TO_RESEND, _E.FLUSHED): _S.FREE,
    (_S.HELD, _E.ACKED): _S.FREE,
    (_S.HELD, _E.FLUSHED): _S.FREE,
}


class WrongState(AssertionError):
    """A segment was told something that cannot happen where it is."""


@ccall
def follow(state: SegmentState, event: SegmentEvent) -> SegmentState:
    """The state after `event`.

    Raises:
        WrongState: it cannot happen in `state`.
    """
    after = TABLE.get((state, event))
    if after is None:
        raise WrongState(f"a segment that is {state.value} cannot be {event.value}")
    return after
