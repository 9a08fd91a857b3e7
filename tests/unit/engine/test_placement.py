"""A rank that shares its core goes to its own, and stays free to be moved."""

from __future__ import annotations

import os

import pytest
from ompy.engine.placement import MOVE_EVERY, SHARED_YIELD, SHARED_YIELDS, Placement


@pytest.fixture
def masks(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """What the kernel is told; the process may run on cores 2, 5 and 7."""
    told: list[set[int]] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5, 7, 2})
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, mask: told.append(set(mask)))
    return told


@pytest.mark.parametrize(("place", "core"), [(0, 2), (1, 5), (2, 7), (3, 2)])
def test_each_rank_has_a_core_of_its_own_and_is_not_bound(
    masks: list[set[int]], place: int, core: int
) -> None:
    Placement(place).move_home()
    assert masks == [{core}, {2, 5, 7}]


def test_with_one_core_there_is_nowhere_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: pytest.fail("nothing to change"))
    Placement(1).move_home()


def test_it_moves_when_yields_were_long_often_and_seldom_enough(masks: list[set[int]]) -> None:
    placement, now = Placement(1), 10 * MOVE_EVERY
    for _ in range(SHARED_YIELDS - 1):
        placement.yielded(now, now + SHARED_YIELD)
    for _ in range(1000):
        placement.yielded(now, now + SHARED_YIELD - 1)
    assert not masks, "a short yield is one to nobody"
    placement.yielded(now, now + SHARED_YIELD)
    assert masks == [{5}, {2, 5, 7}]
    for _ in range(10 * SHARED_YIELDS):
        placement.yielded(now, now + SHARED_YIELD)
    assert len(masks) == 2, "not again at once"
    placement.yielded(now + MOVE_EVERY, now + MOVE_EVERY + SHARED_YIELD)
    assert len(masks) == 4


def test_a_core_that_has_gone_is_no_error(
    monkeypatch: pytest.MonkeyPatch, masks: list[set[int]]
) -> None:
    def refuse(_: int, mask: set[int]) -> None:
        masks.append(set(mask))
        if len(mask) == 1:
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    Placement(1).move_home()
    assert masks == [{5}, {2, 5, 7}], "what was allowed is allowed again"
