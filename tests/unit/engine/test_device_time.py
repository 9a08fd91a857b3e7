"""What devices do on a virtual clock: while ranks wait, and while they compute."""

from __future__ import annotations

from ompy.data.request import Waitable
from ompy.engine.virtual_engine import Scheduler, VirtualEngine


def alone() -> tuple[Scheduler, VirtualEngine]:
    scheduler = Scheduler(1)
    return scheduler, scheduler.engine()


def test_a_device_works_while_its_rank_computes() -> None:
    scheduler, engine = alone()
    seen: list[tuple[str, int]] = []

    def program() -> None:
        engine.device_later(700, lambda: seen.append(("second", engine.now())))
        engine.device_later(300, lambda: seen.append(("first", engine.now())))
        engine.call_later(300, lambda: seen.append(("a poll's", engine.now())))
        engine.spend(1_000)
        assert engine.now() == 1_000
        assert seen == [("first", 300), ("second", 700)]  # and no timer: nothing has been polled
        engine.progress()

    scheduler.run_engines([program])
    assert seen[2][0] == "a poll's"


def test_a_device_ends_a_wait() -> None:
    scheduler, engine = alone()
    done = Waitable()

    def program() -> int:
        engine.device_later(5_000, done.finish)
        assert engine.wait(done)
        return engine.now()

    (ended,) = scheduler.run_engines([program])
    assert isinstance(ended, int)
    assert ended == 5_000


def test_an_effect_may_lead_to_the_next() -> None:
    scheduler, engine = alone()
    times: list[int] = []

    def again() -> None:
        times.append(engine.now())
        if len(times) < 4:
            engine.device_later(10, again)

    def program() -> None:
        engine.device_later(10, again)
        engine.spend(35)
        assert times == [10, 20, 30]
        engine.spend(35)

    scheduler.run_engines([program])
    assert times == [10, 20, 30, 40]


def test_a_cancelled_effect_does_not_happen() -> None:
    scheduler, engine = alone()
    seen: list[int] = []

    def program() -> None:
        engine.device_later(10, lambda: seen.append(1)).cancel()
        engine.spend(20)

    scheduler.run_engines([program])
    assert seen == []
