"""How a rank waits: it spins, sleeps, or does the one and then the other.

Source: reference gasnet.md 1 (gasnet_set_waitmode).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from ompy.engine.base import Engine

FOR_EVER: Final = 1 << 60  # ns; arbitrary: longer than anybody waits
SPIN: Final = 50_000  # ns; as the default of engine_spin_us


class WaitMode(IntEnum):
    """Numbers of reference gasnet.md 1."""

    SPIN = 0  # polls, and keeps its core
    BLOCK = 1  # sleeps as soon as a look finds nothing
    SPINBLOCK = 2  # polls for a moment, then sleeps


_DURATIONS: Final = {  # until it gives its core away, and until it sleeps
    WaitMode.SPIN: (FOR_EVER, FOR_EVER),
    WaitMode.BLOCK: (0, 0),
    WaitMode.SPINBLOCK: (SPIN, SPIN),
}


def wait_so(engine: Engine, mode: WaitMode) -> None:
    """Have all waits of a rank be of a mode."""
    engine.wait_as(*_DURATIONS[mode])
