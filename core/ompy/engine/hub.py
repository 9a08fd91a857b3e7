"""The hub: an event loop that never leaves `run_forever`, in a greenlet of its own.

Entering and leaving uvloop costs about 30 us; switching greenlets about 1 us
(reference performance.md 3e). So the loop runs in the hub's greenlet, and the rank's own
code switches to it for one turn (`turn`) or to sleep until woken (`sleep`). While the hub is
suspended the thread has no running loop, so the user's own `asyncio.run` works.

Only the thread that created the hub may switch to it, and never from within a coroutine.
The loop is left from its queue of ready callbacks only, never from a timer or a descriptor:
around those libuv keeps lists on the C stack, which greenlets swap, and cancelling another
timer meanwhile would write into memory that is somebody else's.
"""

from __future__ import annotations

import asyncio
from typing import Any

import greenlet

from ompy.engine.asyncio_loops import new_loop


class Hub:
    """An event loop to switch to."""

    def __init__(self, loop_kind: str = "auto") -> None:
        self.loop = new_loop(loop_kind)
        self._greenlet: greenlet.greenlet | None = None
        self._caller: greenlet.greenlet | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._raised: BaseException | None = None
        self.loop.set_exception_handler(self._on_error)

    def turn(self) -> None:
        """Give the loop one turn: what is ready runs, nothing is waited for.

        Raises:
            BaseException: what a signal handler or a callback raised meanwhile.
        """
        self.loop.call_soon(self._leave)
        self._enter()

    def sleep(self, timeout: float) -> None:
        """Sleep in the loop until `wake` is called from one of its callbacks.

        Args:
            timeout: seconds to sleep at most.

        Raises:
            BaseException: what a signal handler or a callback raised meanwhile.
        """
        self._alarm = self.loop.call_later(timeout, self.wake)
        try:
            self._enter()
        finally:
            self._alarm.cancel()
            self._alarm = None

    def wake(self) -> None:
        """End `sleep`; called from the loop's callbacks. Harmless when nobody sleeps."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = self.loop.call_soon(self._leave)  # type: ignore[assignment]

    def close(self) -> None:
        """Stop the loop and give back what it holds."""
        if self._greenlet is not None and not self._greenlet.dead:
            self.loop.call_soon(self.loop.stop)
            self._caller = None
            self._switch()
        self._greenlet = None
        self.loop.close()

    def _enter(self) -> None:
        self._caller = greenlet.getcurrent()
        try:
            self._switch()
        finally:
            self._caller = None
        if self._raised is not None:
            raised, self._raised = self._raised, None
            raise raised

    def _switch(self) -> None:
        running = self._greenlet
        if running is None or running.dead:
            running = self._greenlet = greenlet.greenlet(self._run)
        # an exception that ends the loop surfaces in whoever sleeps in it
        running.parent = greenlet.getcurrent()
        try:
            if running:  # it has begun; before that, the loop sees to this itself
                asyncio._set_running_loop(self.loop)
            running.switch()
        finally:
            asyncio._set_running_loop(None)

    def _run(self) -> None:
        self.loop.run_forever()

    def _on_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Hand what was raised in a callback to the sleeper: the loop would only log it.

        A signal handler runs, and raises, at the first instruction of whichever callback comes
        next. That may be `_leave` itself, so another one is due.
        """
        raised = context.get("exception")
        if raised is None:
            loop.default_exception_handler(context)
            return
        self._raised = raised
        loop.call_soon(self._leave)

    def _leave(self) -> None:
        """Go back to the caller; it forgets itself, so a `_leave` too many does no harm."""
        if self._caller is not None:
            self._caller.switch()
