"""sm for one window: loads and stores in memory that all members reach.

    0         the value that proves the memory to be the right one
    waiting   a word per member: the rank whose lock it waits for, and 1; 0 for none. Who finalizes
              with that lock adds its own rank and 1, in the upper half: the wait is in vain
    locks     words behind these, as `osc_base/word_locks.py` has them
    posts     words behind these, as `osc_base/word_posts.py` has them
    lent      words behind these, as `osc_base/lent_parts.py` has them, or `attached_parts.py`
    slots     behind these, as `osc_base/target_messages.py` has them
    parts     the members' parts, one after the other, from a page's beginning on; not there where
              they are the members' own memory, which the others copy from and to

Of each rank there is a lock for epochs, and one that is held for as long as an accumulate takes.
They are those words where all members run compiled, and else the region's, which are the kernel's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Final

from ompy import raw
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.data.message import Message
from ompy.data.packed import in_place, to_send
from ompy.data.request import Request
from ompy.frameworks.call_site import call_site
from ompy.frameworks.collectives.shared_memory import PAGE, PROOF_SIZE, SharedMemory, share
from ompy.frameworks.osc import ALLOCATED, DYNAMIC, SHARED, Held, Place, Straight, Window
from ompy.frameworks.osc_base.attached_parts import AttachedParts, room_for_pieces
from ompy.frameworks.osc_base.exposed import Exposed, combine_elements, swap_element
from ompy.frameworks.osc_base.lent_parts import LentParts, room_for_parts
from ompy.frameworks.osc_base.module import MessageOsc
from ompy.frameworks.osc_base.target_messages import (
    MEMBERS,
    TargetMessages,
    can_ask,
    room_for_messages,
)
from ompy.frameworks.osc_base.window_agreement import all_say
from ompy.frameworks.osc_base.word_locks import WordLocks, can_lock, room
from ompy.frameworks.osc_base.word_posts import WordPosts, room_for_posts
from ompy.net.base import LinkError
from ompy.net.memory.process_copy import RegionLocks

from ompy_components.osc.sm.waits import AwaitCompletes, AwaitLock, AwaitPost

WORD: Final = 8  # bytes; 64 bits, which x86 and aarch64 store at once
FIRST: Final = PROOF_SIZE // WORD  # of the words
LEAVER: Final = 32  # bits of a word below the rank that has left; half of them
LINE: Final = 64  # bytes; arbitrary: of a cache line of most processors
NO_DATA: Final = 0  # bytes; no command of this window has data, so the value is arbitrary


def shared_window(
    window: Window, *, by_words: bool, by_messages: bool, max_attach: int
) -> SmOsc | None:
    """A module for a window; None, in all members, if one of them cannot share its memory.

    Args:
        window: the window.
        by_words: locks may be words of the memory.
        by_messages: members may do small operations for others.
        max_attach: pieces that a member has attached at a time.
    """
    communicator = window.communicator
    ranks, maps = communicator.size, window.flavor in {ALLOCATED, SHARED}
    slots = _slots(window, max_attach)
    size = _first(ranks) + sum(window.sizes) if maps else slots + room_for_messages(ranks)
    shared = share(communicator, size)
    if shared.view is None:
        return None
    lent = None if maps else _lent(window, shared, max_attach)
    if not maps and lent is None:
        shared.close()
        return None
    locks: RegionLocks | WordLocks | None = None
    able = by_words and can_lock(one_at_a_time=communicator.context.network.virtual)
    if all_say(communicator, able):
        locks = WordLocks(shared.view, PROOF_SIZE, communicator.size, communicator.rank)
        messages = None
        if lent is not None and _can_ask(window, by_messages=by_messages):
            lock = communicator.context.engine.lock
            messages = TargetMessages(shared.view, slots, communicator.rank, lent, locks, lock)
        return SmOsc(window, shared, locks, lent, messages)
    with suppress(LinkError):
        locks = shared.locks()
    if not all_say(communicator, locks is not None):
        if locks is not None:
            locks.close()
        if lent is not None:
            lent.close()
        shared.close()
        return None
    assert locks is not None, "all have them"
    return SmOsc(window, shared, locks, lent, None)


def _can_ask(window: Window, *, by_messages: bool) -> bool:
    """Whether members do operations for others; all agree."""
    communicator = window.communicator
    if not 1 < communicator.size <= MEMBERS:
        return False
    able = can_ask() and not communicator.context.network.virtual
    return all_say(communicator, able and by_messages)


def _slots(window: Window, max_attach: int) -> int:
    """Where the slots begin, of a window of the members' own memory."""
    ranks = window.communicator.size
    pieces = room_for_pieces(ranks, max_attach) if window.flavor == DYNAMIC else 0
    return -(-(_lent_words(ranks) + (pieces or room_for_parts(ranks))) // LINE) * LINE


def _lent(window: Window, shared: SharedMemory, max_attach: int) -> LentParts | None:
    """What reaches the members' own memory; None, in all members, if one cannot reach another's."""
    communicator, view, copy = window.communicator, shared.view, shared.copy
    assert view is not None and copy is not None, "it is shared"  # noqa: PT018 - what `share` says
    ranks, me, sizes = communicator.size, communicator.rank, list(window.sizes)
    first = _lent_words(ranks)
    lent: LentParts
    if window.flavor == DYNAMIC:
        lent = AttachedParts(copy, view, first, me, ranks, max_attach)
    else:
        lent = LentParts(copy, view, first, me, sizes)
    lent.lend(window.memory, view)
    all_say(communicator, yes=True)  # all have
    if all_say(communicator, lent.can_read(ranks, bytes(view[:PROOF_SIZE]))):
        return lent
    lent.close()
    return None


def _first(ranks: int) -> int:
    """Where the first part begins."""
    return -(-_lent_words(ranks) // PAGE) * PAGE


def _lent_words(ranks: int) -> int:
    """Where the words of lent parts begin."""
    return _posts(ranks) + room_for_posts(ranks)


def _posts(ranks: int) -> int:
    """Where the words of posts begin."""
    return PROOF_SIZE + room(ranks)


class SmOsc(MessageOsc):
    """Operations are done when they are called, and what members tell each other are words."""

    def __init__(
        self,
        window: Window,
        shared: SharedMemory,
        locks: RegionLocks | WordLocks,
        lent: LentParts | None,
        messages: TargetMessages | None,
    ) -> None:
        communicator = window.communicator
        view = shared.view
        assert view is not None, "it is shared"
        self._lent = lent
        self._messages = messages
        if lent is None:
            self._parts = _mapped(view, window.sizes)
            window.memory = self._parts[communicator.rank]
        else:
            self._parts = [memoryview(b"")] * communicator.size
            self._parts[communicator.rank] = window.memory
        super().__init__(window, NO_DATA)
        self._shared = shared
        self._words = view[: _posts(communicator.size)].cast("Q")
        self._memory_locks = locks
        self._members = [Exposed(part) for part in self._parts]
        self._members[self.rank] = self._exposed
        first = _posts(communicator.size)
        self._posts = WordPosts(view, first, communicator.size, self.rank, self._engine)
        self._sleepers = 0  # threads that wait for what members tell
        network = communicator.context.network
        with self._engine.lock:
            self._bells = [network.doorbell(proc.local_rank) for proc in communicator.procs]
            if messages is not None:
                self._engine.add_poller(messages)

    def leave(self) -> None:
        """Give back the locks it holds; as with messages, whoever waits for one is told."""
        if self._messages is not None:
            self._messages.complete_all()
        if self._lent is not None:
            self._lent.withdraw()
        for target in range(len(self._parts)):
            if not self._holds(target):
                continue
            waiting = self._waiting_for(target)
            for rank in waiting:
                self._words[FIRST + rank] = (self.rank + 1) << LEAVER | target + 1
            self._give_back(target)
            self._ring(waiting)

    def _holds(self, target: int) -> bool:
        if isinstance(self._memory_locks, WordLocks):
            return self._memory_locks.holds(target)
        return target in self._held

    def held(self) -> dict[int, Held]:
        """By the words where there are any: common calls do not come by here."""
        locks = self._memory_locks
        if not isinstance(locks, WordLocks):
            return dict(self._held)
        found = [target for target in range(len(self._parts)) if locks.holds(target)]
        return {target: Held(locks.holds_alone(target), locks.site(target)) for target in found}

    def close(self) -> None:
        """Give the memory back; it goes when nobody looks at it any more."""
        super().close()
        if self._messages is not None:
            with self._engine.lock:
                self._engine.remove_poller(self._messages)
            self._messages.close()
        self._memory_locks.close()
        self._posts.close()
        self._words.release()
        self._parts.clear()
        self._members.clear()
        if self._lent is not None:
            self._lent.close()
        self._shared.close()

    def straight(self) -> Straight | None:
        """The parts and the words, where the locks are words."""
        if not isinstance(self._memory_locks, WordLocks):
            return None
        barrier = self._prompt_barrier
        locks, posts = self._memory_locks, self._posts
        return Straight(self._parts, self._lent, locks, posts, barrier, self._messages)

    def wake_waiting(self, target: int) -> None:
        """Ring those who wait for a lock, and let others get on."""
        for number in range(len(self._parts)) if target < 0 else (target,):
            self._ring(self._waiting_for(number))
        self._engine.progress()

    def wake_sleepers(self, ranks: Sequence[int]) -> None:
        """Ring those that may be asleep."""
        raw.fence()
        self._ring([rank for rank in ranks if self._posts.sleeps(rank)])

    def progress(self) -> None:
        """Let others get on."""
        self._engine.progress()

    def shared(self, rank: int) -> memoryview | None:
        """Any member's part that is mapped."""
        return None if self._elsewhere(rank) is not None else self._parts[rank]

    # --- operations

    def _elsewhere(self, rank: int) -> LentParts | None:
        """What reaches a member's part by copies; None where it is in this process."""
        return self._lent if self._lent is not None and self._lent.covers(rank) else None

    def _there(self, target: int, place: Place) -> Message:
        """The elements at a place. Raises MPIError, ERR_RMA_RANGE, where some are in no part."""
        lent = self._elsewhere(target)
        return self._members[target].message(place) if lent is None else lent.message(target, place)

    def put(self, source: Message, target: int, place: Place) -> Request:
        """Store."""
        self._reach(target)
        there = self._there(target, place)
        into = in_place(there)
        if into is not None:
            into[:] = to_send(source)
        else:
            there.store(to_send(source))
        return _done()

    def get(self, into: Message, target: int, place: Place) -> Request:
        """Load."""
        self._reach(target)
        data = to_send(self._there(target, place))
        room = in_place(into)
        if room is not None:
            room[:] = data
        else:
            into.store(data)
        return _done()

    def accumulate(self, source: Message, target: int, place: Place, operation: str) -> Request:
        """Combine, under the target's lock for that."""
        self._reach(target)
        there = self._there(target, place)
        with _Atomic(self, target):
            combine_elements(there, to_send(source), operation)
        return _done()

    def fetch(
        self, source: Message | None, into: Message, target: int, place: Place, operation: str
    ) -> Request:
        """Load and combine, under the target's lock for that."""
        self._reach(target)
        there = self._there(target, place)
        data = memoryview(b"") if source is None else to_send(source)
        with _Atomic(self, target):
            before = there.packed()
            combine_elements(there, data, operation)
        into.store(before)
        return _done()

    def swap(
        self, source: Message, compare: Message, into: Message, target: int, place: Place
    ) -> Request:
        """Load, compare and store, under the target's lock for that."""
        self._reach(target)
        there = self._there(target, place)
        with _Atomic(self, target):
            before = swap_element(there, to_send(source), to_send(compare))
        into.store(before)
        return _done()

    def _settle(self, targets: Sequence[int]) -> None:
        """Have what members were asked for done.

        Raises:
            MPIError: ERR_PROC_FAILED, for one of them that is not there any more.
        """
        if self._messages is not None:
            for target in targets:
                self._messages.settle(target)

    # --- memory

    def attach(self, address: int, memory: memoryview) -> None:
        """Expose a piece of memory."""
        assert isinstance(self._lent, AttachedParts), "the MPI floor has looked at the flavor"
        super().attach(address, memory)
        with self._engine.lock:
            try:
                self._lent.attach(address, memory)
            except MPIError:
                super().detach(address)
                raise

    def detach(self, address: int) -> None:
        """Expose it no longer."""
        assert isinstance(self._lent, AttachedParts), "the MPI floor has looked at the flavor"
        super().detach(address)
        with self._engine.lock:
            self._lent.detach(address)

    # --- completion

    def fence(self) -> None:
        """All is done already, but for what was asked for: meet."""
        self._settle(range(len(self._parts)))
        raw.fence()
        self.barrier()
        raw.fence()

    def flush(self, targets: Sequence[int]) -> None:
        """All is done already, but for what was asked for; others get on."""
        self._settle(targets)
        raw.fence()
        self._engine.progress()

    def flush_local(self, targets: Sequence[int]) -> None:
        """All is done already; others get on."""
        self._engine.progress()

    def sync(self) -> None:
        """Order this rank's stores before its loads."""
        raw.fence()

    # --- epochs of targets and origins

    def start(self, targets: Sequence[int]) -> None:
        """Note that each has to post."""
        for target in targets:
            self._posts.expect_post(target)

    def _reach(self, target: int) -> None:
        posts = self._posts
        self._settle((target,))
        if posts.take_post(target):
            return
        self._sleep_until(AwaitPost(self._communicator, posts, target, self._has_left))
        if not posts.take_post(target):
            posts.give_up_post(target)
            raise self._has_ended(target)

    def complete(self, targets: Sequence[int]) -> None:
        """Wait for all to have posted, then tell them."""
        failure = None
        for target in targets:
            try:
                self._reach(target)
            except MPIError as problem:
                failure = failure or problem
            self._posts.tell_complete(target)
        self.wake_sleepers(targets)
        self._engine.progress()
        if failure is not None:
            raise failure

    def post(self, origins: Sequence[int]) -> None:
        """Tell each."""
        for origin in origins:
            self._posts.tell_post(origin)
        self.wake_sleepers(origins)

    def wait(self, origins: Sequence[int]) -> None:
        """Wait for each to complete."""
        posts = self._posts
        ended = AwaitCompletes(self._communicator, posts, origins, self._has_left)
        if not all(posts.await_complete(origin) for origin in origins):
            self._sleep_until(ended)
        gone = [origin for origin in origins if not posts.has_completed(origin)]
        for origin in origins:
            if origin not in gone:
                posts.take_complete(origin)
        if gone:
            raise self._has_ended(gone[0])

    def test(self, origins: Sequence[int]) -> bool:
        """Look whether each has."""
        self._engine.progress()
        if not all(self._posts.has_completed(each) or self._has_left(each) for each in origins):
            return False
        self.wait(origins)
        return True

    def _has_left(self, rank: int) -> bool:
        """Whether a member has ended; what it told before is in its words by then."""
        return bool(self._communicator.procs[rank].left)

    def _sleep_until(self, predicate: Callable[[], bool]) -> None:
        """Wait for what others tell."""
        with self._engine.lock:
            self._sleepers += 1
            self._posts.set_sleepers(self._sleepers)
        try:
            self._engine.wait_until(predicate)
        finally:
            with self._engine.lock:
                self._sleepers -= 1
                self._posts.set_sleepers(self._sleepers)

    # --- locks

    def lock(self, target: int, *, exclusive: bool) -> None:
        """Wait until the region's lock can be had."""
        self._have(target, exclusive=exclusive)
        if isinstance(self._memory_locks, WordLocks):
            self._memory_locks.note_site(target, call_site())
        else:
            self._held[target] = Held(exclusive, call_site())
        raw.fence()

    def unlock(self, target: int) -> None:
        """Give it back, and wake who waits for it; others get on."""
        try:
            self._settle((target,))
        finally:
            self._give_back(target)
        self._engine.progress()

    def _give_back(self, target: int) -> None:
        self._held.pop(target, None)
        raw.fence()
        self._memory_locks.unlock(target)
        raw.fence()
        self._ring(self._waiting_for(target))

    def _waiting_for(self, number: int) -> list[int]:
        words = self._words
        return [rank for rank in range(len(self._bells)) if words[FIRST + rank] == number + 1]

    def _ring(self, ranks: list[int]) -> None:
        for rank in ranks:
            with suppress(LinkError, MPIError):
                self._bells[rank].ring()

    def lock_all(self) -> None:
        """Have all, in the order of ranks: members load and store without asking."""
        for target in range(len(self._parts)):
            try:
                self.lock(target, exclusive=False)
            except BaseException:
                for held in range(target):
                    self._give_back(held)
                raise

    def unlock_all(self) -> None:
        """Give all back; others get on."""
        try:
            self._settle(range(len(self._parts)))
        finally:
            for target in range(len(self._parts)):
                self._give_back(target)
        self._engine.progress()

    def atomic(self, target: int) -> None:
        """Have the lock for accumulates on a target."""
        self._have(len(self._parts) + target, exclusive=True)

    def end_atomic(self, target: int) -> None:
        """Give it back. Nobody has it for so long that others would sleep."""
        self._memory_locks.unlock(len(self._parts) + target)

    def _have(self, number: int, *, exclusive: bool) -> None:
        locks = self._memory_locks
        if locks.try_lock(number, exclusive=exclusive):
            return
        word = FIRST + self.rank

        def attempt() -> bool:
            held = bool(locks.try_lock(number, exclusive=exclusive))
            if not held and isinstance(locks, WordLocks):
                self._free_of_the_dead(locks, number)
            return held

        wait = AwaitLock(
            self._communicator,
            number,
            alone=exclusive,
            attempt=attempt,
            vain=lambda: bool(self._words[word] >> LEAVER),
        )
        self._words[word] = number + 1
        raw.fence()
        try:
            self._engine.wait_until(wait)
        finally:
            leaver, self._words[word] = self._words[word] >> LEAVER, 0
        if leaver:
            if wait.held:
                self._give_back(number)
            proc = self._communicator.procs[leaver - 1]
            detail = f"{proc} has finalized MPI with the lock of rank {number} of this window"
            raise MPIError(ERR_PROC_FAILED, detail)

    def _free_of_the_dead(self, locks: WordLocks, number: int) -> None:
        """What the kernel does with its own locks; and wake whom the attempt has disturbed."""
        for rank in range(len(self._parts)):
            if self._gone(rank):
                locks.take_from(number, rank)
        if locks.disturbed:
            locks.disturbed = False
            self._ring([each for each in self._waiting_for(number) if each != self.rank])


def _mapped(view: memoryview, sizes: Sequence[int]) -> list[memoryview]:
    """The members' parts in the memory."""
    starts = accumulate(sizes, initial=_first(len(sizes)))
    return [view[start : start + size] for start, size in zip(starts, sizes, strict=False)]


class _Atomic:
    """While it is entered, nobody else accumulates in a target's part."""

    __slots__ = ("_osc", "_target")

    def __init__(self, osc: SmOsc, target: int) -> None:
        self._osc = osc
        self._target = target

    def __enter__(self) -> None:
        self._osc.atomic(self._target)

    def __exit__(self, *_: object) -> None:
        self._osc.end_atomic(self._target)


def _done() -> Request:
    done = Request()
    done.complete = True
    return done
