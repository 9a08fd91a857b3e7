"""Posts and completes as words of shared memory: each is taken once, in whatever order."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from ompy import raw
from ompy.frameworks.osc_base.word_posts import WordPosts, room_for_posts

from tests.support.effort import effort
from tests.support.worlds import virtual


def programs(seed: int, process: Any) -> int:
    """All members of a window in one rank, as each has the words."""
    chance = Random(seed)
    count = chance.randrange(1, 5)
    view = memoryview(bytearray(16 + room_for_posts(count)))
    engine = process.context.engine
    words = [WordPosts(view, 16, count, rank, engine) for rank in range(count)]
    posts = [[0] * count for _ in range(count)]  # by origin and target: told and not taken
    completes = [[0] * count for _ in range(count)]  # by target and origin
    taken = 0
    for _ in range(300):
        one, other = chance.randrange(count), chance.randrange(count)
        what = chance.choice(("post", "start", "complete", "wait"))
        if what == "post":
            words[other].tell_post(one)
            posts[one][other] += 1
        elif what == "start":
            words[one].expect_post(other)
            may = posts[one][other] > 0
            assert words[one].has_post(other) is may
            assert words[one].take_post(other) is may
            posts[one][other] -= may
            taken += may
            words[one].give_up_post(other)
            assert words[one].take_post(other)  # nothing is expected
        elif what == "complete":
            words[one].tell_complete(other)
            completes[other][one] += 1
        else:
            may = completes[one][other] > 0
            assert words[one].has_completed(other) is may
            assert words[one].await_complete(other) is may
            if may:
                words[one].take_complete(other)
                completes[one][other] -= 1
                taken += 1
    assert raw.word(view, 0) == raw.word(view, 8) == 0  # it stays behind its beginning
    return taken


@pytest.mark.parametrize("seed", range(effort(10)))
def test_each_is_taken_once(seed: int) -> None:
    job = virtual(1, lambda process: programs(seed, process), seed=seed)
    assert job.results[0] > 10


def test_who_sleeps_is_known_to_others() -> None:
    def asleep(process: Any) -> list[bool]:
        view = memoryview(bytearray(room_for_posts(3)))
        first, second, third = (
            WordPosts(view, 0, 3, rank, process.context.engine) for rank in range(3)
        )
        second.set_sleepers(2)
        told = [first.sleeps(1), third.sleeps(1), first.sleeps(2)]
        second.set_sleepers(0)
        return [*told, first.sleeps(1)]

    assert virtual(1, asleep, seed=1).results[0] == [True, True, False, False]
