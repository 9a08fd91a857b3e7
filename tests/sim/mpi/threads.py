"""Programs of one rank each whose threads are all in MPI calls at once; real processes only."""

from __future__ import annotations

import sys
import threading
from array import array
from collections.abc import Callable

from ompy.data.constants import ANY_SOURCE, PROC_NULL
from ompy.mpi.buffers.markers import BUFFER_AUTOMATIC
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.point_to_point.buffering import attach_buffer, detach_buffer
from ompy.mpi.point_to_point.request import Request
from ompy.mpi.point_to_point.status import Status
from ompy.runtime.ranks.process import RankProcess

from tests.support.effort import effort

THREADS = 4
ROUNDS = effort(25)


def together(work: Callable[[int], None]) -> None:
    """Run `work(number)` in THREADS threads and in this one; the first failure is raised here."""
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as problem:
            failures.append(problem)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # as many interleavings as there can be
    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(4)]
    try:
        for thread in threads:
            thread.start()
        run(THREADS)
        for thread in threads:
            thread.join(50)
            assert failures or not thread.is_alive(), "a thread never ended"
    finally:
        sys.setswitchinterval(interval)
    for problem in failures:
        raise problem


def pairs_of_threads(process: RankProcess) -> None:
    """Each thread talks to its like on the other ranks, in blocking calls of every kind."""
    comm = world_of(process)
    attach_buffer(comm._state().world, BUFFER_AUTOMATIC)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size

    def work(number: int) -> None:
        for turn in range(ROUNDS):
            size = (3, 700, 30_000)[turn % 3]
            out = array("d", [comm.rank * 1000.0 + number * 100 + turn] * size)
            room, status = array("d", bytes(8 * size)), Status()
            kind = (turn + number) % 4
            if kind == 0:
                comm.Sendrecv(out, right, number, room, left, number, status)
            elif kind == 1:
                request = comm.Irecv(room, left, number)
                comm.Ssend(out, right, number)
                request.Wait(status)
            elif kind == 2:
                comm.Bsend(out, right, number)
                comm.Probe(left, number, status)
                comm.Recv(room, left, number, status)
            else:
                requests = [comm.Irecv(room, left, number), comm.Isend(out, right, number)]
                while Request.Waitany(requests, status) >= 0:
                    pass
            assert room == array("d", [left * 1000.0 + number * 100 + turn] * size)
            comm.send({"turn": turn, "thread": number}, right, 100 + number)
            assert comm.recv(None, left, 100 + number) == {"turn": turn, "thread": number}
            comm.Send(None, PROC_NULL)

    together(work)
    detach_buffer(comm._state().world, comm._state().world)


def shared_tag(process: RankProcess) -> None:
    """Threads take messages from one queue: matched probes give each message to one of them."""
    comm = world_of(process)
    total = (THREADS + 1) * ROUNDS
    heard: list[int] = []

    def work(number: int) -> None:
        for turn in range(ROUNDS):
            value = number * ROUNDS + turn
            if comm.rank:
                comm.Send(array("i", [value] * (1 + 2000 * (turn % 2))), 0, 7)
                continue
            for _ in range(comm.size - 1):
                status = Status()
                message = comm.Mprobe(ANY_SOURCE, 7, status)
                room = array("i", bytes(status.count))
                message.Recv(room)
                assert set(room) == {room[0]}
                heard.append(room[0])

    together(work)
    if comm.rank == 0:
        assert sorted(heard) == sorted(list(range(total)) * (comm.size - 1))


PROGRAMS = ("pairs_of_threads", "shared_tag")
