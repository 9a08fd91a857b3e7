"""Operations under way: explicit handles, implicit operations, access regions.

Each belongs to the thread that began it. An explicit handle is complete when its put or get is;
implicit operations are counted, gets and puts apart (reference gasnet.md 2, op objects). A
conduit may finish operations in any thread and under any of its locks: finishing takes only
the count's own lock, and never waits.
"""

from __future__ import annotations

import _thread
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final

from ompy.data.request import Waitable
from ompy.frameworks.conduit import Transfer
from ompy.gasnet.errors import BadArgument, ResourceError

if TYPE_CHECKING:
    from ompy.engine.base import Engine

HANDLES_MAX: Final = 65_535  # reference gasnet.md 2: explicit handles of a thread


class Handle(Waitable, Transfer):
    """An operation under way; `await` it, or give it to `wait_syncnb` and its like, once.

    Attributes:
        complete: the peer's memory has the bytes, or the local memory has.
    """

    __slots__ = ("_engine", "_owner")

    def __init__(self, owner: ThreadState | None = None, engine: Engine | None = None) -> None:
        self.complete = False
        self._callbacks = None
        self._owner = owner
        self._engine = engine

    def done(self, *, is_get: bool) -> None:
        """The conduit has finished it."""
        self.finish()

    def _check(self, state: ThreadState) -> None:
        """See that this thread may sync it.

        Raises:
            BadArgument: it has been synced, or belongs to another thread.
        """
        if self._owner is not state and self is not INVALID_HANDLE:
            if self._owner is None:
                raise BadArgument("the handle has been synced already")
            raise BadArgument("a handle is synced by the thread that began the operation")

    def _release(self) -> None:
        """It has been synced."""
        if self._owner is not None:
            self._owner.handles -= 1
            self._owner = None

    def __await__(self) -> Generator[Any, None, Any]:
        return self._awaited().__await__()

    async def _awaited(self) -> Any:
        if self._owner is None and self is not INVALID_HANDLE:
            raise BadArgument("the handle has been synced already")
        if not self.complete:
            completed = getattr(self._engine, "completed", None)
            if completed is None:
                raise NotImplementedError("handles cannot be awaited in the virtual world")
            await completed(self)
        self._release()
        return self._value()

    def _value(self) -> Any:
        """What `await` gives."""
        return None

    def __repr__(self) -> str:
        if self is INVALID_HANDLE:
            return "INVALID_HANDLE"
        state = "complete" if self.complete else "under way"
        return f"<handle, {'synced' if self._owner is None else state}>"


def _invalid() -> Handle:
    made = Handle()
    made.finish()
    return made


# of what was done at once; it may be synced any number of times
INVALID_HANDLE: Final = _invalid()


class Implicit(Transfer):
    """Implicit operations of a thread, or of one access region.

    Attributes:
        puts, gets: how many are under way.
    """

    def __init__(self) -> None:
        self.puts = 0
        self.gets = 0
        self._lock = _thread.allocate_lock()
        self._drained: Waitable | None = None

    def begin_transfer(self, *, is_get: bool) -> None:
        """One more."""
        with self._lock:
            if is_get:
                self.gets += 1
            else:
                self.puts += 1

    def done(self, *, is_get: bool) -> None:
        """The conduit has finished one."""
        with self._lock:
            if is_get:
                self.gets -= 1
            else:
                self.puts -= 1
            assert self.gets >= 0 <= self.puts, "an operation was finished twice"
            drained = None if self.gets or self.puts else self._drained
            if drained is not None:
                self._drained = None
        if drained is not None:
            drained.finish()

    def when_drained(self, handle: Waitable) -> None:
        """Complete `handle` when nothing is under way; no more operations may be begun."""
        with self._lock:
            if self.puts or self.gets:
                self._drained = handle
                return
        handle.finish()

    def under_way(self, *, gets: bool, puts: bool) -> bool:
        """Whether one of these kinds is."""
        return bool((gets and self.gets) or (puts and self.puts))


class ThreadState:
    """What a thread has under way.

    Attributes:
        handles: explicit ones it has not synced.
        implicit: its implicit operations outside access regions.
        region: the open access region's, or None.
    """

    __slots__ = ("engine", "handles", "implicit", "region")

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.handles = 0
        self.implicit = Implicit()
        self.region: Implicit | None = None

    def new_handle(self) -> Handle:
        """A new explicit handle.

        Raises:
            ResourceError: there are as many as a thread may have.
        """
        self.count()
        return Handle(self, self.engine)

    def count(self) -> None:
        """One more handle.

        Raises:
            ResourceError: there are as many as a thread may have.
        """
        if self.handles >= HANDLES_MAX:
            raise ResourceError(f"a thread may have {HANDLES_MAX} handles that it has not synced")
        self.handles += 1

    def waiting(self) -> list[str]:
        """What is under way, in words."""
        lines = [f"{self.handles} handles to be synced"] if self.handles else []
        kinds = [("implicit operations", self.implicit)]
        if self.region is not None:
            kinds.append(("operations of an access region", self.region))
        lines += [
            f"{name}: {operations.puts} puts and {operations.gets} gets"
            for name, operations in kinds
            if operations.puts or operations.gets
        ]
        return lines

    def current(self) -> Implicit:
        """Where a new implicit operation is counted."""
        return self.region if self.region is not None else self.implicit
