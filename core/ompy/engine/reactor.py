"""A small event loop: descriptors, timers and signals, by callbacks, and nothing else.

The launcher and the agents live in one. It offers the part of `asyncio.AbstractEventLoop` they
need, under the same names and with the same meaning, so that what works with it also works with
asyncio's loops; importing asyncio takes longer than a small job does.
"""

from __future__ import annotations

import heapq
import os
import select
import signal
import sys
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any, Final, Protocol

_BOTH: Final = select.EPOLLIN | select.EPOLLOUT
_SIGNALS_READ: Final = 4096  # bytes at once; arbitrary: one per signal that has come


class HasDescriptor(Protocol):
    """A socket, a pipe, a file."""

    def fileno(self) -> int:
        """Its descriptor."""


class Cancellable(Protocol):
    """A call that may still be called off."""

    def cancel(self) -> None:
        """Call it off; harmless when it was made already."""


class Loop(Protocol):
    """What launcher and agents need of an event loop: `Reactor` and asyncio's loops have it."""

    def call_soon(self, callback: Callable[..., object], *args: Any) -> Cancellable:
        """Call it in the next turn."""

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Cancellable:
        """Call it in `delay` seconds."""

    def call_at(self, when: float, callback: Callable[..., object], *args: Any) -> Cancellable:
        """Call it when `time()` is `when`."""

    def time(self) -> float:
        """Seconds of the loop's clock."""

    def add_reader(
        self, fd: int | HasDescriptor, callback: Callable[..., object], *args: Any
    ) -> object:
        """Call it whenever the descriptor is readable; instead of what was called before."""

    def remove_reader(self, fd: int | HasDescriptor) -> object:
        """Call nothing when it is readable."""

    def add_writer(
        self, fd: int | HasDescriptor, callback: Callable[..., object], *args: Any
    ) -> object:
        """Call it whenever the descriptor is writable; instead of what was called before."""

    def remove_writer(self, fd: int | HasDescriptor) -> object:
        """Call nothing when it is writable."""

    def stop(self) -> None:
        """Return from `run_forever` after this turn."""


class Call:
    """A callback and its arguments, until it is called off."""

    __slots__ = ("args", "callback", "cancelled")

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.callback = callback
        self.args = args
        self.cancelled = False

    def cancel(self) -> None:
        """Never make this call."""
        self.cancelled = True


