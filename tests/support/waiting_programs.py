"""Random programs that are right, and wait in every way: none of them may be accused of a deadlock.

    python tests/support/waiting_programs.py FIRST COUNT          programs of these seeds
    python tests/support/waiting_programs.py FIRST COUNT stand    and then ranks that never go on

under ompy-run.

All ranks draw the same plan from a seed: phases, each of which ends for everybody. Ranks are late
by chance, compute, sleep, and now and then one is stopped by a signal for a while.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from random import Random
from typing import Any, Final

from ompy import MPI

PHASES: Final = 6  # of a program, at most; arbitrary
LATE: Final = 0.008  # s, at most; arbitrary: several times the patience that the sweep sets
SIZES: Final = (0, 1, 64, 5000, 100_000)  # bytes: eager, rendezvous, by other protocols
TAGS: Final = 8  # of a phase, at most
PHASE_TAGS: Final = 1000  # arbitrary: no rank is so many phases ahead
WAYS: Final = 15  # to wait for another rank, below
STOPPED: Final = 0.02  # s; arbitrary: as long as many answers


class Phase:
    """One phase: what all ranks draw alike.

    Attributes:
        chance: the same in all ranks.
        own: each rank's.
        first_tag: of this phase's messages: a wildcard takes none of the next one's.
        folder: for files.
    """

    def __init__(self, comm: Any, chance: Random, own: Random, first_tag: int, folder: str) -> None:
        self.comm = comm
        self.folder = folder
        self.first_tag = first_tag
        self.chance = chance
        self.own = own
        self.size = chance.choice(SIZES)
        self.late = [chance.random() < 0.5 for _ in range(comm.size)]

    def be_late(self) -> None:
        """Some ranks sleep, some compute."""
        if self.late[self.comm.rank]:
            end = time.monotonic() + self.own.random() * LATE
            if self.own.random() < 0.5:
                time.sleep(max(0.0, end - time.monotonic()))
            while time.monotonic() < end:
                pass

    def pairs(self) -> None:
        """Messages from some ranks to some others, in every mode, received in every way."""
        comm, chance = self.comm, self.chance
        plan = [
            (chance.randrange(comm.size), chance.randrange(comm.size), chance.randrange(4))
            for _ in range(chance.randint(1, 6))
        ]
        self.be_late()
        sends, receives = [], []
        for tag, (source, target, mode) in enumerate(plan, self.first_tag):
            if comm.rank == source:
                data = bytearray(self.size)
                begin = (comm.Isend, comm.Issend, comm.Isend, comm.Issend)[mode]
                sends.append(begin(data, target, tag))
        for tag, (source, target, _) in enumerate(plan, self.first_tag):
            if comm.rank == target:
                receives.append(comm.Irecv(bytearray(self.size), source, tag))
        while receives and chance_of(self.own):
            index = MPI.Request.Waitany(receives)
            receives.pop(index)
        MPI.Request.Waitall(receives)
        MPI.Request.Waitall(sends)

    def wildcard(self) -> None:
        """One rank receives from any, in one of four ways; the others send."""
        comm = self.comm
        root, way = self.chance.randrange(comm.size), self.chance.randrange(4)
        self.be_late()
        tag = self.first_tag
        if comm.rank != root:
            (comm.Ssend if way % 2 else comm.Send)(bytearray(self.size), root, tag)
            return
        for _ in range(comm.size - 1):
            source = MPI.ANY_SOURCE
            if way == 1:
                status = MPI.Status()
                comm.Probe(MPI.ANY_SOURCE, tag, status)
                source = status.Get_source()
            elif way == 2:
                while not comm.Iprobe(MPI.ANY_SOURCE, tag):
                    time.sleep(0.0005)
            comm.Recv(bytearray(self.size), source, tag)

    def ring(self) -> None:
        """Everybody passes on what came."""
        comm = self.comm
        self.be_late()
        right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        tag = self.first_tag
        comm.Sendrecv(bytearray(self.size), right, tag, bytearray(self.size), left, tag)
        if comm.rank == 0:
            comm.send("round", right, tag)
            comm.recv(source=left, tag=tag)
        else:
            comm.send(comm.recv(source=left, tag=tag), right, tag)

    def collectives(self) -> None:
        """Blocking ones in a row, with a late root."""
        comm, chance = self.comm, self.chance
        for _ in range(chance.randint(1, 3)):
            kind, root = chance.randrange(6), chance.randrange(comm.size)
            self.late = [chance.random() < 0.3 for _ in range(comm.size)]
            self.be_late()
            if kind == 0:
                comm.Barrier()
            elif kind == 1:
                comm.Bcast(bytearray(self.size), root)
            elif kind == 2:
                assert comm.allreduce(1) == comm.size
            elif kind == 3:
                comm.gather(comm.rank, root)
            elif kind == 4:
                comm.alltoall([0] * comm.size)
            else:
                comm.bcast("text", root)

    def begun(self) -> None:
        """A collective under way beside messages that others wait for."""
        comm = self.comm
        kind = self.chance.randrange(3)
        data = bytearray(max(8, self.size))
        begins = (comm.Ibarrier, lambda: comm.Ibcast(data, 0), comm.Ibarrier)
        begin: Callable[[], Any] = begins[kind]
        first = begin()
        self.be_late()
        self.ring()
        second = begin() if kind == 2 else None
        first.Wait()
        if second is not None:
            second.Wait()

    def prepared(self) -> None:
        """Collectives that are started again and again, in any order if all are, before a wait."""
        comm, chance = self.comm, self.chance
        data, room = bytearray(max(8, self.size)), bytearray(max(8, self.size))
        made = [
            comm.Barrier_init(),
            comm.Bcast_init(data, chance.randrange(comm.size)),
            comm.Allreduce_init(data, room, op=MPI.MAX),
            comm.Gather_init(bytes(8), bytearray(8 * comm.size), chance.randrange(comm.size)),
        ]
        for _ in range(chance.randint(1, 4)):
            self.late = [chance.random() < 0.3 for _ in range(comm.size)]
            in_turn = chance.random() < 0.5
            order = (chance if in_turn else self.own).sample(made, len(made))
            self.be_late()
            for request in order:
                request.Start()
                if in_turn:
                    request.Wait()
            MPI.Request.Waitall(made)
        for request in made:
            request.Free()

    def groups(self) -> None:
        """Halves that do different things."""
        comm = self.comm
        part = comm.Split(comm.rank % 2, comm.rank)
        self.be_late()
        if comm.rank % 2:
            part.Barrier()
        else:
            part.allreduce(comm.rank)
        part.Free()

    def threads(self) -> None:
        """A thread receives what another thread of the rank makes possible."""
        comm = self.comm
        got: list[Any] = []
        tag = self.first_tag
        thread = threading.Thread(target=lambda: got.append(comm.recv(source=comm.rank, tag=tag)))
        thread.start()
        self.be_late()
        comm.Barrier()
        comm.send(comm.rank, comm.rank, tag)
        thread.join()
        assert got == [comm.rank]

    def windows(self) -> None:
        """Epochs of each kind, in a window of each kind, in any order."""
        comm, chance = self.comm, self.chance
        window = _made(comm, 64, allocated=chance_of(chance))
        window.Fence()
        for _ in range(chance.randint(1, 4)):
            ways = (self.fences, self.locks, self.lock_and_message, self.all_locks, self.posts)
            self.late = [chance.random() < 0.5 for _ in range(comm.size)]
            chance.choice(ways)(window)
            window.Fence()
        self.be_late()
        window.Free()

    def fences(self, window: Any) -> None:
        """Some come late."""
        self.be_late()
        window.Put(bytearray(8), (self.comm.rank + 1) % self.comm.size)

    def locks(self, window: Any) -> None:
        """Several at a time, of some ranks, always in the order of ranks."""
        comm = self.comm
        targets = sorted(self.own.sample(range(comm.size), self.own.randint(1, comm.size)))
        for target in targets:
            window.Lock(target, self.own.choice((MPI.LOCK_EXCLUSIVE, MPI.LOCK_SHARED)))
            window.Put(bytearray(8), target)
        self.be_late()
        if chance_of(self.own):
            window.Flush(targets[0])
        for target in targets:
            window.Unlock(target)

    def lock_and_message(self, window: Any) -> None:
        """Who has a lock waits for a message of one that does not want it before it was sent."""
        comm = self.comm
        holder, sender, target = (self.chance.randrange(comm.size) for _ in range(3))
        tag = self.first_tag
        if comm.rank == sender != holder:
            self.be_late()
            comm.Send(bytearray(8), holder, tag)
        if comm.rank == holder:
            window.Lock(target)
            if sender != holder:
                comm.Recv(bytearray(8), sender, tag)
            window.Unlock(target)
        else:
            window.Lock(target, self.own.choice((MPI.LOCK_EXCLUSIVE, MPI.LOCK_SHARED)))
            self.be_late()
            window.Unlock(target)

    def all_locks(self, window: Any) -> None:
        """Shared ones of all, beside one that is had alone."""
        if self.chance.randrange(self.comm.size) == self.comm.rank:
            target = self.own.randrange(self.comm.size)
            window.Lock(target)
            self.be_late()
            window.Unlock(target)
        else:
            window.Lock_all()
            window.Put(bytearray(8), self.own.randrange(self.comm.size))
            self.be_late()
            window.Unlock_all()

    def posts(self, window: Any) -> None:
        """Some ranks are accessed by some others, who are late."""
        comm, chance = self.comm, self.chance
        targets = chance.sample(range(comm.size), chance.randint(1, comm.size - 1))
        origins = [rank for rank in range(comm.size) if rank not in targets]
        group = comm.Get_group()
        self.be_late()
        if comm.rank in targets:
            window.Post(group.Incl(origins))
            self.be_late()
            if chance_of(self.own):
                window.Wait()
            else:
                while not window.Test():
                    time.sleep(0.0005)
        else:
            window.Start(group.Incl(targets))
            if chance_of(self.own):
                window.Put(bytearray(8), self.own.choice(targets))
            self.be_late()
            window.Complete()

    def files(self) -> None:
        """Collective calls on a file, split and not, and its shared pointer."""
        comm, chance = self.comm, self.chance
        name = os.path.join(self.folder, f"file-{self.first_tag}")
        file = MPI.File.Open(comm, name, MPI.MODE_CREATE | MPI.MODE_RDWR)
        data = bytearray(min(self.size, 5000) + 1)
        for _ in range(chance.randint(1, 4)):
            kind = chance.randrange(6)
            self.late = [chance.random() < 0.4 for _ in range(comm.size)]
            self.be_late()
            if kind == 0:
                file.Write_at_all(comm.rank * len(data), data)
            elif kind == 1:
                file.Write_ordered(data)
            elif kind == 2:
                file.Write_shared(data)
            elif kind == 3:
                request = file.Iread_at_all(0, data)
                self.ring()
                request.Wait()
            elif kind == 4:
                file.Read_at_all_begin(0, data)
                self.ring()
                file.Read_at_all_end(data)
            else:
                file.Sync()
        file.Close()

    def ports(self) -> None:
        """Two groups meet."""
        comm = self.comm
        half = comm.Split(comm.rank % 2, comm.rank)
        port = comm.bcast(MPI.Open_port() if comm.rank == 0 else None)
        self.be_late()
        between = half.Connect(port) if comm.rank % 2 else half.Accept(port)
        between.Barrier()
        between.Disconnect()
        half.Free()
        if comm.rank == 0:
            MPI.Close_port(port)

    def stopped(self) -> None:
        """One rank is stopped for a while, perhaps in a call."""
        comm = self.comm
        stopped = self.chance.randrange(comm.size)
        if comm.rank == stopped:
            me = os.getpid()
            script = f"sleep 0.002; kill -STOP {me}; sleep {STOPPED}; kill -CONT {me}"
            with subprocess.Popen(["/bin/sh", "-c", script]):
                comm.Barrier()
        else:
            comm.Barrier()


def chance_of(random: Random) -> bool:
    """Every second time."""
    return random.random() < 0.5


MESSAGES: Final = ("pairs", "wildcard", "ring", "collectives", "begun", "prepared", "groups")
KINDS: Final = (*MESSAGES * 4, *("windows",) * 8, *("files",) * 4)
RARE: Final = ("threads", "stopped", "ports")


def run_program(comm: Any, seed: int, folder: str) -> None:
    """One program."""
    chance = Random(seed)
    own = Random(f"{seed}/{comm.rank}")
    for number in range(chance.randint(1, PHASES)):
        first_tag = (seed * PHASES + number) % PHASE_TAGS * TAGS
        phase = Phase(comm, chance, own, first_tag, folder)
        getattr(phase, chance.choice((*KINDS, *RARE)))()


def _made(comm: Any, size: int, *, allocated: bool) -> Any:
    """A window; of memory that is mapped by all where it is allocated, and all are on one host."""
    if allocated:
        return MPI.Win.Allocate(size, comm=comm)
    return MPI.Win.Create(bytearray(size), comm=comm)


def _start(window: Any, group: Any) -> None:
    window.Start(group)
    window.Complete()


def _post(window: Any, group: Any) -> None:
    window.Post(group)
    window.Wait()


def _ways_to_wait(
    comm: Any, aside: Any, other: int, tag: int, windows: list[Any]
) -> list[Callable[[], Any]]:
    """Calls that end when another rank does something that it never does.

    Args:
        comm: of both.
        aside: likewise; the others make no call there, which would be another one than here.
        other: the other one. It has the lock of its part of the first window.
        tag: of this rank's messages; the other one's have another.
        windows: three, of which each way needs its own.
    """
    large = bytearray(SIZES[-1])
    group = comm.Get_group().Incl([other])
    return [
        lambda: comm.recv(source=other, tag=tag),
        lambda: comm.Recv(bytearray(8), other, tag),
        lambda: comm.Ssend(bytearray(8), other, tag),
        lambda: comm.Send(large * 10, other, tag),
        lambda: comm.Probe(other, tag),
        lambda: comm.Mprobe(other, tag),
        lambda: comm.Irecv(bytearray(8), other, tag).Wait(),
        lambda: MPI.Request.Waitall([comm.Irecv(bytearray(8), other, tag), aside.Ibarrier()]),
        lambda: MPI.Request.Waitany([comm.Irecv(bytearray(8), other, tag + n) for n in (0, 2)]),
        lambda: comm.Sendrecv(bytearray(8), other, tag, bytearray(8), other, tag),
        lambda: comm.sendrecv("text", other, tag, None, other, tag),
        lambda: windows[0].Lock(other, MPI.LOCK_SHARED if tag % 2 else MPI.LOCK_EXCLUSIVE),
        lambda: _start(windows[1], group),
        lambda: _post(windows[2], group),
        lambda: MPI.COMM_SELF.Accept(MPI.Open_port()),
    ]


def stand_still(comm: Any, seed: int) -> None:
    """Two ranks wait for each other for ever, and all others for them. Says which two."""
    chance = Random(f"stand {seed}")
    pair = chance.sample(range(comm.size), 2)
    picks = [chance.randrange(WAYS) for _ in pair]
    if comm.rank == 0:
        print("stand", *pair, flush=True)
    windows = [_made(comm, 8, allocated=chance_of(chance)) for _ in range(3)]
    aside = comm.Dup()
    if comm.rank in pair:
        windows[0].Lock(comm.rank)
    comm.Barrier()
    if comm.rank in pair:
        place = pair.index(comm.rank)
        time.sleep(chance.random() * LATE)
        ways = _ways_to_wait(comm, aside, pair[1 - place], 900 + place, windows)
        ways[picks[place]]()
    comm.allreduce(1)


def main() -> None:
    """Programs of the seeds that were asked for, one after the other."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    first, count = map(int, sys.argv[1:3])
    folder = MPI.COMM_WORLD.bcast(tempfile.mkdtemp() if MPI.COMM_WORLD.rank == 0 else None)
    for seed in range(first, first + count):
        run_program(MPI.COMM_WORLD, seed, folder)
    MPI.COMM_WORLD.Barrier()
    if MPI.COMM_WORLD.rank == 0:
        shutil.rmtree(folder)
    if MPI.COMM_WORLD.rank == 0:
        print(f"{count} programs ended", flush=True)
    if sys.argv[3:]:
        stand_still(MPI.COMM_WORLD, first)


if __name__ == "__main__":
    main()
