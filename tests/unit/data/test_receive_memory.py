"""The pool of receive memory: used again when nobody holds it, never before."""

from __future__ import annotations

import mmap
from pathlib import Path
from threading import Thread
from time import sleep

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ompy.data.receive_memory import (
    BLOCKS_MAX,
    HUGE_PAGE,
    KEPT_MAX,
    POOLED_FROM,
    ReceivePool,
    receive_memory,
)

SIZE = POOLED_FROM


def test_dropped_memory_is_used_again() -> None:
    pool = ReceivePool()
    for _ in range(10):
        view = pool.take_memory(SIZE)
        assert len(view) == SIZE
        view[0] = 1
        del view
    assert pool.made == 1


def advised_of_huge_pages(view: memoryview) -> bool:
    """What the kernel says of the mapping a view lies in."""
    address = np.frombuffer(view, "B").ctypes.data
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, _, rest = line.partition(" ")
        if not first.endswith(":"):
            begin, end = (int(number, 16) for number in first.split("-"))
            inside = begin <= address < end
        elif first == "VmFlags:" and inside:
            return "hg" in rest.split()
    raise AssertionError("there is no such mapping")


@pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="no huge pages in this kernel"
)
def test_it_lies_on_huge_pages_also_when_used_again() -> None:
    pool = ReceivePool()
    addresses = set()
    for _ in range(3):
        view = pool.take_memory(3 * SIZE)
        addresses.add(np.frombuffer(view, "B").ctypes.data)
        assert advised_of_huge_pages(view)
        del view
    assert (pool.made, len(addresses)) == (1, 1)
    assert advised_of_huge_pages(memoryview(receive_memory(SIZE)))
    plain = mmap.mmap(-1, 2 * HUGE_PAGE)
    assert not advised_of_huge_pages(memoryview(plain))


def test_whoever_holds_a_part_holds_it() -> None:
    pool = ReceivePool()
    array = np.frombuffer(pool.take_memory(SIZE), "B")[5:9]
    array[:] = 3
    for _ in range(3):
        pool.take_memory(SIZE)[:] = bytes(SIZE)
    assert array.tolist() == [3] * 4
    assert pool.made == 2


def test_sizes_that_do_not_fit_get_their_own() -> None:
    pool = ReceivePool()
    assert len(pool.take_memory(4 * HUGE_PAGE)) == 4 * HUGE_PAGE
    assert len(pool.take_memory(HUGE_PAGE)) == HUGE_PAGE
    assert pool.made == 2
    assert len(pool.take_memory(4 * HUGE_PAGE + 1)) == 4 * HUGE_PAGE + 1
    assert pool.made == 3


def test_little_is_kept() -> None:
    pool = ReceivePool()
    held = [pool.take_memory(SIZE) for _ in range(3 * BLOCKS_MAX)]
    assert pool.made == len(held)
    held.clear()
    again = [pool.take_memory(SIZE) for _ in range(3 * BLOCKS_MAX)]
    assert pool.made == 2 * len(again) - BLOCKS_MAX
    for _ in range(2):
        assert len(pool.take_memory(KEPT_MAX + 1)) == KEPT_MAX + 1
    assert pool.made == 2 * len(again) - BLOCKS_MAX + 2


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([SIZE, 3 * SIZE, 5 * SIZE]))))
def test_no_two_holders_share(steps: list[tuple[int, int]]) -> None:
    pool = ReceivePool()
    holders: dict[int, tuple[int, memoryview]] = {}
    for number, (place, size) in enumerate(steps):
        holders.pop(place, None)
        view = pool.take_memory(size)
        view[0] = view[size - 1] = number % 251
        holders[place] = number % 251, view
        for mark, other in holders.values():
            assert other[0] == other[-1] == mark


class SlowPool(ReceivePool):
    """Other threads come between the question whether a block is idle and its use."""

    __slots__ = ()

    def _is_idle(self, index: int) -> bool:
        found = super()._is_idle(index)
        sleep(0.0005)
        return found


def test_threads_never_have_the_same_block() -> None:
    pool, shared = SlowPool(), []

    def take(mark: int) -> None:
        for _ in range(50):
            view = pool.take_memory(POOLED_FROM)
            view[0] = mark
            sleep(0.0001)
            if view[0] != mark:
                shared.append(mark)
            del view

    threads = [Thread(target=take, args=[mark]) for mark in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not shared
    assert pool.made <= len(threads)
