"""What a user's program finds in place of clocks and chance: those of the world.

Installed once, in the scheduler's process before ranks are forked, so that whoever imports a
function later has the stand-in. Outside of ranks they pass on to the real thing.

- `time.time`, `monotonic`, `perf_counter`, `process_time` and their `_ns` forms: the world's clock,
  which begins at `EPOCH`. A look costs `look_cost`, so that a loop which waits for a time ends.
- `time.sleep`: virtual time passes, others run. `localtime`, `gmtime`, `ctime`: the world's.
- `random`: seeded with the world's seed and the rank. `os.urandom`, and with it `secrets`, `uuid`
  and numpy: drawn from the same.

Not replaced: `datetime.now` (a C type), `random.Random()` without a seed, other threads.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ompy.runtime.simulation.conducted import Conducted, RemoteEngine

# ns; arbitrary: 2020-01-01T00:00:00Z, never the wall clock
EPOCH: Final = 1_577_836_800_000_000_000
SECOND: Final = 1_000_000_000  # ns; Linux counts so


class _Rank:
    """The rank of this process, once it is one."""

    world: Conducted | None = None
    engine: RemoteEngine | None = None
    thread = 0


def _look(real: Callable[[], Any], since: int, scale: int) -> Callable[[], Any]:
    """A clock: the world's in a rank, `real` elsewhere; in units of `scale` ns."""

    def clock() -> Any:
        now = _now()
        if now < 0:
            return real()
        return now + since if scale == 1 else (now + since) / scale

    return clock


def _now() -> int:
    """Nanoseconds of the world, or -1 outside of ranks. To look takes time, in the main thread."""
    world, engine = _Rank.world, _Rank.engine
    if world is None or engine is None:
        return -1
    if not world.calling and threading.get_ident() == _Rank.thread:
        engine.spend(engine.look_cost)
    return world.time


def _sleep(real: Callable[[float], None]) -> Callable[[float], None]:
    def sleep(seconds: float, /) -> None:
        if _Rank.engine is None or threading.get_ident() != _Rank.thread:
            real(seconds)
            return
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        _Rank.engine.spend(round(seconds * SECOND))

    return sleep


def _of_now(real: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a time that takes now when it is given none."""

    def function(seconds: float | None = None, /) -> Any:
        if seconds is None and _Rank.world is not None:
            seconds = (_Rank.world.time + EPOCH) / SECOND
        return real(seconds)

    return function


def install() -> None:
    """Put the stand-ins in place; once a process."""
    for name, since in (
        ("time", EPOCH),
        ("monotonic", 0),
        ("perf_counter", 0),
        ("process_time", 0),
    ):
        setattr(time, name, _look(getattr(time, name), since, SECOND))
        whole = f"{name}_ns"
        setattr(time, whole, _look(getattr(time, whole), since, 1))
    time.sleep = _sleep(time.sleep)  # type: ignore[assignment]
    for name in ("localtime", "gmtime", "ctime"):
        setattr(time, name, _of_now(getattr(time, name)))


def adopt(world: Conducted, engine: RemoteEngine, chance: str) -> None:
    """This process is a rank from now on: its clocks are the world's, its chance is `chance`'s."""
    _Rank.world = world
    _Rank.engine = engine
    _Rank.thread = threading.get_ident()
    random.seed(chance)
    draw = random.Random(f"{chance}/urandom").randbytes  # noqa: S311 - that is the point here
    os.urandom = draw
    random._urandom = draw  # type: ignore[attr-defined]  # noqa: SLF001 - what SystemRandom draws from
