"""Programs in which rank 1 leaves and others wait for it, for both worlds.

Whatever a rank may wait for stands in `WAITS`, by name: a call of the API that needs rank `GONE`.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from functools import partial
from typing import Any

from ompy.mpi.errors import MPIException
from ompy.mpi.request import Request
from ompy.mpi.windows import Win
from ompy.mpi.world import world_of
from ompy.runtime.process import RankProcess

GONE = 1
TAG = 5
LAST = 9  # tag of what it sends last
LARGE = 2_000_000  # bytes; arbitrary: more than any BTL sends eagerly


def room(size: int = 8) -> bytearray:
    return bytearray(size)


def looks(look: Callable[[], Any]) -> None:
    """Look again and again."""
    while not look():
        pass


def buffered(comm: Any) -> None:
    """A large buffered send is complete at once; the memory is given back all the same."""
    comm.Attach_buffer(room(2 * LARGE))
    comm.Bsend(room(LARGE), GONE, TAG)
    comm.Detach_buffer()
    comm.Recv(room(), GONE, TAG)


def started(request: Any) -> None:
    """A persistent request, twice: both fail."""
    request.Start()
    try:
        request.Wait()
    except MPIException:
        request.Start()
        request.Wait()


def both(comm: Any) -> None:
    comm.Sendrecv(room(), GONE, TAG, room(), GONE, TAG)


WAITS: dict[str, Callable[[Any], object]] = {
    "recv": lambda comm: comm.Recv(room(), GONE, TAG),
    "irecv": lambda comm: comm.Irecv(room(), GONE, TAG).Wait(),
    "recv object": lambda comm: comm.recv(source=GONE, tag=TAG),
    "test": lambda comm: looks(comm.Irecv(room(), GONE, TAG).Test),
    "testall": lambda comm: looks(partial(Request.Testall, [comm.Irecv(room(), GONE, TAG)])),
    "waitany": lambda comm: Request.Waitany([comm.Irecv(room(), GONE, TAG)]),
    "any": lambda comm: comm.Recv(room(), tag=TAG),
    "test any": lambda comm: looks(comm.Irecv(room(), tag=TAG).Test),
    "probe": lambda comm: comm.Probe(GONE, TAG),
    "mprobe": lambda comm: comm.Mprobe(GONE, TAG),
    "probe any": lambda comm: comm.Probe(tag=TAG),
    "ssend": lambda comm: comm.Ssend(room(), GONE, TAG),
    "issend": lambda comm: comm.Issend(room(), GONE, TAG).Wait(),
    "large send": lambda comm: comm.Send(room(LARGE), GONE, TAG),
    "large isend": lambda comm: looks(comm.Isend(room(LARGE), GONE, TAG).Test),
    "buffered": buffered,
    "sendrecv": both,
    "persistent receive": lambda comm: started(comm.Recv_init(room(), GONE, TAG)),
    "persistent send": lambda comm: started(comm.Ssend_init(room(), GONE, TAG)),
    "barrier": lambda comm: comm.Barrier(),
    "bcast": lambda comm: comm.Bcast(room(), GONE),
    "large bcast": lambda comm: comm.Bcast(room(LARGE), GONE),
    "allreduce": lambda comm: comm.Allreduce(array("i", [1]), array("i", [0])),
    "large allreduce": lambda comm: comm.Allreduce(
        array("i", [1] * 99999), array("i", [0] * 99999)
    ),
    "reduce": lambda comm: comm.Reduce(array("i", [1]), array("i", [0]), root=0),
    "allgather": lambda comm: comm.Allgather(room(), room(8 * comm.size)),
    "alltoall": lambda comm: comm.Alltoall(room(8 * comm.size), room(8 * comm.size)),
    "gather": lambda comm: comm.gather(1, 0) if comm.rank == 0 else comm.recv(source=GONE),
    "ibarrier": lambda comm: comm.Ibarrier().Wait(),
    "iallreduce": lambda comm: looks(comm.Iallreduce(array("i", [1]), array("i", [0])).Test),
    "persistent bcast": lambda comm: started(comm.Bcast_init(room(), GONE)),
    "dup": lambda comm: comm.Dup(),
    "split": lambda comm: comm.Split(0),
    "window": lambda comm: Win.Create(array("i", [0]), 4, comm=comm),
}


def waits(process: RankProcess, name: str, met: bool) -> list[Any]:
    """Rank 1 leaves; rank 0 makes a call that needs it. Error class, ns it took, message."""
    comm = world_of(process)
    if met:
        other = 1 - comm.rank
        comm.Sendrecv(room(), other, TAG, room(), other, TAG)
    if comm.rank == GONE:
        if met:
            comm.Send(b"last", 0, LAST)
        return []
    now = process.context.engine.now
    began = now()
    try:
        WAITS[name](comm)
    except MPIException as problem:
        found = [problem.code, now() - began, str(problem)]
    else:
        found = [0, now() - began, ""]
    if met:
        last = bytearray(4)
        comm.Recv(last, GONE, LAST)
        assert last == b"last"
    return found


def everything(process: RankProcess) -> dict[str, list[Any]]:
    """Every wait, one after the other: begun before rank 1 leaves, or after."""
    comm = world_of(process)
    other = 1 - comm.rank
    comm.Sendrecv(room(), other, TAG, room(), other, TAG)
    comm.Barrier()
    if comm.rank == GONE:
        comm.Send(b"last", 0, LAST)
        comm.Send(room(LARGE), 0, LAST + 1)
        return {}
    early = {
        "early irecv": comm.Irecv(room(), GONE, TAG),
        "early any": comm.Irecv(room(), tag=TAG),
        "early issend": comm.Issend(room(), GONE, TAG),
        "early isend": comm.Isend(room(LARGE), GONE, TAG),
        "early ibarrier": comm.Ibarrier(),
    }
    comm.Recv(room(LARGE), GONE, LAST + 1)
    found = {name: _outcome(request.Wait) for name, request in early.items()}
    for name, wait in WAITS.items():
        found[name] = _outcome(partial(wait, comm))
    last = bytearray(4)
    comm.Recv(last, GONE, LAST)
    assert last == b"last"
    return found


def _outcome(call: Callable[[], object]) -> list[Any]:
    began = time.monotonic()
    try:
        call()
    except MPIException as problem:
        return [problem.code, time.monotonic() - began, str(problem)]
    return [0, time.monotonic() - began, ""]
