"""The virtual engine: time jumps, ranks take turns, one seed decides."""

from __future__ import annotations

import pickle

import pytest
from ompy.data.request import Waitable
from ompy.engine.virtual_engine import POLL_COST, Deadlock, RankFailed, Scheduler


def test_time_jumps_to_the_next_event() -> None:
    scheduler = Scheduler(1)
    engine = scheduler.engine()

    def program() -> list[int]:
        times = [engine.now()]
        engine.spend(1_000_000_000_000)
        times.append(engine.now())
        waitable = Waitable()
        engine.call_later(500, waitable.finish)
        assert engine.wait(waitable)
        times.append(engine.now())
        assert not engine.wait(Waitable(), 250)
        times.append(engine.now())
        return times

    (times,) = scheduler.run_engines([program])
    steps = [later - earlier for earlier, later in zip(times, times[1:], strict=False)]
    assert steps[0] == 10**12
    assert steps[1] in (500, 500 + POLL_COST)  # the engine may let others in between
    assert steps[2] == 250


def test_spinning_on_progress_advances() -> None:
    scheduler = Scheduler(1)
    engine = scheduler.engine()
    said: list[int] = []
    scheduler.after(100 * POLL_COST, lambda: said.append(1))

    def program() -> int:
        polls = 0
        while not said:
            engine.progress()
            polls += 1
        return polls

    assert scheduler.run_engines([program]) == [100]


def test_the_seed_decides_who_goes_first() -> None:
    def order(seed: int) -> str:
        scheduler = Scheduler(seed)
        engines = [scheduler.engine() for _ in range(5)]
        said: list[str] = []

        def program(number: int) -> None:
            for _ in range(3):
                said.append(str(number))
                engines[number].progress()

        scheduler.run_engines([lambda n=n: program(n) for n in range(5)])
        return "".join(said)

    orders = {order(seed) for seed in range(20)}
    assert len(orders) == 20
    assert order(3) == order(3)


def test_deadlock_and_failure_end_every_rank() -> None:
    cleaned: list[int] = []

    def stuck(scheduler: Scheduler, number: int) -> None:
        try:
            scheduler._engines[number].wait(Waitable())
        finally:
            cleaned.append(number)

    scheduler = Scheduler(7)
    scheduler.engine()
    scheduler.engine()
    with pytest.raises(Deadlock, match="rank 0 waits for .*rank 1 waits for .*seed 7"):
        scheduler.run_engines([lambda: stuck(scheduler, 0), lambda: stuck(scheduler, 1)])
    assert sorted(cleaned) == [0, 1]

    scheduler = Scheduler(7)
    scheduler.engine()
    scheduler.engine()
    with pytest.raises(RankFailed, match="rank 1: ZeroDivisionError") as caught:
        scheduler.run_engines([lambda: stuck(scheduler, 0), lambda: 1 // 0])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_ranks_failure_goes_to_another_process() -> None:
    failure = pickle.loads(pickle.dumps(RankFailed(3, ValueError("why"))))
    assert (failure.rank, str(failure)) == (3, "rank 3: ValueError: why")
