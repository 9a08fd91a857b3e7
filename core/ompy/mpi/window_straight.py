"""The common calls of a window whose memory all members have mapped, without a call of its module.

Each returns whether it has done all of it. What is not common is left to the longer way, which
checks everything anew and knows what is wrong: other buffers than plain numbers, places given as
lists, operations of users, datatypes of the target, and every error.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from typing import Any, Final

from ompy import raw
from ompy.compiled import ccall, cclass, cfunc
from ompy.data.kernels import PREDEFINED
from ompy.data.message import Message
from ompy.data.operation import Operation
from ompy.frameworks.osc_base.word_locks import WordLocks
from ompy.mpi.constants import LOCK_EXCLUSIVE, LOCK_SHARED
from ompy.mpi.handles import Handle
from ompy.mpi.operation import Op
from ompy.mpi.spec import plain
from ompy.mpi.window_epochs import Epochs

_EXCLUSIVE: Final = LOCK_EXCLUSIVE
_SHARED: Final = LOCK_SHARED
_COMPARED: Final = frozenset("bhilqBHILQ?")  # as `window_messages.py` has them, of plain numbers
_UNIT_MOST: Final = 1 << 20  # bytes; arbitrary: displacements of so many bytes are not common
_BEYOND: Final = 1 << 40  # as `raw.small` has it
_REPLACE: Final = "MPI_REPLACE"
_NO_OP: Final = "MPI_NO_OP"
_TRIES: Final = 64  # arbitrary: an accumulate of few elements takes less
_PROGRESS: Final = 16  # calls; arbitrary: others get on at every so many


@cclass
class StraightWindow:
    """Such a window, as one member has it."""

    _calls: int
    _epochs: Epochs
    _locks: WordLocks
    _members: int
    _module: Any
    _parts: list[Any]
    _units: list[Any]
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        parts: list[memoryview],
        units: list[int],
        locks: WordLocks,
        epochs: Epochs,
        module: Any,
    ) -> None:
        """A window.

        Args:
            parts: each member's, as byte views.
            units: bytes of a displacement of 1, of each member.
            locks: the members'.
            epochs: this member is in.
            module: the window's, asked where somebody waits for a lock.
        """
        self._parts = parts
        self._units = units
        self._locks = locks
        self._epochs = epochs
        self._module = module
        self._members = len(parts)
        self._calls = 0

    @cfunc
    def _place(self, rank: Any, target: Any, size: int) -> int:
        """The byte of a member's part where so many are accessed; -1 where it is not common."""
        number: int = raw.small(rank)
        at: int = 0 if target is None else raw.small(target)
        if not 0 <= number < self._members or size <= 0 or not 0 <= at < _BEYOND:
            return -1
        if not self._epochs.allows(number):
            return -1
        unit: int = self._units[number]
        if unit > _UNIT_MOST:
            return -1
        at *= unit
        return at if at + size <= raw.size(self._parts[number]) else -1

    @ccall
    def put_numbers(self, origin: Any, rank: Any, target: Any) -> bool:
        """Store."""
        message: Message | None = plain(origin, False)
        if message is None:
            return False
        size: int = raw.size(message.memory)
        at: int = self._place(rank, target, size)
        if at < 0:
            return False
        raw.copy(self._parts[raw.small(rank)], at, message.memory, 0, size)
        return True

    @ccall
    def get_numbers(self, origin: Any, rank: Any, target: Any) -> bool:
        """Load."""
        message: Message | None = plain(origin, True)
        if message is None:
            return False
        size: int = raw.size(message.memory)
        at: int = self._place(rank, target, size)
        if at < 0:
            return False
        raw.copy(message.memory, 0, self._parts[raw.small(rank)], at, size)
        return True

    @cfunc
    def _operation(self, name: Any, message: Message) -> Operation | None:
        """The predefined operation that has a loop for the elements of a message."""
        found: Operation | None = PREDEFINED.get(name)
        if found is None or message.layout.format not in found.loops:
            return None
        return found

    @cfunc
    def _begin(self, number: int) -> bool:
        """Have the lock for accumulates."""
        tries: int = 0
        while tries < _TRIES:
            if self._locks.try_lock(self._members + number, True):
                return True
            raw.pause(8)
            tries += 1
        return False

    @ccall
    def accumulate_numbers(self, origin: Any, rank: Any, target: Any, op: Any) -> bool:
        """Combine."""
        message: Message | None = plain(origin, False)
        if message is None:
            return False
        operation: Operation | None = self._operation(_name(op), message)
        if operation is None:
            return False
        size: int = raw.size(message.memory)
        at: int = self._place(rank, target, size)
        number: int = raw.small(rank)
        if at < 0 or not self._begin(number):
            return False
        part = self._parts[number]
        try:
            operation.combine(message.layout, message.memory, 0, part, at, size)
        finally:
            self._locks.unlock(self._members + number)
        return True

    @ccall
    def fetch_number(self, origin: Any, result: Any, rank: Any, target: Any, op: Any) -> bool:
        """Load one element and combine."""
        into: Message | None = plain(result, True)
        message: Message | None = plain(origin, False)
        if into is None or message is None or into.layout is not message.layout:
            return False
        name = _name(op)
        operation: Operation | None = self._operation(name, message)
        if into.count != 1 or message.count != 1:
            return False
        if operation is None and name not in {_NO_OP, _REPLACE}:
            return False
        size: int = raw.size(message.memory)
        at: int = self._place(rank, target, size)
        number: int = raw.small(rank)
        if at < 0 or not self._begin(number):
            return False
        part = self._parts[number]
        try:
            data: bytes = raw.part(message.memory, 0, size)  # the result may be the same memory
            raw.copy(into.memory, 0, part, at, size)
            if operation is not None:
                operation.combine(message.layout, memoryview(data), 0, part, at, size)
            elif name == _REPLACE:
                raw.copy(part, at, data, 0, size)
        finally:
            self._locks.unlock(self._members + number)
        return True

    @ccall
    def swap_number(self, origin: Any, compare: Any, result: Any, rank: Any, target: Any) -> bool:
        """Load one element, and store another one where it equals a third."""
        into: Message | None = plain(result, True)
        new: Message | None = plain(origin, False)
        old: Message | None = plain(compare, False)
        if into is None or new is None or old is None:
            return False
        if into.layout is not new.layout or into.layout is not old.layout:
            return False
        if into.count != 1 or new.count != 1 or old.count != 1:
            return False
        size: int = raw.size(new.memory)
        if new.layout.format not in _COMPARED:
            return False
        at: int = self._place(rank, target, size)
        number: int = raw.small(rank)
        if at < 0 or not self._begin(number):
            return False
        part = self._parts[number]
        try:
            found: bytes = raw.part(part, at, size)
            if found == raw.part(old.memory, 0, size):
                raw.copy(part, at, new.memory, 0, size)
            raw.copy(into.memory, 0, found, 0, size)
        finally:
            self._locks.unlock(self._members + number)
        return True

    @ccall
    def lock_member(self, rank: Any, kind: Any, assertion: Any) -> bool:
        """Begin an epoch of one member, whose lock is free."""
        number: int = raw.small(rank)
        how: int = raw.small(kind)
        if not 0 <= number < self._members or how not in {_EXCLUSIVE, _SHARED}:
            return False
        if raw.small(assertion) != 0 or not self._epochs.may_lock(number):
            return False
        if not self._locks.try_lock(number, how == _EXCLUSIVE):
            return False
        self._epochs.hold_lock(number, how)
        raw.fence()
        return True

    @ccall
    def unlock_member(self, rank: Any) -> bool:
        """End it."""
        number: int = raw.small(rank)
        if not 0 <= number < self._members or not self._epochs.holds_lock(number):
            return False
        self._epochs.release_lock(number)
        raw.fence()
        self._locks.unlock(number)
        self._calls += 1
        if self._calls % _PROGRESS == 0 or self._locks.is_wanted(number):
            self._module.wake_waiting(number)
        return True

    @ccall
    def flush_member(self, rank: Any) -> bool:
        """All is done already; others get on now and then."""
        number: int = raw.small(rank)
        if not 0 <= number < self._members or not self._epochs.holds_lock(number):
            return False
        raw.fence()
        self._calls += 1
        return self._calls % _PROGRESS != 0


@ccall
def straight_of(window: Any) -> StraightWindow | None:
    """What a handle's window has of this; None where there is none, or no window."""
    handle: Handle = window
    state = handle._inner
    return None if state is None else state.straight


@cfunc
def _name(op: Any) -> Any:
    """Of a predefined operation; empty for a user's, and for what is none."""
    if not isinstance(op, Op):
        return ""
    handle: Handle = op
    state = handle._inner
    return "" if state is None else state.name
