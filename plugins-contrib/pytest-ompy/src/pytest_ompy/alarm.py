"""A time limit for what runs in this process."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TimeIsUpError(BaseException):
    """What is interrupted gets this; no test catches it by mistake."""


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise `TimeIsUpError` in whatever the main thread does, after so many seconds.

    An alarm that somebody else has set goes on; the earlier one counts. Outside the main thread
    there is no limit, since signals come to the main one only.

    Args:
        seconds: 0 for no limit.
    """
    if not seconds or threading.current_thread() is not threading.main_thread():
        yield
        return
    remaining, _ = signal.getitimer(signal.ITIMER_REAL)
    if remaining and remaining < seconds:
        yield
        return
    began = time.monotonic()
    previous = signal.signal(signal.SIGALRM, _raise)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        left = max(0.001, remaining - (time.monotonic() - began)) if remaining else 0.0
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        signal.setitimer(signal.ITIMER_REAL, left)


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise TimeIsUpError


def no_limit() -> None:
    """Take back the limit that is in force, if there is one."""
    if signal.getsignal(signal.SIGALRM) is _raise:
        signal.setitimer(signal.ITIMER_REAL, 0)
