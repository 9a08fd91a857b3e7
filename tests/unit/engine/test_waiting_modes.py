"""Modes of waiting say when the real engine sleeps."""

from __future__ import annotations

from ompy.data.request import Waitable
from ompy.engine.real import RealEngine
from ompy.gasnet.waiting import SPIN, WaitMode, wait_so

MS = 1_000_000


class Sleeper(RealEngine):
    """Counts how often it sleeps, and how long it had been idle by then."""

    def __init__(self, **made: int) -> None:
        super().__init__(1, **made)
        self.idle: list[int] = []

    def _sleep(self, nap: float, idle: int) -> None:
        self.idle.append(idle)
        super()._sleep(nap, idle)


def slept(mode: WaitMode | None, **made: int) -> list[int]:
    """How long it had been idle when it slept, in a wait of 30 ms for nothing."""
    engine = Sleeper(**made)
    try:
        if mode is not None:
            wait_so(engine, mode)
        assert not engine.wait(Waitable(), 30 * MS)
        return engine.idle
    finally:
        engine.close()


def test_modes_of_waiting_say_when_it_sleeps() -> None:
    """Whatever the parameters say: the first of each pair would have it do the contrary."""
    assert not slept(WaitMode.SPIN, park_ms=0, spin_us=0)
    assert not slept(None, park_ms=1000)
    assert slept(WaitMode.BLOCK, park_ms=1000)
    assert min(slept(WaitMode.SPINBLOCK, park_ms=0, spin_us=0)) >= SPIN
    assert slept(WaitMode.SPINBLOCK, park_ms=1000)


def test_a_mode_of_waiting_is_taken_back() -> None:
    engine = Sleeper(park_ms=0, spin_us=0)
    wait_so(engine, WaitMode.SPIN)
    engine.wait(Waitable(), 5 * MS)
    assert not engine.idle
    engine.wait_as(None, None)
    engine.wait(Waitable(), 5 * MS)
    assert engine.idle
    engine.close()
