"""Locks of the conduit: the NIC's, and those of its queues.

The NIC stands no call while another one runs. Where several threads may call at once (PAR) its lock
is the rank's own, so that threads in MPI and pollers of the engine are kept out too; else it is
none.
No thread has the lock of a queue and asks for the NIC's.

Source: seed gasnet (Locking).
"""

from __future__ import annotations

import _thread
from typing import TYPE_CHECKING

from ompy import raw
from ompy.frameworks.conduit import ThreadMode

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ompy.engine.base import Engine
    from ompy.engine.lock import RankLock


class NoLock:
    """For one caller at a time."""

    __slots__ = ()

    def __enter__(self) -> None:
        return

    def __exit__(self, *_problem: object) -> None:
        return


class SpinLock:
    """A lock that is asked for again and again, giving the core away in between."""

    __slots__ = ("_lock",)

    def __init__(self, lock: RankLock) -> None:
        """Around `lock`."""
        self._lock = lock

    def __enter__(self) -> None:
        while not self._lock.acquire(False):
            raw.give_way()

    def __exit__(self, *_problem: object) -> None:
        self._lock.release()


def nic_lock(engine: Engine, mode: ThreadMode, *, spin: bool) -> AbstractContextManager[object]:
    """What is held around calls of the NIC."""
    if mode is not ThreadMode.PAR:
        return NoLock()
    return SpinLock(engine.lock) if spin else engine.lock


def queue_lock(mode: ThreadMode) -> AbstractContextManager[object]:
    """The lock of one queue."""
    return _thread.allocate_lock() if mode is ThreadMode.PAR else NoLock()
