"""Operations that a member does in its own memory for others, and requests that are taken back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import Random

import pytest
from ompy import raw
from ompy.compiled_loader import is_compiled
from ompy.data.elements import LOOPS
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.engine.lock import rank_lock
from ompy.frameworks.osc_base.attached_parts import AttachedParts, room_for_pieces
from ompy.frameworks.osc_base.lent_parts import LentParts, room_for_parts
from ompy.frameworks.osc_base.target_messages import (
    FEW,
    HALF,
    MOST,
    NO_OP,
    REPLACE,
    SLOTS,
    TargetMessages,
    room_for_messages,
)
from ompy.frameworks.osc_base.word_locks import WordLocks, room
from ompy.net.base import LinkError
from ompy.net.memory.kernel_copy import KernelCopy

FIRST = 64  # arbitrary: words begin somewhere
OWN = 2 * MOST  # bytes of a part that one member alone writes to; arbitrary
SIZE = 8 + 3 * OWN  # bytes of a part
SUM = LOOPS["MPI_SUM"]["q"]
BXOR = LOOPS["MPI_BXOR"]["q"]
compiled = pytest.mark.skipif(
    is_compiled("ompy.frameworks.osc_base.target_messages"),
    reason="nobody comes between two looks of compiled code in a test",
)


class World:
    """Members whose memory is all in this process; who of them polls, a test says."""

    def __init__(self, members: int) -> None:
        self.parts = [memoryview(bytearray(SIZE)) for _ in range(members)]
        locks, lent = room(members), room_for_parts(members)
        slots = FIRST + locks + lent
        self.view = memoryview(bytearray(slots + room_for_messages(members)))
        self.locks = [WordLocks(self.view, FIRST, members, rank) for rank in range(members)]
        sizes = [SIZE] * members
        self.lent = [
            LentParts(_copy(), self.view, FIRST + locks, rank, sizes) for rank in range(members)
        ]
        for part, each in zip(self.parts, self.lent, strict=True):
            each.lend(part, self.view)
        self.members = [
            TargetMessages(self.view, slots, rank, each, locks, rank_lock())
            for rank, (each, locks) in enumerate(zip(self.lent, self.locks, strict=True))
        ]


def _copy() -> KernelCopy:
    try:
        return KernelCopy()
    except LinkError as problem:
        pytest.skip(str(problem))


@pytest.fixture
def world() -> World:
    return World(2)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Have something done between two looks of who waits."""

    def between(action: Callable[[], object]) -> None:
        monkeypatch.setattr(raw, "pause", lambda _times: action())

    return between


def _bytes(*numbers: int) -> memoryview:
    return memoryview(b"".join(number.to_bytes(8, "little", signed=True) for number in numbers))


@pytest.mark.parametrize("size", [1, FEW, FEW + 1, MOST])
def test_a_put_is_done_when_the_target_polls(world: World, size: int) -> None:
    origin, target = world.members
    data = memoryview(bytearray(b"x" * size))
    assert origin.put(1, 8, data, size)
    data[:] = bytes(size)  # may be used again
    assert origin.is_open(1)
    assert not any(world.parts[1])
    assert not target.arm()  # so it does not sleep
    assert world.parts[1][8 : 8 + size] == b"x" * size
    assert origin.complete(1)
    assert not origin.is_open(1)
    assert target.poll() == 0


def test_more_puts_than_slots(world: World) -> None:
    origin, target = world.members
    for number in range(SLOTS):
        assert origin.put(1, number, memoryview(bytes([number + 1])), 1)
    assert target.poll() == SLOTS
    assert origin.complete(1)
    for number in range(SLOTS):
        assert origin.put(1, number, memoryview(bytes([number + 101])), 1)
    assert target.poll() == SLOTS
    assert bytes(world.parts[1][:SLOTS]) == bytes(range(101, 101 + SLOTS))


def test_a_put_that_nobody_does_is_taken_back(world: World) -> None:
    origin, target = world.members
    assert origin.put(1, 0, memoryview(b"abc"), 3)
    assert origin.put(1, 3, memoryview(b"def"), 3)
    assert origin.complete(1)  # by the kernel
    assert bytes(world.parts[1][:6]) == b"abcdef"
    world.parts[1][:6] = b"......"
    assert not origin.put(1, 0, memoryview(b"abc"), 3)  # for a while it does not ask
    assert not origin.put(1, 0, memoryview(b"abc"), 3)
    assert origin.put(1, 0, memoryview(b"ghi"), 3)
    assert target.poll() == 3  # two of them it finds taken back
    assert bytes(world.parts[1][:6]) == b"ghi..."
    assert origin.complete(1)


