"""Progress while the user's asyncio loop runs: awaiting a request beside other coroutines."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ompy.data.request import Waitable
from ompy.engine.readers import LoopReaders

if TYPE_CHECKING:
    from ompy.engine.real import RealEngine

BUSY_FOR: Final = 200_000  # ns; arbitrary: a few wake-ups' worth of polling before sleeping
NAP: Final = 0.010  # s; reference performance.md 3e: safety net, as in the blocking engine


class AsyncDriver:
    """Polls the rank from callbacks of one asyncio loop for as long as something is awaited.

    Attributes:
        loop: the loop it belongs to.
    """

    def __init__(self, engine: RealEngine, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._engine = engine
        self._awaited = 0
        self._handle: asyncio.Handle | None = None
        self._idle_since = 0
        self._parked = False
        self._readers = LoopReaders(engine.wakeup, loop, self._woken)
        self._blind = False  # the kernel lets this loop not watch what wakes the rank

    async def wait(self, waitable: Waitable) -> None:
        """Return when `waitable` is complete. Cancelling the await leaves it as it is."""
        if waitable.complete:
            return
        future = self.loop.create_future()
        waitable.notify(lambda: self._settle(future))
        self._awaited += 1
        self._idle_since = self._engine.now()
        if self._awaited == 1:
            self._watch()
        self._continue()
        try:
            await future
        finally:
            self._awaited -= 1
            if not self._awaited:
                self._rest()

    def _watch(self) -> None:
        """Have the loop wake for news; where it cannot, the rank looks after every nap."""
        if self._blind:
            return
        try:
            self._readers.follow()
        except OSError as problem:  # Linux: ELOOP, epoll descriptors in each other are too many
            import warnings

            self._blind = True
            text = f"ompy looks for news every {NAP * 1000:.0f} ms: asyncio cannot watch: {problem}"
            warnings.warn(text, RuntimeWarning, stacklevel=3)

    def _settle(self, future: asyncio.Future[None]) -> None:
        # a thread of the rank outside this loop may have completed it
        self.loop.call_soon_threadsafe(lambda: None if future.done() else future.set_result(None))

    def _continue(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = self.loop.call_soon(self._round)

    def _round(self) -> None:
        self._handle = None
        self._unpark()
        if not self._awaited:
            return
        now = self._engine.now()
        if self._engine.progress():
            self._idle_since = now
        if now - self._idle_since < BUSY_FOR:
            self._continue()
            return
        with self._engine.lock:
            self._parked = True
            armed = self._engine.arm_pollers()
        if armed:
            self._watch()
            self._handle = self.loop.call_later(NAP, self._round)
        else:
            self._continue()

    def _woken(self) -> None:
        with self._engine.lock:
            self._engine.wakeup.dispatch(self._engine.wakeup.ready(0))
        self._idle_since = self._engine.now()
        if self._awaited:
            self._continue()

    def _unpark(self) -> None:
        if self._parked:
            self._parked = False
            with self._engine.lock:
                self._engine.disarm_pollers()

    def _rest(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._unpark()
        self._readers.rest()
