"""The pool of receive memory: used again when nobody holds it, never before."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from ompy.data.receive_memory import BLOCKS_MAX, HUGE_PAGE, KEPT_MAX, POOLED_FROM, ReceivePool

SIZE = POOLED_FROM


def test_dropped_memory_is_used_again() -> None:
    pool = ReceivePool()
    for _ in range(10):
        view = pool.take(SIZE)
        assert len(view) == SIZE
        view[0] = 1
        del view
    assert pool.made == 1


def test_whoever_holds_a_part_holds_it() -> None:
    pool = ReceivePool()
    array = np.frombuffer(pool.take(SIZE), "B")[5:9]
    array[:] = 3
    for _ in range(3):
        pool.take(SIZE)[:] = bytes(SIZE)
    assert array.tolist() == [3] * 4
    assert pool.made == 2


def test_sizes_that_do_not_fit_get_their_own() -> None:
    pool = ReceivePool()
    assert len(pool.take(4 * HUGE_PAGE)) == 4 * HUGE_PAGE
    assert len(pool.take(HUGE_PAGE)) == HUGE_PAGE
    assert pool.made == 2
    assert len(pool.take(4 * HUGE_PAGE + 1)) == 4 * HUGE_PAGE + 1
    assert pool.made == 3


def test_little_is_kept() -> None:
    pool = ReceivePool()
    held = [pool.take(SIZE) for _ in range(3 * BLOCKS_MAX)]
    assert pool.made == len(held)
    held.clear()
    again = [pool.take(SIZE) for _ in range(3 * BLOCKS_MAX)]
    assert pool.made == 2 * len(again) - BLOCKS_MAX
    for _ in range(2):
        assert len(pool.take(KEPT_MAX + 1)) == KEPT_MAX + 1
    assert pool.made == 2 * len(again) - BLOCKS_MAX + 2


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([SIZE, 3 * SIZE, 5 * SIZE]))))
def test_no_two_holders_share(steps: list[tuple[int, int]]) -> None:
    pool = ReceivePool()
    holders: dict[int, tuple[int, memoryview]] = {}
    for number, (place, size) in enumerate(steps):
        holders.pop(place, None)
        view = pool.take(size)
        view[0] = view[size - 1] = number % 251
        holders[place] = number % 251, view
        for mark, other in holders.values():
            assert other[0] == other[-1] == mark
