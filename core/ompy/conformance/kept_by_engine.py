"""What a rank's engine still has to do for somebody: for tests that look for what is left."""

from __future__ import annotations

from ompy.engine.base import Engine


def kept_by_engine(engine: Engine) -> tuple[int, int]:
    """How many pollers it has, and how many timers that have not come."""
    return len(engine._pollers), len(engine._timers.pending())
