"""Posted and unexpected queues against plain lists; and what one step takes where many wait."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from statistics import median

import pytest
from ompy.data.constants import ANY_TAG
from ompy_components.pml.ob1.fragment import Fragment, fragment_of
from ompy_components.pml.ob1.headers import MATCH
from ompy_components.pml.ob1.matching import ReceiveQueue, RecvRequest, fits
from ompy_components.pml.ob1.unexpected import UnexpectedQueue

from tests.support.forms import interpreted_only

TAGS = (0, 1, 2, 7, -9, -10)  # the negative ones are internal
MANY = 3000


def fragment(tag: int, number: int) -> Fragment:
    return fragment_of(MATCH, 0, 0, tag, number, 0, 0, b"")


def receive(tag: int, number: int) -> RecvRequest:
    made = RecvRequest()
    made.wanted_tag, made.posted, made.queued = tag, number, False
    return made


@pytest.mark.parametrize("seed", range(30))
def test_unexpected_messages_come_in_order(seed: int) -> None:
    chance = random.Random(seed)
    queue, plain = UnexpectedQueue(), []
    for number in range(chance.choice((12, 400))):
        if chance.random() < 0.6:
            plain.append(fragment(chance.choice(TAGS), number))
            queue.append(plain[-1])
        else:
            wanted = chance.choice((*TAGS, ANY_TAG, 99))
            found = queue.find(wanted)
            assert found is next((one for one in plain if fits(wanted, one.tag)), None)
            if found is not None and chance.random() < 0.9:
                queue.remove(found)
                plain.remove(found)
        assert queue.count == len(plain)
    assert sorted(one.sequence for one in queue.members()) == [one.sequence for one in plain]
    while (found := queue.find(ANY_TAG)) is not None:
        queue.remove(found)
    assert all(one.tag < 0 for one in queue.members())


@pytest.mark.parametrize("seed", range(30))
def test_posted_receives_are_found_in_the_order_of_posting(seed: int) -> None:
    chance = random.Random(seed)
    queue, plain = ReceiveQueue(), []
    for number in range(chance.choice((12, 400))):
        if chance.random() < 0.6:
            plain.append(receive(chance.choice((*TAGS, ANY_TAG)), number))
            queue.append(plain[-1])
        elif plain and chance.random() < 0.3:  # cancelled, wherever it is
            gone = plain.pop(chance.randrange(len(plain)))
            assert queue.remove(gone)
            assert not queue.remove(gone), "it is here no more"
        else:
            tag = chance.choice((*TAGS, 99))
            found = queue.find(tag)
            assert found is next((one for one in plain if fits(one.wanted_tag, tag)), None)
            if found is not None:
                assert queue.remove(found)
                plain.remove(found)
        assert queue.members() == plain


def lines_of(work: Callable[[], object]) -> int:
    """Lines of Python that something takes."""
    count = 0

    def line(frame: object, event: str, argument: object) -> object:
        nonlocal count
        count += event == "line"
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@interpreted_only
def test_one_of_many_unexpected_messages_takes_a_step() -> None:
    """With a list, the last of 3000 tags took 3000 turns, and each removal moved the others."""
    queue = UnexpectedQueue()
    for number in range(MANY):
        queue.append(fragment(number, number))
    queue.find(MANY)  # in vain: from now on there is an index

    def take(wanted: int) -> Callable[[], object]:
        return lambda: queue.remove(queue.find(wanted))

    steps = [lines_of(take(wanted)) for wanted in (MANY - 1, MANY // 2, 5, ANY_TAG, ANY_TAG)]
    assert max(steps) < 40, steps
    assert lines_of(lambda: queue.find(-7)) < 10, "nor does one that is not there"


@interpreted_only
def test_one_of_many_posted_receives_takes_a_step() -> None:
    """With a list, those matched in the reverse order were each looked for through all others."""
    queue = ReceiveQueue()
    posted = [receive(number, number) for number in range(MANY)]
    for request in posted:
        queue.append(request)
    queue.find(MANY)  # in vain: from now on there is an index
    steps = [lines_of(lambda tag=tag: queue.remove(queue.find(tag))) for tag in (MANY - 1, 9, 0)]
    steps.append(lines_of(lambda: queue.remove(posted[MANY // 2])))  # cancelled
    assert max(steps) < 50, steps
    assert lines_of(lambda: queue.find(-7)) < 15


@interpreted_only
def test_those_taken_in_order_are_in_no_index() -> None:
    """A window of receives, or of messages, costs as much as one after the other."""
    posted, unexpected = ReceiveQueue(), UnexpectedQueue()
    steps: dict[str, list[int]] = {"append": [], "take": []}
    for number in range(MANY):
        steps["append"].append(lines_of(lambda n=number: posted.append(receive(n, n))))
        steps["append"].append(lines_of(lambda n=number: unexpected.append(fragment(n, n))))
    for number in range(MANY):
        steps["take"].append(lines_of(lambda n=number: posted.remove(posted.find(n))))
        steps["take"].append(lines_of(lambda n=number: unexpected.remove(unexpected.find(n))))
    # the median: the collector may run in between, and tools that listen to it
    assert max(median(found) for found in steps.values()) < 28, "an index takes a dozen more"
