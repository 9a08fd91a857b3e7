"""Deadlines are kept in order, cancelled ones are forgotten."""

from __future__ import annotations

from ompy.engine.timers import TimerHeap


def test_order_ties_and_cancelling() -> None:
    heap = TimerHeap()
    said: list[str] = []
    heap.add_timer(30, lambda: said.append("c"))
    heap.add_timer(10, lambda: said.append("a"))
    heap.add_timer(10, lambda: said.append("b"))
    gone = heap.add_timer(5, lambda: said.append("never"))
    gone.cancel()
    assert heap.next_deadline() == 10
    assert heap.run_due(9) == 0
    assert heap.run_due(10) == 2
    assert heap.run_due(100) == 1
    assert said == ["a", "b", "c"]
    assert heap.next_deadline() is None
    assert not heap.armed


def test_a_timer_may_add_one() -> None:
    heap = TimerHeap()
    said: list[int] = []
    heap.add_timer(1, lambda: heap.add_timer(2, lambda: said.append(2)))
    assert heap.run_due(2) == 2
    assert said == [2]


def test_nothing_is_due_before_the_heap_says() -> None:
    """The engine compares `due` with its clock and asks no further; it may be early, never late."""
    heap = TimerHeap()
    later = heap.add_timer(50, lambda: None)
    assert heap.due == 50
    heap.add_timer(20, lambda: heap.add_timer(30, lambda: None))
    assert heap.due == 20
    assert heap.run_due(20) == 1
    assert heap.due == 30
    assert heap.run_due(30) == 1
    assert heap.due == 50
    later.cancel()
    heap.add_timer(90, lambda: None)
    assert heap.run_due(60) == 0
    assert heap.due == 90
