"""Small operations on a member's own memory that it does itself, while it is in MPI.

Where members are processes of one host that cannot map each other's parts, a copy by the kernel
takes as long as several messages. So who wants a few bytes of another's asks for them in memory
that both have mapped. The other one does what it is asked while it polls. If it does not do so in a
moment, who asked takes the request back, and has the kernel copy. Source: README.md, "Active
messages"; Open MPI 5 has them for btl/sm (am_rdma).

    slots     of each pair of members, SLOTS: those of a target and an origin side by side
    a slot    its head, what is asked for, where, and few bytes of data, there or back
    rooms     a room for each slot, where data are that have no room in it

A head is the request's number times 4 and where the request is in its life:

    ASKED    by the origin          -> CLAIMED by the target, or TAKEN back by the origin
    CLAIMED  the target does it     -> DONE
    DONE, TAKEN                     the slot's next request has a greater number

Both change ASKED by an atomic step, so just one of them does what is asked. The origin takes back
its newest request first. So the target does none behind one that was taken back, and requests of
a pair are done in their order.
"""

from __future__ import annotations

from typing import Final

from ompy import raw
from ompy.compiled import DECLARING, U64, U64View, ccall, cclass, cfunc
from ompy.data import elements
from ompy.data.convertor import scratch_memory
from ompy.data.errors import MPIError
from ompy.engine.base import Poller
from ompy.frameworks.osc_base.lent_parts import LentParts, Piece
from ompy.frameworks.osc_base.word_locks import WordLocks

if DECLARING:
    from ompy.engine.lock import RankLock

WORD: Final = 8  # bytes; 64 bits, which x86 and aarch64 load and store at once
_WORD: Final = 8
SLOT: Final = 128  # bytes; arbitrary: two cache lines, which processors fetch together
SLOTS: Final = 8  # arbitrary: so many puts before their origin looks whether one is done
DATA: Final = 24  # byte of a slot; behind three words
FEW: Final = 96  # bytes of data; arbitrary: what a slot has room for, in words
MOST: Final = 4096  # bytes of data, and of a room; measured: osc/sm/README.md
CACHED: Final = 1024  # bytes; measured: more are read sooner past the cache of who writes
HALF: Final = 48  # bytes; two such operands have room
MEMBERS: Final = 16  # arbitrary: 8 MiB if all are used; who polls looks at a slot of each other
ASKED: Final = 0
CLAIMED: Final = 1
TAKEN: Final = 2
DONE: Final = 3
STATES: Final = 2  # bits; arbitrary: as above
PUT: Final = 1
GET: Final = 2
COMBINE: Final = 3
FETCH: Final = 4
SWAP: Final = 5
# in place of the number of a loop; arbitrary: there are not so many of these
REPLACE: Final = 0xFFFE
NO_OP: Final = 0xFFFF
LOOP: Final = 8  # bits below a loop's number, with the kind in them; arbitrary
SIZE: Final = 32  # bits below the number of bytes; arbitrary
LOOKS: Final = 48  # arbitrary: some 3 us, a copy by the kernel and a half
PATIENT: Final = 1 << 12  # looks between two questions whether the target lives; arbitrary
SKIPS: Final = 62  # operations, after some requests in a row that were taken back; arbitrary


def room_for_messages(members: int) -> int:
    """Bytes of all slots and rooms; 0 where there are too many members."""
    return (SLOT + MOST) * SLOTS * members * members if members <= MEMBERS else 0


def can_ask() -> bool:
    """Whether this process has the atomic steps for it: all members have to."""
    return raw.has_atomics()


