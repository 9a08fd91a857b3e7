"""How long something takes, on a machine that others use too: rounds, minimum and median."""

from __future__ import annotations

import mmap
import os
import statistics
import time
from collections.abc import Callable
from typing import Final

from ompy.frameworks.nic.fabric import Progress

ROUNDS: Final = 7  # arbitrary: a median of some
ROUND_TIME: Final = 0.05  # s; arbitrary: long beside one operation


def measured(act: Callable[[int], None], rounds: int = ROUNDS) -> tuple[float, float]:
    """Minimum and median over the rounds, in seconds per operation.

    Args:
        act: does an operation so many times.
        rounds: how many; each lasts about `ROUND_TIME`.
    """
    count = 1
    while True:
        begun = time.perf_counter()
        act(count)
        took = time.perf_counter() - begun
        if took > ROUND_TIME / 4:
            break
        count *= 4
    count = max(1, round(count * ROUND_TIME / took))
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        act(count)
        times.append((time.perf_counter() - begun) / count)
    return min(times), statistics.median(times)


def pages(size: int) -> memoryview:
    """Memory that begins with a page and has been written to.

    How fast the kernel copies depends on where both ends begin; pages nobody wrote to are all one.
    """
    made = memoryview(mmap.mmap(-1, size))
    made[:] = b"\x5a" * size
    return made


def keep_apart(rank: int) -> None:
    """Give each of two processes a processor of its own; on one, two that spin take turns by ms."""
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) > 1:
        os.sched_setaffinity(0, {processors[rank]})


def pause_for(progress: Progress) -> Callable[[], None]:
    """What a loop over a fabric does when it finds nothing: give way where others need it."""
    threads = progress is not Progress.MANUAL
    return os.sched_yield if threads or (os.cpu_count() or 1) < 2 else _nothing


def _nothing() -> None:
    """Look again at once."""
