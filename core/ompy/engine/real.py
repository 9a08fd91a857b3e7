"""The real engine: wall clock, polling in the caller, sleep when nothing comes.

Waiting has three stages (reference performance.md 3e and 4). *Spin*: poll again at once,
only when every rank of the host can have a core. *Yield*: give the core to another rank
between polls; where each should have a core and a yield shows that another process runs on this
one, also nap now and then: the kernel may go on with a rank that yields, and wakes one that napped
on a core that is free. *Park*: arm the pollers and
sleep until a descriptor wakes the rank; first in a bare `epoll`, and after a longer idle time in
the uvloop hub, which is imported only then. A safety timer bounds each sleep, because a store
into shared memory and the look at the parked word may pass each other.

The thread that made the engine may use the hub. Other threads, and code inside a coroutine,
poll and park in the bare `epoll`; whoever makes progress wakes the others.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final

from ompy import raw
from ompy.compiled import U64, Shown, ccall, cclass, cfunc
from ompy.data.request import Waitable
from ompy.engine.base import Engine, Poller, Sleepers
from ompy.engine.placement import Placement
from ompy.engine.wakeup import Wakeup

if TYPE_CHECKING:
    from ompy.engine.hub import Hub
    from ompy.engine.readers import LoopReaders

SAFETY_NAP: Final = 0.010  # s; reference performance.md 3e: 10 ms net for the store/load race
HUB_AFTER: Final = 0.100  # s; arbitrary: idle long enough that importing uvloop hurts nobody
# rounds without news, and pauses between rounds from then on: what takes so long is a peer that
# copies, and cores that are threads of one processor copy at half the speed while the other spins
LONG_WAIT: Final = 64  # arbitrary: some 10 us
LONG_PAUSE: Final = 8  # arbitrary: half a microsecond, little beside such a wait
YIELDS_FOR: Final = 50_000  # ns between naps; arbitrary: a nap is as long
SELDOM: Final = 32  # rounds; arbitrary: a look that finds nothing then costs less than the others
GLANCE_EVERY: Final = 64  # rounds of these; arbitrary: a system call in some 2000 costs nothing
GLANCE_AFTER: Final = 10_000_000  # ns; arbitrary: as long as a nap
# looks at a word before the rank waits like for anything else, and between two rounds of polling
SPINNING_LOOKS: Final = 64  # arbitrary: some 50 us with the rounds among them
SHORT_LOOKS: Final = 16  # arbitrary: a microsecond, in which most words come that come soon
YIELDING_LOOKS: Final = 64  # arbitrary: each gives all others of some ten ranks a turn
LOOKS_A_ROUND: Final = 4  # arbitrary: a round costs a fraction of what a yield does
# a rank without a core of its own whose yields show that nobody else wants the one it is on, as the
# other ranks sleep, gives it away more seldom; both arbitrary: a yield takes as long as some rounds
VAIN_YIELDS: Final = 16
ROUNDS_A_YIELD: Final = 8
TURN_EVERY: Final = 1000  # empty polls; reference performance.md 3e: no visible cost


@cclass
class RealEngine(Engine):
    """Drives the one rank of this process.

    Attributes:
        sleepers: who is told of threads that sleep for long, or None.
        still_after: how long that is, ns.
        wakeup: the descriptors that wake the rank when it is parked.
    """

    _bell: int
    _driver: object | None
    _glanced: int
    _glances: int
    _hub: Shown[Hub | None]
    _hubless: Shown[bool]
    _loop_kind: str
    _made_to_park_after: int
    _made_to_spin_for: int
    _nap_at: int
    _owner: int
    _park_after: int
    _placement: Placement
    _readers: Shown[LoopReaders | None]
    _rounds: int
    _rounds_kept: int
    _shares_core: bool
    _sleepers: int
    _spin_for: int
    _vain: int
    sleepers: Shown[Sleepers | None]
    still_after: Shown[int]
    wakeup: Wakeup
    __slots__ = (*__annotations__, "__weakref__")

    def __init__(
        self,
        ranks_here: int = 1,
        place: int = 0,
        *,
        spin_us: int = 50,
        park_ms: int = 1,
        loop: str = "auto",
    ) -> None:
        """Make an engine owned by the calling thread.

        Args:
            ranks_here: ranks of the job on this host; more than there are cores means that
                waiting ranks give their core away at once.
            place: of this rank among them: each begins on a core of its own, if there are enough.
            spin_us: how long to poll without yielding while every rank has a core.
            park_ms: how long to be idle before sleeping.
            loop: `uvloop`, `asyncio` or `auto`.
        """
        super().__init__(Random())  # noqa: S311 - for pauses and the like; secrets are entropy()
        self.sleepers = None
        self.still_after = 0
        self.wakeup = Wakeup()
        self._owner = threading.get_ident()
        self._loop_kind = loop
        self._hub = None
        self._hubless = False  # the kernel lets no event loop watch what wakes us
        self._readers = None
        self._driver = None
        self._sleepers = 0
        self._rounds = 0
        self._glances = 0  # rounds of those that are polled seldom since the last one
        self._glanced = 0
        self.has_core = ranks_here <= len(os.sched_getaffinity(0))
        self._nap_at = 0
        self._shares_core = False
        self._vain = 0
        self._rounds_kept = 0
        self._placement = Placement(place)
        if self.has_core and ranks_here > 1:
            self._placement.move_home()
        self._spin_for = spin_us * 1000 if self.has_core else 0
        self._park_after = max(park_ms * 1_000_000, self._spin_for)
        self._made_to_spin_for, self._made_to_park_after = self._spin_for, self._park_after
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.wakeup.watch_descriptor(self._bell, self._silence)

    @ccall
    def now(self) -> int:
        """Nanoseconds of the monotonic clock."""
        return raw.clock()

    def poll_seldom(self, poller: Poller, *, seldom: bool) -> None:
        """Poll it every `SELDOM` rounds, or every round again."""
        if seldom == any(other is poller for other in self._seldom):
            return
        self.remove_poller(poller)
        if seldom:
            self._seldom = [*self._seldom, poller]
        else:
            self.add_poller(poller)

    @ccall
    def progress(self) -> int:
        """Poll once, unless another thread of this rank is polling."""
        if not self.lock.acquire(False):
            return 0
        try:
            events_handled: int = self.poll_all()
            self._rounds += 1
            if self._rounds >= SELDOM:
                self._rounds = 0
                events_handled += self._poll_seldom()
        finally:
            self.lock.release()
        if events_handled and self._sleepers:
            os.eventfd_write(self._bell, 1)
        return events_handled

    @cfunc
    def _poll_seldom(self) -> int:
        """A round of those that are asked seldom; more seldom still, what else wakes a sleeper."""
        events: int = self.poll_these(self._seldom) if self._seldom else 0
        self._glances += 1
        if self._glances >= GLANCE_EVERY and not self._polling:
            self._glances = 0
            self.wakeup.dispatch(self.wakeup.ready(0))
        return events

    @ccall
    def glance(self) -> None:
        """Take in what only a rank that sleeps hears of, once in `GLANCE_AFTER`."""
        now: int = self.now()
        if now - self._glanced >= GLANCE_AFTER:
            self._glanced = now
            with self.lock:
                self.wakeup.dispatch(self.wakeup.ready(0))

    @ccall
    def wait(self, waitable: Waitable, timeout: int = -1) -> bool:
        """Poll, then yield, then park until `waitable` is complete."""
        deadline: int = self.now() + timeout if timeout >= 0 else -1
        began: int = 0
        idle_since: int = 0
        misses: int = 0
        while not waitable.complete:
            if self.progress():
                misses = 0
                continue
            if waitable.complete:
                break
            misses += 1
            if misses == 1:
                idle_since = self.now()
                began = began or idle_since
                self._nap_at = idle_since + self._spin_for + YIELDS_FOR
                self._shares_core = False
            elif not self._idle(waitable, misses, began, idle_since, deadline):
                return waitable.complete
        return True

    def wait_as(self, spin: int | None, park: int | None) -> None:
        """Change how long to spin and when to sleep, or change it back."""
        self._spin_for = self._made_to_spin_for if spin is None else spin
        after = self._made_to_park_after if park is None else park
        self._park_after = max(after, self._spin_for)

    def drive(self) -> Callable[[], object]:
        """A thread that waits like any other: it polls, then sleeps until there are news."""
        end = Waitable()
        thread = threading.Thread(target=self.wait, args=(end,), name="ompy progress", daemon=True)
        thread.start()

        def stop() -> None:
            with self.lock:
                end.finish()
            os.eventfd_write(self._bell, 1)
            thread.join()  # asleep it might take answers that this thread is to wait for

        return stop

    @ccall
    def look_for(self, memory: memoryview, at: int, least: U64) -> bool:
        """Look, and give the core away between looks; all is polled now and then."""
        looks: int = 0
        while raw.word(memory, at) < least:
            looks += 1
            if self.has_core:
                if looks > SPINNING_LOOKS:
                    return False
                raw.pause(1 if looks <= SHORT_LOOKS else LONG_PAUSE)
            else:
                if looks > YIELDING_LOOKS:
                    return False
                self._give_way()
            if looks % LOOKS_A_ROUND == 0:
                self.progress()
        return True

    @cfunc
    def _idle(
        self, waitable: Waitable, misses: int, began: int, idle_since: int, deadline: int
    ) -> bool:
        """Spend an empty round. False when the deadline has passed."""
        now: int = self.now()
        if 0 <= deadline <= now:
            return False
        if self._hub is not None and misses % TURN_EVERY == 0 and self._may_use_hub():
            self._hub.turn()
        idle: int = now - idle_since
        if idle >= self._park_after:
            self._park(waitable, began, idle, deadline - now if deadline >= 0 else -1)
        elif self._shares_core and now >= self._nap_at:
            raw.nap()
            self._nap_at = self.now() + YIELDS_FOR
        elif idle >= self._spin_for and not self.has_core:
            self._give_way()
        elif idle >= self._spin_for:
            raw.give_way()
            if self._placement.yielded(now, self.now()):
                self._shares_core = True
        else:
            raw.pause(1 if misses < LONG_WAIT else LONG_PAUSE)
        return True

    @cfunc
    def _give_way(self) -> None:
        """Give the core away, or not this time if nobody wanted it the last times."""
        if self._vain >= VAIN_YIELDS:
            self._rounds_kept += 1
            if self._rounds_kept < ROUNDS_A_YIELD:
                raw.pause(1)
                return
            self._rounds_kept = 0
        begun: int = self.now()
        raw.give_way()
        self._vain = 0 if self._placement.yielded(begun, self.now()) else self._vain + 1

    @cfunc
    def _park(self, waitable: Waitable, began: int, idle: int, remaining: int) -> None:
        """Sleep until a descriptor, a timer or the safety nap ends it."""
        with self.lock:
            self._sleepers += 1
            armed = self.arm_pollers()
        try:
            if armed and not waitable.complete:
                if remaining < 0 and self.sleepers is not None:
                    self._sleep_long(waitable, began, idle)
                else:
                    self._sleep(self._nap(idle, remaining), idle)
            else:
                # the news may be another thread's, which is to have the interpreter to see them:
                # compiled, nothing else in this round gives it away
                raw.give_way()
        finally:
            with self.lock:
                self._sleepers -= 1
                if not self._sleepers:
                    self.disarm_pollers()

    def _sleep_long(self, waitable: Waitable, began: int, idle: int) -> None:
        """Sleep, and once that is long, say so: perhaps nothing will ever come."""
        assert self.sleepers is not None, "who asks for it has looked"
        if self.now() - began < self.still_after:
            self._sleep(self._nap(idle, -1), idle)
            return
        self.sleepers.sleeps(waitable, began)
        try:
            self._sleep(self._nap(idle, -1), idle)
        finally:
            self.sleepers.wakes()

    def _nap(self, idle: int, remaining: int) -> float:
        """Seconds to sleep at most: longer the longer the rank has been idle."""
        nap = min(max(SAFETY_NAP, idle / 10e9), 10 * SAFETY_NAP)
        due = self._timers.next_deadline() if self._timers.armed else None
        if due is not None:
            nap = min(nap, max(0, due - self.now()) / 1e9)
        return min(nap, remaining / 1e9) if remaining >= 0 else nap

    def _sleep(self, nap: float, idle: int) -> None:
        if self._may_use_hub() and self._hub_watches(idle):
            self.hub().sleep(nap)
        else:
            ready = self.wakeup.ready(nap)
            with self.lock:
                self.wakeup.dispatch(ready)

    def _may_use_hub(self) -> bool:
        if threading.get_ident() != self._owner or self.wakeup.fileno() < 0:
            return False
        # no loop can be running while nobody has imported asyncio; we do not, at start-up
        events = sys.modules.get("asyncio.events")
        return events is None or events._get_running_loop() is None

    def _hub_watches(self, idle: int) -> bool:
        """Not in exit hooks: with threading shut down nothing can import what asyncio needs."""
        if self._hubless:
            return False
        if self._hub is None and (idle < HUB_AFTER * 1e9 or not threading.main_thread().is_alive()):
            return False
        try:
            self.hub()
            assert self._readers is not None
            self._readers.follow()
        # Linux: ELOOP, epoll descriptors in each other are too many; or no room for its modules
        except (OSError, MemoryError, ImportError) as problem:
            import warnings

            self._hubless = True
            why = str(problem) or type(problem).__name__
            text = f"ompy sleeps without its event loop, which cannot watch for news: {why}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        return not self._hubless

    def hub(self) -> Hub:
        """The event loop to sleep in, made on first use; only for the owning thread."""
        if self._hub is None:
            from ompy.engine.hub import Hub
            from ompy.engine.readers import LoopReaders

            self._hub = Hub(self._loop_kind)
            self._readers = LoopReaders(self.wakeup, self._hub.loop, self._woken)
        return self._hub

    def _woken(self) -> None:
        with self.lock:
            self.wakeup.dispatch(self.wakeup.ready(0))
        if self._hub is not None:
            self._hub.wake()

    def _silence(self) -> None:
        """Empty our own bell, so that it can ring again."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._bell)

    async def completed(self, waitable: Waitable) -> None:
        """Await `waitable` beside any other code of the running asyncio loop."""
        import asyncio

        from ompy.engine.asyncio_progress import AsyncDriver

        loop = asyncio.get_running_loop()
        driver = self._driver
        if not isinstance(driver, AsyncDriver) or driver.loop is not loop:
            driver = self._driver = AsyncDriver(self, loop)
        await driver.wait(waitable)

    def close(self) -> None:
        """Give back the descriptors. The engine is of no use afterwards."""
        if self._readers is not None:
            self._readers.rest()
        if self._hub is not None:
            self._hub.close()
            self._hub = None
        self.wakeup.close()
        os.close(self._bell)
