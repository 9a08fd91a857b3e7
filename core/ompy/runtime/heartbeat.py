"""Noticing that the other end of a control connection is no more, though no network says so."""

from __future__ import annotations

from collections.abc import Callable

from ompy.engine.reactor import Cancellable, Loop


class Heartbeat:
    """Says regularly that this end is there, and counts how often it heard nothing meanwhile.

    Turns are counted, not time: who has been stopped for a while does not take the others for
    dead when it goes on.
    """

    def __init__(
        self,
        loop: Loop,
        interval_s: float,
        misses: int,
        send: Callable[[], object],
        lost: Callable[[], object],
    ) -> None:
        """Prepare; `begin` begins.

        Args:
            loop: gives the turns.
            interval_s: seconds between two.
            misses: turns without a word after which the other end is lost.
            send: says that this end is there.
            lost: called once when the other end is lost.
        """
        self._loop = loop
        self._interval = interval_s
        self._misses = misses
        self._send = send
        self._lost = lost
        self._silent = 0
        self._watching = False
        self._timer: Cancellable | None = None

    def begin(self) -> None:
        """Send from now on."""
        if self._timer is None:
            self._turn()

    def heard(self) -> None:
        """Something came from the other end."""
        self._silent = 0

    def watch(self, *, on: bool) -> None:
        """Expect to hear from the other end from now on, or not."""
        self._watching = on
        self._silent = 0

    def end(self) -> None:
        """Send and expect no more."""
        self._watching = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _turn(self) -> None:
        self._timer = self._loop.call_later(self._interval, self._turn)
        self._send()
        if self._watching:
            self._silent += 1
            if self._silent > self._misses:
                self.end()
                self._lost()
