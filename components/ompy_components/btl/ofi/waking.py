"""A rank that sleeps is awake in time for what nothing else wakes it for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ompy.engine.base import Engine
    from ompy.engine.timers import Timer

LOOK_FIRST: Final = 20_000  # ns; arbitrary: less than a message takes that wakes nobody
LOOK_MOST: Final = 1_000_000  # ns; arbitrary: a rank that idles looks a thousand times a second


class WakeUp:
    """The timer of one module, and how soon it looks again where the device tells nothing."""

    __slots__ = ("_engine", "_look", "_timer")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._look = LOOK_FIRST
        self._timer: Timer | None = None

    def busy(self) -> None:
        """Something has come: the next look is soon again."""
        self._look = LOOK_FIRST

    def set(self, due: int | None, *, soon: bool) -> None:
        """Be awake then.

        Args:
            due: when something else is to be done; ns of the engine's clock.
            soon: look again, each time after twice as long.
        """
        now = self._engine.now()
        if soon:
            look = now + self._look
            due = look if due is None else min(due, look)
        timer = self._timer
        if timer is not None and timer.pending and due is not None and timer.deadline <= due:
            return  # a new one at each look would have the looks themselves wake the rank
        if soon:
            self._look = min(2 * self._look, LOOK_MOST)
        self.cancel()
        if due is not None:
            self._timer = self._engine.call_later(max(0, due - now), _nothing)

    def cancel(self) -> None:
        """Nothing is waited for any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _nothing() -> None:
    """The rank is awake: its poll looks at everything."""
