"""The engine contract: what drives one rank.

Everything above receives its engine by constructor. The real engine and the virtual one
differ in where time comes from and in what a rank does when it has nothing to do; the
protocols above cannot tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from ompy import raw
from ompy.compiled import DECLARING, U64, Shown, ccall, cclass, cfunc
from ompy.data.request import Waitable
from ompy.engine.lock import rank_lock
from ompy.engine.timers import Timer, TimerHeap

if DECLARING:
    from ompy.engine.lock import RankLock


@cclass
class Poller:
    """Something the engine asks for news: a BTL module, a control connection.

    A subclass may be compiled or plain Python. All calls come with the rank's lock held.
    """

    __slots__ = ()

    @ccall
    def poll(self) -> int:
        """Handle what has arrived, a bounded amount of it, without blocking.

        Returns:
            Number of events handled; 0 tells the engine it may idle.
        """
        raise NotImplementedError

    @ccall
    def arm(self) -> bool:
        """The rank is about to sleep: make sure that news will wake it.

        Returns:
            False when there is news already, so that the rank must not sleep.
        """
        return True

    @ccall
    def disarm(self) -> None:
        """The rank is awake again."""


class Sleepers:
    """Is told which threads of the rank sleep for long in a wait without end, and for what."""

    def sleeps(self, waitable: Waitable, since: int) -> None:
        """The calling thread is about to sleep until news come.

        Args:
            waitable: what it waits for.
            since: when it began to, by the engine's clock.
        """

    def wakes(self) -> None:
        """It is awake."""

    def since(self, thread: int) -> int | None:
        """When a thread's long sleep began, by the engine's clock; None if it is in none."""
        return None


@cclass
class Engine:
    """Drives one rank: polls, keeps time, waits.

    Attributes:
        awaited: what a blocking call does nothing but wait for, or None. A poller may leave more
            news where they are once it is complete: the next call may have asked for them by then.
        has_core: every rank of the host can have a processor core to itself.
        lock: held by whoever works on the rank's communication state; re-entrant.
        random: the only source of randomness protocols may use.
    """

    _pollers: Shown[list[Poller]]
    _polling: Shown[bool]
    _seldom: Shown[list[Poller]]
    _soon: Shown[list[Poller]]
    _timers: Shown[TimerHeap]
    awaited: Waitable | None
    has_core: bool
    lock: RankLock
    random: Random
    __slots__ = tuple(__annotations__)

    def __init__(self, random: Random) -> None:
        self.lock = rank_lock()
        self.random = random
        self.awaited = None
        self.has_core = False
        self._pollers = []
        self._seldom = []
        self._soon = []
        self._polling = False
        self._timers = TimerHeap()

    @ccall
    def now(self) -> int:
        """Nanoseconds on this rank's clock; never runs backwards."""
        raise NotImplementedError

    @ccall
    def add_poller(self, poller: Poller) -> None:
        """Poll `poller` from now on."""
        self._pollers = [*self._pollers, poller]

    @ccall
    def poll_soon(self, poller: Poller) -> None:
        """Poll `poller` once, behind the others of this round or of the next."""
        self._soon.append(poller)

    def poll_seldom(self, poller: Poller, *, seldom: bool) -> None:
        """Say of a poller whether its news are rare and may wait for some rounds.

        An engine may go on polling it every round. A rank still sleeps only when it agrees.
        """

    @ccall
    def remove_poller(self, poller: Poller) -> None:
        """Stop polling `poller`; harmless if it is not polled."""
        self._pollers = [other for other in self._pollers if other is not poller]
        self._seldom = [other for other in self._seldom if other is not poller]

    def call_later(self, delay: int, callback: Callable[[], object]) -> Timer:
        """Call `callback` once, `delay` nanoseconds from now, from within `progress`."""
        return self._timers.add_timer(self.now() + delay, callback)

    def device_later(self, delay: int, callback: Callable[[], object]) -> Timer:
        """Call `callback` once, `delay` nanoseconds from now, as a device does by itself.

        An engine on a virtual clock calls it also while the rank's program computes or sleeps,
        which polls nothing. So it touches what the device has, completion queues and the memory
        of ranks, and calls nobody back. Here it is as `call_later`.
        """
        return self.call_later(delay, callback)

    @ccall
    def poll_all(self) -> int:
        """Poll each poller once. The caller holds the lock.

        Returns:
            Events handled. 0 when called from inside a poller: a callback never polls.
        """
        if self._polling:
            return 0
        events: int = self.poll_these(self._pollers)
        if self._soon:
            events += self._poll_queued()
        if self._timers.armed:
            now: int = self.now()
            if now >= self._timers.due:
                self._polling = True
                try:
                    events += self._timers.run_due(now)
                finally:
                    self._polling = False
        return events

    @cfunc
    def _poll_queued(self) -> int:
        """A round of those that are polled once."""
        events: int = 0
        left: int = len(self._soon)
        while left > 0:
            left -= 1
            events += self.poll_these([self._soon.pop(0)])
        return events

    @ccall
    def poll_these(self, pollers: list[Poller]) -> int:
        """Poll some of them once. Returns the events handled, none from inside a poller."""
        if self._polling:
            return 0
        self._polling = True
        events: int = 0
        try:
            poller: Poller
            for poller in pollers:
                events += poller.poll()
        finally:
            self._polling = False
        return events

    def beside_polling(self, call: Callable[[], Any]) -> Any:
        """Call what waits or polls as if no poller were at work: all others are, and timers.

        For a poller that the engine has called and that stands between two pieces of work, when
        it has to wait for what other pollers and timers do. It is polled meanwhile, too.

        Returns:
            What `call` does.
        """
        polling, self._polling = self._polling, False
        try:
            return call()
        finally:
            self._polling = polling

    @ccall
    def progress(self) -> int:
        """Let communication advance once, without blocking.

        Returns:
            Events handled; 0 also when another thread of the rank is at it.
        """
        raise NotImplementedError

    @ccall
    def wait(self, waitable: Waitable, timeout: int = -1) -> bool:
        """Progress until `waitable` is complete.

        Args:
            waitable: what to wait for.
            timeout: nanoseconds to wait at most; negative waits for ever.

        Returns:
            Whether it is complete.
        """
        raise NotImplementedError

    @ccall
    def wait_only(self, waitable: Waitable) -> None:
        """Wait for what a blocking call does nothing but wait for: it is `awaited` meanwhile."""
        self.awaited = waitable
        try:
            self.wait(waitable)
        finally:
            self.awaited = None

    def wait_as(self, spin: int | None, park: int | None) -> None:
        """Say what a wait does while nothing comes, from now on.

        Args:
            spin: nanoseconds to poll before it gives its core away between looks.
            park: nanoseconds until it sleeps. None for either: as the engine was made.

        An engine whose ranks do not run beside each other may have no use for it.
        """

    def drive(self) -> Callable[[], object] | None:
        """Have a thread of its own make progress, beside whatever the others do.

        Returns:
            What ends it: it has ended when that returns, which is called without the rank's lock.
            None where there are no threads, as here.
        """
        return None

    @ccall
    def look_for(self, memory: memoryview, at: int, least: U64) -> bool:
        """Look at a word of shared memory for a moment, as long as it is less than `least`.

        For what another rank of the host stores very soon: an engine may save what `wait` costs.
        Who gets False waits by `wait`, with a poller that is asked whether the rank may sleep.

        Args:
            memory: view of format B.
            at: byte of the word in it.
            least: what is looked for; words only grow.

        Returns:
            Whether the word is there. Here, false: other ranks do nothing meanwhile.
        """
        return raw.word(memory, at) >= least

    @ccall
    def glance(self) -> None:
        """Take in what only a rank that sleeps hears of, such as news of the control plane.

        For whoever asks again and again without waiting; it costs nothing to call it each time.
        """

    @ccall
    def look_further(self) -> bool:
        """Whether more has completed beside what has; asked where several are told of together.

        What had completed by then is known already, except in a world that tries all that can be.
        """
        return False

    def wait_until(self, predicate: Callable[[], bool], timeout: int = -1) -> bool:
        """Progress until `predicate` is true; it is asked in every round of progress.

        For set-up and tear-down: it costs a call a round. Messages are waited for by `wait`.
        """
        watch = _Watch(predicate)
        self.add_poller(watch)
        try:
            return self.wait(watch.holds, timeout)
        finally:
            self.remove_poller(watch)

    @ccall
    def arm_pollers(self) -> bool:
        """Tell every poller that the rank is about to sleep; false if one has news."""
        if self._soon:
            return False
        poller: Poller
        for poller in [*self._pollers, *self._seldom]:  # noqa: SIM110 - a closure would not compile
            if not poller.arm():
                return False
        return True

    @ccall
    def disarm_pollers(self) -> None:
        """Tell every poller that the rank is awake."""
        poller: Poller
        for poller in [*self._pollers, *self._seldom]:
            poller.disarm()


class Watched(Waitable):
    """Completes when a predicate has been true.

    Attributes:
        predicate: what is asked.
    """

    __slots__ = ("predicate",)

    def __init__(self, predicate: Callable[[], bool]) -> None:
        super().__init__()
        self.predicate = predicate


class _Watch(Poller):
    """Completes `holds` as soon as a predicate is true."""

    __slots__ = ("_predicate", "holds")

    def __init__(self, predicate: Callable[[], bool]) -> None:
        self._predicate = predicate
        self.holds = Watched(predicate)

    def poll(self) -> int:
        if self.holds.complete or not self._predicate():
            return 0
        self.holds.finish()
        return 1

    def arm(self) -> bool:
        return self.holds.complete or not self._predicate()  # complete: another wait is inside it