@cclass
class TargetMessages(Poller):
    """What one member asks the others, and does for them. All words are 0 at first.

    Calls of the origin return False where the operation is not done, so that it must be made
    otherwise; none of it is done then.
    """

    _asked: U64View  # number of the last request, by target
    _finished: U64View  # of the last one that is known to be done, by target
    _first: int
    _lent: LentParts
    _lock: RankLock
    _locks: WordLocks
    _members: int
    _next: U64View  # number of the next request to be done, by origin
    _rank: int
    _rooms: int
    _skipped: U64View  # how many were not asked for when one was taken back last, by target
    _skips: U64View  # how many are still not to be asked for, by target
    _view: memoryview[int]
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        view: memoryview,
        first: int,
        rank: int,
        lent: LentParts,
        locks: WordLocks,
        lock: RankLock,
    ) -> None:
        """The slots in a byte view that begin at byte `first`, a multiple of 64.

        Args:
            view: memory that all members have mapped.
            first: of its bytes.
            rank: of this member.
            lent: the members' parts.
            locks: of them.
            lock: of this rank.
        """
        self._view = view
        self._first = first
        self._rank = rank
        self._lent = lent
        self._locks = locks
        self._lock = lock
        self._members = len(lent.sizes)
        self._rooms = first + SLOT * SLOTS * self._members * self._members
        self._asked = _words(self._members, 0)
        self._finished = _words(self._members, 0)
        self._skipped = _words(self._members, 0)
        self._skips = _words(self._members, 0)
        self._next = _words(self._members, 1)

    @cfunc
    def _slot(self, target: int, origin: int, number: int) -> int:
        """The byte where the slot of a request begins."""
        pair: int = target * self._members + origin
        return self._first + (pair * SLOTS + number % SLOTS) * SLOT

    @cfunc
    def _data(self, slot: int, size: int) -> int:
        """The byte where so many bytes of a slot's data begin."""
        return slot + DATA if size <= FEW else self._rooms + (slot - self._first) // SLOT * MOST

    # --- an origin

    @cfunc
    def _enter(self, slot: int, data: memoryview, size: int) -> None:
        """Put data in a slot, or in its room."""
        _show(self._view, self._data(slot, size), data, 0, size)

    @cfunc
    def _begin(self, target: int, kind: int, loop: int, at: int, size: int) -> int:
        """The next slot with what is asked for; -1 where nothing is to be asked."""
        if self._skips[target]:
            self._skips[target] -= 1
            return -1
        number: int = self._asked[target] + 1
        done: int = self._finished[target]
        if number - done > SLOTS and not self.complete(target):
            return -1
        slot: int = self._slot(target, self._rank, number)
        raw.put_word(self._view, slot + _WORD, kind | loop << LOOP | size << SIZE)
        raw.put_word(self._view, slot + 2 * _WORD, at)
        return slot

    @cfunc
    def _ask(self, target: int, slot: int) -> None:
        """Show a slot to the target."""
        number: U64 = self._asked[target] + 1
        raw.put_word(self._view, slot, number << STATES)
        self._asked[target] = number

    @ccall
    def put(self, target: int, at: int, data: memoryview, size: int) -> bool:
        """Store bytes in a member's part; `complete` says when they are there.

        Args:
            target: the member.
            at: byte of its part, as `LentParts.find_bytes` gives it.
            data: in format B; may be used again at once.
            size: MOST at most.
        """
        slot: int = self._begin(target, PUT, 0, at, size)
        if slot < 0:
            return False
        self._enter(slot, data, size)
        self._ask(target, slot)
        return True

    @ccall
    def get(self, target: int, at: int, into: memoryview, size: int) -> bool:
        """Load bytes of a member's part. Arguments are as for `put`."""
        slot: int = self._begin(target, GET, 0, at, size)
        if slot < 0:
            return False
        self._ask(target, slot)
        return self._answer(target, slot, into, size)

    @ccall
    def combine(self, target: int, at: int, loop: int, data: memoryview, size: int) -> bool:
        """Combine elements into those of a member's part.

        Args:
            target: the member.
            at: byte of its part.
            loop: number of the loop in C (`Operation.loops`), or REPLACE.
            data: packed elements.
            size: bytes of them, MOST at most.
        """
        slot: int = self._begin(target, COMBINE, loop, at, size)
        if slot < 0:
            return False
        self._enter(slot, data, size)
        self._ask(target, slot)
        return self._is_answered(target, slot)

    @ccall
    def fetch(
        self, target: int, at: int, loop: int, data: memoryview, into: memoryview, size: int
    ) -> bool:
        """The same, and get what was there before; the loop may be NO_OP, too."""
        slot: int = self._begin(target, FETCH, loop, at, size)
        if slot < 0:
            return False
        if loop != NO_OP:
            self._enter(slot, data, size)
        self._ask(target, slot)
        return self._answer(target, slot, into, size)

    @ccall
    def swap(
        self,
        target: int,
        at: int,
        new: memoryview,
        old: memoryview,
        into: memoryview,
        size: int,
    ) -> bool:
        """Store an element where it equals another, and get what was there; HALF at most."""
        slot: int = self._begin(target, SWAP, 0, at, size)
        if slot < 0:
            return False
        raw.copy(self._view, slot + DATA, new, 0, size)
        raw.copy(self._view, slot + DATA + HALF, old, 0, size)
        self._ask(target, slot)
        return self._answer(target, slot, into, size)

    @cfunc
    def _is_answered(self, target: int, slot: int) -> bool:
        """Wait for the last request. False where it was taken back, and is not done."""
        number: U64 = self._asked[target]
        if not self._is_done_soon(target) and not self._take_back(target):
            return False
        return raw.word(self._view, slot) == number << STATES | DONE

    @cfunc
    def _answer(self, target: int, slot: int, into: memoryview, size: int) -> bool:
        """The same, and take the answer."""
        if not self._is_answered(target, slot):
            return False
        raw.copy(into, 0, self._view, self._data(slot, size), size)
        return True

    @ccall
    def is_open(self, target: int) -> bool:
        """Whether a request may not be done yet."""
        return self._asked[target] != self._finished[target]

    @ccall
    def complete(self, target: int) -> bool:
        """Have all that a member was asked for done. False where its memory is not there."""
        if not self.is_open(target) or self._is_done_soon(target):
            return True
        return self._take_back(target)

    @ccall
    def complete_all(self) -> bool:
        """The same of all members."""
        done: bool = True
        target: int
        for target in range(self._members):
            done = self.complete(target) and done
        return done

    def settle(self, target: int) -> None:
        """What `complete` does; what cannot be done is given up.

        Raises:
            MPIError: ERR_PROC_FAILED, the member's memory is not there any more.
        """
        if self.complete(target):
            return
        with self._lock:
            self._finished[target] = self._asked[target]
        self._lent.reach(target)

    @cfunc
    def _is_done_soon(self, target: int) -> bool:
        """Look for the last request to be done, for a moment."""
        number: U64 = self._asked[target]
        slot: int = self._slot(target, self._rank, number)
        looks: int = 0
        while raw.word(self._view, slot) != number << STATES | DONE:
            looks += 1
            if looks > LOOKS:
                return False
            if not self.poll():
                raw.pause(1)
        raw.load_fence()
        self._finished[target] = number
        self._skipped[target] = 0
        return True

    @cfunc
    def _take_back(self, target: int) -> bool:
        """Do puts here that a member has not done; cancel a last request of another kind.

        Returns:
            Whether all puts are done.
        """
        with self._lock:  # the kernel's copies let other threads go on
            return self._do_taken(target)

    @cfunc
    def _do_taken(self, target: int) -> bool:
        first: int = self._finished[target] + 1
        last: int = self._asked[target]
        number: int = last
        while number >= first and self._is_taken(self._slot(target, self._rank, number), number):
            number -= 1
        if number >= first and not self._await(target, number):
            return False
        skips: int = min(2 * self._skipped[target] + 2, SKIPS)
        self._skipped[target] = skips
        self._skips[target] = skips
        try:
            while number < last:
                self._put_taken(target, self._slot(target, self._rank, number + 1))
                number += 1
        except MPIError:
            return False
        finally:
            self._finished[target] = number
        return True

    @cfunc
    def _is_taken(self, slot: int, number: U64) -> bool:
        """Take a request back, if the target has not begun it; whether this member has it."""
        head: U64 = number << STATES
        if raw.word(self._view, slot) == head | TAKEN:
            return True
        return raw.swap_if(self._view, slot, head | ASKED, head | TAKEN)

    @cfunc
    def _await(self, target: int, number: U64) -> bool:
        """Wait for what the target has begun. False if it has ended in the middle of it."""
        slot: int = self._slot(target, self._rank, number)
        looks: int = 0
        while raw.word(self._view, slot) != number << STATES | DONE:
            looks += 1
            if looks % PATIENT == 0:
                try:
                    self._lent.reach(target)
                except MPIError:
                    return False
                raw.give_way()
            raw.pause(1)
        raw.load_fence()
        return True

    def _put_taken(self, target: int, slot: int) -> None:
        """Have the kernel copy what was taken back."""
        what: U64 = raw.word(self._view, slot + _WORD)
        if what & 0xFF == PUT:
            size: int = what >> SIZE
            data = memoryview(raw.part(self._view, self._data(slot, size), size))
            self._lent.store_bytes(target, raw.word(self._view, slot + 2 * _WORD), data, size)

    # --- a target

    @ccall
    def poll(self) -> int:
        """Do what other members have asked for; how many requests that were."""
        done: int = 0
        origin: int
        for origin in range(self._members):
            if origin != self._rank:
                done += self._serve(origin)
        return done

    @ccall
    def arm(self) -> bool:
        """Who sleeps does nothing for others. False if one has asked already."""
        return not self.poll()

    @cfunc
    def _serve(self, origin: int) -> int:
        """Do what one member has asked for."""
        done: int = 0
        while True:
            number: U64 = self._next[origin]
            slot: int = self._slot(self._rank, origin, number)
            head: U64 = raw.word(self._view, slot)
            seen: U64 = head >> STATES
            if seen < number:
                return done
            if seen > number:  # this one was taken back, and its slot used again
                self._next[origin] = seen - SLOTS + 1
                continue
            if head == number << STATES | ASKED and not self._do(slot, head):
                return done
            self._next[origin] = number + 1
            self._skips[origin] = 0  # who asks is in MPI, and does what it is asked
            done += 1

    @cfunc
    def _do(self, slot: int, head: U64) -> bool:
        """Do one request, or find it taken back. False where somebody has the lock for it."""
        raw.load_fence()
        what: U64 = raw.word(self._view, slot + _WORD)
        kind: int = what & 0xFF
        lock: int = self._members + self._rank
        if kind >= COMBINE and not self._locks.try_lock(lock, True):
            return False
        at: U64 = raw.word(self._view, slot + 2 * _WORD)
        size: int = what >> SIZE
        piece: Piece | None = self._lent.own_piece(at, size)
        # what is not there any more is left to its origin, which will know how to say so
        if piece is not None and raw.swap_if(self._view, slot, head, head | CLAIMED):
            loop: int = what >> LOOP & 0xFFFF
            start: int = self._data(slot, size)
            _perform(kind, loop, piece.memory, at - piece.first, self._view, start, size)
            raw.put_word(self._view, slot, head | DONE)
        if kind >= COMBINE:
            self._locks.unlock(lock)
        return piece is not None

    def close(self) -> None:
        """Look at the memory no more."""
        self._view = memoryview(bytearray(room_for_messages(self._members)))
        self._first = 0
        self._next = _words(self._members, 1)
        self._finished = _words(self._members, 0)
        self._asked = _words(self._members, 0)


