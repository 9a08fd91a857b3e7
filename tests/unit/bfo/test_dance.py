"""The dance's tables, and every order of its messages with every single and double loss.

The model has what the tables leave to the two halves: generations, ids and what is under way. Its
messages travel over any rail, so any may overtake any other. Each may arrive, or fail: then who
sent it hears so at any time later, and it arrives before that, after that, or never.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from ompy_components.pml.bfo.dance import (
    RECEIVER_TABLE,
    SENDER_TABLE,
    Action,
    ReceiverEvent,
    ReceiverState,
    SenderEvent,
    SenderState,
    receiver_step,
    sender_step,
)

LOSSES = 3  # more than there have to be: every single, double and triple one


@dataclass(frozen=True)
class Both:
    """The sender, the receiver, and what is between them.

    A message is (kind, generation). Those that fail are among the reports, and the ghosts.
    """

    sender: SenderState = SenderState.FLOWING
    sent: int = 0
    flying: int = 1  # fragments the sender has under way
    receiver: ReceiverState = ReceiverState.FLOWING
    seen: int = 0
    reading: int = 0  # gets the receiver has under way
    done: bool = False  # the receive is complete
    wire: tuple[tuple[str, int], ...] = ()
    reports: tuple[tuple[str, int], ...] = ()
    ghosts: tuple[tuple[str, int], ...] = ()
    losses: int = 0
    complete: bool = False  # the send is

    def say(self, kind: str, generation: int) -> Both:
        return replace(self, wire=tuple(sorted((*self.wire, (kind, generation)))))


def sender_event(both: Both, event: SenderEvent) -> Both:
    state, action = sender_step(both.sender, event)
    both = replace(both, sender=state)
    if action is Action.STOP:
        both = replace(both, sent=both.sent + 1)
    elif action is Action.NOTIFY:
        both = both.say("NOTIFY", both.sent)
    elif action is Action.RESTART:
        both = replace(both, sent=both.sent + 1, flying=1)
        both = both.say("DATA", both.sent)
    elif action is Action.COMPLETE:
        both = replace(both, complete=True)
    return sender_drained(both)


def sender_drained(both: Both) -> Both:
    waits = both.sender in (SenderState.DRAINING, SenderState.ENDING)
    return sender_event(both, SenderEvent.DRAINED) if waits and not both.flying else both


def receiver_event(both: Both, event: ReceiverEvent, generation: int) -> Both:
    state, action = receiver_step(both.receiver, event)
    both = replace(both, receiver=state)
    if event in (ReceiverEvent.NOTIFY, ReceiverEvent.RESTART):
        both = replace(both, seen=generation)
        return receiver_drained(both)
    return receiver_does(both, action)


def receiver_drained(both: Both) -> Both:
    waits = both.receiver in (ReceiverState.DRAINING, ReceiverState.REPLACING)
    if both.reading or not waits:
        return both
    state, action = receiver_step(both.receiver, ReceiverEvent.DRAINED)
    return receiver_does(replace(both, receiver=state), action)


def receiver_does(both: Both, action: Action) -> Both:
    if action is Action.ACK:
        both = both.say("ACK", both.seen)
    elif action is Action.REPORT:
        both = both.say("RECVERR", both.seen)
    elif action is Action.ANSWER:
        both = replace(both, done=True)  # the restarted message brings everything with it
    return both


def deliver(both: Both, kind: str, generation: int) -> Both:
    if kind == "DATA":
        if both.done:
            # a duplicate, or the sender does not know that it is finished
            return both.say("NACK", generation) if generation > both.seen else both
        if generation > both.seen or generation == both.seen == 0:
            if generation == 0:
                return replace(both, done=True)
            return receiver_event(both, ReceiverEvent.RESTART, generation)
        return both
    if kind == "NOTIFY":
        if both.done:
            return both.say("NACK", generation)
        if generation > both.seen:
            return receiver_event(both, ReceiverEvent.NOTIFY, generation)
        return both
    current = both.sent == generation
    if kind == "RECVERR":
        return sender_event(both, SenderEvent.FAILED) if current and not both.complete else both
    if current:
        event = SenderEvent.ACK if kind == "ACK" else SenderEvent.NACK
        return sender_event(both, event)
    return both


def lost(both: Both, kind: str, generation: int) -> Both:
    """Who sent a message hears that it may be lost."""
    if kind == "DATA":
        both = replace(both, flying=both.flying - 1)
        if generation != both.sent:
            return sender_drained(both)
        # a fragment in the middle; the receiver may have had all of it
        return sender_event(both, SenderEvent.FAILED)
    if kind == "NOTIFY":
        return sender_event(both, SenderEvent.NOTIFY_LOST) if generation == both.sent else both
    if kind == "RECVERR":
        if both.done or generation != both.seen:
            return both
        return receiver_event(both, ReceiverEvent.REPORT_LOST, generation)
    return both.say(kind, generation)  # ACK and NACK again, from their own bytes


def well(both: Both, kind: str, generation: int) -> Both:
    """Who sent a message hears that it arrived."""
    if kind != "DATA":
        return both
    both = replace(both, flying=both.flying - 1)
    if generation == both.sent and both.sender is SenderState.FLOWING:
        return replace(both, complete=True)
    return sender_drained(both)


def steps(both: Both) -> list[Both]:
    """All that may happen next."""
    found = []
    for index, (kind, generation) in enumerate(both.wire):
        left = replace(both, wire=both.wire[:index] + both.wire[index + 1 :])
        found.append(well(deliver(left, kind, generation), kind, generation))
        if both.losses < LOSSES:
            failed = (kind, generation)
            reports = tuple(sorted((*left.reports, failed)))
            ghosts = tuple(sorted((*left.ghosts, failed)))
            found.append(replace(left, losses=both.losses + 1, reports=reports, ghosts=ghosts))
    for index, (kind, generation) in enumerate(both.reports):
        left = replace(both, reports=both.reports[:index] + both.reports[index + 1 :])
        found.append(lost(left, kind, generation))
    for index, (kind, generation) in enumerate(both.ghosts):
        left = replace(both, ghosts=both.ghosts[:index] + both.ghosts[index + 1 :])
        found.append(deliver(left, kind, generation))
    if both.reading:
        found.append(receiver_drained(replace(both, reading=0)))
    if both.receiver is ReceiverState.FLOWING and both.losses < LOSSES and not both.done:
        worse = replace(both, losses=both.losses + 1)  # an ACK, PUT or get of its own fails
        found.append(receiver_event(worse, ReceiverEvent.FAILED, both.seen))
    return found


def explore(first: Both) -> tuple[set[Both], set[Both]]:
    """All states there can be, and those in which nothing has to happen any more."""
    seen, todo, ends = {first}, [first], set()
    while todo:
        both = todo.pop()
        if not both.wire and not both.reports and not both.reading:
            ends.add(both)
        for other in steps(both):
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen, ends


@pytest.mark.parametrize("reading", [0, 1])
def test_every_order_and_loss_ends_well(reading: int) -> None:
    states, ends = explore(Both(reading=reading).say("DATA", 0))
    assert len(states) > 300
    for both in ends:
        assert both.complete, f"the send never ends: {both}"
        assert both.done, f"the receive never ends: {both}"
    # the dance was danced, from either side and from both at once, and refused
    assert {both.sender for both in states} >= set(SenderState) - {SenderState.ENDING}
    never = {ReceiverState.REPLACING} | ({ReceiverState.DRAINING} if not reading else set())
    assert {both.receiver for both in states} == set(ReceiverState) - never
    kinds = {kind for both in states for kind, _ in both.wire}
    assert kinds == {"DATA", "NOTIFY", "RECVERR", "ACK", "NACK"}
    assert any(
        both.sender is SenderState.DRAINING or both.sender is SenderState.NOTIFIED
        for both in states
        if both.receiver is ReceiverState.REPORTED
    )


def test_the_memory_is_left_before_it_is_used_again() -> None:
    """The sender begins anew only when neither side has anything of the older under way."""
    states, _ = explore(Both(reading=1).say("DATA", 0))
    for both in states:
        for other in steps(both):
            if other.sent > both.sent and other.sender is SenderState.FLOWING:
                assert not both.flying
                assert not both.reading


def test_absent_pairs_change_nothing() -> None:
    for state in SenderState:
        for event in SenderEvent:
            if (state, event) not in SENDER_TABLE:
                assert sender_step(state, event) == (state, Action.NOTHING)
    for state in ReceiverState:
        for event in ReceiverEvent:
            if (state, event) not in RECEIVER_TABLE:
                assert receiver_step(state, event) == (state, Action.NOTHING)


def test_the_end_is_the_end() -> None:
    assert not [pair for pair in SENDER_TABLE if pair[0] is SenderState.FINISHED]
