"""What `tools/bench instruction_table` complains of."""

from __future__ import annotations

import json

from tools.bench.instruction_table import GROWTH, MORE, NO_MORE, TABLE, complaints

COUNTS = {"Gather": 100.0, "Bcast": 50.0, "Allgather": 120.0, "typed Send": 90.0}
COUNTS |= {"Pack and Send": 100.0}


def test_counts_as_they_are_known_are_right() -> None:
    assert complaints(COUNTS, COUNTS) == []
    assert complaints(COUNTS, {}) == []


def test_growth_beyond_its_bound_is_told() -> None:
    known = {"Gather": 100 / GROWTH + 0.1, "Bcast": 50 / GROWTH - 0.1}
    (said,) = complaints(COUNTS, known)
    assert said.startswith("Bcast takes 50 ")


def test_a_call_that_costs_more_than_what_it_is_made_of_is_told() -> None:
    (said,) = complaints({**COUNTS, "Allgather": 150 * MORE + 1}, {})
    assert "Gather and Bcast" in said
    (said,) = complaints({**COUNTS, "typed Send": 100 * MORE + 1}, {})
    assert said.startswith("typed Send")


def test_a_call_that_is_no_longer_counted_is_told() -> None:
    assert complaints(COUNTS, {"Scan": 7}) == ["Scan is in the table and was not counted"]


def test_the_table_has_all_that_is_compared() -> None:
    calls = json.loads(TABLE.read_text())["calls"]
    assert set(NO_MORE) <= set(calls)
    assert all(set(others) <= set(calls) for others in NO_MORE.values())
