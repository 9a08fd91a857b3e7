"""Persistent collective calls that are started, and waited for, in different orders."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.check.analysis import findings_of
from ompy.check.analysis.matching import messages_of
from ompy.check.analysis.order import Order

from tests.unit.check.records import WORLD, coll, found_in, record, wait


def made(kind: str, request: int, root: int = -1) -> tuple[Any, ...]:
    """A persistent call is made."""
    return ("coll", f"comm.{kind}", WORLD, kind, root, "", None, None, request)


def start(prepared: int, request: int) -> tuple[Any, ...]:
    return ("start", "request.Start", prepared, request)


def awaits(*requests: int) -> tuple[Any, ...]:
    """A wait that may never end."""
    return ("awaits", "request.Wait", list(requests))


def turn(prepared: int, request: int) -> list[tuple[Any, ...]]:
    """A start, and the wait for it."""
    return [start(prepared, request), awaits(request), wait(request)]


BOTH = [made("Barrier_init", 1), made("Barrier_init", 2)]
STUCK = {"ends": False, "went_well": False}


def test_waits_between_starts_in_different_orders():
    found = found_in(
        [*BOTH, *turn(1, 11)[:2]],
        [*BOTH, *turn(2, 12)[:2]],
        **STUCK,
    )
    assert [one.kind for one in found] == ["collective-order"]
    assert {site["line"] for site in found[0].sites} == {3, 4, 103, 104}
    assert "rank 0 waits for start 1 of Barrier_init, collective call 1" in found[0].message


def test_the_same_where_it_went_well_as_a_root_did_not_wait():
    """A broadcast's root may go on, or not: no program may rely on it."""
    both = [made("Bcast_init", 1, 0), made("Bcast_init", 2, 0)]
    there = [*both, *turn(1, 11), *turn(2, 12)]
    back = [*both, *turn(2, 12), *turn(1, 11)]
    assert [one.kind for one in found_in(there, back)] == ["collective-order"]
    assert not found_in(there, there)


def test_any_order_is_right_if_all_are_started_first():
    begun = [start(1, 11), start(2, 12)]
    ends = [awaits(11, 12), wait(11, 12)]
    assert not found_in([*BOTH, *begun, *ends], [*BOTH, *begun[::-1], *ends])
    one_by_one = [*turn(1, 11)[1:], *turn(2, 12)[1:]]
    assert not found_in([*BOTH, *begun, *one_by_one], [*BOTH, *begun[::-1], *one_by_one[::-1]])


def test_the_second_start_differs():
    first = [*BOTH, *turn(1, 11), *turn(2, 12)]
    found = found_in([*first, *turn(1, 13)[:2]], [*first, *turn(2, 14)[:2]], **STUCK)
    assert ["start 2 of" in one.message for one in found] == [True]


def test_who_waits_only_at_the_end_of_a_job_that_failed_elsewhere_is_not_accused():
    """Rank 1 has not come to its start: another one's exception has ended the job."""
    assert not found_in([*BOTH, *turn(1, 11)[:2]], BOTH, **STUCK)


def test_tests_do_not_wait():
    there = [*BOTH, start(1, 11), ("wait", "request.Test", [11], [11], "test"), *turn(2, 12)]
    assert not found_in(there, [*BOTH, *turn(2, 12), *turn(1, 11)])


def test_a_blocking_call_before_the_start():
    made_first = [made("Barrier_init", 1)]
    found = found_in(
        [*made_first, *turn(1, 11)[:2]], [*made_first, coll("Allreduce", op="SUM")], **STUCK
    )
    assert [one.kind for one in found] == ["collective-order"]
    assert (
        "rank 1 waits for Allreduce, collective call 2 of MPI_COMM_WORLD, before rank 0 makes"
        in (found[0].message)
    )


@pytest.mark.parametrize("kind", ["Barrier", "Bcast"])
def test_one_starts_it_less_often(kind: str):
    first = [made(f"{kind}_init", 1, 0), *turn(1, 11)]
    found = found_in([*first, *turn(1, 12)], first)
    assert [one.kind for one in found] == ["collective-order"]
    assert "which starts it 2 times, and rank 1 starts it 1 times" in found[0].message


def test_nothing_is_said_of_starts_where_the_calls_differ_that_made_them():
    found = found_in(
        [made("Barrier_init", 1), made("Bcast_init", 2, 0), *turn(1, 11)[:2]],
        [made("Bcast_init", 2, 0), made("Barrier_init", 1), *turn(1, 11)[:2]],
        **STUCK,
    )
    assert len(found) == 1
    assert "is not the same in all members" in found[0].message


def test_where_threads_call_or_the_record_was_cut_nothing_is_known():
    stuck = [[*BOTH, *turn(1, 11)[:2]], [*BOTH, *turn(2, 12)[:2]]]
    for word in ("threads", "cut"):
        records = {
            rank: record(rank, 2, *events, (word,), ends=False) for rank, events in enumerate(stuck)
        }
        assert not findings_of(records, None, went_well=False)


def test_a_started_barrier_orders():
    """What was before the start is over when others have waited for theirs."""
    programs = [[made("Barrier_init", 1), *turn(1, 11), *turn(1, 12)] for _ in range(2)]
    records = {rank: record(rank, 2, *events) for rank, events in enumerate(programs)}
    order = Order(records, messages_of(records))
    begin, end = 1, 3  # the start, and the wait for it
    assert order.before(0, begin, 1, end + 1)
    assert not order.before(0, end + 1, 1, end + 1), "the second start is later"
