"""Deadlines are kept in order, cancelled ones are forgotten."""

from __future__ import annotations

from ompy.engine.timers import TimerHeap


def test_order_ties_and_cancelling() -> None:
    heap = TimerHeap()
    said: list[str] = []
    heap.add(30, lambda: said.append("c"))
    heap.add(10, lambda: said.append("a"))
    heap.add(10, lambda: said.append("b"))
    gone = heap.add(5, lambda: said.append("never"))
    gone.cancel()
    assert heap.next_deadline() == 10
    assert heap.run(9) == 0
    assert heap.run(10) == 2
    assert heap.run(100) == 1
    assert said == ["a", "b", "c"]
    assert heap.next_deadline() is None
    assert not heap.armed


def test_a_timer_may_add_one() -> None:
    heap = TimerHeap()
    said: list[int] = []
    heap.add(1, lambda: heap.add(2, lambda: said.append(2)))
    assert heap.run(2) == 2
    assert said == [2]


def test_nothing_is_due_before_the_heap_says() -> None:
    """The engine compares `due` with its clock and asks no further; it may be early, never late."""
    heap = TimerHeap()
    later = heap.add(50, lambda: None)
    assert heap.due == 50
    heap.add(20, lambda: heap.add(30, lambda: None))
    assert heap.due == 20
    assert heap.run(20) == 1
    assert heap.due == 30
    assert heap.run(30) == 1
    assert heap.due == 50
    later.cancel()
    heap.add(90, lambda: None)
    assert heap.run(60) == 0
    assert heap.due == 90
