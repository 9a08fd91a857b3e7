"""Accesses to what ranks share beside messages: which of them have no order."""

from __future__ import annotations

import pytest
from ompy.frameworks.direct import FILE, NAME, STORED
from ompy.runtime.exploration.matching.accesses import (
    ORDER_OF_FILES,
    ORDER_OF_NAMES,
    Access,
    Accesses,
)

READ, WRITE = False, True


def found_of(*accesses: tuple[Access, dict[int, int]], kind: str = FILE) -> set[str]:
    """What is not tried because of accesses to one file, each with what its rank knew."""
    made, found = Accesses(), set()
    for access, knows in accesses:
        found |= made.add_access(kind, "numbers", access, knows)
    return found


@pytest.mark.parametrize(
    ("first", "second", "knows", "expected"),
    [
        (WRITE, WRITE, 0, {ORDER_OF_FILES}),
        (WRITE, READ, 0, {ORDER_OF_FILES}),
        (READ, WRITE, 0, {ORDER_OF_FILES}),
        (READ, READ, 0, set()),
        (WRITE, WRITE, 5, {ORDER_OF_FILES}),  # of the access itself, which may not have ended
        (WRITE, WRITE, 6, set()),
    ],
)
def test_two_ranks_that_access_the_same(
    first: bool, second: bool, knows: int, expected: set[str]
) -> None:
    one = Access(0, 5, [(2, 4)], first, 0)
    other = Access(1, 9, [(0, 1), (3, 8)], second, 0)
    assert found_of((one, {}), (other, {0: knows})) == expected


def test_bytes_apart_have_no_order() -> None:
    even = Access(0, 1, [(0, 1), (2, 3), (4, 5)], WRITE, 0)
    odd = Access(1, 1, [(1, 2), (3, 4), (5, 9)], WRITE, 0)
    assert not found_of((even, {}), (odd, {}))
    assert found_of((even, {}), (odd._replace(runs=[(1, 2), (4, 5)]), {})) == {ORDER_OF_FILES}


@pytest.mark.parametrize(
    ("first", "second", "pasts", "expected"),
    [
        (WRITE, READ, (1, 1), {STORED}),  # what another world has written
        (WRITE, READ, (0, 1), set()),
        (READ, WRITE, (1, 1), {STORED}),  # it is read again behind that in another world
        (READ, WRITE, (0, 1), set()),
        (WRITE, WRITE, (1, 1), set()),
    ],
)
def test_what_is_read_may_be_of_another_world(
    first: bool, second: bool, pasts: tuple[int, int], expected: set[str]
) -> None:
    one = Access(0, 1, [(0, 1)], first, pasts[0])
    other = Access(0, 2, [(0, 1)], second, pasts[1])
    assert found_of((one, {}), (other, {})) == expected


def test_an_access_goes_on_until_its_rank_is_told() -> None:
    made = Accesses()
    made.add_access(FILE, "numbers", Access(0, 1, [(0, 1)], WRITE, 0), {})
    made.extend_access(0, 1)
    beside = Access(1, 1, [(0, 1)], WRITE, 0)
    assert made.add_access(FILE, "numbers", beside, {0: 3}) == {ORDER_OF_FILES}
    made.extend_access(0, 1, 3)
    behind = Access(2, 1, [(0, 1)], WRITE, 0)
    assert made.add_access(FILE, "numbers", behind, {0: 3, 1: 2}) == {ORDER_OF_FILES}
    assert not made.add_access(FILE, "numbers", behind._replace(rank=3), {0: 4, 1: 2, 2: 2})


def test_names_have_an_order_of_their_own() -> None:
    opened, removed = Access(0, 1, [(0, 1)], READ, 1), Access(1, 1, [(0, 1)], WRITE, 1)
    assert found_of((opened, {}), (removed, {}), kind=NAME) == {ORDER_OF_NAMES}
