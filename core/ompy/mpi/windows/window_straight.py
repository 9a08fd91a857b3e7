"""The common calls of a window whose memory all members reach, without a call of its module.

Each returns whether it has done all of it. What is not common is left to the longer way, which
checks everything anew and knows what is wrong: operations of users, a lock or a post that does not
come soon, and every error.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from typing import Any, Final

from ompy import raw
from ompy.compiled import ccall, cclass, cfunc
from ompy.data.convertor import scratch_memory
from ompy.data.errors import MPIError
from ompy.data.kernels import PREDEFINED
from ompy.data.message import Message
from ompy.data.operation import Operation
from ompy.data.packed import combine_packed, copy_message, to_send
from ompy.frameworks.call_site import call_site
from ompy.frameworks.osc import Straight
from ompy.frameworks.osc_base.lent_parts import LentParts
from ompy.frameworks.osc_base.target_messages import TargetMessages
from ompy.frameworks.osc_base.word_locks import WordLocks
from ompy.mpi.buffers.common_forms import plain_or_derived
from ompy.mpi.constants import LOCK_EXCLUSIVE, LOCK_SHARED
from ompy.mpi.handles import Handle
from ompy.mpi.windows.window_epochs import FENCE, LOCK, POST, START, Epochs
from ompy.mpi.windows.window_numbers import (
    Numbers,
    combines,
    loop_of,
    numbers_of,
    operation_on,
    predefined_name,
)
from ompy.mpi.windows.window_parts import WindowParts

# assertions that there are, as numbers of this module
_OF_FENCE: Final = FENCE
_OF_LOCK: Final = LOCK
_OF_POST: Final = POST
_OF_START: Final = START
_EXCLUSIVE: Final = LOCK_EXCLUSIVE
_SHARED: Final = LOCK_SHARED
_COMPARED: Final = frozenset("bhilqBHILQ?xc")  # as `window_messages.py` has them
_REPLACE: Final = "MPI_REPLACE"
_NO_OP: Final = "MPI_NO_OP"
_TRIES: Final = 64  # arbitrary: an accumulate of few elements takes less
_PROGRESS: Final = 16  # calls; arbitrary: others get on at every so many
_GROUPS: Final = 16  # arbitrary: a program starts and posts with few


@cclass
class StraightWindow(WindowParts):
    """Such a window, as one member has it."""

    _barrier: Any
    _calls: int
    _groups: dict[Any, Any]
    _locks: WordLocks
    _module: Any
    _site: Any
    __slots__ = tuple(__annotations__)

    def __init__(self, found: Straight, units: list[int], epochs: Epochs, module: Any) -> None:
        """A window.

        Args:
            found: what its module gives.
            units: bytes of a displacement of 1, of each member.
            epochs: this member is in.
            module: the window's, asked where somebody waits or sleeps.
        """
        WindowParts.__init__(self, found, units, epochs)
        self._locks = found.locks
        self._barrier = found.barrier
        self._module = module
        self._calls = 0
        self._groups = {}
        self._site = None

    # --- operations

    @ccall
    def put_numbers(self, origin: Any, rank: Any, target: Any) -> bool:
        """Store."""
        data: Numbers | None = numbers_of(origin, False)
        at: int = -1 if data is None else self.place_numbers(rank, target, data)
        if data is None or at < 0:
            return self._move_elements(origin, rank, target, False)
        number: int = raw.small(rank)
        messages: TargetMessages | None = self.asks(number, data.size)
        if messages is not None and messages.put(number, at, data.memory, data.size):
            return True
        return self.store_bytes(number, at, data.memory, data.size)

    @cfunc
    def _move_elements(self, origin: Any, rank: Any, target: Any, loads: bool) -> bool:
        """Store or load elements with gaps, here or there. False where that fails."""
        mine: Message | None = plain_or_derived(origin, loads)
        there: Message | None = None if mine is None else self.elements(rank, target, mine)
        if mine is None or there is None:
            return False
        try:
            copy_message(there if loads else mine, mine if loads else there, 0)
        except MPIError:
            return False  # the longer way says why
        return True

    @ccall
    def get_numbers(self, origin: Any, rank: Any, target: Any) -> bool:
        """Load."""
        data: Numbers | None = numbers_of(origin, True)
        at: int = -1 if data is None else self.place_numbers(rank, target, data)
        if data is None or at < 0:
            return self._move_elements(origin, rank, target, True)
        number: int = raw.small(rank)
        messages: TargetMessages | None = self.asks(number, data.size)
        if messages is not None and messages.get(number, at, data.memory, data.size):
            return True
        return self.load_bytes(number, at, data.memory, data.size)

    @cfunc
    def _begin(self, number: int) -> bool:
        """Have the lock for accumulates."""
        return self._have(self._members + number, True)

    @cfunc
    def _have(self, number: int, alone: bool) -> bool:
        """Have a lock, if it is free in a moment."""
        tries: int = 0
        while tries < _TRIES:
            if self._locks.try_lock(number, alone):
                return True
            if self._messages is not None:
                self._messages.poll()  # who has it may wait for this member
            raw.pause(8)
            tries += 1
        return False

    @ccall
    def accumulate_numbers(self, origin: Any, rank: Any, target: Any, op: Any) -> bool:
        """Combine."""
        data: Numbers | None = numbers_of(origin, False)
        at: int = -1 if data is None else self.place_numbers(rank, target, data)
        if data is None or at < 0:
            return self._accumulate_elements(origin, rank, target, op)
        name = predefined_name(op)
        operation: Operation | None = operation_on(name, data)
        number: int = raw.small(rank)
        if operation is None and name != _REPLACE:
            return False
        loop: int = loop_of(operation, name, data)
        messages: TargetMessages | None = self.asks(number, data.size) if loop >= 0 else None
        if messages is not None and messages.combine(number, at, loop, data.memory, data.size):
            return True
        if not self._begin(number):
            return False
        try:
            if operation is None:
                return self.store_bytes(number, at, data.memory, data.size)
            return self._combine(operation, data, data.memory, number, at, None)
        finally:
            self._locks.unlock(self._members + number)

    @cfunc
    def _accumulate_elements(self, origin: Any, rank: Any, target: Any, op: Any) -> bool:
        """Combine elements with gaps, here or there."""
        mine: Message | None = plain_or_derived(origin, False)
        name = predefined_name(op)
        there: Message | None = None if mine is None else self.elements(rank, target, mine)
        if mine is None or there is None or not combines(name, mine.layout, there.layout):
            return False
        data: memoryview = to_send(mine)
        number: int = raw.small(rank)
        if not self._begin(number):
            return False
        try:
            _combine_elements(there, data, name)
        except MPIError:
            return False
        finally:
            self._locks.unlock(self._members + number)
        return True

    @cfunc
    def _combine(
        self,
        operation: Operation,
        data: Numbers,
        given: memoryview,
        number: int,
        at: int,
        before: Any,
    ) -> bool:
        """Combine bytes into those of a member's part, under the lock for that. False if it fails.

        Args:
            operation: defined for the elements.
            data: their kind, and how many bytes.
            given: their bytes.
            number: whose part.
            at: byte in it.
            before: what is there, where somebody has it already; or None.
        """
        lent: LentParts | None = self.elsewhere(number)
        if lent is None:
            operation.combine(data.layout, given, 0, self._parts[number], at, data.size)
            return True
        copy = scratch_memory(data.size)
        if before is not None:
            raw.copy(copy, 0, before, 0, data.size)
        elif not self.load_bytes(number, at, copy, data.size):
            return False
        operation.combine(data.layout, given, 0, copy, 0, data.size)
        return self.store_bytes(number, at, copy, data.size)

    @ccall
    def fetch_numbers(
        self, origin: Any, result: Any, rank: Any, target: Any, op: Any, single: bool
    ) -> bool:
        """Load and combine; of one element where it is to be single."""
        into: Numbers | None = numbers_of(result, True)
        data: Numbers | None = numbers_of(origin, False)
        at: int = -1 if into is None or data is None else self.place_numbers(rank, target, data)
        if into is None or data is None or at < 0 or into.size != data.size:
            return not single and self._fetch_elements(origin, result, rank, target, op)
        if single and (into.kind is not data.kind or data.size != data.layout.size):
            return False
        name = predefined_name(op)
        operation: Operation | None = operation_on(name, data)
        if operation is None and name not in {_NO_OP, _REPLACE}:
            return False
        number: int = raw.small(rank)
        loop: int = loop_of(operation, name, data)
        messages: TargetMessages | None = self.asks(number, data.size) if loop >= 0 else None
        if messages is not None and messages.fetch(
            number, at, loop, data.memory, into.memory, data.size
        ):
            return True
        if not self._begin(number):
            return False
        try:
            return self._fetch(operation, name, data, into, number, at)
        finally:
            self._locks.unlock(self._members + number)

    @cfunc
    def _fetch(
        self,
        operation: Operation | None,
        name: Any,
        data: Numbers,
        into: Numbers,
        number: int,
        at: int,
    ) -> bool:
        """Load, and combine or replace, under the lock for that. False if it fails."""
        given = data.memory
        if raw.overlaps(into.memory, given):
            given = memoryview(raw.part(given, 0, data.size))
        if not self.load_bytes(number, at, into.memory, data.size):
            return False
        if operation is not None:
            return self._combine(operation, data, given, number, at, into.memory)
        return name == _NO_OP or self.store_bytes(number, at, given, data.size)

    @cfunc
    def _fetch_elements(self, origin: Any, result: Any, rank: Any, target: Any, op: Any) -> bool:
        """The same of elements with gaps, here or there."""
        mine: Message | None = plain_or_derived(origin, False)
        into: Message | None = plain_or_derived(result, True)
        name = predefined_name(op)
        there: Message | None = None if mine is None else self.elements(rank, target, mine)
        if mine is None or into is None or there is None:
            return False
        same: bool = into.count * into.layout.size == there.count * there.layout.size
        if not same or not (name == _NO_OP or combines(name, mine.layout, there.layout)):
            return False
        data: memoryview = to_send(mine)
        number: int = raw.small(rank)
        if not self._begin(number):
            return False
        try:
            before = there.packed()
            _combine_elements(there, data, name)
        except MPIError:
            return False
        finally:
            self._locks.unlock(self._members + number)
        into.store(before)
        return True

    @ccall
    def swap_number(self, origin: Any, compare: Any, result: Any, rank: Any, target: Any) -> bool:
        """Load one element, and store another one where it equals a third."""
        into: Numbers | None = numbers_of(result, True)
        new: Numbers | None = numbers_of(origin, False)
        old: Numbers | None = new if compare is origin else numbers_of(compare, False)
        if into is None or new is None or old is None:
            return False
        size: int = new.layout.size
        alike: bool = into.kind is new.kind and into.kind is old.kind
        single: bool = into.size == size and new.size == size and old.size == size
        if not alike or not single or new.layout.format not in _COMPARED:
            return False
        at: int = self.place_numbers(rank, target, new)
        number: int = raw.small(rank)
        messages: TargetMessages | None = self.asks(number, size) if at >= 0 else None
        if messages is not None and messages.swap(
            number, at, new.memory, old.memory, into.memory, size
        ):
            return True
        if at < 0 or not self._begin(number):
            return False
        try:
            return self._swap(new, old, into, number, at)
        finally:
            self._locks.unlock(self._members + number)

    @cfunc
    def _swap(self, new: Numbers, old: Numbers, into: Numbers, number: int, at: int) -> bool:
        """Load, compare and store, under the lock for that. False if it fails."""
        size: int = into.size
        copy = scratch_memory(size)
        if not self.load_bytes(number, at, copy, size):
            return False
        same: bool = raw.part(copy, 0, size) == raw.part(old.memory, 0, size)
        if same and not self.store_bytes(number, at, new.memory, size):
            return False
        raw.copy(into.memory, 0, copy, 0, size)
        return True

    # --- locks

    @ccall
    def lock_member(self, rank: Any, kind: Any, assertion: Any) -> bool:
        """Begin an epoch of one member, whose lock is free in a moment."""
        number: int = raw.small(rank)
        how: int = raw.small(kind)
        if not 0 <= number < self._members or how not in {_EXCLUSIVE, _SHARED}:
            return False
        if raw.small(assertion) & ~_OF_LOCK or not self._epochs.may_lock(number):
            return False
        if not self._have(number, how == _EXCLUSIVE):
            return False
        self._epochs.hold_lock(number, how)
        if self._lent is not None:
            self._note_site(number, number + 1)
        raw.load_fence()
        return True

    @cfunc
    def _note_site(self, first: int, end: int) -> None:
        """Keep where the program has called for some locks, for who proves that ranks never go on.

        In memory that is mapped a lock takes too little for that.
        """
        site = self._site
        if site is None or not raw.is_at(site.code, site.place):
            site = self._site = call_site()
        number: int
        for number in range(first, end):
            self._locks.note_site(number, site)

    @ccall
    def unlock_member(self, rank: Any) -> bool:
        """End it."""
        number: int = raw.small(rank)
        if not 0 <= number < self._members or not self._epochs.holds_lock(number):
            return False
        if self._messages is not None and not self._messages.complete(number):
            return False
        self._epochs.release_lock(number)
        self._locks.unlock(number)
        if self._wants_progress() or self._locks.is_wanted(number):
            self._module.wake_waiting(number)
        return True

    @ccall
    def lock_members(self, assertion: Any) -> bool:
        """Begin an epoch of all members, whose locks are free."""
        if raw.small(assertion) & ~_OF_LOCK or not self._epochs.may_begin():
            return False
        if not self._locks.try_all():
            return False
        self._epochs.hold_all(True)
        if self._lent is not None:
            self._note_site(0, self._members)
        raw.load_fence()
        return True

    @ccall
    def unlock_members(self) -> bool:
        """End it."""
        if not self._epochs.holds_all() or not self._is_complete():
            return False
        self._epochs.hold_all(False)
        self._locks.unlock_all()
        if self._wants_progress() or self._locks.anyone_waits():
            self._module.wake_waiting(-1)
        return True

    @cfunc
    def _wants_progress(self) -> bool:
        """Count a call; whether others are to get on."""
        self._calls += 1
        return self._calls % _PROGRESS == 0

    @ccall
    def flush_member(self, rank: Any) -> bool:
        """All is done already; others get on now and then."""
        number: int = raw.small(rank)
        if not 0 <= number < self._members or not self._epochs.is_passive(number):
            return False
        if self._messages is not None and not self._messages.complete(number):
            return False
        self.sync_memory()
        return True

    @ccall
    def flush_members(self) -> bool:
        """The same of all."""
        if not self._epochs.is_passive(-1) or not self._is_complete():
            return False
        self.sync_memory()
        return True

    @cfunc
    def _is_complete(self) -> bool:
        """Whether all that others were asked for is done now."""
        return self._messages is None or self._messages.complete_all()

    @ccall
    def sync_memory(self) -> None:
        """Order loads and stores; others get on now and then."""
        raw.fence()
        if self._wants_progress():
            self._module.progress()

    # --- epochs of all, of targets and of origins

    @ccall
    def begin_fence(self, assertion: Any) -> Any:
        """The barrier to be met at, if a fence is allowed; else None."""
        given: int = raw.small(assertion)
        if given & ~_OF_FENCE or self._barrier is None or not self._epochs.may_fence():
            return None
        if not self._is_complete():
            return None
        self._epochs.begin_fence(given)
        raw.fence()
        return self._barrier

    def know_group(self, group: Any, ranks: list[int]) -> None:
        """Remember the ranks of a group's members."""
        if len(self._groups) >= _GROUPS:
            self._groups.clear()
        handle: Handle = group
        self._groups[handle._inner] = tuple(ranks), tuple(sorted(ranks)), frozenset(ranks)

    @cfunc
    def _known(self, group: Any) -> Any:
        """What was remembered, or None."""
        if not isinstance(group, Handle):
            return None
        handle: Handle = group
        return self._groups.get(handle._inner)

    @ccall
    def start_members(self, group: Any, assertion: Any) -> bool:
        """Begin to access the members of a group."""
        known = self._known(group)
        if known is None or raw.small(assertion) & ~_OF_START or not self._epochs.may_begin():
            return False
        targets: tuple[Any, ...] = known[1]
        self._epochs.begin_start(targets, known[2])
        for target in targets:
            self._posts.expect_post(target)
        return True

    @ccall
    def complete_members(self) -> bool:
        """End it, if they post in a moment."""
        found = self._epochs.started()
        if found is None:
            return False
        targets: tuple[Any, ...] = found
        if not self._is_complete():
            return False
        for target in targets:
            if not self._posts.take_post(target):
                return False
        self._epochs.end_start()
        for target in targets:
            self._posts.tell_complete(target)
        self._wake(targets)
        if self._wants_progress():
            self._module.progress()
        return True

    @ccall
    def post_members(self, group: Any, assertion: Any) -> bool:
        """Expose the window to the members of a group."""
        known = self._known(group)
        if known is None or raw.small(assertion) & ~_OF_POST or not self._epochs.may_post():
            return False
        origins: tuple[Any, ...] = known[0]
        self._epochs.begin_post(origins)
        for origin in origins:
            self._posts.tell_post(origin)
        self._wake(origins)
        return True

    @ccall
    def wait_for_members(self) -> bool:
        """End it, if they complete in a moment."""
        found = self._epochs.exposed()
        if found is None:
            return False
        origins: tuple[Any, ...] = found
        for origin in origins:
            if not self._posts.await_complete(origin):
                return False
        for origin in origins:
            self._posts.take_complete(origin)
        self._epochs.waited()
        if self._wants_progress():
            self._module.progress()
        return True

    @cfunc
    def _wake(self, ranks: tuple[Any, ...]) -> None:
        """Have members look that may be asleep."""
        raw.fence()
        for rank in ranks:
            if self._posts.sleeps(rank):
                self._module.wake_sleepers(ranks)
                return


@ccall
def straight_of(window: Any) -> StraightWindow | None:
    """What a handle's window has of this; None where there is none, or no window."""
    handle: Handle = window
    state = handle._inner
    return None if state is None else state.straight


@cfunc
def _combine_elements(there: Message, data: memoryview, name: Any) -> None:
    """Combine packed elements into those of a part, by an operation that is defined for them."""
    operation: Operation | None = PREDEFINED.get(name)
    if name == _NO_OP or not raw.size(data):
        return
    if operation is None or name == _REPLACE:
        there.store(data)
    else:
        combine_packed(there, data, operation)
