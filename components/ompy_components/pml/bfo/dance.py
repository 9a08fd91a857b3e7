"""The restart dance: two machines as tables, without I/O.

One message that is being restarted has a machine on each side. What is stale or a duplicate is
told apart by its restart sequence number before it gets here; a pair that is absent all the same
is a no-op that changes nothing: the news of a generation that is over.

    sender:    FLOWING --FAILED--> DRAINING --DRAINED--> NOTIFIED --ACK--> FLOWING (a restart)
               FLOWING, NOTIFIED --NACK--> ENDING --DRAINED--> FINISHED
    receiver:  FLOWING --FAILED--> REPORTED
               FLOWING, REPORTED --NOTIFY--> DRAINING --DRAINED--> ACKNOWLEDGED
               ACKNOWLEDGED --RESTART--> FLOWING
               FLOWING, REPORTED --RESTART--> REPLACING --DRAINED--> FLOWING

Source: seed bfo (8); reference openmpi.md 4.7.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class SenderState(Enum):
    """Of a message that is sent."""

    FLOWING = "flowing"
    DRAINING = "draining"
    NOTIFIED = "notified"
    ENDING = "ending"
    FINISHED = "finished"


class SenderEvent(Enum):
    """What happens to it."""

    FAILED = "a fragment or put failed, or the receiver has reported an error"
    DRAINED = "nothing of it is under way"
    NOTIFY_LOST = "RNDVRESTARTNOTIFY may not have arrived"
    FIRST_LOST = "RNDV or RGET may not have arrived, and is not answered"
    ACK = "RNDVRESTARTACK"
    NACK = "RNDVRESTARTNACK"


class ReceiverState(Enum):
    """Of a message that is received."""

    FLOWING = "flowing"
    REPORTED = "reported"
    DRAINING = "draining"
    ACKNOWLEDGED = "acknowledged"
    REPLACING = "replacing"


class ReceiverEvent(Enum):
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
    RESTART = "send RNDV or RGET anew"
    COMPLETE = "complete the send"
    REPORT = "send RECVERRNOTIFY"
    ACK = "send RNDVRESTARTACK"
    ANSWER = "answer the restarted RNDV or RGET"


SenderTable = dict[tuple[SenderState, SenderEvent], tuple[SenderState, Action]]
ReceiverTable = dict[tuple[ReceiverState, ReceiverEvent], tuple[ReceiverState, Action]]

S, E, A = SenderState, SenderEvent, Action
SENDER_TABLE: Final[SenderTable] = {
    (S.FLOWING, E.FAILED): (S.DRAINING, A.STOP),
    (S.FLOWING, E.FIRST_LOST): (S.FLOWING, A.RESTART),
    (S.FLOWING, E.NACK): (S.ENDING, A.STOP),
    (S.DRAINING, E.FAILED): (S.DRAINING, A.NOTHING),  # other fragments of the same rail
    (S.DRAINING, E.DRAINED): (S.NOTIFIED, A.NOTIFY),
    (S.NOTIFIED, E.FAILED): (S.NOTIFIED, A.NOTHING),
    (S.NOTIFIED, E.DRAINED): (S.NOTIFIED, A.NOTHING),
    (S.NOTIFIED, E.NOTIFY_LOST): (S.NOTIFIED, A.NOTIFY),
    (S.NOTIFIED, E.ACK): (S.FLOWING, A.RESTART),
    (S.NOTIFIED, E.NACK): (S.ENDING, A.STOP),
    (S.ENDING, E.NACK): (S.ENDING, A.NOTHING),
    (S.ENDING, E.FAILED): (S.ENDING, A.NOTHING),
    (S.ENDING, E.DRAINED): (S.FINISHED, A.COMPLETE),
}

R, V = ReceiverState, ReceiverEvent
RECEIVER_TABLE: Final[ReceiverTable] = {
    (R.FLOWING, V.FAILED): (R.REPORTED, A.REPORT),
    (R.FLOWING, V.NOTIFY): (R.DRAINING, A.STOP),
    (R.FLOWING, V.RESTART): (R.REPLACING, A.STOP),
    (R.REPORTED, V.FAILED): (R.REPORTED, A.NOTHING),
    (R.REPORTED, V.REPORT_LOST): (R.REPORTED, A.REPORT),
    (R.REPORTED, V.NOTIFY): (R.DRAINING, A.STOP),
    (R.REPORTED, V.RESTART): (R.REPLACING, A.STOP),
    (R.DRAINING, V.FAILED): (R.DRAINING, A.NOTHING),
    (R.DRAINING, V.NOTIFY): (R.DRAINING, A.NOTHING),
    (R.DRAINING, V.DRAINED): (R.ACKNOWLEDGED, A.ACK),
    (R.DRAINING, V.RESTART): (R.REPLACING, A.NOTHING),
    (R.ACKNOWLEDGED, V.FAILED): (R.ACKNOWLEDGED, A.NOTHING),
    (R.ACKNOWLEDGED, V.DRAINED): (R.ACKNOWLEDGED, A.NOTHING),
    (R.ACKNOWLEDGED, V.NOTIFY): (R.DRAINING, A.NOTHING),
    (R.ACKNOWLEDGED, V.RESTART): (R.REPLACING, A.NOTHING),
    (R.REPLACING, V.FAILED): (R.REPLACING, A.NOTHING),
    (R.REPLACING, V.RESTART): (R.REPLACING, A.NOTHING),
    (R.REPLACING, V.NOTIFY): (R.DRAINING, A.NOTHING),
    (R.REPLACING, V.DRAINED): (R.FLOWING, A.ANSWER),
}


def sender_step(state: SenderState, event: SenderEvent) -> tuple[SenderState, Action]:
    """The state after `event`, and what to do; an absent pair changes nothing."""
    return SENDER_TABLE.get((state, event), (state, Action.NOTHING))


def receiver_step(state: ReceiverState, event: ReceiverEvent) -> tuple[ReceiverState, Action]:
    """The state after `event`, and what to do; an absent pair changes nothing."""
    return RECEIVER_TABLE.get((state, event), (state, Action.NOTHING))
