"""Members agree on a context id that is free in each of them."""

from __future__ import annotations

import threading
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from ompy.data.errors import ERR_INTERN, MPIError
from ompy.mpi.agreement import FIRST_ID, LAST_ID, PROPOSED, agree_on_context, release_context

from tests.support.effort import effort


class Members:
    """Threads that say values to each other."""

    def __init__(self, count: int) -> None:
        self._barrier = threading.Barrier(count, timeout=30)
        self._said: list[bytes] = [b""] * count
        self.rounds = 0

    def ask(self, rank: int, said: bytes) -> list[bytes]:
        self._said[rank] = said
        self._barrier.wait()
        heard = list(self._said)
        if not rank:
            self.rounds += 1
        self._barrier.wait()
        return heard


def world(used: set[int], next_context: int) -> Any:
    engine = SimpleNamespace(lock=threading.Lock())
    process = SimpleNamespace(communicators=dict.fromkeys(used))
    return SimpleNamespace(
        engine=engine, process=process, reserved=set(), next_context=next_context
    )


def agree(worlds: list[Any]) -> tuple[list[Any], int]:
    """What each member gets, an id or an error's code, and how often they asked."""
    members = Members(len(worlds))
    found: list[Any] = [None] * len(worlds)

    def be(rank: int) -> None:
        try:
            found[rank] = agree_on_context(worlds[rank], lambda said: members.ask(rank, said))
        except MPIError as problem:
            found[rank] = problem.code

    threads = [threading.Thread(target=be, args=(rank,)) for rank in range(len(worlds))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found, members.rounds


@pytest.mark.parametrize("seed", range(effort(30)))
def test_one_that_is_free_everywhere(seed: int) -> None:
    chance = Random(seed)
    size = chance.randrange(1, 5)
    span = chance.choice((20, 200, 4000))
    worlds = []
    for _ in range(size):
        used = set(chance.sample(range(FIRST_ID, FIRST_ID + span), chance.randrange(span * 3 // 4)))
        start = chance.choice((FIRST_ID, FIRST_ID + span // 2, LAST_ID - 3, LAST_ID + 1))
        worlds.append(world(used, start))
    found, _ = agree(worlds)
    (number,) = set(found)
    assert FIRST_ID <= number <= LAST_ID
    for each in worlds:
        assert number not in each.process.communicators
        assert each.reserved == {number}
        assert each.next_context == number + 1
        release_context(each, number)
        assert not each.reserved


def test_members_that_used_the_same_ask_once() -> None:
    used = set(range(2, 40))
    found, rounds = agree([world(used, 17) for _ in range(4)])
    assert (found, rounds) == ([40] * 4, 1)
    found, rounds = agree([world(used, start) for start in (17, 40, 44)])
    assert (set(found), rounds) == ({44}, 1)


def test_lists_that_have_nothing_in_common() -> None:
    """Even ids are free in one, odd ones in the other, up to a place far away."""
    end = 10 * PROPOSED
    even, odd = set(range(2, end, 2)), set(range(3, end, 2))
    found, rounds = agree([world(even, 2), world(odd, 2)])
    assert found == [end, end]
    assert 5 < rounds < 10


def test_none_is_left_in_one_of_them() -> None:
    full = set(range(FIRST_ID, LAST_ID + 1))
    worlds = [world(full, 2), world({5}, 9)]
    assert agree(worlds)[0] == [ERR_INTERN] * 2
    worlds = [world(full - {7}, 2), world(full - {9}, 9)]
    assert agree(worlds)[0] == [ERR_INTERN] * 2
    assert not any(each.reserved for each in worlds)
