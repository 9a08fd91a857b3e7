"""Matching of one rank in an explored world: what it is known to have."""

from __future__ import annotations

import sys

from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.runtime.exploration import boxes
from ompy.runtime.exploration.boxes import Box, Message, Receive

BARRIER = -20  # a tag of a collective call


def message(number, tag):
    return Message((1, number), 1, tag, b"", synchronous=False, past=0, site="")


def box_of(*tags):
    box = Box(0)
    for number, tag in enumerate(tags, 1):
        box.add_message(message(number, tag))
    return box


def test_a_message_tells_that_earlier_ones_have_arrived():
    box = box_of(5, 7)
    assert box.tell_arrival(box.channels[1][1]) == box.channels[1]


def test_a_collective_call_tells_nothing_of_a_programs_messages():
    box = box_of(5, BARRIER)
    posted = Receive((0, 1), 1, BARRIER, past=0, site="")
    box.add_receive(posted)
    last = box.channels[1][1]
    box.take_message(posted, last)
    assert box.tell_arrival(last) == [last]
    (found,) = box.unclaimed(ANY_SOURCE, 5)
    assert not found.known


def calls_of(messages):
    """Calls of functions that it takes to match and hear of the last hundred of so many messages.

    Each comes to a receive that names its sender: nothing is left of those before.
    """
    box, made = Box(0), []

    def count(frame, event, _function):
        if frame.f_code.co_filename == boxes.__file__:  # and not in what collects garbage, say
            made.append(event)

    for number in range(1, messages + 1):
        if number == messages - 99:
            sys.setprofile(count)
        sent, posted = (
            message(number, number % 3),
            Receive((0, number), 1, ANY_TAG, past=0, site=""),
        )
        box.add_message(sent)
        box.add_receive(posted)
        box.past_of(posted, sent, {})
        box.take_message(posted, sent)
        box.tell_arrival(sent)
    sys.setprofile(None)
    return len(made)


def test_what_a_message_costs_does_not_grow_with_those_before():
    assert calls_of(5000) == calls_of(200)
