"""Locks of windows, in front of the API: when they were had, and having them in that order."""

# ruff: noqa: SLF001 - states are private to users, not to us

from __future__ import annotations

import mmap
import os
import time
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from ompy.check.interposing import Handler, Observer, interpose_class
from ompy.mpi.constants import LOCK_EXCLUSIVE
from ompy.replay.events import ORDER, Locked, Unlocked
from ompy.replay.looking import look_until
from ompy.replay.windows.lock_order import Waits
from ompy.replay.windows.steps import has_all_messages, is_served_in_order

if TYPE_CHECKING:
    from ompy.engine.base import Engine
    from ompy.replay.follower import Follower
    from ompy.replay.recorder import Recorder

LOOKS_S: Final = 0.0002  # s; arbitrary: between two looks at what others have given back
_COUNT: Final = Struct("<Q")


def _memory_of(window: Any, target: int) -> tuple[int, int] | None:
    """Context id of a window, and the job's rank of a target; None if there is nothing to lock."""
    state = window._inner
    communicator = getattr(getattr(state, "comm", None), "communicator", None)
    if communicator is None or not 0 <= target < communicator.size:
        return None
    return communicator.context_id, communicator.procs[target].rank


def begin_recording_locks(observer: Observer, recorder: Recorder) -> None:
    """Write down when locks are had and given back; one clock tells the order of one host's."""

    def lock(
        _observer: Any, _at: Any, _call: str, original: Any, window: Any, rank: int,
        lock_type: int = LOCK_EXCLUSIVE, assertion: int = 0,
    ) -> None:  # fmt: skip
        original(window, rank, lock_type, assertion)
        memory = _memory_of(window, rank)
        if memory is not None:
            if recorder.locks and not (recorder.service and has_all_messages(window)):
                recorder.note_unreplayable(ORDER, f"Win.Lock: {recorder.locks}")
            exclusive = int(lock_type == LOCK_EXCLUSIVE)
            since = time.monotonic_ns()
            recorder.write_event(Locked(recorder.prefix(), *memory, exclusive, since))

    def unlock(_observer: Any, _at: Any, _call: str, original: Any, window: Any, rank: int) -> None:
        memory = _memory_of(window, rank)
        original(window, rank)
        if memory is not None:
            recorder.write_event(Unlocked(recorder.prefix(), *memory))

    _interpose(observer, lock, unlock)


class GrantedLocks:
    """Counts of what ranks have given back, in a file that they all have mapped."""

    def __init__(self, path: str, rank: int, size: int) -> None:
        """Map it; who comes first makes it.

        Raises:
            OSError: it cannot be written.
        """
        self._rank = rank
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.ftruncate(file, size * _COUNT.size)
            self._map = mmap.mmap(file, size * _COUNT.size)
        finally:
            os.close(file)

    def count_unlock(self) -> None:
        """This rank has given one back."""
        at = self._rank * _COUNT.size
        (count,) = _COUNT.unpack_from(self._map, at)
        _COUNT.pack_into(self._map, at, count + 1)

    def await_others(self, waits: Waits, engine: Engine) -> None:
        """Let communication advance until the others have given back so many."""

        def have_given_back() -> bool:
            return all(
                _COUNT.unpack_from(self._map, rank * _COUNT.size)[0] >= count
                for rank, count in waits.items()
            )

        look_until(engine, have_given_back, LOOKS_S)


def begin_replaying_locks(
    observer: Observer,
    follower: Follower,
    waits: dict[int, Waits],
    granted: GrantedLocks | None,
) -> None:
    """Have locks in the order of the recording; `granted` is None where there are none."""
    locks = 0

    def lock(
        _observer: Any, _at: Any, _call: str, original: Any, window: Any, rank: int,
        lock_type: int = LOCK_EXCLUSIVE, assertion: int = 0,
    ) -> None:  # fmt: skip
        nonlocal locks
        memory = _memory_of(window, rank)
        if memory is not None:
            exclusive = int(lock_type == LOCK_EXCLUSIVE)
            follower.next_event(Locked(follower.prefix(), *memory, exclusive, 0))
            locks += 1
            if granted is not None and not is_served_in_order(window):
                granted.await_others(waits.get(locks, {}), window._inner.world.engine)
        original(window, rank, lock_type, assertion)

    def unlock(_observer: Any, _at: Any, _call: str, original: Any, window: Any, rank: int) -> None:
        memory = _memory_of(window, rank)
        original(window, rank)
        if memory is not None:
            follower.next_event(Unlocked(follower.prefix(), *memory))
            if granted is not None:
                granted.count_unlock()

    _interpose(observer, lock, unlock)


def _interpose(observer: Observer, lock: Handler, unlock: Handler) -> None:
    import ompy.MPI as MPI  # noqa: PLR0402 - as programs name it

    interpose_class(observer, MPI.Win, "Win.", {"Lock": lock, "Unlock": unlock}, None)