class Reactor:
    """An event loop for one thread, the main thread if it takes signals.

    Its methods do what those of `asyncio.AbstractEventLoop` of the same names do; signals
    arrive as callbacks in the loop.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._watched: dict[int, dict[int, Call]] = {}  # by descriptor and event
        self._ready: deque[Call] = deque()
        self._timers: list[tuple[float, int, Call]] = []
        self._added = 0
        self._stopping = False
        self._signals: dict[int, Call] = {}
        self._wakeup = (-1, -1)
        self._handler: Callable[[Any, dict[str, Any]], object] | None = None

    # calls

    def call_soon(self, callback: Callable[..., object], *args: Any) -> Call:
        """Call it in the next turn."""
        call = Call(callback, args)
        self._ready.append(call)
        return call

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Call:
        """Call it in `delay` seconds; ties in the order of asking."""
        return self.call_at(monotonic() + delay, callback, *args)

    def call_at(self, when: float, callback: Callable[..., object], *args: Any) -> Call:
        """Call it when `time()` is `when`; ties in the order of asking."""
        call = Call(callback, args)
        self._added += 1
        heapq.heappush(self._timers, (when, self._added, call))
        return call

    def time(self) -> float:
        """Seconds of the monotonic clock."""
        return monotonic()

    # descriptors

    def add_reader(
        self, fd: int | HasDescriptor, callback: Callable[..., object], *args: Any
    ) -> None:
        """Call it whenever the descriptor is readable, or its other end has gone.

        Raises:
            PermissionError: it is a file or directory: always readable.
        """
        self._watch(fd, select.EPOLLIN, Call(callback, args))

    def add_writer(
        self, fd: int | HasDescriptor, callback: Callable[..., object], *args: Any
    ) -> None:
        """Call it whenever the descriptor is writable, or its other end has gone; raises alike."""
        self._watch(fd, select.EPOLLOUT, Call(callback, args))

    def remove_reader(self, fd: int | HasDescriptor) -> bool:
        """Call nothing when it is readable. Whether something would have been."""
        return self._unwatch(fd, select.EPOLLIN)

    def remove_writer(self, fd: int | HasDescriptor) -> bool:
        """Call nothing when it is writable. Whether something would have been."""
        return self._unwatch(fd, select.EPOLLOUT)

    def _watch(self, fd: int | HasDescriptor, event: int, call: Call) -> None:
        number = _number(fd)
        calls = self._watched.get(number)
        if calls is None:
            self._epoll.register(number, event)
            calls = self._watched[number] = {}
        elif event in calls:
            calls[event].cancel()
        else:
            self._epoll.modify(number, _BOTH)
        calls[event] = call

    def _unwatch(self, fd: int | HasDescriptor, event: int) -> bool:
        number = _number(fd)
        calls = self._watched.get(number, {})
        call = calls.pop(event, None)
        if call is None:
            return False
        call.cancel()
        if calls:
            self._epoll.modify(number, _BOTH ^ event)
            return True
        del self._watched[number]
        try:  # noqa: SIM105 - contextlib is not worth its import here
            self._epoll.unregister(number)
        except OSError:  # it was closed before: the kernel has forgotten it
            pass
        return True

    # signals

    def add_signal_handler(self, sig: int, callback: Callable[..., object], *args: Any) -> None:
        """Call it in the loop when the signal has come."""
        if not self._signals:
            reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            self._wakeup = (reading, writing)
            signal.set_wakeup_fd(writing)
            self.add_reader(reading, self._signalled)
        self._signals[sig] = Call(callback, args)
        signal.signal(sig, _leave_it_to_the_loop)
        signal.siginterrupt(sig, False)

    def remove_signal_handler(self, sig: int) -> bool:
        """Let the signal do what it does to a Python program. Whether there was a handler."""
        if self._signals.pop(sig, None) is None:
            return False
        default = signal.default_int_handler if sig == signal.SIGINT else signal.SIG_DFL
        signal.signal(sig, default)
        if not self._signals:
            signal.set_wakeup_fd(-1)
            self.remove_reader(self._wakeup[0])
            for end in self._wakeup:
                os.close(end)
        return True

    def _signalled(self) -> None:
        for number in os.read(self._wakeup[0], _SIGNALS_READ):
            call = self._signals.get(number)
            if call is not None:
                self._ready.append(call)

    # running

    def run_forever(self) -> None:
        """Take turns until `stop` is called; what was to be called in that turn still is."""
        while True:
            self._turn()
            if self._stopping:
                self._stopping = False
                return

    def stop(self) -> None:
        """Return from `run_forever` after this turn, or after its first if it does not run."""
        self._stopping = True

    def close(self) -> None:
        """Give descriptors and signals back. It is over."""
        for number in list(self._signals):
            self.remove_signal_handler(number)
        self._watched.clear()
        self._epoll.close()

    def _turn(self) -> None:
        for number, events in self._epoll.poll(self._patience()):
            calls = self._watched.get(number, {})
            for event in (select.EPOLLIN, select.EPOLLOUT):
                # an error or a hang-up wakes both
                if event in calls and events & ~(_BOTH ^ event):
                    self._ready.append(calls[event])
        now = monotonic()
        while self._timers and self._timers[0][0] <= now:
            self._ready.append(heapq.heappop(self._timers)[2])
        for _ in range(len(self._ready)):
            call = self._ready.popleft()
            if not call.cancelled:
                self._make(call)

    def _patience(self) -> float:
        """How long to wait for descriptors, in seconds; below 0 for ever."""
        if self._ready or self._stopping:
            return 0.0
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        return max(0.0, self._timers[0][0] - monotonic()) if self._timers else -1.0

    def _make(self, call: Call) -> None:
        try:
            call.callback(*call.args)
        except Exception as problem:
            context = {"message": f"exception in {call.callback!r}", "exception": problem}
            if self._handler is not None:
                self._handler(self, context)
            else:
                self.default_exception_handler(context)

    def set_exception_handler(self, handler: Callable[[Any, dict[str, Any]], object]) -> None:
        """Tell `handler` of what a callback raises: the loop, and a context as asyncio's."""
        self._handler = handler

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Write it to standard error."""
        import traceback

        sys.stderr.write(f"{context['message']}\n")
        traceback.print_exception(context["exception"])


def _number(fd: int | HasDescriptor) -> int:
    return fd if isinstance(fd, int) else fd.fileno()


def _leave_it_to_the_loop(_number: int, _frame: object) -> None:
    """Python has written the number to the wake-up descriptor already."""
