"""Worlds that begin in the midst of others, searches that were split, and random priorities."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.runtime.exploration import told_world
from ompy.runtime.exploration.priorities import PriorityWorld
from ompy.runtime.exploration.search import Search
from ompy.runtime.exploration.search_file import plain_of, search_of

from tests.property.exploration.small_programs import explore
from tests.property.exploration.test_all_schedules import STEPS, program
from tests.property.exploration.told_programs import LIMIT, beginning, conduct
from tests.support.effort import effort

POLLS = 3


def master_of(count):
    def master():
        for _ in range(count):
            yield ("wait", (yield ("post", ANY_SOURCE, 0)))

    return master


def sender_of(count):
    def sender():
        for _ in range(count):
            yield ("send", 0, 0)

    return sender


def waiting(rank):
    """The rank waits at its end for all that it has begun: else nobody asks what was chosen."""

    def waited():
        steps, begun, reply = rank(), [], None
        while True:
            try:
                asked = steps.send(reply)
            except StopIteration:
                break
            reply = yield asked
            if asked[0] == "post":
                begun.append(reply)
        for one in begun:
            yield ("wait", one)

    return waited


@given(
    st.lists(st.lists(STEPS, min_size=1, max_size=4), min_size=2, max_size=4),
    st.booleans(),
    st.integers(1, 3),
)
@settings(max_examples=effort(25), deadline=None)
def test_worlds_that_begin_at_saved_points_are_the_same(steps, buffers, between):
    ranks = [waiting(program(each, len(steps))) for each in steps]
    whole, outcomes = explore(ranks, polls=POLLS, buffers=buffers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(told_world, "BETWEEN", between)
        search = Search()
        assert conduct(ranks, search, polls=POLLS, buffers=buffers) == outcomes
    assert search.schedules == whole.schedules
    assert search.left == 0


@pytest.mark.parametrize("most", [1, 7, 30])
def test_a_split_search_comes_to_the_same_end(most):
    ranks = [master_of(6), *[sender_of(2)] * 3]
    whole = Search()
    conduct(ranks, whole)
    search, parts = Search(), 0
    while search.left:
        conduct(ranks, search, most=most)
        search = search_of(json.loads(json.dumps(plain_of(search, bounded=False))))
        parts += 1
    assert (search.worlds, search.schedules) == (whole.worlds, whole.schedules) == (90, 90)
    assert parts == -(-90 // most)


def test_a_bound_of_depth_keeps_what_is_beyond():
    ranks = [master_of(6), *[sender_of(3)] * 2]
    counts = []
    for depth in (0, 1, 2, 3, 6):
        search = Search(depth)
        conduct(ranks, search)
        counts.append((search.schedules, search.shallow))
    assert counts == [(1, True), (2, True), (4, True), (8, True), (20, False)]


def test_polls_that_can_find_nothing_have_an_end():
    """The receiver polls for what is not its own, too: no rank has all turns meanwhile."""

    def sender():
        send = yield ("ssend", 1, 0)
        while send not in dict((yield ("poll",))):
            yield ("iprobe", ANY_SOURCE, 0)

    def receiver():
        yield ("poll",)
        while (yield ("iprobe", ANY_SOURCE, ANY_TAG)) is None:
            yield ("poll",)
        yield ("wait", (yield ("post", 0, 0)))

    search = Search()
    outcomes = conduct([sender, receiver], search, most=100)
    assert search.left == 0
    assert set(outcomes.values()) == {"ended"}


def test_who_only_probes_leaves_others_their_turns():
    def prober():
        while (yield ("iprobe", ANY_SOURCE, 0)) is None:
            pass

    def poller():
        yield ("post", 2, 1)
        yield ("poll",)
        yield ("send", 0, 0)

    search = Search()
    outcomes = conduct([prober, poller, sender_of(0)], search, most=100)
    assert search.left == 0
    assert set(outcomes.values()) == {"ended"}


def late_one_first():
    """It fails if the second sender's last message comes before the first one's only one."""

    def receiver():
        yield ("wait", (yield ("post", 2, 1)))
        yield ("wait", (yield ("post", ANY_SOURCE, 0)))

    def first():
        yield ("send", 0, 0)

    def second():
        for _ in range(3):
            yield ("send", 3, 0)
        yield ("send", 0, 1)
        yield ("send", 0, 0)

    def bystander():
        for _ in range(3):
            yield ("wait", (yield ("post", 2, 0)))

    return [receiver, first, second, bystander]


def test_random_priorities_find_a_failure_as_often_as_is_said():
    ranks = late_one_first()
    point, told = beginning(ranks)
    worlds, calls, found = 300, 0, 0
    for seed in range(worlds):
        random = Random(seed)
        world = PriorityWorld(
            point,
            told,
            limit=LIMIT,
            random=random,
            changes=[random.randrange(max(calls, 1))],
        )
        ending = world.run_to_end(lambda _key, _value: True)
        calls = max(calls, world.calls)
        assert ending.kind == "ended"
        values = {event.key: event.value for event in ending.events}
        found += values[0, 3][1] == 2
    assert worlds > found >= worlds / (len(ranks) * calls)


def test_the_same_seed_has_the_same_world():
    point, told = beginning([master_of(6), *[sender_of(2)] * 3])
    for seed in range(20):
        endings = [
            PriorityWorld(
                point, told, limit=LIMIT, random=Random(seed), changes=[3, 9]
            ).run_to_end()
            for _ in range(2)
        ]
        assert endings[0].events == endings[1].events


def test_what_random_priorities_have_chosen_can_be_chosen_again():
    ranks = [master_of(6), *[sender_of(2)] * 3]
    point, told = beginning(ranks)
    seen = set()
    for seed in range(20):
        ending = PriorityWorld(
            point, told, limit=LIMIT, random=Random(seed), changes=[4]
        ).run_to_end()
        script = {event.key: event.value for event in ending.events}
        again = told_world.ToldWorld(point, script, told, limit=LIMIT, polls=1).run_to_end()
        assert {event.key: event.value for event in again.events} == script
        seen.add(frozenset(script.items()))
    assert len(seen) > 5
