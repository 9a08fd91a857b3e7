"""Locks that are words of shared memory: who holds what, whatever members try in which order."""

from __future__ import annotations

from random import Random

import pytest
from ompy.data.operation import COMPILED
from ompy.frameworks.osc_base.word_locks import WORD, WordLocks, room

from tests.support.effort import effort


def members(count: int, first: int = 16) -> list[WordLocks]:
    view = memoryview(bytearray(first + room(count)))
    return [WordLocks(view, first, count, rank) for rank in range(count)]


@pytest.mark.parametrize("seed", range(effort(20)))
def test_one_writer_or_many_readers(seed: int) -> None:
    chance = Random(seed)
    count = chance.randrange(1, 5)
    locks = members(count)
    held: list[dict[int, bool]] = [{} for _ in range(2 * count)]  # exclusive, by rank
    got = refused = 0
    for _ in range(400):
        rank, number = chance.randrange(count), chance.randrange(2 * count)
        holders = held[number]
        if rank in holders:
            locks[rank].unlock(number)
            del holders[rank]
            continue
        exclusive = number >= count or chance.random() < 0.5
        free = not holders if exclusive else True not in holders.values()
        assert locks[rank].try_lock(number, exclusive) is free
        if free:
            holders[rank] = exclusive
        got, refused = got + free, refused + (not free)
        for lock, each in enumerate(held[:count]):
            assert [rank for rank in range(count) if locks[rank].holds(lock)] == sorted(each)
    assert got
    assert refused or count == 1


def test_where_a_lock_was_taken_is_forgotten_with_it() -> None:
    first, second = members(2)
    assert first.try_lock(1, True)
    first.note_site(1, "here")
    assert (first.site(1), first.holds_alone(1)) == ("here", True)
    first.unlock(1)
    assert first.try_lock(1, False)
    assert (first.site(1), first.holds_alone(1)) == (None, False)
    assert not second.holds(1)


def test_what_somebody_had_who_has_gone_is_free() -> None:
    first, second, third = members(3)
    assert first.try_lock(1, True)
    assert first.try_lock(2, False)
    assert second.try_lock(2, False)
    assert third.try_lock(2, False)
    third.take_from(1, 0)
    third.take_from(2, 0)
    assert third.try_lock(1, True)
    assert not first.holds(2)
    third.unlock(2)
    assert not third.try_lock(2, True)  # the second reads
    third.take_from(2, 1)
    assert third.try_lock(2, True)


def test_who_waits_is_seen() -> None:
    count, first = 3, 24
    view = memoryview(bytearray(first + room(count)))
    locks = WordLocks(view, first, count, 0)
    words = view[first:].cast("Q")
    assert not any(locks.is_wanted(number) for number in range(2 * count))
    words[2] = 5 << 32 | 4 + 1  # half of it is what its window notes
    assert [number for number in range(2 * count) if locks.is_wanted(number)] == [4]
    assert len(words) * WORD == room(count)


@pytest.mark.skipif(COMPILED, reason="nobody comes between two steps of compiled code in a test")
def test_an_attempt_that_disturbs_another_says_so() -> None:
    """Between its look and its store another has come; both give way then."""
    view = memoryview(bytearray(room(2)))
    writer, reader = (WordLocks(view, 0, 2, rank) for rank in range(2))
    looked: list[bool] = []
    original = WordLocks._is_read

    def reads_after_the_first_look(self: WordLocks, number: int) -> bool:
        found = original(self, number)
        if not looked:
            looked.append(found)
            assert reader.try_lock(number, False)
        return found

    WordLocks._is_read = reads_after_the_first_look
    try:
        assert not writer.try_lock(0, True)
    finally:
        WordLocks._is_read = original
    assert looked == [False]
    assert writer.disturbed
    assert reader.holds(0)
    reader.unlock(0)
    assert writer.try_lock(0, True)
