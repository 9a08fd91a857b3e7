"""Shrinking: what is left fails, and nothing of it can be left out."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from ompy.net.faults.fault_rules import FaultRule
from ompy.net.faults.flows import Injection
from ompy.runtime.simulation.shrinking import events, shrink

from tests.support.effort import effort


@settings(max_examples=effort(200), deadline=None)
@given(st.integers(1, 60), st.sets(st.integers(0, 59), max_size=6), st.sets(st.integers(0, 59)))
def test_the_least_that_fails(size: int, needed: set[int], or_these: set[int]) -> None:
    """It fails with all of `needed`, or, not monotonous, with exactly `or_these`."""
    needed = {index for index in needed if index < size}
    calls = 0

    def fails(items: Sequence[int]) -> bool:
        nonlocal calls
        calls += 1
        return needed <= set(items) or set(items) == or_these

    found = shrink(range(size), fails, budget=10**6)
    assert found.complete
    assert fails(found.items)
    assert found.items == sorted(found.items)
    for item in found.items:
        rest = [other for other in found.items if other != item]
        assert not fails(rest)
    assert found.runs <= calls


def test_the_budget_is_kept() -> None:
    tried: list[Sequence[int]] = []

    def fails(items: Sequence[int]) -> bool:
        tried.append(list(items))
        return {3, 77} <= set(items)

    found = shrink(range(100), fails, budget=9)
    assert len(tried) == found.runs == 9
    assert not found.complete
    assert {3, 77} <= set(found.items) < set(range(100))
    found = shrink(range(100), fails)
    assert found.items == [3, 77]
    assert found.complete
    assert len(tried) < 60


def test_nothing_is_needed() -> None:
    assert shrink(range(100), lambda items: True) == ([], 1, True)


def test_events_are_single_packets() -> None:
    hole = FaultRule("black_hole", ranks=(1,), since=5)
    rules = [FaultRule("corrupt", probability=0.5, mode="byte"), hole, FaultRule("reorder")]
    injections = [Injection(2, 0, 1, "rail0", 9, 77), Injection(0, 1, -1, "rail0", 4, 13)]
    assert events(rules, injections) == [
        FaultRule("corrupt", ranks=(1,), rails=("rail0",), nth=(4,), mode="byte", bit=13),
        hole,
        FaultRule("reorder", ranks=(0,), peers=(1,), rails=("rail0",), nth=(9,), delay=77),
    ]
