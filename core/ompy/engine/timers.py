"""Deadlines: a heap of timers, and the handle to cancel one."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from ompy.compiled import ccall, cclass


@cclass
class Timer:
    """One call that is due later."""

    callback: Callable[[], object] | None
    deadline: int
    __slots__ = tuple(__annotations__)

    def __init__(self, deadline: int, callback: Callable[[], object]) -> None:
        self.deadline = deadline
        self.callback = callback

    @property
    def pending(self) -> bool:
        """Whether it is still to be called."""
        return self.callback is not None

    @ccall
    def cancel(self) -> None:
        """Never call it; harmless if it was called already."""
        self.callback = None


@cclass
class TimerHeap:
    """Timers of one rank, run in the order of their deadlines, ties in the order of adding.

    Attributes:
        armed: true while a timer may be pending: the engine asks this before the clock.
        due: no timer is due before; an engine that polls compares it with its clock in every round.
    """

    _added: int
    _heap: list[tuple[int, int, Timer]]
    armed: bool
    due: int
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        self._heap = []
        self._added = 0
        self.armed = False
        self.due = 0

    @ccall
    def add_timer(self, deadline: int, callback: Callable[[], object]) -> Timer:
        """Call `callback` at `deadline` (engine clock, nanoseconds)."""
        timer = Timer(deadline, callback)
        self._added += 1
        heapq.heappush(self._heap, (deadline, self._added, timer))
        self.due = self._heap[0][0]
        self.armed = True
        return timer

    @ccall
    def pending(self) -> list[Timer]:
        """The timers that are neither due nor cancelled, in order."""
        return [timer for _, _, timer in sorted(self._heap) if timer.callback is not None]

    @ccall
    def next_deadline(self) -> int | None:
        """When the next timer that was not cancelled is due, or None."""
        heap = self._heap
        while heap and heap[0][2].callback is None:
            heapq.heappop(heap)
        self.armed = bool(heap)
        if not heap:
            return None
        self.due = heap[0][0]
        return heap[0][0]

    @ccall
    def run_due(self, now: int) -> int:
        """Call what is due at `now`. Returns how many were called."""
        called = 0
        while True:
            deadline = self.next_deadline()
            if deadline is None or deadline > now:
                return called
            timer = heapq.heappop(self._heap)[2]
            callback = timer.callback
            timer.callback = None
            if callback is not None:
                callback()
                called += 1