def _words(count: int, value: int) -> memoryview:
    return memoryview(bytearray(value.to_bytes(WORD, "little") * count)).cast("Q")


@cfunc
def _show(target: memoryview, at: int, source: memoryview, start: int, size: int) -> None:
    """Copy bytes for another core to read: many of them past this one's cache."""
    if size <= CACHED:
        raw.copy(target, at, source, start, size)
    else:
        raw.stream(target, at, source, start, size)


@cfunc
def _perform(
    kind: int, loop: int, part: memoryview, at: int, data: memoryview, start: int, size: int
) -> None:
    """Do what is asked for in this member's own memory; the answer takes the data's place.

    Args:
        kind: of the request.
        loop: of the request.
        part: own memory, format B.
        at: byte of it.
        data: what the request came in, format B.
        start: byte of it where the data begin, or are to.
        size: bytes of these.
    """
    if kind == GET:
        _show(data, start, part, at, size)
    elif kind == PUT:
        raw.copy(part, at, data, start, size)
    elif kind == COMBINE:
        _combine(loop, part, at, data, start, size)
    elif kind == FETCH:
        before = scratch_memory(size)
        raw.copy(before, 0, part, at, size)
        if loop != NO_OP:
            _combine(loop, part, at, data, start, size)
        _show(data, start, before, 0, size)
    elif kind == SWAP:
        there = raw.part(part, at, size)
        if there == raw.part(data, start + HALF, size):
            raw.copy(part, at, data, start, size)
        raw.copy(data, start, there, 0, size)


@cfunc
def _combine(loop: int, part: memoryview, at: int, data: memoryview, start: int, size: int) -> None:
    if loop == REPLACE:
        raw.copy(part, at, data, start, size)
    else:
        elements.combine(loop, data, start, part, at, size)
