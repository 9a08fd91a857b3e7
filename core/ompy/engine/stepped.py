"""What engines on a virtual clock have in common: how a rank waits where no time passes by itself.

A rank runs alone until it gives its turn away. So whatever it waits for, and whatever it looks at
again and again, time has to pass in between, or nobody else ever comes to act.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from ompy.compiled import Shown, ccall, cclass
from ompy.data.request import Waitable
from ompy.engine.base import Engine
from ompy.engine.timers import Timer, TimerHeap

CALLBACK_COST: Final = 1_000  # ns; arbitrary: between the looks of a callback that waits
FRUITLESS: Final = 100  # rounds; arbitrary: more than any poller needs to take its news
BREAKS: Final = 0.25  # arbitrary: how often others get in between two polls


@cclass
class SteppedEngine(Engine):
    """Drives a rank that has its turn when the scheduler gives it one."""

    _breaks: Shown[Random]
    _devices: Shown[TimerHeap]
    _settle: Shown[int]
    __slots__ = tuple(__annotations__)

    def __init__(self, random: Random, breaks: Random, settle: int) -> None:
        """Drive it.

        Args:
            random: what components draw from.
            breaks: when the rank lets others in between two polls.
            settle: ns that this takes.
        """
        Engine.__init__(self, random)
        self._breaks = breaks
        self._settle = settle
        self._devices = TimerHeap()

    def spend(self, duration: int) -> None:
        """Compute for `duration` nanoseconds; others run meanwhile, and this rank's devices."""
        end = self.now() + duration
        while True:
            due = self._devices.next_deadline() if self._devices.armed else None
            if due is None or due >= end:
                break
            self.pass_time(max(due - self.now(), 0))
            self._devices.run_due(self.now())
        self.pass_time(max(end - self.now(), 0))

    def pass_time(self, duration: int) -> None:
        """Give the turn away for `duration` nanoseconds."""
        raise NotImplementedError

    def device_later(self, delay: int, callback: Callable[[], object]) -> Timer:
        """Call `callback` later, also while this rank computes."""
        timer = self._devices.add_timer(self.now() + delay, callback)
        self.wake_after(delay)
        return timer

    @ccall
    def poll_all(self) -> int:
        """Have the devices do what is due, then poll each poller once."""
        events: int = self._devices.run_due(self.now()) if self._devices.armed else 0
        return events + Engine.poll_all(self)

    def pause(self, reason: object) -> None:
        """Give the turn away until something wakes this rank; nothing is polled."""
        raise NotImplementedError

    def wake_after(self, delay: int) -> None:
        """Be woken in `delay` nanoseconds."""
        raise NotImplementedError

    @ccall
    def wait(self, waitable: Waitable, timeout: int = -1) -> bool:
        """Let the rank sleep until `waitable` is complete, polling whenever there is news."""
        deadline: int = self.now() + timeout if timeout >= 0 else -1
        if deadline >= 0:
            self.wake_after(timeout)
        fruitless: int = 0
        while not waitable.complete:
            if self.poll_all():
                if self._breaks.random() < BREAKS:
                    self.spend(self._settle)
                continue
            if 0 <= deadline <= self.now():
                return waitable.complete
            if self.arm_pollers():
                self.pause(waitable)
                fruitless = 0
            else:
                fruitless += 1
            # a callback waits, or a poller waits outside of this wait: there is news that nobody
            # takes, and that only goes away with time
            if fruitless and (self._polling or fruitless > FRUITLESS):
                self.spend(CALLBACK_COST)
            self.disarm_pollers()
        return True
