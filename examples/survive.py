"""A stencil that goes on when ranks die: heat in a ring, with checkpoints in the memory of others.

    ompy-run -n 8 --mca mpi_ft_enable 1 --kill rank=3,after=2s python examples/survive.py

Every rank has a part of a ring of cells. Every few steps it gives a copy of its part to a partner,
half of the ranks away, so that a host may be lost with all its ranks. When somebody dies the
others get an error somewhere; they revoke the communicator, so that all of them stop, make one of
those who live, and spawn new ranks in the place of the dead. All go back to the last checkpoint
that all have, and what was on the dead comes from their partners. In the end the result is compared
with that of one process that nobody has killed, digit for digit.
"""

import os
import sys
import time
from array import array
from contextlib import suppress

from mpi4py import MPI

CELLS = 200  # of each rank
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 400
EVERY = 10  # steps from one checkpoint to the next
PAUSE = 0.01  # s; a step of a large stencil takes as long
ALPHA = 0.2


def first_part(place):
    """What a rank begins with."""
    return array("d", ((place * CELLS + cell) ** 2 % 101 for cell in range(CELLS)))


def moved(part, left, right):
    """A part one step later."""
    padded = [left, *part, right]
    return array(
        "d",
        (
            padded[i] + ALPHA * (padded[i - 1] - 2 * padded[i] + padded[i + 1])
            for i in range(1, len(padded) - 1)
        ),
    )


def alone(size):
    """The ring after all steps, in one process."""
    ring = array("d")
    for place in range(size):
        ring.extend(first_part(place))
    for _ in range(STEPS):
        ring = moved(ring, ring[-1], ring[0])
    return ring


class Stencil:
    """One rank's part, and the checkpoints it keeps: its own, and those of whom it is partner."""

    def __init__(self, comm):
        self.comm = comm
        self.step = 0
        self.part = None
        self.saved = {}  # by step: this rank's part, the part of another

    def swapped(self):
        """Give a copy to the partner, and have that of another."""
        comm, half = self.comm, self.comm.size // 2
        partner, other = (comm.rank + half) % comm.size, (comm.rank - half) % comm.size
        theirs = comm.sendrecv(self.part, partner, source=other)
        comm.Barrier()
        return self.part, theirs

    def advance(self):
        """One step."""
        comm, room = self.comm, array("d", [0.0, 0.0])
        left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
        requests = [
            comm.Irecv(memoryview(room)[:1], left, 0),
            comm.Irecv(memoryview(room)[1:], right, 1),
            comm.Isend(self.part[-1:], right, 0),
            comm.Isend(self.part[:1], left, 1),
        ]
        MPI.Request.Waitall(requests)
        self.part = moved(self.part, *room)
        self.step += 1
        time.sleep(PAUSE)
        if self.step % EVERY == 0:
            self.saved[self.step] = self.swapped()
            for step in sorted(self.saved)[:-2]:  # not all may have the last
                del self.saved[step]

    def go_back(self):
        """All take up the last step that is whole; partners give what the new ranks lack."""
        comm, half = self.comm, self.comm.size // 2
        known = comm.allgather(set(self.saved))

        def whole(step):
            return all(step in known[r] or step in known[(r + half) % comm.size] for r in ranks)

        ranks = range(comm.size)
        step = max(filter(whole, set().union(*known)), default=0)  # 0 needs no checkpoint
        own, theirs = self.saved.get(step, (first_part(comm.rank), None))
        for place in ranks:
            keeper = (place + half) % comm.size
            if step and step not in known[place] and comm.rank == keeper:
                comm.send(theirs, place)
            elif step and step not in known[place] and comm.rank == place:
                own = comm.recv(source=keeper)
        self.step, self.part = step, own
        self.saved = {step: self.swapped()}


def replaced(comm):
    """A communicator as large as this one was, with new ranks in the places of the dead."""
    while True:
        survivors = comm.Shrink()
        there = MPI.Group.Translate_ranks(survivors.group, None, comm.group)
        dead = sorted(set(range(comm.size)) - set(there))
        made = None
        try:
            command, arguments = sys.executable, [__file__, *sys.argv[1:]]
            children = survivors.Spawn(command, arguments, maxprocs=len(dead)) if dead else None
            made = joined(survivors, children, comm.rank, dead)
        except MPI.Exception:  # somebody has died meanwhile
            survivors.Revoke()
        agreed = False
        with suppress(MPI.Exception):
            agreed = survivors.Agree(made is not None)
        if agreed:
            return made
        if made is not None:
            made.Revoke()


def joined(survivors, children, place, dead):
    """Survivors and new ranks in one communicator, everybody in the old place."""
    if children is None:
        return survivors.Split(0, place)
    merged = children.Merge(high=False)
    if merged.rank == 0:
        for number, its_place in enumerate(dead):
            merged.send(its_place, merged.size - len(dead) + number)
    return merged.Split(0, place)


def joined_as_child(parents):
    """What a new rank does meanwhile."""
    merged = parents.Merge(high=True)
    place = merged.recv(source=0)
    return merged.Split(0, place)


def main():
    parents = MPI.Comm.Get_parent()
    new = parents != MPI.COMM_NULL
    behind = True  # there is nothing to go on with yet
    comm = joined_as_child(parents) if new else MPI.COMM_WORLD
    stencil = Stencil(comm)
    while behind or stencil.step < STEPS:
        try:
            if behind:
                stencil.go_back()
                new = behind = False
            else:
                stencil.advance()
        except MPI.Exception as problem:
            stencil.comm.Revoke()
            if stencil.comm.rank == 0:
                print(f"at step {stencil.step}: {problem.Get_error_string()}", flush=True)
            if new:
                raise  # who has nothing yet is replaced
            stencil.comm, behind = replaced(stencil.comm), True
    ring = stencil.comm.gather(stencil.part)
    if stencil.comm.rank == 0:
        whole = array("d")
        for part in ring:
            whole.extend(part)
        same = whole == alone(stencil.comm.size)
        print(f"{stencil.comm.size} ranks, {STEPS} steps: ", end="")
        print("as without a failure" if same else "WRONG", flush=True)
        if not same:
            MPI.COMM_WORLD.Abort(1)


if __name__ == "__main__":
    try:
        main()
    except MPI.Exception as problem:
        if MPI.Comm.Get_parent() == MPI.COMM_NULL:
            raise
        print(f"a new rank gives up: {problem}", flush=True)
        os._exit(1)  # its place is given to another