def test_slots_used_again_behind_a_target_that_has_slept(world: World) -> None:
    origin, target = world.members
    asked = 0
    while asked < 5 * SLOTS:
        if origin.put(1, asked, memoryview(bytes([asked + 1])), 1):
            asked += 1
            assert origin.complete(1)
    assert bytes(world.parts[1][:asked]) == bytes(range(1, asked + 1))
    while not origin.put(1, 0, memoryview(b"!"), 1):
        pass
    assert target.poll() >= 1
    assert world.parts[1][0] == ord("!")
    assert origin.complete(1)
    assert origin.put(1, 1, memoryview(b"!"), 1)  # asked again at once, as the last was done


@compiled
def test_what_is_answered(world: World, looks: Callable[[Callable[[], object]], None]) -> None:
    origin, target = world.members
    looks(target.poll)
    part, into = world.parts[1], memoryview(bytearray(16))
    part[:16] = _bytes(5, -7)
    assert origin.get(1, 0, into, 16)
    assert into == _bytes(5, -7)
    assert origin.combine(1, 0, SUM, _bytes(1, 2), 16)
    assert part[:16] == _bytes(6, -5)
    assert origin.combine(1, 0, REPLACE, _bytes(8, 9), 16)
    assert part[:16] == _bytes(8, 9)
    assert origin.fetch(1, 0, SUM, _bytes(1, 1), into, 16)
    assert (into, part[:16]) == (_bytes(8, 9), _bytes(9, 10))
    assert origin.fetch(1, 0, NO_OP, memoryview(b""), into, 16)
    assert (into, part[:16]) == (_bytes(9, 10), _bytes(9, 10))
    assert origin.swap(1, 0, _bytes(1), _bytes(2), into, 8)
    assert (into[:8], part[:8]) == (_bytes(9), _bytes(9))
    assert origin.swap(1, 0, _bytes(1), _bytes(9), into, 8)
    assert (into[:8], part[:8]) == (_bytes(9), _bytes(1))
    assert HALF >= 16


def test_who_gets_no_answer_has_to_do_it_otherwise(world: World) -> None:
    origin, target = world.members
    world.parts[1][:8] = _bytes(5)
    into = memoryview(bytearray(8))
    assert origin.put(1, 8, memoryview(b"before"), 6)
    assert not origin.fetch(1, 0, SUM, _bytes(1), into, 8)
    assert (world.parts[1][:8], into) == (_bytes(5), _bytes(0))  # none of it
    assert bytes(world.parts[1][8:14]) == b"before"  # but what came before it
    assert target.poll() == 2
    assert world.parts[1][:8] == _bytes(5)


@compiled
def test_while_somebody_has_the_lock_for_it_nothing_is_combined(
    world: World, looks: Callable[[Callable[[], object]], None]
) -> None:
    origin, target = world.members
    looks(target.poll)
    world.locks[0].try_lock(3, True)
    assert not origin.combine(1, 0, SUM, _bytes(1), 8)
    world.locks[0].unlock(3)
    assert target.poll() == 1
    assert world.parts[1][:8] == _bytes(0)
    for _ in range(2):
        assert not origin.combine(1, 0, SUM, _bytes(1), 8)
    assert origin.combine(1, 0, SUM, _bytes(1), 8)
    assert world.parts[1][:8] == _bytes(1)


def test_a_target_that_has_ended(world: World) -> None:
    origin, _ = world.members
    assert origin.put(1, 0, memoryview(b"abc"), 3)
    world.lent[1].withdraw()
    assert not origin.complete(1)
    assert origin.is_open(1)  # nobody takes it for done
    assert not origin.complete_all()
    with pytest.raises(MPIError) as told:
        origin.settle(1)
    assert told.value.code == ERR_PROC_FAILED
    assert origin.complete(1)  # it was given up
    origin.settle(1)


@compiled
def test_a_target_that_ends_in_the_middle(
    world: World, looks: Callable[[Callable[[], object]], None]
) -> None:
    origin, _ = world.members
    assert origin.put(1, 0, memoryview(b"abc"), 3)
    start = FIRST + room(2) + room_for_parts(2)
    slot = next(at for at in range(start, len(world.view), 8) if raw.word(world.view, at) == 4)
    raw.put_word(world.view, slot, 5)  # it is claimed
    count = 0

    def ends() -> None:
        nonlocal count
        count += 1
        if count == 100:
            world.lent[1].withdraw()

    looks(ends)
    assert not origin.complete(1)
    assert count > 100


