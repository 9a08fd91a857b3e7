"""Programs of one rank each: collectives as requests, compared with the blocking calls."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ompy.data.errors import ERR_OP, ERR_REQUEST, ERR_TRUNCATE
from ompy.mpi.buffers.markers import IN_PLACE
from ompy.mpi.collectives.operation import OPERATIONS, Op
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.datatypes.predefined import DATATYPES
from ompy.mpi.errors import MPIException
from ompy.mpi.point_to_point.request import Prequest, Request
from ompy.mpi.point_to_point.status import Status
from ompy.runtime.ranks.process import RankProcess

INT = DATATYPES["INT"]
SUM, MAX = OPERATIONS["SUM"], OPERATIONS["MAX"]
Factory = Callable[[], tuple[tuple[Any, ...], array]]


def ints(*values: int) -> array:
    return array("i", values)


def room(size: int) -> array:
    return array("i", [-1] * size)


def calls(comm: Any) -> Iterator[tuple[str, Factory]]:
    """Every collective: its name, and what makes its arguments and the buffer of its result."""
    rank, size = comm.rank, comm.size
    root = size - 1
    counts = [r + 1 for r in range(size)]
    total = sum(counts)
    own, some = ints(rank, 7), ints(*[rank] * counts[rank])
    every = array("i", range(100 * rank, 100 * rank + 2 * size))
    many = array("i", [rank + k for k in range(total)])

    def at_root(value: Any) -> Any:
        return value if rank == root else None

    def with_result(length: int, arguments: Callable[[array], tuple[Any, ...]]) -> Factory:
        def make() -> tuple[tuple[Any, ...], array]:
            result = room(length)
            return arguments(result), result

        return make

    yield "Barrier", with_result(0, lambda _: ())
    yield "Bcast", lambda: ((both := ints(*(own if rank == root else (-1, -1))), root), both)
    yield "Gather", with_result(2 * size, lambda to: (own, at_root(to), root))
    yield "Gatherv", with_result(total, lambda to: (some, at_root([to, counts]), root))
    yield "Scatter", with_result(2, lambda to: (at_root(every), to, root))
    yield "Scatterv", with_result(counts[rank], lambda to: (at_root([many, counts]), to, root))
    yield "Allgather", with_result(2 * size, lambda to: (own, to))
    yield "Allgatherv", with_result(total, lambda to: (some, [to, counts]))
    yield "Alltoall", with_result(2 * size, lambda to: (every, to))
    yield "Alltoallv", with_result(2 * size, lambda to: ([every, [2] * size], [to, [2] * size]))
    types, places = [INT] * size, [8 * r for r in range(size)]
    pairs = ([2] * size, places), types
    yield "Alltoallw", with_result(2 * size, lambda to: ([every, *pairs], [to, *pairs]))
    yield "Reduce", with_result(2, lambda to: (own, at_root(to), SUM, root))
    yield "Allreduce", with_result(2, lambda to: (own, to, MAX))
    yield "Reduce_scatter_block", with_result(2, lambda to: (every, to))
    yield "Reduce_scatter", with_result(counts[rank], lambda to: (many, to, counts))
    yield "Scan", with_result(2, lambda to: (own, to))
    yield "Exscan", with_result(2, lambda to: (own, to))


def expected(comm: Any) -> dict[str, array]:
    """What the blocking calls give."""
    found = {}
    for name, make in calls(comm):
        arguments, found[name] = make()
        getattr(comm, name)(*arguments)
    return found


def nonblocking(process: RankProcess) -> None:
    """All of them at once, waited for in an order of each rank's own, among messages."""
    comm = world_of(process)
    right = expected(comm)
    requests, results = [], {}
    for name, make in calls(comm):
        arguments, results[name] = make()
        requests.append(getattr(comm, f"I{name.lower()}")(*arguments))
        requests.append(comm.Isend(ints(len(requests)), (comm.rank + 1) % comm.size, 5))
    for tag in range(1, len(requests), 2):
        came = room(1)
        comm.Recv(came, (comm.rank - 1) % comm.size, 5)
        assert came[0] == tag
    turn = comm.rank % len(requests)
    last = requests[:turn]
    for request in reversed(requests[turn:]):
        while not request.Test():
            pass
    statuses: list[Status] = []
    Request.Waitall(last, statuses)
    assert results == right
    assert all(status.Get_error() == 0 and not status.Is_cancelled() for status in statuses)


def persistent(process: RankProcess) -> None:
    """Started again and again, with new data, in another order on every rank."""
    comm = world_of(process)
    prepared, results = [], {}
    for name, make in calls(comm):
        arguments, results[name] = make()
        prepared.append(getattr(comm, f"{name}_init")(*arguments))
    right = expected(comm)
    for turn in range(3):
        for result in results.values():
            if turn and result is not results["Bcast"]:
                result[:] = room(len(result))
        first = (comm.rank + turn) % len(prepared)
        Prequest.Startall(prepared[first:] + prepared[:first])
        Request.Waitall(prepared)
        assert results == right
    for request in prepared:
        request.Free()


def in_place_and_functions(process: RankProcess) -> None:
    comm = world_of(process)
    both = ints(comm.rank + 1)
    parts = room(comm.size)
    parts[comm.rank] = comm.rank
    keep_left = Op.Create(lambda a, b, _: b.__setitem__(slice(None), a), commute=False)
    first = room(1)
    requests = [
        comm.Iallreduce(IN_PLACE, both),
        comm.Iallgather(IN_PLACE, parts),
        comm.Iallreduce(ints(comm.rank), first, keep_left),
    ]
    Request.Waitall(requests)
    assert both[0] == comm.size * (comm.size + 1) // 2
    assert list(parts) == list(range(comm.size))
    assert first[0] == 0
    keep_left.Free()


def failures(process: RankProcess) -> None:
    """Errors reach the request of who made the mistake; the communicator lives on."""
    comm = world_of(process)
    wrong = comm.Iallreduce(ints(1), ints(0), OPERATIONS["LXOR"])
    undefined = comm.Iallreduce(array("d", [1.0]), array("d", [0.0]), OPERATIONS["BAND"])
    shorter = comm.rank == 1
    both = room(2 - shorter)
    truncated = comm.Ibcast(both, 0)
    wrong.Wait()
    with pytest.raises(MPIException) as caught:
        undefined.Wait()
    assert caught.value.Get_error_class() == ERR_OP
    if shorter:
        with pytest.raises(MPIException) as caught:
            truncated.Wait()
        assert caught.value.Get_error_class() == ERR_TRUNCATE
    else:
        truncated.Wait()
    request = comm.Ibarrier()
    with pytest.raises(MPIException) as caught:
        request.Cancel()
    assert caught.value.Get_error_class() == ERR_REQUEST
    request.Wait()
    again = comm.Barrier_init()
    again.Start()
    with pytest.raises(MPIException, match="active"):
        again.Start()
    again.Wait()
    comm.Barrier()


def freed_meanwhile(process: RankProcess) -> None:
    """What was begun in a communicator is completed after the communicator was freed."""
    comm = world_of(process)
    twin = comm.Dup()
    total, much = room(1), array("i", [comm.rank]) * 50_000
    requests = [twin.Iallreduce(ints(1), total), twin.Ibcast(much, 0), twin.Ibarrier()]
    twin.Free()
    Request.Waitall(requests)
    assert total[0] == comm.size
    assert set(much) == {0}
    comm.Barrier()


PROGRAMS = ("nonblocking", "persistent", "in_place_and_functions", "failures", "freed_meanwhile")
