"""The window of a peer: numbers that wrap around, and order that need not hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy_components.btl.ofi.headers import NUMBERS
from ompy_components.btl.ofi.window import Window


def test_what_is_sent_is_open_until_it_is_acknowledged() -> None:
    window = Window(2)
    for number in (1, 2):
        assert not window.full()
        assert window.next() == number
        window.sent = number
    assert window.full()
    assert window.acknowledge(1) == 1
    assert window.open() == 1
    assert window.acknowledge(1) == 0, "again"
    assert window.acknowledge(0) == 0, "an older one that was overtaken"
    with pytest.raises(ValueError, match="3 is acknowledged"):
        window.acknowledge(3)


def test_nothing_is_taken_twice_or_from_far_ahead() -> None:
    window = Window(4)
    assert [window.accept(number) for number in (2, 2, 1, 1, 2, 3, 8, 7)] == [
        True,
        False,
        True,
        False,
        False,
        True,
        False,
        True,
    ]
    assert window.taken == 3, "4 to 6 are missing"
    assert window.owed() == 3
    window.tell()
    assert not window.owed()


@given(st.integers(1, 9), st.integers(0, NUMBERS - 1), st.data())
def test_any_order_within_the_window(size: int, begin: int, data: st.DataObject) -> None:
    sender, receiver = Window(size), Window(size)
    sender.sent = sender.acknowledged = receiver.taken = receiver.told = begin
    under_way: list[int] = []
    got: list[int] = []
    for _ in range(3 * size):
        if not sender.full():
            sender.sent = sender.next()
            under_way.append(sender.sent)
        if under_way and data.draw(st.booleans()):
            number = under_way.pop(data.draw(st.integers(0, len(under_way) - 1)))
            assert receiver.accept(number)
            assert not receiver.accept(number)
            got.append(number)
        if data.draw(st.booleans()):
            sender.acknowledge(receiver.taken)
            receiver.tell()
    for number in under_way:
        assert receiver.accept(number)
        got.append(number)
    sender.acknowledge(receiver.taken)
    assert not sender.open()
    assert len(set(got)) == len(got)
