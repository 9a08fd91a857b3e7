"""A queue of btl/tcp that is a ring: beside a deque, through every turn and growth."""

from __future__ import annotations

from collections import deque

from hypothesis import given
from hypothesis import strategies as st
from ompy_components.btl.tcp.fifo import Fifo


@given(st.lists(st.integers(-90, 90), max_size=12))
def test_beside_a_deque(steps: list[int]) -> None:
    """A positive step adds so many entries, a negative one takes so many as there are."""
    fifo, model, number = Fifo(), deque[int](), 0
    for step in steps:
        for _ in range(step):
            number += 1
            fifo.append(number)
            model.append(number)
        for _ in range(min(-step, len(model))):
            assert fifo.popleft() == model.popleft()
        assert len(fifo) == fifo.count == len(model)
        assert bool(fifo) == bool(model)
    assert fifo.take_all() == list(model)
    assert not fifo


def test_what_is_taken_is_not_held() -> None:
    """A place of the ring that is free keeps nobody's memory."""

    class Entry:
        alive = 0

        def __init__(self) -> None:
            Entry.alive += 1

        def __del__(self) -> None:
            Entry.alive -= 1

    fifo = Fifo()
    for _ in range(100):
        fifo.append(Entry())
    fifo.popleft()
    assert Entry.alive == 99
    fifo.take_all()
    assert Entry.alive == 0
