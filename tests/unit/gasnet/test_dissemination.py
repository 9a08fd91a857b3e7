"""The rounds of barriers, in any order messages may come."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from ompy.gasnet.dissemination import ANONYMOUS, MISMATCH, Dissemination, Knowledge, Round

NAMELESS = Knowledge(ANONYMOUS, 0)


def barrier(
    machines: list[Dissemination], given: list[Knowledge], random: Random
) -> list[Knowledge]:
    """One barrier of all, entered one by one, each left as soon as it is complete."""
    size = len(machines)
    waiting = list(range(size))
    random.shuffle(waiting)
    under_way: list[Round] = []
    left: dict[int, Knowledge] = {}
    inside: set[int] = set()
    while len(left) < size:
        if waiting and (not under_way or random.random() < 0.3):
            rank = waiting.pop()
            machines[rank].enter(given[rank])
            inside.add(rank)
        elif under_way:
            message = under_way.pop(random.randrange(len(under_way)))
            machines[message.peer].take_round(message.parity, message.number, message.known)
        for rank in list(inside):
            while (message := machines[rank].next_round()) is not None:
                under_way.append(message)
            if machines[rank].complete():
                assert not waiting, "left before all had entered"
                left[rank] = machines[rank].leave()
                inside.discard(rank)
    assert not under_way, "a message that nobody waited for"
    return [left[rank] for rank in range(size)]


def test_alone() -> None:
    (machine,) = [Dissemination(0, 1)]
    assert not machine.complete()
    machine.enter(Knowledge(0, 5))
    assert machine.next_round() is None
    assert machine.has_news()
    assert machine.leave() == Knowledge(0, 5)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 16, 33])
def test_all_know_the_same(size: int) -> None:
    random = Random(size)
    machines = [Dissemination(rank, size) for rank in range(size)]
    for _ in range(20):
        given = [random.choice((NAMELESS, Knowledge(0, 3))) for _ in range(size)]
        if random.random() < 0.3:
            given[random.randrange(size)] = random.choice((Knowledge(0, 4), Knowledge(MISMATCH, 0)))
        names = {known.name for known in given if not known.flags}
        wrong = len(names) > 1 or any(known.flags & MISMATCH for known in given)
        flags = MISMATCH if wrong else 0 if names else ANONYMOUS
        assert {known.flags for known in barrier(machines, given, random)} == {flags}


def test_one_barrier_ahead() -> None:
    """A rank that has left enters the next one while its peer is still in the last."""
    first, second = Dissemination(0, 2), Dissemination(1, 2)
    for machine in (first, second):
        machine.enter(NAMELESS)
    to_second, to_first = first.next_round(), second.next_round()
    assert to_first is not None
    assert to_second is not None
    first.take_round(to_first.parity, to_first.number, to_first.known)
    first.leave()
    first.enter(Knowledge(0, 7))
    ahead = first.next_round()
    assert ahead is not None
    assert ahead.parity != to_second.parity
    second.take_round(ahead.parity, ahead.number, ahead.known)
    assert not second.complete()
    second.take_round(to_second.parity, to_second.number, to_second.known)
    assert second.leave() == NAMELESS
    second.enter(NAMELESS)
    assert second.next_round() is not None
    assert second.leave() == Knowledge(0, 7)


def test_a_message_twice_is_a_defect() -> None:
    machine = Dissemination(0, 2)
    machine.take_round(0, 0, NAMELESS)
    with pytest.raises(AssertionError):
        machine.take_round(0, 0, NAMELESS)


def test_merging_has_no_order() -> None:
    every = [NAMELESS, Knowledge(0, 1), Knowledge(0, 2), Knowledge(MISMATCH, 0)]
    for one, two, three in product(every, repeat=3):
        assert one.merged(two) == two.merged(one)
        assert one.merged(two).merged(three) == one.merged(two.merged(three))
        assert one.merged(one) == one
        assert one.merged(NAMELESS) == one
