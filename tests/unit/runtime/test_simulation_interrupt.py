"""An interrupt of `ompy sim` is heeded even where its exception is lost."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import pytest
from ompy.runtime.simulation.seeded_scheduler import SeededScheduler


def test_an_interrupt_that_somebody_swallowed_ends_the_world_at_its_next_turn() -> None:
    scheduler = SeededScheduler(0, 10**18)
    engine = scheduler.engine()
    turns = 0

    def goes_on_for_ever() -> None:
        nonlocal turns
        while True:
            turns += 1
            if turns == 5:
                with suppress(KeyboardInterrupt):  # as Python does in a finalizer
                    os.kill(os.getpid(), signal.SIGINT)
            assert turns < 1000, "nobody heeds the interrupt"
            engine.spend(1000)

    before = signal.signal(signal.SIGINT, scheduler.interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            scheduler.run_engines([goes_on_for_ever])
    finally:
        signal.signal(signal.SIGINT, before)
    assert turns == 5
