"""Windows: every outcome is found, and of orders that nobody can tell apart one is tried."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.property.exploration.window_programs import Oracle, explore
from tests.support.effort import effort

CELLS = 2
POLLS = 10  # more than any of these programs reads
CELL = st.integers(0, CELLS - 1)
SMALL = st.integers(1, 2)
SOME = st.one_of(CELL, st.just((0, CELLS)))
ACCESS = st.one_of(
    st.tuples(st.just("put"), SOME, SMALL),
    st.tuples(st.just("add"), CELL, SMALL),
    st.tuples(st.just("get"), SOME),
    st.tuples(st.just("get"), CELL),
    st.tuples(st.just("fetch"), CELL, SMALL),
    st.tuples(st.just("swap"), CELL, st.integers(0, 1), SMALL),
)
LOCKED = st.builds(
    lambda alone, inside: [("lock", alone), *inside, ("unlock",)],
    st.booleans(),
    st.lists(ACCESS, min_size=1, max_size=2),
)
STEPS = st.one_of(
    st.lists(ACCESS, max_size=2),
    LOCKED,
    st.builds(lambda first, second: [*first, *second], LOCKED, LOCKED),
    st.builds(lambda first, second: [*first, second], LOCKED, ACCESS),
)


def _compare_with_all_orders(programs):
    oracle = Oracle(programs, CELLS).run()
    search, outcomes = explore(programs, CELLS, polls=POLLS)
    assert outcomes == oracle.outcomes
    if all(ended for ended, *_ in outcomes):
        assert search.schedules == len(oracle.orders)
    else:  # to the oracle, cells of a step belong together also where nobody comes so far
        assert search.schedules <= len(oracle.orders)


# a read before a change, and a read behind that before a change behind which the first one is
CROSSED = [[("fetch", 0, 1), ("get", 1)], [("fetch", 1, 1), ("get", 0)]]


@given(st.lists(STEPS, min_size=2, max_size=3))
@example(CROSSED)
@example([[], *CROSSED])
@settings(max_examples=effort(40), deadline=None)
def test_each_order_that_can_be_told_apart_is_tried_once(programs):
    _compare_with_all_orders(programs)


BESIDE = st.one_of(
    ACCESS,
    st.tuples(st.just("send"), st.integers(0, 2)),
    st.tuples(st.just("receive"), st.integers(0, 2)),
)


@given(st.lists(st.lists(BESIDE, min_size=1, max_size=3), min_size=3, max_size=3))
@example([[("add", 0, 1)], [("put", 1, 1)], [("receive", 0), ("put", (0, 2), 1)]])
@settings(max_examples=effort(60), deadline=None)
def test_messages_beside_windows_lose_no_order(programs):
    _compare_with_all_orders(programs)


@given(
    st.lists(ACCESS, max_size=1),
    st.lists(ACCESS, max_size=1),
    st.lists(ACCESS, max_size=2),
    st.integers(1, 2),
)
@settings(max_examples=effort(40), deadline=None)
def test_ranks_that_spin_lose_no_outcome(first, second, third, polls):
    programs = [first, [*second, ("put", 0, 5)], [("spin", 0, 5), *third]]
    oracle = Oracle(programs, CELLS).run()
    _, outcomes = explore(programs, CELLS, polls=polls)
    assert {one for one in outcomes if one[0]} == {one for one in oracle.outcomes if one[0]}


@given(st.lists(st.lists(ACCESS, min_size=1, max_size=1), min_size=2, max_size=3))
@settings(max_examples=effort(30), deadline=None)
def test_ranks_that_swap_for_a_lock_lose_no_outcome(inside):
    """What is inside the lock is on the other cells."""
    apart = [[_moved(step) for step in steps] for steps in inside]
    programs = [[("take", 0), *steps, ("put", 0, 0)] for steps in apart]
    oracle = Oracle(programs, 3).run()
    _, outcomes = explore(programs, 3)
    assert outcomes == oracle.outcomes


def _moved(step):
    what, cells, *words = step
    moved = (1, cells[1]) if isinstance(cells, tuple) else cells + 1
    return (what, moved, *words)
