"""Noticing that the other end of a control connection is no more, though no network says so."""

from __future__ import annotations


class Pulse:
    """Says regularly that this end is there, and counts how often it heard nothing meanwhile.

    Turns are counted, not time: who has been stopped for a while does not take the others for
    dead when it goes on.

    Attributes:
        due: when the next turn is, s; None after the end.
    """

    __slots__ = ("_interval", "_misses", "_silent", "_watching", "due")

    def __init__(self, now: float, interval_s: float, misses: int, *, watching: bool) -> None:
        """Begin; the first turn is at once.

        Args:
            now: s.
            interval_s: between two turns.
            misses: turns without a word after which the other end is lost.
            watching: it is expected to be heard of from the beginning.
        """
        self._interval = interval_s
        self._misses = misses
        self._watching = watching
        self._silent = 0
        self.due: float | None = now

    @property
    def patience(self) -> float:
        """Seconds of silence after which the other end is lost."""
        return self._interval * self._misses

    def heard(self) -> None:
        """Something came from the other end."""
        self._silent = 0

    def watch(self, *, on: bool) -> None:
        """Expect to hear from the other end from now on, or not."""
        self._watching = on
        self._silent = 0

    def end(self) -> None:
        """Say and expect no more."""
        self._watching = False
        self.due = None

    def turn(self, now: float) -> bool:
        """Its moment has come, and this end says that it is there. False: the other is lost."""
        self.due = now + self._interval
        if self._watching:
            self._silent += 1
            if self._silent > self._misses:
                self.end()
                return False
        return True
