"""Random operations in a window of the ranks' own memory, judged by what must be there.

    python created_window_program.py SEED ROUNDS

Of each part, a room belongs to each origin, which alone writes to it and so knows what is there;
and to numbers before these rooms, all add. Ranks sleep and compute now and then, so that requests
are done by their target, or taken back. An odd seed makes a dynamic window.
"""

from __future__ import annotations

import sys
import time
from random import Random

import numpy as np
from mpi4py import MPI

NUMBERS = 8  # that all add to
ROOM = 2048  # doubles of each origin
COUNTS = (1, 2, 8, 12, 13, 100, 512, 513, 1000)  # around the limits of a slot and of a room
PASSIVE = ("lock", "lock all")
COMM = MPI.COMM_WORLD


class Origin:
    """One rank: its window, and what it knows of the others' parts."""

    def __init__(self, seed: int) -> None:
        size = COMM.size
        self.chance = Random(seed * 1000 + COMM.rank)
        self.part = np.zeros(NUMBERS + ROOM * size)
        self.dynamic = seed % 2 == 1
        if self.dynamic:
            self.window = MPI.Win.Create_dynamic(comm=COMM)
            self.window.Attach(self.part)
            self.base = COMM.allgather(MPI.Get_address(self.part))
        else:
            self.window = MPI.Win.Create(self.part, 8, comm=COMM)
        self.known = [np.zeros(ROOM) for _ in range(size)]
        self.added = np.zeros(size)
        self.vector = MPI.DOUBLE.Create_vector(4, 1, 3).Commit()

    def place(self, target: int, element: int) -> int:
        return self.base[target] + 8 * element if self.dynamic else element

    def room(self, target: int, element: int) -> int:
        return self.place(target, NUMBERS + ROOM * COMM.rank + element)

    def add(self, target: int, *, passive: bool) -> None:
        one, got = np.ones(1), np.zeros(1)
        place = self.place(target, target % NUMBERS)
        if self.chance.random() < 0.3:
            self.window.Accumulate(one, target, [place, 1, MPI.DOUBLE])
        else:
            self.window.Fetch_and_op(one, got, target, place)
        if passive:
            self.window.Flush(target)
        self.added[target] += 1

    def put(self, target: int, *, passive: bool) -> None:
        count = self.chance.choice(COUNTS)
        first = self.chance.randrange(ROOM - count)
        data = np.array([self.chance.random() for _ in range(count)])
        self.window.Put(data, target, self.room(target, first))
        self.known[target][first : first + count] = data
        if passive and self.chance.random() < 0.5:
            self.window.Flush(target)
            back = np.zeros(count)
            self.window.Get(back, target, self.room(target, first))
            self.window.Flush(target)
            assert (back == data).all(), (first, count)

    def put_gaps(self, target: int, *, passive: bool) -> None:
        first = self.chance.randrange(ROOM - 12)
        data = np.array([self.chance.random() for _ in range(4)])
        if passive:
            self.window.Flush(target)
            self.window.Put(data, target, [self.room(target, first), 1, self.vector])
            self.known[target][first : first + 12 : 3] = data

    def swap(self, target: int, *, passive: bool) -> None:
        if not passive:
            return
        self.window.Flush(target)
        element = self.chance.randrange(ROOM)
        there = self.known[target][element : element + 1].view("i8")
        new, got = np.array([self.chance.randrange(1 << 40)]), np.zeros(1, "i8")
        old = there + self.chance.randrange(2)
        self.window.Compare_and_swap(new, old, got, target, self.room(target, element))
        self.window.Flush(target)
        assert got[0] == there[0], (got, there)
        if got[0] == old[0]:
            there[0] = new[0]

    def dawdle(self, _target: int, *, passive: bool) -> None:
        if passive and self.chance.random() < 0.3:
            time.sleep(self.chance.random() / 500)
        sum(range(self.chance.randrange(5000)))

    def work(self, how: str, operations: int) -> None:
        kinds = [self.add] * 4 + [self.put] * 3 + [self.put_gaps, self.swap, self.dawdle]
        for _ in range(operations):
            target = self.chance.randrange(COMM.size)
            if how == "lock":
                self.window.Lock(target, self.chance.choice((MPI.LOCK_SHARED, MPI.LOCK_EXCLUSIVE)))
            self.chance.choice(kinds)(target, passive=how in PASSIVE)
            if how == "lock":
                self.window.Unlock(target)

    def judge(self) -> None:
        COMM.Barrier()
        for target in range(COMM.size):
            back = np.zeros(ROOM)
            self.window.Lock(target, MPI.LOCK_SHARED)
            self.window.Get(back, target, self.room(target, 0))
            self.window.Unlock(target)
            assert (back == self.known[target]).all(), np.nonzero(back != self.known[target])
        total = COMM.allreduce(self.added)
        self.window.Lock(COMM.rank)
        assert self.part[COMM.rank % NUMBERS] == total[COMM.rank], (self.part[:NUMBERS], total)
        self.window.Unlock(COMM.rank)
        COMM.Barrier()


def main(seed: int, rounds: int) -> None:
    """Rounds, each in epochs of one kind; and now and then a look at all that is there."""
    origin, common, operations = Origin(seed), Random(seed), 0
    everybody = COMM.Get_group()
    for _ in range(rounds):
        how, count = common.choice((*PASSIVE, "fence", "post")), common.randrange(1, 60)
        if how == "lock all":
            origin.window.Lock_all()
        elif how == "fence":
            origin.window.Fence()
        elif how == "post":
            origin.window.Post(everybody)
            origin.window.Start(everybody)
        origin.work(how, count)
        operations += count
        if how == "lock all":
            origin.window.Unlock_all()
        elif how == "fence":
            origin.window.Fence(MPI.MODE_NOSUCCEED)
        elif how == "post":
            origin.window.Complete()
            origin.window.Wait()
        if common.random() < 0.1:
            origin.judge()
    origin.judge()
    origin.window.Free()
    if COMM.rank == 0:
        print("operations of each:", operations)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
