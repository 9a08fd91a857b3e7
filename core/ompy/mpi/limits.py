"""How many operations and error handlers of their own users may have at a time.

mpi4py has a fixed number of them, and programs (and its tests) count on the error. The virtual
world has many ranks in one interpreter, so nothing is limited there.
"""

from __future__ import annotations

import _thread
from _weakref import ref
from typing import Final

from ompy.mpi.handles import State

MOST: Final = 32  # mpi4py: user-defined operations, and error handlers of one kind


class Limited:
    """Living states of one sort. One that nobody refers to any more does not count."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = _thread.allocate_lock()
        self._states: set[ref[State]] = set()

    def count_new(self, state: State) -> None:
        """Count a new one.

        Raises:
            RuntimeError: there are enough.
        """
        with self._lock:
            if len(self._states) >= MOST and _is_initialized():
                raise RuntimeError(f"there are {MOST} user-defined {self._what} already")
            self._states.add(ref(state, self._states.discard))

    def remove(self, state: State) -> None:
        """It was freed."""
        with self._lock:
            self._states.discard(ref(state))


def _is_initialized() -> bool:
    from ompy.mpi.processes.life import Is_initialized

    return Is_initialized()
