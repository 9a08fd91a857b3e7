"""A poller that has to wait itself, out of its poll, in both engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ompy.data.request import Waitable
from ompy.engine.base import Engine, Poller
from ompy.engine.real import RealEngine
from ompy.engine.virtual_engine import Scheduler

MOMENT = 1_000_000  # ns


class Waits(Poller):
    """Waits in its first poll for what a timer brings."""

    def __init__(self, engine: Engine, wait: Callable[[Waitable], object]) -> None:
        self.engine = engine
        self.wait = wait
        self.polled = 0
        self.news = Waitable()
        self.came = False

    def poll(self) -> int:
        self.polled += 1
        if self.polled > 1:
            return 0
        self.engine.call_later(MOMENT, self.news.finish)
        self.wait(self.news)
        self.came = self.news.complete
        return 1


def in_both(program: Callable[[Engine], object], world: str) -> Any:
    if world == "virtual":
        scheduler = Scheduler(3)
        engine = scheduler.engine()
        return scheduler.run_engines([lambda: program(engine)])[0]
    real = RealEngine(3, loop="asyncio")
    try:
        return program(real)
    finally:
        real.close()


@pytest.mark.parametrize("world", ["virtual", "real"])
def test_timers_and_other_pollers_go_on_beside_it(world: str) -> None:
    def program(engine: Engine) -> tuple[bool, int]:
        waits = Waits(
            engine, lambda news: engine.beside_polling(lambda: engine.wait(news, 100 * MOMENT))
        )
        engine.add_poller(waits)
        engine.progress()
        return waits.came, waits.polled

    came, polled = in_both(program, world)
    assert came
    assert polled > 1, "it is polled meanwhile"


@pytest.mark.parametrize("world", ["virtual", "real"])
def test_otherwise_they_do_not_and_the_wait_ends(world: str) -> None:
    def program(engine: Engine) -> tuple[bool, int]:
        waits = Waits(engine, lambda news: engine.wait(news, 5 * MOMENT))
        engine.add_poller(waits)
        engine.progress()
        return waits.came, waits.polled

    assert in_both(program, world) == (False, 1)


@pytest.mark.parametrize("world", ["virtual", "real"])
def test_a_wait_inside_another_one_that_has_ended(world: str) -> None:
    """What the outer one waits for is there, and keeps nobody awake."""

    def program(engine: Engine) -> bool:
        there: list[int] = []

        class Late(Poller):
            def poll(self) -> int:
                if not there:
                    there.append(1)
                    engine.beside_polling(lambda: engine.wait(Waitable(), 5 * MOMENT))
                return 0

        engine.add_poller(Late())
        return engine.wait_until(lambda: bool(there), 100 * MOMENT)

    assert in_both(program, world)
