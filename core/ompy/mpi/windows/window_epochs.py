"""Which epochs of a window this rank is in, and so what it may do.

An access needs an epoch: between fences, after `Start` on one of its targets, or under a lock. A
fence begins an epoch only if something is done in it, so locks may follow a fence. Source: MPI
4.0 12.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ompy.compiled import ccall, cclass
from ompy.data.errors import ERR_ASSERT, ERR_LOCKTYPE, ERR_RMA_SYNC, MPIError
from ompy.mpi.constants import (
    LOCK_EXCLUSIVE,
    LOCK_SHARED,
    MODE_NOCHECK,
    MODE_NOPRECEDE,
    MODE_NOPUT,
    MODE_NOSTORE,
    MODE_NOSUCCEED,
)

# assertions each call may have; MPI 4.0 12.5.5
FENCE: Final = MODE_NOSTORE | MODE_NOPUT | MODE_NOPRECEDE | MODE_NOSUCCEED
START: Final = MODE_NOCHECK
POST: Final = MODE_NOCHECK | MODE_NOSTORE | MODE_NOPUT
LOCK: Final = MODE_NOCHECK


def check_assertion(call: str, given: int, allowed: int) -> None:
    """See that an assertion has a meaning for a call.

    Raises:
        MPIError: ERR_ASSERT, it has none.
    """
    if given & ~allowed:
        raise MPIError(ERR_ASSERT, f"assertion {given:#x} says nothing to {call}")


@cclass
class Epochs:
    """The epochs this rank is in. Calls raise ERR_RMA_SYNC where something is not allowed."""

    _fenced: bool
    _locked: dict[int, int]
    _locked_all: bool
    _posted: Any
    _started: Any
    _targets: Any
    _used: bool
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        self._fenced = False
        self._used = False
        self._started = None  # or a frozenset of targets
        self._targets = None  # or these in order
        self._posted = None  # or a tuple of origins
        self._locked = {}
        self._locked_all = False

    @ccall
    def allows(self, target: int) -> bool:
        """Whether `access` would allow it without a wait for a `Post`, and so counts it."""
        if self._locked_all or (self._locked and target in self._locked):
            return True
        if self._started is not None or not self._fenced:
            return False
        self._used = True
        return True

    @ccall
    def is_target(self, target: int) -> bool:
        """Whether a target is one of `Start`."""
        return self._started is not None and target in self._started

    @ccall
    def may_begin(self) -> bool:
        """Whether `start` and `lock_all` would allow it."""
        return not (self._locked_all or self._locked or self._started is not None or self._used)

    @ccall
    def begin_start(self, targets: Any, members: Any) -> None:
        """What `start` does where it is allowed; the targets in order, and as a frozenset."""
        self._fenced = False
        self._targets = targets
        self._started = members

    @ccall
    def started(self) -> Any:
        """The targets of `Start` in order, or None."""
        return self._targets

    @ccall
    def end_start(self) -> None:
        """What `complete` does where it is allowed."""
        self._started = self._targets = None

    @ccall
    def may_post(self) -> bool:
        """Whether `post` would allow it."""
        return self._posted is None and not (self._fenced and self._used)

    @ccall
    def begin_post(self, origins: Any) -> None:
        """What `post` does where it is allowed."""
        self._fenced = False
        self._posted = origins

    @ccall
    def exposed(self) -> Any:
        """The origins of `Post`, or None."""
        return self._posted

    @ccall
    def may_fence(self) -> bool:
        """Whether `fence` would allow it."""
        if self._locked_all or self._locked:
            return False
        return self._started is None and self._posted is None

    @ccall
    def begin_fence(self, assertion: int) -> None:
        """What `fence` does where it is allowed."""
        self._fenced = not assertion & MODE_NOSUCCEED
        self._used = False

    @ccall
    def may_lock(self, target: int) -> bool:
        """Whether `lock` would allow it, for a kind of lock that there is."""
        if self._locked_all or self._started is not None or self._used:
            return False
        return target not in self._locked

    @ccall
    def hold_lock(self, target: int, kind: int) -> None:
        """What `lock` does where it is allowed."""
        self._locked[target] = kind

    @ccall
    def hold_all(self, held: bool) -> None:
        """What `lock_all` and `unlock_all` do where they are allowed."""
        self._locked_all = held

    @ccall
    def holds_lock(self, target: int) -> bool:
        """Whether a lock of one target is held, by `lock`."""
        return target in self._locked

    @ccall
    def holds_all(self) -> bool:
        """Whether all locks are held, by `lock_all`."""
        return self._locked_all

    @ccall
    def is_passive(self, target: int) -> bool:
        """Whether `passive` would allow it for one target; for -1, for all."""
        if self._locked_all:
            return True
        return target in self._locked if target >= 0 else len(self._locked) > 0

    @ccall
    def release_lock(self, target: int) -> None:
        """What `unlock` does where it is allowed."""
        del self._locked[target]

    def access(self, target: int) -> None:
        """An operation on a target."""
        if self._locked_all or target in self._locked:
            return
        if self._started is not None:
            if target not in self._started:
                raise _wrong(f"rank {target} is not in the group of Start")
        elif self._fenced:
            self._used = True
        else:
            raise _wrong(f"there is no epoch for rank {target}: call Fence, Start or Lock before")

    def passive(self, target: int | None) -> None:
        """A flush, which needs a lock; None is for all targets."""
        if target is None and not (self._locked_all or self._locked):
            raise _wrong("no lock is held")
        if target is not None and not (self._locked_all or target in self._locked):
            raise _wrong(f"the lock of rank {target} is not held")

    def targets(self, size: int) -> Sequence[int]:
        """Those a flush of all is for."""
        return range(size) if self._locked_all else tuple(self._locked)

    def fence(self, assertion: int) -> None:
        """A fence."""
        check_assertion("Fence", assertion, FENCE)
        self._none_but_fence("Fence", exposed=True)
        self.begin_fence(assertion)

    def start(self, targets: Sequence[int], assertion: int) -> None:
        """Start."""
        check_assertion("Start", assertion, START)
        self._may_begin("Start")
        self.begin_start(tuple(sorted(targets)), frozenset(targets))

    def complete(self) -> Sequence[int]:
        """Complete; the targets of Start."""
        if self._started is None:
            raise _wrong("Complete without Start")
        targets: Sequence[int] = self._targets
        self.end_start()
        return targets

    def post(self, origins: Sequence[int], assertion: int) -> None:
        """Post."""
        check_assertion("Post", assertion, POST)
        if self._posted is not None:
            raise _wrong("Post while the window is exposed by an earlier one: call Wait before")
        if self._fenced and self._used:
            raise _wrong("Post in an epoch of Fence")
        self.begin_post(tuple(origins))

    @property
    def posted(self) -> Sequence[int]:
        """The origins of Post."""
        if self._posted is None:
            raise _wrong("Wait or Test without Post")
        origins: Sequence[int] = self._posted
        return origins

    @ccall
    def waited(self) -> None:
        """The epoch of Post has ended."""
        self._posted = None

    def lock(self, target: int, kind: int, assertion: int) -> None:
        """Lock."""
        if kind not in {LOCK_EXCLUSIVE, LOCK_SHARED}:
            raise MPIError(ERR_LOCKTYPE, f"{kind} is no kind of lock")
        check_assertion("Lock", assertion, LOCK)
        if target in self._locked or self._locked_all:
            raise _wrong(f"Lock of rank {target}, which is locked by this rank already")
        if not self._locked:
            self._may_begin("Lock")
        self._locked[target] = kind

    def unlock(self, target: int) -> None:
        """Unlock."""
        if target not in self._locked:
            raise _wrong(f"Unlock of rank {target} without Lock")
        del self._locked[target]

    def lock_all(self, assertion: int) -> None:
        """Lock_all."""
        check_assertion("Lock_all", assertion, LOCK)
        if self._locked or self._locked_all:
            raise _wrong("Lock_all while a lock is held")
        self._may_begin("Lock_all")
        self._locked_all = True

    def unlock_all(self) -> None:
        """Unlock_all."""
        if not self._locked_all:
            raise _wrong("Unlock_all without Lock_all")
        self._locked_all = False

    def free(self) -> None:
        """Free."""
        self._none_but_fence("Free", exposed=True)

    def _may_begin(self, call: str) -> None:
        """An access epoch other than that of a fence."""
        self._none_but_fence(call, exposed=False)
        if self._used:
            raise _wrong(f"{call} in an epoch of Fence: call Fence before")

    def _none_but_fence(self, call: str, *, exposed: bool) -> None:
        if self._locked or self._locked_all:
            raise _wrong(f"{call} while a lock is held: call Unlock or Unlock_all before")
        if self._started is not None:
            raise _wrong(f"{call} after Start: call Complete before")
        if exposed and self._posted is not None:
            raise _wrong(f"{call} after Post: call Wait before")


def _wrong(detail: str) -> MPIError:
    return MPIError(ERR_RMA_SYNC, detail)
