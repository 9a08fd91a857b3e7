"""What is in flight against a list of what should be."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from ompy_components.btl.usnic.reliability.in_flight import InFlight

from tests.support.effort import effort

SLOTS = 5


class InFlightModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.table: InFlight = InFlight(SLOTS)
        self.items: dict[int, tuple[str, int]] = {}  # by slot: what, and until when
        self.now = 0
        self.serial = 0

    @precondition(lambda self: len(self.items) < SLOTS)
    @rule(wait=st.integers(0, 20))
    def add(self, wait: int) -> None:
        self.serial += 1
        item = f"item {self.serial}"
        slot = self.table.add_segment(item, self.now + wait)
        assert slot not in self.items
        assert 0 <= slot < SLOTS
        self.items[slot] = item, self.now + wait

    @precondition(lambda self: self.items)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        slot = data.draw(st.sampled_from(sorted(self.items)))
        assert self.table.remove(slot) == self.items.pop(slot)[0]

    @precondition(lambda self: len(self.items) == SLOTS)
    @rule()
    def full(self) -> None:
        with pytest.raises(AssertionError, match="all 5 slots are taken"):
            self.table.add_segment("one too many", self.now)

    @rule(data=st.data())
    def nothing_there(self, data: st.DataObject) -> None:
        empty = sorted(set(range(SLOTS)) - set(self.items))
        if empty:
            with pytest.raises(AssertionError, match="nothing is in slot"):
                self.table.remove(data.draw(st.sampled_from(empty)))

    @rule(passing=st.integers(0, 15))
    def expire(self, passing: int) -> None:
        self.now += passing
        due = {item for item, until in self.items.values() if until <= self.now}
        times = dict(self.items.values())
        expired = self.table.expire(self.now)
        assert len(expired) == len(due)
        assert set(expired) == due
        assert [times[item] for item in expired] == sorted(times[item] for item in expired)
        self.items = {r: wait for r, wait in self.items.items() if wait[0] not in due}

    @invariant()
    def agrees(self) -> None:
        assert len(self.table) == len(self.items)
        assert self.table.deadline() == min((u for _, u in self.items.values()), default=None)


TestInFlight = InFlightModel.TestCase
TestInFlight.settings = settings(max_examples=effort(20), stateful_step_count=30, deadline=None)


def test_free_slots_are_taken_last_in_first_out() -> None:
    table: InFlight = InFlight(3)
    slots = [table.add_segment(number, 10) for number in range(3)]
    assert slots == [0, 1, 2]
    table.remove(0)
    table.remove(2)
    assert [table.add_segment(9, 1), table.add_segment(9, 1)] == [2, 0]