def test_pieces_by_address() -> None:
    lent_room, locks = room_for_pieces(2, 4), room(2)
    slots = -(-(FIRST + locks + lent_room) // 64) * 64
    view = memoryview(bytearray(slots + room_for_messages(2)))
    both = [AttachedParts(_copy(), view, FIRST + locks, rank, 2, 4) for rank in range(2)]
    words = [WordLocks(view, FIRST, 2, rank) for rank in range(2)]
    for each in both:
        each.lend(memoryview(b""), view)
    members = [
        TargetMessages(view, slots, rank, both[rank], words[rank], rank_lock()) for rank in range(2)
    ]
    pieces = [memoryview(bytearray(100)) for _ in range(2)]
    for number, piece in enumerate(pieces):
        both[1].attach(1000 * (number + 1), piece)
    for number, piece in enumerate(pieces):
        at = both[0].find_bytes(1, 1000 * (number + 1) + 90, 10)
        assert members[0].put(1, at, memoryview(b"0123456789"), 10)
        assert members[1].poll() == 1
        assert bytes(piece[90:]) == b"0123456789"
    both[1].detach(1000)
    assert members[0].put(1, at - 100, memoryview(b"0123456789"), 10)
    assert members[1].poll() == 0  # it is its origin's to find out
    assert bytes(pieces[1][90:]) == b"0123456789"


@compiled
@pytest.mark.parametrize("seed", range(40))
def test_members_that_poll_now_and_then(
    seed: int, looks: Callable[[Callable[[], object]], None]
) -> None:
    """What each has in its own room is what it put there; a number that all add to is the sum."""
    chance = Random(seed)
    world = World(3)
    awake = chance.choice((0.0, 0.02, 0.3, 1.0))
    done, undone = 0, 0

    def others() -> None:
        if chance.random() < awake:
            world.members[chance.randrange(3)].poll()

    looks(others)
    model = [bytearray(SIZE) for _ in range(3)]
    added = [0, 0, 0]
    for _ in range(400):
        origin, target = chance.sample(range(3), 2)
        member, lent = world.members[origin], world.lent[origin]
        if chance.random() < 0.2:
            into = memoryview(bytearray(8))
            added[target] += 1
            if member.fetch(target, 0, SUM, _bytes(1), into, 8):
                done += 1
                continue
            undone += 1
            member.settle(target)
            lent.load_bytes(target, 0, into, 8)
            lent.store_bytes(target, 0, _bytes(int.from_bytes(into, "little") + 1), 8)
        elif chance.random() < 0.3:
            assert member.complete(target)
            at = 8 + OWN * origin
            assert world.parts[target][at : at + OWN] == model[target][at : at + OWN]
        else:
            size = chance.randint(1, chance.choice((FEW, MOST)))
            at = 8 + OWN * origin + chance.randrange(OWN - MOST)
            data = memoryview(chance.randbytes(size))
            model[target][at : at + size] = data
            if not member.put(target, at, data, size):
                member.settle(target)
                lent.store_bytes(target, at, data, size)
        if chance.random() < awake:
            world.members[chance.randrange(3)].poll()
    for member in world.members:
        assert member.complete_all()
    for target in range(3):
        model[target][:8] = _bytes(added[target])
        assert world.parts[target] == model[target]
    assert done or awake < 1.0
    assert undone or awake > 0.0


@compiled
def test_two_threads_and_a_target_that_does_nothing(world: World) -> None:
    """While the kernel copies for one of them, the other goes on asking."""
    origin, _ = world.members
    failures: list[str] = []

    def puts(first: int) -> None:
        for number in range(300):
            at = first + number % 8
            value = bytes([number % 251 + 1])
            if not origin.put(1, at, memoryview(value), 1):
                origin.settle(1)
                world.lent[0].store_bytes(1, at, memoryview(value), 1)
            origin.settle(1)
            if world.parts[1][at : at + 1] != value:
                failures.append(f"{number}: {bytes(world.parts[1][at : at + 1])!r} for {value!r}")

    threads = [threading.Thread(target=puts, args=(first,)) for first in (0, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
