"""Sections, counters, locks and the like of all members of a communicator: `mpi4py.util.sync`.

What members agree on lies in a window at one of them. Whom a member waits for tells it by a message
on a communicator of the object's own: nobody spins, and a waiting rank sleeps as in any receive.

Making and freeing an object is for all members of its communicator together.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, Final, Literal, Self, TypeVar

from ompy import MPI

__all__ = ["Condition", "Counter", "Mutex", "Semaphore", "Sequential"]

_T = TypeVar("_T")
_NOTHING: Final = (bytearray(), 0, MPI.BYTE)
_HOME: Final = 0  # arbitrary: the member whose memory locks and conditions lie in
_NOBODY: Final = -1  # no member has this rank
_AFTER_YOU: Final = 0  # tags of a mutex's messages: I come after you ...
_YOURS: Final = 1  # ... and: it is yours
_ALL: Final = 2**31 - 1  # more than there can be members


class Sequential:
    """A section that members pass one after another, in the order of their ranks.

    Args:
        comm: its members.
        tag: of the messages that hand the section on.
    """

    def __init__(self, comm: MPI.Intracomm, tag: int = 0) -> None:
        self.comm = comm
        self.tag = int(tag)

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, *exc: object) -> None:
        self.end()

    def begin(self) -> None:
        """Wait until the member before has left the section."""
        before = self.comm.Get_rank() - 1
        if before >= 0:
            self.comm.Recv(_NOTHING, before, self.tag)

    def end(self) -> None:
        """Let the next member in."""
        after = self.comm.Get_rank() + 1
        if after < self.comm.Get_size():
            self.comm.Send(_NOTHING, after, self.tag)


class Counter:
    """A number that members take turns to increase.

    Args:
        start: its first value.
        step: what `next` adds.
        typecode: of the number, as the module `array` has it.
        comm: its members.
        info: hints for its window.
        root: the member in whose memory it is.
    """

    def __init__(
        self,
        start: int = 0,
        step: int = 1,
        *,
        typecode: str = "i",
        comm: MPI.Intracomm = MPI.COMM_SELF,
        info: MPI.Info = MPI.INFO_NULL,
        root: int = 0,
    ) -> None:
        self._start = start
        self._step = step
        self._root = root
        self._code = MPI.Datatype.fromcode(typecode).typechar
        first = array(self._code, [start] if comm.Get_rank() == root else [])
        self._window = _shared_memory(first, comm, info)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> int:
        return self.next()

    def next(self, incr: int | None = None) -> int:
        """The value, which is increased at once.

        Args:
            incr: what to add, instead of `step`.

        Raises:
            RuntimeError: the counter has been freed.
        """
        if not self._window:
            raise RuntimeError("the counter has been freed")
        added = array(self._code, [self._step if incr is None else incr])
        value: int = _fetched(self._window, self._root, added, MPI.SUM)
        return value

    def free(self) -> None:
        """Free it, all members together; of no effect when it is free."""
        self._window.free()


class Mutex:
    """A lock that one member holds at a time; those who wait get it in the order they came.

    The last one who asked is noted at the first member. Who asks takes the place of that one, and
    tells it; who releases tells the one that told it (a queue lock after Mellor-Crummey and Scott).

    Args:
        recursive: the holder may acquire it again.
        comm: its members.
        info: hints for its window.

    Attributes:
        comm: the members, for messages of its own.
    """

    def __init__(
        self,
        *,
        recursive: bool = False,
        comm: MPI.Intracomm = MPI.COMM_SELF,
        info: MPI.Info = MPI.INFO_NULL,
    ) -> None:
        self._recursive = bool(recursive)
        self._held = 0
        self.comm = comm.Dup()
        self._rank = array("i", [comm.Get_rank()])
        last = array("i", [_NOBODY] if comm.Get_rank() == _HOME else [])
        self._window = _shared_memory(last, comm, info)

    @property
    def alive(self) -> bool:
        """Whether it has not been freed."""
        return bool(self._window)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()

    def acquire(self, blocking: bool = True) -> bool:
        """Get the lock; whether this member has it.

        Args:
            blocking: wait for it.

        Raises:
            RuntimeError: it is held already, or has been freed.
        """
        if self.locked():
            if not self._recursive:
                raise RuntimeError("this member holds the mutex already")
            self._held += 1
            return True
        if not (self._queued() if blocking else self._replaced_last(_NOBODY, self._rank[0])):
            return False
        self._held = 1
        return True

    def release(self) -> None:
        """Give the lock up, as often as it was acquired.

        Raises:
            RuntimeError: this member does not hold it, or it has been freed.
        """
        if not self.locked():
            raise RuntimeError("this member does not hold the mutex")
        self._held -= 1
        if not self._held:
            self._handed_on()

    def locked(self) -> bool:
        """Whether this member holds it."""
        return self.count() > 0

    def count(self) -> int:
        """How often this member has acquired it.

        Raises:
            RuntimeError: it has been freed.
        """
        if not self._window:
            raise RuntimeError("the mutex has been freed")
        return self._held

    def free(self) -> None:
        """Free it, all members together; who holds it gives it up. Of no effect when it is free."""
        if self._window:
            if self._held:
                self._held = 0
                self._handed_on()
            self._window.free()
            self.comm.Free()

    def _queued(self) -> bool:
        """Get the lock, in turn."""
        before = _fetched(self._window, _HOME, self._rank, MPI.REPLACE)
        if before != _NOBODY:
            self.comm.Send(_NOTHING, before, _AFTER_YOU)
            self.comm.Recv(_NOTHING, before, _YOURS)
        return True

    def _handed_on(self) -> None:
        """Give the lock to who comes next, if anybody does."""
        if not self._replaced_last(self._rank[0], _NOBODY):
            status = MPI.Status()
            self.comm.Recv(_NOTHING, MPI.ANY_SOURCE, _AFTER_YOU, status)
            self.comm.Send(_NOTHING, status.Get_source(), _YOURS)

    def _replaced_last(self, expected: int, new: int) -> bool:
        """Note another one as the last who asked, if that is still as expected."""
        found = array("i", [_NOBODY])
        self._window.Lock(_HOME, MPI.LOCK_SHARED)
        self._window.Compare_and_swap(array("i", [new]), array("i", [expected]), found, _HOME, 0)
        self._window.Unlock(_HOME)
        return found[0] == expected

    def give_up(self) -> int:
        """Give the lock up whole; how often it was acquired."""
        held, self._held = self._held, 0
        self._handed_on()
        return held

    def get_back(self, held: int) -> None:
        """Get the lock back, acquired as often as before."""
        self._queued()
        self._held = held


class Condition:
    """Members that wait until another one tells them, in the order they came.

    The queue lies at the first member: how many wait, then who. Its mutex guards it.

    Args:
        mutex: the lock; one of the condition's own if there is none.
        recursive: whether that is recursive.
        comm: the members; those of the mutex if there is one.
        info: hints for the windows.
    """

    def __init__(
        self,
        mutex: Mutex | None = None,
        *,
        recursive: bool = True,
        comm: MPI.Intracomm = MPI.COMM_SELF,
        info: MPI.Info = MPI.INFO_NULL,
    ) -> None:
        self._owns_mutex = mutex is None
        self._mutex = mutex or Mutex(recursive=recursive, comm=comm, info=info)
        self._comm = self._mutex.comm.Dup()
        self._places = 1 + self._comm.Get_size()
        first = array("i", [0] * (self._places if self._comm.Get_rank() == _HOME else 0))
        self._window = _shared_memory(first, self._comm, info)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()

    def acquire(self, blocking: bool = True) -> bool:
        """Acquire the mutex: `Mutex.acquire`."""
        self._check_alive()
        return self._mutex.acquire(blocking)

    def release(self) -> None:
        """Release the mutex: `Mutex.release`."""
        self._check_alive()
        self._mutex.release()

    def locked(self) -> bool:
        """Whether this member holds the mutex."""
        return self._mutex.locked()

    def wait(self) -> Literal[True]:
        """Release the mutex, wait to be told, and acquire the mutex again.

        Raises:
            RuntimeError: this member does not hold the mutex, or the condition has been freed.
        """
        self._check_held("wait")
        self._put_waiting([*self._waiting(), self._comm.Get_rank()])
        held = self._mutex.give_up()
        self._comm.Recv(_NOTHING, MPI.ANY_SOURCE)
        self._mutex.get_back(held)
        return True

    def wait_for(self, predicate: Callable[[], _T]) -> _T:
        """Wait until a function returns what is true; that is the result.

        Args:
            predicate: called at once, and each time this member is told.

        Raises:
            RuntimeError: as `wait`.
        """
        while True:
            found = predicate()
            if found:
                return found
            self.wait()

    def notify(self, n: int = 1) -> int:
        """Tell members that wait; how many there were.

        Args:
            n: no more than so many.

        Raises:
            RuntimeError: this member does not hold the mutex, or the condition has been freed.
        """
        self._check_held("notify")
        waiting = self._waiting()
        told = waiting[: max(0, n)]
        if told:
            self._put_waiting(waiting[len(told) :])
        for rank in told:
            self._comm.Send(_NOTHING, rank)
        return len(told)

    def notify_all(self) -> int:
        """Tell all members that wait; how many there were."""
        return self.notify(_ALL)

    def free(self) -> None:
        """Free it, all members together, and the mutex, if that is its own."""
        if self._owns_mutex:
            self._mutex.free()
        elif self._mutex.alive and self._mutex.locked():
            self._mutex.give_up()
        if self._window:
            self._window.free()
            self._comm.Free()

    def _check_alive(self) -> None:
        if not self._window:
            raise RuntimeError("the condition has been freed")

    def _check_held(self, what: str) -> None:
        self._check_alive()
        if not self._mutex.locked():
            raise RuntimeError(f"{what}: this member does not hold the mutex")

    def _waiting(self) -> list[int]:
        """Who waits, the first one first."""
        found = array("i", [0] * self._places)
        self._window.Lock(_HOME, MPI.LOCK_SHARED)
        self._window.Get(found, _HOME)
        self._window.Unlock(_HOME)
        return list(found[1 : 1 + found[0]])

    def _put_waiting(self, ranks: list[int]) -> None:
        self._window.Lock(_HOME, MPI.LOCK_SHARED)
        self._window.Put(array("i", [len(ranks), *ranks]), _HOME)
        self._window.Unlock(_HOME)


class Semaphore:
    """A number of members that may be somewhere at once.

    Args:
        value: how many at first.
        bounded: never more than that.
        comm: its members.
        info: hints for the windows.

    Raises:
        ValueError: the value is negative.
    """

    def __init__(
        self,
        value: int = 1,
        *,
        bounded: bool = True,
        comm: MPI.Intracomm = MPI.COMM_SELF,
        info: MPI.Info = MPI.INFO_NULL,
    ) -> None:
        if value < 0:
            raise ValueError("the value must not be negative")
        self._value = value
        self._bounded = bool(bounded)
        self._counter = Counter(value, comm=comm, info=info)
        self._condition = Condition(recursive=False, comm=comm, info=info)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()

    def acquire(self, blocking: bool = True) -> bool:
        """Take one; whether there was one.

        Args:
            blocking: wait for it.

        Raises:
            RuntimeError: it has been freed.
        """
        with self._condition:
            while not self._counter.next(0):
                if not blocking:
                    return False
                self._condition.wait()
            self._counter.next(-1)
        return True

    def release(self, n: int = 1) -> None:
        """Give some back.

        Args:
            n: how many.

        Raises:
            ValueError: `n` is below 1, or there would be more than at first.
            RuntimeError: it has been freed.
        """
        if n < 1:
            raise ValueError("at least one must be released")
        with self._condition:
            if self._bounded and self._counter.next(0) + n > self._value:
                raise ValueError("the semaphore was released too often")
            self._counter.next(n)
            self._condition.notify(n)

    def free(self) -> None:
        """Free it, all members together; of no effect when it is free."""
        self._counter.free()
        self._condition.free()


def _shared_memory(first: array[Any], comm: MPI.Intracomm, info: MPI.Info) -> MPI.Win:
    """A window over what this member gives, which may be nothing."""
    window = MPI.Win.Allocate(len(first) * first.itemsize, first.itemsize, info, comm)
    rank = comm.Get_rank()
    window.Lock(rank, MPI.LOCK_SHARED)
    window.Accumulate(first, rank, op=MPI.REPLACE)
    window.Unlock(rank)
    comm.Barrier()
    return window


def _fetched(window: MPI.Win, target: int, operand: array[Any], op: MPI.Op) -> Any:
    """What was at the beginning of a member's memory before an operation on it."""
    found = array(operand.typecode, [0])
    window.Lock(target, MPI.LOCK_SHARED)
    window.Fetch_and_op(operand, found, target, 0, op)
    window.Unlock(target)
    return found[0]
