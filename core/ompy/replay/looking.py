"""Waiting in a replay for what no request tells of: look, and let communication advance."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ompy.engine.base import Engine


def look_until(engine: Engine, is_so: Callable[[], bool], pause: float) -> None:
    """Return when it is so. What `is_so` raises ends the wait.

    Args:
        engine: of the rank.
        is_so: what is looked at.
        pause: s, between two looks.
    """
    while not is_so():
        engine.progress()
        time.sleep(pause)
