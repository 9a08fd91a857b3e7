"""Programs of one rank each: what locks, conditions, semaphores and counters promise."""

from __future__ import annotations

from array import array
from typing import Any

from ompy.addons import sync
from ompy.mpi import constants
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.windows.windows import Win
from ompy.runtime.ranks.process import RankProcess

TURNS = 4


def _looked(win: Win, change: int) -> int:
    """Read a number at rank 0, then write another one: only a lock makes that one step."""
    found = array("i", [0])
    win.Lock(0, constants.LOCK_SHARED)
    win.Get(found, 0)
    win.Flush(0)
    win.Put(array("i", [found[0] + change]), 0)
    win.Unlock(0)
    return found[0]


def _number(comm: Any) -> Win:
    win = Win.Create(array("i", [0]), 4, comm=comm)
    comm.Barrier()
    return win


def exclusive(process: RankProcess) -> int:
    """Members that hold a mutex in turns lose no update; with tries that do not wait, too."""
    comm = world_of(process)
    win, mutex = _number(comm), sync.Mutex(comm=comm, recursive=True)
    for turn in range(TURNS):
        if turn % 2:
            while not mutex.acquire(blocking=False):
                comm.Iprobe()
        else:
            mutex.acquire()
        with mutex:
            _looked(win, 1)
            assert mutex.count() == 2
        mutex.release()
        assert not mutex.locked()
    comm.Barrier()
    total = _looked(win, 0) if comm.rank == 0 else 0
    comm.Barrier()
    mutex.free()
    win.Free()
    return total


def told(process: RankProcess) -> int:
    """What one puts, another one takes: nobody sleeps through it, nobody takes nothing."""
    comm = world_of(process)
    win, condition = _number(comm), sync.Condition(comm=comm)
    if comm.rank == 0:
        for _ in range(TURNS * (comm.size - 1)):
            with condition:
                _looked(win, 1)
                condition.notify()
    else:
        for _ in range(TURNS):
            with condition:
                condition.wait_for(lambda: _looked(win, 0) > 0)
                assert _looked(win, -1) > 0
    comm.Barrier()
    left = _looked(win, 0) if comm.rank == 0 else 0
    condition.free()
    win.Free()
    return left


def at_once(process: RankProcess) -> int:
    """No more members than the semaphore says; all come in."""
    comm = world_of(process)
    places = max(1, comm.size - 1)
    win = _number(comm)
    semaphore, mutex = sync.Semaphore(places, comm=comm), sync.Mutex(comm=comm)
    most = 0
    for _ in range(TURNS):
        with semaphore:
            with mutex:
                most = max(most, 1 + _looked(win, 1))
            with mutex:
                _looked(win, -1)
    comm.Barrier()
    for each in (semaphore, mutex, win):
        each.free()
    assert most <= places
    return most


def counted(process: RankProcess) -> list[int]:
    """Every value once; sections in the order of the ranks."""
    comm = world_of(process)
    counter = sync.Counter(10, 3, comm=comm, root=comm.size - 1)
    taken = [next(counter) for _ in range(TURNS)]
    comm.Barrier()
    with sync.Sequential(comm):
        taken.append(next(counter))
    counter.free()
    return taken
