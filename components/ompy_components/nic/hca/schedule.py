"""When the queue pairs of one device have something to do; the rank is awake then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from ompy.engine.base import Engine
    from ompy.engine.timers import Timer

NEVER: Final = 1 << 63  # ns; arbitrary: later than anything


class Scheduled(Protocol):
    """A queue pair, as far as its moments go."""

    @property
    def deadline(self) -> int | None:
        """When `expire` has something to do, ns; None: never."""

    def expire(self, now: int) -> None:
        """Look at the timers."""

    def go_on(self) -> None:
        """The socket takes something again."""

    def acknowledge(self) -> None:
        """It is the end of a round: say what has arrived."""


class Schedule:
    """Of one device."""

    __slots__ = ("_due", "_engine", "_owing", "_stalled", "_timed", "_timer")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._owing: dict[Scheduled, None] = {}
        self._stalled: dict[Scheduled, None] = {}
        self._timed: dict[Scheduled, None] = {}
        self._due = NEVER
        self._timer: Timer | None = None

    def now(self) -> int:
        """Nanoseconds."""
        return self._engine.now()

    # -- what queue pairs say

    def owe(self, pair: Scheduled) -> None:
        """An ACK is to be sent at the end of this round."""
        self._owing[pair] = None

    def stall(self, pair: Scheduled) -> None:
        """It goes on when the socket takes something again."""
        self._stalled[pair] = None

    def watch(self, pair: Scheduled) -> None:
        """The deadline of a queue pair is another one."""
        deadline = pair.deadline
        if deadline is None:
            self._timed.pop(pair, None)
            return
        self._timed[pair] = None
        self.awake_at(deadline)

    def awake_at(self, when: int) -> None:
        """Something is to be done, or a completion can be read, then."""
        if when < self._due:
            self._due = when
            self.arm()

    def forget(self, pair: Scheduled) -> None:
        """A queue pair is closed."""
        for those in (self._owing, self._timed, self._stalled):
            those.pop(pair, None)

    # -- what the device does

    def go_on(self, *, blocked: bool) -> None:
        """Have queue pairs send that wait for the socket, unless it is blocked, and ACKs."""
        if self._stalled and not blocked:
            stalled, self._stalled = self._stalled, {}
            for pair in stalled:
                pair.go_on()
        owing, self._owing = self._owing, {}
        for pair in owing:
            pair.acknowledge()

    @property
    def due(self) -> bool:
        """Whether it is time."""
        return self._due <= self._engine.now()

    def expire(self) -> None:
        """Look at all deadlines; the time that was said is over."""
        now = self._engine.now()
        self._due = NEVER
        for pair in list(self._timed):
            pair.expire(now)
            self.watch(pair)

    def arm(self) -> None:
        """See that the rank is awake then."""
        timer = self._timer
        if self._due == NEVER or (timer and timer.pending and timer.deadline <= self._due):
            return
        if timer is not None:
            timer.cancel()
        delay = max(0, self._due - self._engine.now())
        self._timer = self._engine.call_later(delay, _nothing)

    def forget_deadlines(self) -> None:
        """The device is gone: no deadline counts any more."""
        self._timed.clear()

    def close(self) -> None:
        """The device is closed."""
        if self._timer is not None:
            self._timer.cancel()


def _nothing() -> None:
    """The rank is awake: whoever polls a completion queue makes the device look."""
