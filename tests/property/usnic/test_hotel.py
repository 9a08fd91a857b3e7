"""The hotel against a list of who should be there."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from ompy_components.btl.usnic.hotel import Hotel

from tests.support.effort import effort

ROOMS = 5


class HotelModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.hotel: Hotel[str] = Hotel(ROOMS)
        self.guests: dict[int, tuple[str, int]] = {}  # by room: who, and until when
        self.now = 0
        self.serial = 0

    @precondition(lambda self: len(self.guests) < ROOMS)
    @rule(stay=st.integers(0, 20))
    def checkin(self, stay: int) -> None:
        self.serial += 1
        guest = f"guest {self.serial}"
        room = self.hotel.checkin(guest, self.now + stay)
        assert room not in self.guests
        assert 0 <= room < ROOMS
        self.guests[room] = guest, self.now + stay

    @precondition(lambda self: self.guests)
    @rule(data=st.data())
    def checkout(self, data: st.DataObject) -> None:
        room = data.draw(st.sampled_from(sorted(self.guests)))
        assert self.hotel.checkout(room) == self.guests.pop(room)[0]

    @precondition(lambda self: len(self.guests) == ROOMS)
    @rule()
    def full(self) -> None:
        with pytest.raises(AssertionError, match="all 5 rooms are taken"):
            self.hotel.checkin("one too many", self.now)

    @rule(data=st.data())
    def nobody_there(self, data: st.DataObject) -> None:
        empty = sorted(set(range(ROOMS)) - set(self.guests))
        if empty:
            with pytest.raises(AssertionError, match="nobody is in room"):
                self.hotel.checkout(data.draw(st.sampled_from(empty)))

    @rule(passing=st.integers(0, 15))
    def evict(self, passing: int) -> None:
        self.now += passing
        due = {guest for guest, until in self.guests.values() if until <= self.now}
        times = dict(self.guests.values())
        evicted = self.hotel.evict(self.now)
        assert len(evicted) == len(due)
        assert set(evicted) == due
        assert [times[guest] for guest in evicted] == sorted(times[guest] for guest in evicted)
        self.guests = {r: stay for r, stay in self.guests.items() if stay[0] not in due}

    @invariant()
    def agrees(self) -> None:
        assert len(self.hotel) == len(self.guests)
        assert self.hotel.deadline() == min((u for _, u in self.guests.values()), default=None)


TestHotel = HotelModel.TestCase
TestHotel.settings = settings(max_examples=effort(20), stateful_step_count=30, deadline=None)


def test_free_rooms_are_taken_last_in_first_out() -> None:
    hotel: Hotel[int] = Hotel(3)
    rooms = [hotel.checkin(number, 10) for number in range(3)]
    assert rooms == [0, 1, 2]
    hotel.checkout(0)
    hotel.checkout(2)
    assert [hotel.checkin(9, 1), hotel.checkin(9, 1)] == [2, 0]
