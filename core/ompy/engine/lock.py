"""The rank's lock, as it is when compiled.

Taking it is a comparison and two stores. That is safe because compiled code gives the interpreter
away only where it calls into Python: nothing comes between the look at the owner and the store.
Interpreted, another thread may run between any two lines, so `threading.RLock` serves there, which
does the same and costs several times as much to compiled callers.
"""

from __future__ import annotations

import _thread
import threading
from typing import Final

from ompy import raw
from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.compiled_loader import is_compiled


@cclass
class RankLock:
    """A re-entrant lock that belongs to a thread."""

    _depth: int
    _gate: _thread.LockType
    _owner: U64
    _waiting: int
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        self._owner = 0
        self._depth = 0
        self._waiting = 0
        self._gate = _thread.allocate_lock()
        self._gate.acquire()

    @ccall
    def acquire(self, blocking: bool = True) -> bool:
        """Take it, once more if this thread has it; false when it is another's, unless blocking."""
        me: U64 = raw.thread()
        if self._owner == me:
            self._depth += 1
            return True
        while self._owner:
            if not blocking:
                return False
            self._wait()
        self._owner = me
        self._depth = 1
        return True

    @cfunc
    def _wait(self) -> None:
        """Sleep until its owner gives it back. A signal's handler may raise here."""
        self._waiting += 1
        try:
            self._gate.acquire()
        finally:
            self._waiting -= 1

    @ccall
    def release(self) -> None:
        """Give it back, as often as it was taken.

        Raises:
            RuntimeError: this thread does not have it.
        """
        if self._owner != raw.thread():
            raise RuntimeError("the rank's lock is not this thread's to give back")
        self._depth -= 1
        if not self._depth:
            self._owner = 0
            if self._waiting and self._gate.locked():
                self._gate.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *problem: object) -> None:
        self.release()


COMPILED: Final = is_compiled(__name__)


def rank_lock() -> RankLock:
    """A lock for a new rank."""
    return RankLock() if COMPILED else threading.RLock()  # type: ignore[return-value]
