"""A collective call that waits for a rank that has ended."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ompy.data.request import Waitable
from ompy.frameworks.collectives.patience import PATIENCE, LongWait, only


class Timers:
    """An engine that has nothing but timers, which are let go off by hand."""

    def __init__(self) -> None:
        self.set: list[tuple[int, Any]] = []

    def call_later(self, delay: int, callback: Any) -> Any:
        self.set.append((delay, callback))
        return SimpleNamespace(cancel=lambda: None)

    def go_off(self) -> int:
        delay, callback = self.set.pop()
        callback()
        return delay


def waiting_for_an_ended_rank(engine: Timers) -> LongWait:
    procs = [SimpleNamespace(departed=""), SimpleNamespace(departed="has ended")]
    context = SimpleNamespace(engine=engine, me=procs[0], inquiries=None)
    communicator: Any = SimpleNamespace(context=context, procs=procs, name="x")
    return LongWait(communicator, 1 << 32, lambda: only(1), Waitable())


def test_it_is_given_up_only_when_all_was_polled_once_more() -> None:
    """A rank that gets no processor for so long finds its timer over, and news that it may have."""
    engine = Timers()
    wait = waiting_for_an_ended_rank(engine)
    assert wait.arm()
    first = engine.go_off()
    assert wait.problem is None, "the engine polls before the next timer goes off"
    assert first + engine.go_off() == PATIENCE
    assert wait.problem is not None


def test_what_came_meanwhile_is_the_end_of_it() -> None:
    engine = Timers()
    wait = waiting_for_an_ended_rank(engine)
    wait.arm()
    engine.go_off()
    wait.end()
    engine.go_off()
    assert wait.problem is None
