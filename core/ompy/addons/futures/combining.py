"""Futures made of futures: all of several, and what follows one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

__all__ = ["collect", "compose"]

_T = TypeVar("_T")


def collect(fs: Collection[Future[_T]]) -> Future[list[_T]]:
    """A future of the results of several, in their order.

    The first that fails or is cancelled decides, and the others are cancelled. Cancelling the new
    one cancels all.

    Args:
        fs: the futures; one may be there more than once.
    """
    return _Collection(list(fs)).whole


class _Collection(Generic[_T]):
    """Futures, and the one that waits for them."""

    def __init__(self, parts: list[Future[_T]]) -> None:
        self._parts = parts
        self._waiting = set(parts)
        self._lock = threading.RLock()  # a callback may run inside of another one
        self.whole: Future[list[_T]] = Future()
        if parts:
            self.whole = type(parts[0])()  # type: ignore[assignment]  # of a subclass, perhaps
        if not parts:
            self.whole.set_result([])
            return
        self.whole.add_done_callback(self._end)
        for part in dict.fromkeys(parts):
            part.add_done_callback(self._note)

    def _note(self, part: Future[_T]) -> None:
        """One is done."""
        with self._lock:
            self._waiting.discard(part)
            if self.whole.done():
                return
            if part.cancelled():
                self.whole.cancel()
            elif part.exception() is not None:
                if self.whole.set_running_or_notify_cancel():
                    self.whole.set_exception(part.exception())
            elif not self._waiting and self.whole.set_running_or_notify_cancel():
                self.whole.set_result([each.result() for each in self._parts])

    def _end(self, whole: Future[list[_T]]) -> None:
        """The whole is done: nobody needs what is left."""
        with self._lock:
            left = list(self._waiting)
        for part in left:
            part.cancel()
        if whole.cancelled():
            whole.set_running_or_notify_cancel()


def compose(
    future: Future[Any],
    resulthook: Callable[[Any], Any] | None = None,
    excepthook: Callable[[BaseException], Any] | None = None,
) -> Future[Any]:
    """A future of what a function makes of another future's end.

    Args:
        future: the other one. Cancelling the new one cancels it.
        resulthook: called with its result; the result as it is, if there is none.
        excepthook: called with its exception; an exception that it returns is the new one's,
            anything else its result. The exception as it is, if there is none.
    """
    made: Future[Any] = type(future)()

    def cancel(_: Future[Any]) -> None:
        if made.cancelled():
            made.set_running_or_notify_cancel()
            future.cancel()

    def finish(_: Future[Any]) -> None:
        if future.cancelled():
            made.cancel()
            return
        if not made.set_running_or_notify_cancel():
            return
        try:
            _settle(made, future, resulthook, excepthook)
        except BaseException as problem:
            made.set_exception(problem)

    made.add_done_callback(cancel)
    future.add_done_callback(finish)
    return made


def _settle(
    made: Future[Any],
    future: Future[Any],
    resulthook: Callable[[Any], Any] | None,
    excepthook: Callable[[BaseException], Any] | None,
) -> None:
    """End a future as another one that is done, by way of what the caller asked for."""
    problem = future.exception()
    if problem is None:
        result = future.result()
        made.set_result(resulthook(result) if resulthook else result)
        return
    instead = excepthook(problem) if excepthook else problem
    if isinstance(instead, BaseException):
        made.set_exception(instead)
    else:
        made.set_result(instead)
