"""Programs of one rank each: what windows promise, one thing at a time. Two ranks or more."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from ompy.data.constants import PROC_NULL
from ompy.data.errors import (
    ERR_ASSERT,
    ERR_COUNT,
    ERR_DISP,
    ERR_LOCKTYPE,
    ERR_OP,
    ERR_RANK,
    ERR_RMA_ATTACH,
    ERR_RMA_FLAVOR,
    ERR_RMA_RANGE,
    ERR_RMA_SHARED,
    ERR_RMA_SYNC,
    ERR_SIZE,
    ERR_TRUNCATE,
    ERR_TYPE,
    ERR_WIN,
)
from ompy.mpi import constants
from ompy.mpi.buffers.memory import Get_address
from ompy.mpi.collectives.operation import OPERATIONS, Op
from ompy.mpi.communicators.predefined_comms import self_of, world_of
from ompy.mpi.datatypes.predefined import DATATYPES
from ompy.mpi.errhandler import ERRORS_RETURN
from ompy.mpi.errors import MPIException
from ompy.mpi.windows.windows import WIN_NULL, Win
from ompy.runtime.ranks.process import RankProcess
from ompy_components.osc.sm.module import SmOsc

from tests.sim.osc.kinds import kinds  # noqa: F401 - a program, found by its name

INT, DOUBLE = DATATYPES["INT"], DATATYPES["DOUBLE"]
SUM, REPLACE, NO_OP, MAXLOC = (OPERATIONS[name] for name in ("SUM", "REPLACE", "NO_OP", "MAXLOC"))


def ints(*values: int) -> array:
    return array("i", values)


def fails(code: int, call: Any, *arguments: Any, **more: Any) -> str:
    with pytest.raises(MPIException) as caught:
        call(*arguments, **more)
    assert caught.value.code == code, caught.value
    return str(caught.value)


def large(process: RankProcess) -> None:
    """A megabyte each way, with and without gaps, by put, get, accumulate and fetch."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    count = 1 << 18
    memory = array("i", [rank]) * count
    win = Win.Create(memory, 4, comm=comm)
    data = array("i", range(count))
    after, before = (rank + 1) % size, (rank - 1) % size
    win.Fence()
    win.Put(data, after)
    win.Fence()
    assert memory == data
    room = array("i", [0]) * count
    win.Get(room, after)
    win.Fence()
    assert room == data
    win.Accumulate(data, after)
    win.Fence()
    assert memory[7] == 14
    assert memory[-1] == 2 * (count - 1)
    comm.Barrier()
    win.Get_accumulate(array("i", [1]) * count, room, after)
    win.Fence()
    assert room[9] == 18
    assert memory[9] == 19
    comm.Barrier()
    odd = INT.Create_vector(count // 2, 1, 2).Commit()
    win.Put([array("i", [-rank]) * (count // 2), INT], after, [1, 1, odd])
    win.Fence()
    assert (memory[8], memory[9]) == (17, -before)
    win.Get([room, 1, odd], after, [0, count // 2, INT])
    win.Fence()
    assert room[2] == -rank
    win.Free()


def ordered_accumulates(process: RankProcess) -> None:
    """Large and small ones in turn: the last replaces all, and nothing overtakes."""
    comm = world_of(process)
    count = 5000
    win = Win.Create(array("i", [0]) * count, 4, comm=comm)
    if comm.rank:
        win.Lock_all()
        for turn in range(10):
            win.Accumulate(array("i", [turn]) * count, 0, op=REPLACE)
            win.Accumulate(ints(1), 0, 3)
            was = ints(0)
            win.Fetch_and_op(ints(2), was, 0, 3)
            win.Flush(0)
            if comm.size == 2:
                assert was[0] == turn + 1
        win.Unlock_all()
    comm.Barrier()
    if comm.rank == 0 and comm.size == 2:
        there = memoryview(win).cast("i").tolist()
        assert there[3] == 12
        assert there[4] == there[-1] == 9
    win.Free()


def counter(process: RankProcess) -> None:
    """Everybody counts at once, and each number is had once; so is a lock by one at a time."""
    comm = world_of(process)
    turns = 20
    for make in (lambda: Win.Create(array("q", [0, 0]), 8, comm=comm), lambda: _allocated(comm)):
        win = make()
        mine = []
        for _ in range(turns):
            was = array("q", [-1])
            win.Lock(0, constants.LOCK_SHARED)
            win.Fetch_and_op(array("q", [1]), was, 0)
            win.Unlock(0)
            mine.append(was[0])
        everything = comm.allgather(mine)
        assert sorted(one for each in everything for one in each) == list(range(turns * comm.size))
        for _ in range(5):  # not atomic: only the lock keeps others away
            was = array("q", [-1])
            win.Lock(0)
            win.Get(was, 0, 1)
            win.Flush(0)
            win.Put(array("q", [was[0] + 1]), 0, 1)
            win.Unlock(0)
        comm.Barrier()
        was = array("q", [-1])
        win.Lock(0, constants.LOCK_SHARED)
        win.Get(was, 0, 1)
        win.Unlock(0)
        assert was[0] == 5 * comm.size
        comm.Barrier()
        win.Free()


def _allocated(comm: Any) -> Win:
    return Win.Allocate(16 if comm.rank == 0 else 0, 8, comm=comm)


def compare_and_swap(process: RankProcess) -> None:
    """One of all gets it; of every kind it is defined for."""
    comm = world_of(process)
    for kind in "bBhHiIlLqQ":
        memory = array(kind, [7])
        win = Win.Create(memory, memory.itemsize, comm=comm)
        was = array(kind, [0])
        win.Fence()
        win.Compare_and_swap(array(kind, [comm.rank + 20]), array(kind, [7]), was, 0)
        win.Fence()
        winners = [rank for rank, value in enumerate(comm.allgather(was[0])) if value == 7]
        assert len(winners) == 1
        if comm.rank == 0:
            assert memory[0] == winners[0] + 20
        win.Free()


def requests(process: RankProcess) -> None:
    """Each of the four, waited for alone and together, inside a lock."""
    comm = world_of(process)
    target = (comm.rank + 1) % comm.size
    memory = ints(*range(8))
    win = Win.Create(memory, 4, comm=comm)
    win.Lock(target)
    room, was = ints(-1, -1), ints(-1)
    begun = win.Rget(room, target, 1)
    begun.Wait()
    assert list(room) == [1, 2]
    first = win.Rput(ints(50), target, 5)
    second = win.Raccumulate(ints(60), target, 6)
    first.Wait()
    second.Wait()
    win.Flush(target)
    third = win.Rget_accumulate(ints(1), was, target, 6)
    third.Wait()
    assert was[0] == 66
    nobody = win.Rput(ints(1), PROC_NULL)
    assert nobody.Test()
    win.Unlock(target)
    comm.Barrier()
    assert (memory[5], memory[6]) == (50, 67)
    win.Free()


def dynamic(process: RankProcess) -> None:
    """Memory that comes and goes; who misses it is told by the target."""
    comm = world_of(process)
    win = Win.Create_dynamic(comm=comm)
    pieces = [ints(1, 2, 3, 4), ints(10, 20)]
    for piece in pieces:
        win.Attach(piece)
    fails(ERR_RMA_ATTACH, win.Attach, memoryview(pieces[0])[1:2])
    addresses = comm.allgather([Get_address(piece) for piece in pieces])
    target = (comm.rank + 1) % comm.size
    room = ints(0, 0)
    win.Lock(target)
    win.Put(ints(-3), target, addresses[target][0] + 8)
    win.Accumulate(ints(5), target, addresses[target][1])
    win.Flush(target)
    win.Get(room, target, addresses[target][1])
    win.Unlock(target)
    assert list(room) == [15, 20]
    comm.Barrier()
    assert pieces[0][2] == -3
    comm.Barrier()
    win.Detach(pieces[1])
    fails(ERR_RMA_ATTACH, win.Detach, pieces[1])
    comm.Barrier()
    _missing(win, target, addresses[target][1])
    comm.Barrier()
    win.Detach(pieces[0])
    win.Free()


def _missing(win: Win, target: int, address: int) -> None:
    """No operation reaches what is not there; each error is told once, and the window lives on."""
    win.Lock(target)
    if isinstance(win._state().module, SmOsc) and target != win.group_rank:
        many, room = array("i", [1]) * 10_000, array("i", [0]) * 10_000
        fails(ERR_RMA_RANGE, win.Put, ints(1), target, address)
        fails(ERR_RMA_RANGE, win.Rget, ints(0), target, address)
        fails(ERR_RMA_RANGE, win.Accumulate, many, target, address)
        fails(ERR_RMA_RANGE, win.Get_accumulate, many, room, target, address)
        fails(ERR_RMA_RANGE, win.Compare_and_swap, ints(1), ints(1), ints(1), target, address)
        win.Unlock(target)
    elif target != win.group_rank:
        win.Put(ints(1), target, address)
        fails(ERR_RMA_RANGE, win.Flush, target)
        win.Put(array("i", [1]) * 10_000, target, address)
        win.Accumulate(array("i", [1]) * 10_000, target, address)
        fails(ERR_RMA_RANGE, win.Flush, target)
        win.Flush(target)
        request = win.Rget(ints(0), target, address)
        fails(ERR_RMA_RANGE, request.Wait)
        fails(ERR_RMA_RANGE, win.Flush, target)
        win.Compare_and_swap(ints(1), ints(1), ints(1), target, address)
        win.Get_accumulate(array("i", [1]) * 9999, array("i", [0]) * 9999, target, address)
        fails(ERR_RMA_RANGE, win.Unlock, target)
    else:
        fails(ERR_RMA_RANGE, win.Put, ints(1), target, address)
        win.Unlock(target)


def wrong_calls(process: RankProcess) -> None:
    """What the origin can know it says before anything is sent."""
    comm = world_of(process)
    for allocate in (False, True):
        win = _made(comm, 4, allocate)
        _wrong_without_epochs(comm, win)
        _wrong_under_a_lock(comm, win)
        win.Fence(constants.MODE_NOSUCCEED)
        fails(ERR_RMA_SYNC, win.Put, ints(1), comm.rank)
        win.Free()
        fails(ERR_WIN, win.Fence)
    fails(ERR_WIN, WIN_NULL.Free)
    fails(ERR_SIZE, Win.Allocate, -1, comm=self_of(process))
    fails(ERR_DISP, Win.Allocate, 8, 0, comm=self_of(process))


def _made(comm: Any, count: int, allocate: bool) -> Win:
    """A window of so many integers, which are 0."""
    if allocate:
        return Win.Allocate(4 * count, 4, comm=comm)
    return Win.Create(ints(*[0] * count), 4, comm=comm)


def _wrong_without_epochs(comm: Any, win: Win) -> None:
    one, other = ints(1), (comm.rank + 1) % comm.size
    for call in (win.Put, win.Get, win.Accumulate, win.Rput, win.Rget, win.Raccumulate):
        fails(ERR_RMA_SYNC, call, one, other)
    fails(ERR_RMA_SYNC, win.Get_accumulate, one, ints(0), other)
    fails(ERR_RMA_SYNC, win.Flush_local, other)
    fails(ERR_RMA_SYNC, win.Flush_local_all)
    fails(ERR_RMA_SYNC, win.Put, one, other)
    fails(ERR_RMA_SYNC, win.Flush, other)
    fails(ERR_RMA_SYNC, win.Flush_all)
    fails(ERR_RMA_SYNC, win.Unlock, other)
    fails(ERR_RMA_SYNC, win.Unlock_all)
    fails(ERR_RMA_SYNC, win.Complete)
    fails(ERR_RMA_SYNC, win.Wait)
    fails(ERR_RMA_SYNC, win.Test)
    fails(ERR_LOCKTYPE, win.Lock, other, 77)
    fails(ERR_RANK, win.Lock, comm.size)
    fails(ERR_ASSERT, win.Fence, 1 << 20)
    fails(ERR_ASSERT, win.Lock, other, constants.LOCK_SHARED, constants.MODE_NOSUCCEED)
    fails(ERR_ASSERT, win.Lock_all, constants.MODE_NOSUCCEED)
    fails(ERR_ASSERT, win.Start, win.group, constants.MODE_NOSUCCEED)
    fails(ERR_ASSERT, win.Post, win.group, constants.MODE_NOSUCCEED)
    fails(ERR_RMA_FLAVOR, win.Attach, one)
    if win.flavor == constants.WIN_FLAVOR_CREATE:
        fails(ERR_RMA_SHARED, win.Shared_query, other)


def _wrong_under_a_lock(comm: Any, win: Win) -> None:
    one, other = ints(1), (comm.rank + 1) % comm.size
    win.Lock(other)
    fails(ERR_RMA_SYNC, win.Lock_all)
    fails(ERR_RMA_SYNC, win.Unlock_all)
    fails(ERR_RMA_SYNC, win.Lock, other)
    fails(ERR_RMA_SYNC, win.Fence)
    fails(ERR_RMA_SYNC, win.Free)
    fails(ERR_RMA_SYNC, win.Start, win.group)
    fails(ERR_RANK, win.Put, one, comm.size)
    fails(ERR_RMA_RANGE, win.Put, one, other, 4)
    fails(ERR_DISP, win.Put, one, other, -1)
    fails(ERR_TRUNCATE, win.Put, ints(1, 2), other, [0, 1])
    fails(ERR_COUNT, win.Put, one, other, [0, 2])
    fails(ERR_OP, win.Accumulate, one, other, op=Op.Create(lambda _a, _b, _t: None))
    fails(ERR_OP, win.Accumulate, one, other, op=MAXLOC)
    fails(ERR_TYPE, win.Accumulate, one, other, [0, 1, DATATYPES["FLOAT"]])
    fails(ERR_TYPE, win.Compare_and_swap, *[array("f", [1.0])] * 3, other)
    with pytest.raises(ValueError):
        win.Put(one, other, [0, 1, INT, None])
    with pytest.raises(ValueError):
        win.Fetch_and_op(ints(1, 2), one, other)
    win.Put(one, PROC_NULL)
    none = [bytearray(1), 0, DATATYPES["BYTE"]]  # no element is of a kind without a sum
    win.Get_accumulate(none, none, other)
    win.Unlock(other)
    win.Lock(comm.rank)
    win.Get_accumulate(none, none, comm.rank)
    win.Unlock(comm.rank)


def tested_after_a_barrier(process: RankProcess) -> None:
    """What an origin has completed before both met, the target's Test finds at once."""
    comm = world_of(process)
    for allocate in (False, True):
        win = _made(comm, 1, allocate)
        _tested_after_a_barrier(comm, win)
        win.Free()


def _tested_after_a_barrier(comm: Any, win: Win) -> None:
    others = win.group.Excl([0])
    for _ in range(3):
        if comm.rank == 0:
            win.Start(others)
            comm.Barrier()
            win.Complete()
            comm.Barrier()
        else:
            win.Post(win.group.Incl([0]))
            assert not win.Test()
            comm.Barrier()
            comm.Barrier()
            assert win.Test()


def active_targets(process: RankProcess) -> None:
    """Post and Start in any order, of parts of the ranks, several epochs one after the other."""
    comm = world_of(process)
    for allocate in (False, True):
        win = _made(comm, comm.size, allocate)
        with memoryview(win).cast("i") as memory:
            _active_targets(comm, win, memory)
        win.Free()


def _active_targets(comm: Any, win: Win, memory: Any) -> None:
    rank, size = comm.rank, comm.size
    group = win.Get_group()
    after, before = group.Incl([(rank + 1) % size]), group.Incl([(rank - 1) % size])
    for turn in range(5):
        if (rank + turn) % 2:
            win.Post(before)
            win.Start(after, constants.MODE_NOCHECK)
        else:
            win.Start(after)
            win.Post(before)
        win.Put(ints(100 * turn + rank), (rank + 1) % size, rank)
        if size > 2:
            fails(ERR_RMA_SYNC, win.Put, ints(1), (rank + 2) % size)
        win.Complete()
        if turn % 2:
            win.Wait()
        else:
            while not win.Test():
                comm.Iprobe()
        assert memory[(rank - 1) % size] == 100 * turn + (rank - 1) % size


def busy_lock(process: RankProcess) -> None:
    """Shared locks are held together, an exclusive one waits for all of them, and comes next."""
    comm = world_of(process)
    win = Win.Create(ints(0), 4, comm=comm)
    win.Lock(0, constants.LOCK_SHARED)
    comm.Barrier()  # all have it now
    win.Unlock(0)
    for _ in range(3):
        win.Lock(0)
        win.Accumulate(ints(1), 0)
        win.Unlock(0)
    comm.Barrier()
    if comm.rank == 0:
        assert memoryview(win).cast("i")[0] == 3 * comm.size
    win.Free()


def spinning_target(process: RankProcess) -> None:
    """A member that only looks at its own memory, again and again, keeps nobody from storing."""
    comm = world_of(process)
    room, one = ints(0), ints(0)

    def locked(win: Win) -> None:
        win.Lock(0)
        win.Get(room, 0)
        win.Unlock(0)

    def all_locked(win: Win) -> None:
        win.Lock_all()
        win.Get(room, 0)
        win.Unlock_all()

    def flushed(win: Win) -> None:
        win.Get(room, 0)
        win.Flush(0)

    def flushed_here(win: Win) -> None:
        win.Get(room, 0)
        win.Flush_local(0)

    def fetched(win: Win) -> None:
        win.Fetch_and_op(one, room, 0, 0, NO_OP)
        win.Flush_all()

    win = Win.Allocate(4, 4, comm=comm)
    for turn, look in enumerate((locked, all_locked, flushed, flushed_here, fetched), 1):
        held = look not in {locked, all_locked}
        comm.Barrier()
        if comm.rank == 0:
            if held:
                win.Lock(0, constants.LOCK_SHARED)
            rounds = 0
            while room[0] != turn and rounds < 1_000_000:  # arbitrary: many times what is needed
                look(win)
                rounds += 1
            if held:
                win.Unlock(0)
            assert room[0] == turn, f"nothing was stored in {rounds} rounds of {look.__name__}"
        elif comm.rank == 1:
            win.Lock(0, constants.LOCK_SHARED if held else constants.LOCK_EXCLUSIVE)
            win.Accumulate(ints(turn), 0, op=REPLACE)
            win.Unlock(0)
    comm.Barrier()
    win.Free()


def identity(process: RankProcess) -> None:
    """Names, hints, attributes, error handlers, handles as integers."""
    comm = world_of(process)
    win = Win.Create(bytearray(8), 2, comm=comm)
    assert (win.flavor, win.model) == (constants.WIN_FLAVOR_CREATE, constants.WIN_UNIFIED)
    assert (win.group_rank, win.group_size) == (comm.rank, comm.size)
    assert win.attrs[1:] == (8, 2)
    assert win.attrs[0] == win.Get_attr(constants.WIN_BASE) == Get_address(win.tomemory())
    deleted = []
    key = Win.Create_keyval(delete_fn=lambda _win, _key, value: deleted.append(value))
    win.Set_attr(key, "kept")
    assert win.Get_attr(key) == "kept"
    assert Win.fromhandle(win.handle) == win
    assert Win.f2py(win.py2f()) == win
    assert win != WIN_NULL
    assert win.Get_errhandler() == ERRORS_RETURN
    seen = []
    handler = Win.Create_errhandler(lambda _win, code: seen.append(code))
    win.Set_errhandler(handler)
    fails(ERR_RMA_SYNC, win.Flush, 0)
    assert seen == [ERR_RMA_SYNC]
    win.name = "a name"
    assert win.name == "a name"
    win.Free()
    assert not win
    assert deleted == ["kept"]
    Win.Free_keyval(key)


def shared(process: RankProcess) -> None:
    """Loads and stores in the members' parts, which lie side by side."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    win = Win.Allocate_shared(4 * (rank + 1), 4, comm=comm)
    mine = memoryview(win).cast("i")
    mine[rank] = 10 * rank
    comm.Barrier()
    for other in range(size):
        part, unit = win.Shared_query(other)
        assert (len(part), unit) == (4 * (other + 1), 4)
        assert memoryview(part).cast("i")[other] == 10 * other
    first, _ = win.Shared_query(PROC_NULL)
    assert len(first) == 4
    comm.Barrier()
    win.Lock_all()
    memoryview(win.Shared_query((rank + 1) % size)[0]).cast("i")[0] = -1 - rank
    win.Sync()
    comm.Barrier()
    assert mine[0] == -1 - (rank - 1) % size
    comm.Barrier()
    win.Accumulate(ints(1), (rank + 1) % size)
    win.Unlock_all()
    comm.Barrier()
    assert mine[0] == -((rank - 1) % size)
    mine.release()
    win.Free()


def several_windows(process: RankProcess) -> None:
    """They have nothing to do with each other, nor with messages of users."""
    comm = world_of(process)
    other = (comm.rank + 1) % comm.size
    memories = [ints(0, 0) for _ in range(4)]
    windows = [Win.Create(memory, 4, comm=comm) for memory in memories]
    room = ints(0)
    receive = comm.Irecv(room, tag=0)
    for number, win in enumerate(windows):
        win.Lock(other, constants.LOCK_SHARED)
        win.Put(ints(number + 1), other)
    for win in windows[::-1]:
        win.Unlock(other)
    comm.Send(ints(9), other, 0)
    receive.Wait()
    assert room[0] == 9
    comm.Barrier()
    assert [memory[0] for memory in memories] == [1, 2, 3, 4]
    for win in windows:
        win.Free()


PROGRAMS = (
    "large",
    "ordered_accumulates",
    "counter",
    "compare_and_swap",
    "requests",
    "dynamic",
    "wrong_calls",
    "active_targets",
    "tested_after_a_barrier",
    "busy_lock",
    "spinning_target",
    "identity",
    "shared",
    "several_windows",
    "kinds",
)
# of memory that is shared, if it can be
IN_MEMORY = ("shared", "wrong_calls", "active_targets", "tested_after_a_barrier", "kinds")


def everything(process: RankProcess) -> None:
    """All programs in one job: for real ranks."""
    for name in PROGRAMS:
        globals()[name](process)


def over_messages(process: RankProcess) -> None:
    """All but that of shared memory."""
    for name in PROGRAMS:
        if name != "shared":
            globals()[name](process)
