"""Programs of one rank each: collectives on buffers."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from ompy.data.errors import ERR_OP, ERR_ROOT
from ompy.mpi.buffers.markers import IN_PLACE
from ompy.mpi.collectives.operation import OP_NULL, OPERATIONS, Op
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.datatypes.predefined import DATATYPES
from ompy.mpi.errors import MPIException
from ompy.runtime.ranks.process import RankProcess

INT = DATATYPES["INT"]
CHAR = DATATYPES["CHAR"]
SUM, PROD, MAX = (OPERATIONS[name] for name in ("SUM", "PROD", "MAX"))


def ints(*values: int) -> array:
    return array("i", values)


def room(size: int) -> array:
    return array("i", [-1] * size)


def gathers(process: RankProcess) -> None:
    """Equal parts, parts of any size, in place."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    for root in range(size):
        everything = room(2 * size)
        comm.Gather(ints(rank, rank), everything if rank == root else None, root)
        if rank == root:
            assert list(everything) == [r for r in range(size) for _ in range(2)]
        counts = [r + 1 for r in range(size)]
        total = sum(counts)
        parts = room(total)
        comm.Gatherv(
            [ints(*[rank] * (rank + 1)), INT], [parts, counts] if rank == root else None, root
        )
        if rank == root:
            assert list(parts) == [r for r in range(size) for _ in range(r + 1)]
    everything = room(size)
    everything[rank] = 10 * rank
    comm.Allgather(IN_PLACE, everything)
    assert list(everything) == [10 * r for r in range(size)]
    spread = room(2 * size)
    comm.Allgatherv(ints(rank), [spread, 1, [2 * r for r in range(size)], INT])
    assert list(spread) == [value for r in range(size) for value in (r, -1)]


def scatters(process: RankProcess) -> None:
    """Equal parts, parts of any size, in place at the root."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    for root in range(size):
        source = array("i", range(2 * size)) if rank == root else None
        part = room(2)
        comm.Scatter(source, part, root)
        assert list(part) == [2 * rank, 2 * rank + 1]
        counts = list(range(size))
        values = array("i", [r for r in range(size) for _ in range(r)])
        part = room(rank)
        comm.Scatterv([values, counts] if rank == root else None, part, root)
        assert list(part) == [rank] * rank
        source = array("i", range(size))
        part = room(1)
        comm.Scatter(source if rank == root else None, IN_PLACE if rank == root else part, root)
        assert rank == root or part[0] == rank


def all_to_all(process: RankProcess) -> None:
    """Equal parts, parts of any size, datatypes of their own, in place."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    got = room(size)
    comm.Alltoall(array("i", [100 * rank + r for r in range(size)]), got)
    assert list(got) == [100 * r + rank for r in range(size)]
    comm.Alltoall(IN_PLACE, got)
    assert list(got) == [100 * rank + r for r in range(size)]
    send = array("i", [rank] * sum(range(size)))
    got = room(rank * size)
    comm.Alltoallv([send, list(range(size))], [got, rank])
    assert list(got) == [r for r in range(size) for _ in range(rank)]
    letters = bytearray(97 + rank for _ in range(size))
    heard = bytearray(size)
    places = list(range(size))
    comm.Alltoallw(
        [letters, [1] * size, places, [CHAR] * size], [heard, ([1] * size, places), [CHAR] * size]
    )
    assert heard == bytes(97 + r for r in range(size))


def broadcasts(process: RankProcess) -> None:
    """From every root, small and large, with gaps."""
    comm = world_of(process)
    for root in range(comm.size):
        for size in (0, 1, 50_000):
            data = array("i", [root] * size) if comm.rank == root else room(size)
            comm.Bcast([data, INT], root)
            assert data == array("i", [root] * size)
        every_other = INT.Create_vector(4, 1, 2).Commit()
        data = array("i", range(8)) if comm.rank == root else room(8)
        comm.Bcast([data, 1, every_other], root)
        assert list(data[::2]) == [0, 2, 4, 6]
        assert comm.rank == root or list(data[1::2]) == [-1] * 4


def reductions(process: RankProcess) -> None:
    """MPI's operations, in place and not, on integers, floats and pairs."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    total = sum(range(1, size + 1))
    result = room(2)
    comm.Allreduce(ints(rank + 1, -rank), result)
    assert list(result) == [total, -sum(range(size))]
    for root in range(size):
        result = room(1)
        comm.Reduce(ints(rank), result if rank == root else None, MAX, root)
        assert rank != root or result[0] == size - 1
    values = array("d", [2.0, 0.5])
    comm.Allreduce(IN_PLACE, values, PROD)
    assert list(values) == [2.0**size, 0.5**size]
    running = ints(rank + 1)
    comm.Scan(IN_PLACE, running)
    assert running[0] == sum(range(1, rank + 2))
    before = ints(-5)
    comm.Exscan(ints(rank + 1), before)
    assert before[0] == (sum(range(1, rank + 1)) if rank else -5)
    pairs = array("i", [abs(rank - 1), rank])
    best = room(2)
    comm.Allreduce([pairs, DATATYPES["INT_INT"]], [best, DATATYPES["TWOINT"]], OPERATIONS["MINLOC"])
    assert list(best) == ([1, 0] if size == 1 else [0, 1])


def reduced_parts(process: RankProcess) -> None:
    """Reduce_scatter and Reduce_scatter_block, with counts given, asked for, and in place."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    counts = list(range(1, size + 1))
    values = array("i", [rank + 1] * sum(counts))
    expected = sum(range(1, size + 1))
    for said in (counts, None):
        part = room(rank + 1)
        comm.Reduce_scatter(values, part, said)
        assert list(part) == [expected] * (rank + 1)
    comm.Reduce_scatter(IN_PLACE, values, counts)
    assert list(values[: rank + 1]) == [expected] * (rank + 1)
    part = room(2)
    comm.Reduce_scatter_block(array("i", range(2 * size)), part)
    assert list(part) == [size * 2 * rank, size * (2 * rank + 1)]
    whole = array("i", range(2 * size))
    for each in (2, (2, 0)):  # a count is that of one part, as in Alltoall
        part = room(2)
        comm.Reduce_scatter_block([whole, each, DATATYPES["INT"]], [part, 2, DATATYPES["INT"]])
        assert list(part) == [size * 2 * rank, size * (2 * rank + 1)]
    with pytest.raises(ValueError, match="counts 4 and 2"):
        comm.Reduce_scatter_block([room(4 * size), 4, DATATYPES["INT"]], part)
    whole = array("i", [7] * size)
    comm.Reduce_scatter_block(IN_PLACE, whole)
    assert whole[0] == 7 * size


def user_operations(process: RankProcess) -> None:
    """A function on buffers sees elements as they lie in memory, and their datatype."""
    comm = world_of(process)
    seen = set()

    def keep_first(left: Any, right: Any, datatype: Any) -> None:
        seen.add((datatype == INT, len(left) == len(right)))
        right[:] = left

    first = Op.Create(keep_first, commute=False)
    result = room(3)
    comm.Allreduce(array("i", [comm.rank] * 3), result, first)
    assert list(result) == [0, 0, 0]
    assert seen <= {(True, True)}
    first.Free()
    spread = INT.Create_resized(0, 8).Commit()

    def add(left: Any, right: Any, datatype: Any) -> None:
        a, b = memoryview(left).cast("i"), memoryview(right).cast("i")
        assert datatype.extent == 8
        assert len(a) == 4
        b[0] += a[0]
        b[2] += a[2]

    own = Op.Create(add, commute=True)
    data = ints(comm.rank, -1, 1, -1)
    result = room(4)
    comm.Allreduce([data, 2, spread], [result, 2, spread], own)
    assert list(result) == [sum(range(comm.size)), -1, comm.size, -1]


def user_operations_again(process: RankProcess) -> None:
    """A function is told the datatype of each call, in whatever form and order that is given."""
    comm = world_of(process)
    size, last = comm.size, comm.size - 1
    told: list[str] = []

    def add(left: Any, right: Any, datatype: Any) -> None:
        told.append(datatype.name)
        kind = "d" if datatype == DATATYPES["DOUBLE"] else "l"
        into, more = memoryview(right).cast(kind), memoryview(left).cast(kind)
        for place in range(len(into)):
            into[place] += more[place]

    own = Op.Create(add, commute=True)
    given = DATATYPES["INT64_T"]
    ones, longs = array("d", [1.0] * 2 * size), array("l", [2] * 2 * size)
    for _ in range(3):
        for data, datatype, name in (
            (ones, None, "MPI_DOUBLE"),
            (longs, None, "MPI_LONG"),
            (longs, given, given.name),
        ):
            kind = data.typecode
            whole, part = array(kind, data), array(kind, [0] * (2 if comm.rank == 0 else 1))
            mine: Any = data if datatype is None else [data, datatype]
            into: Any = whole if datatype is None else [whole, datatype]
            room_of_part: Any = part if datatype is None else [part, datatype]
            told.clear()
            comm.Allreduce(mine, into, own)
            assert list(whole) == [data[0] * size] * len(data)
            comm.Allreduce(IN_PLACE, into, own)
            assert whole[0] == data[0] * size * size
            comm.Iallreduce(mine, into, own).Wait()
            assert whole[0] == data[0] * size
            comm.Reduce(mine, into if comm.rank == last else None, own, last)
            comm.Scan(mine, into, own)
            assert whole[0] == data[0] * (comm.rank + 1)
            counts = [2] + [1] * (size - 1)
            cut = sum(counts)
            short: Any = array(kind, data[:cut]) if datatype is None else [data[:cut], datatype]
            comm.Reduce_scatter(short, room_of_part, counts, own)
            assert list(part) == [data[0] * size] * len(part)
            part[0] = 0
            comm.Ireduce_scatter(short, room_of_part, counts, own).Wait()
            assert list(part) == [data[0] * size] * len(part)
            assert set(told) <= {name}, (told, name)
            assert size == 1 or sum(comm.allgather(len(told)))
    own.Free()


def wrong_arguments(process: RankProcess) -> None:
    """What does not fit is an error before anything is sent."""
    comm = world_of(process)
    with pytest.raises(MPIException) as caught:
        comm.Bcast(bytearray(1), comm.size)
    assert caught.value.Get_error_class() == ERR_ROOT
    for arguments in (
        ([ints(1), INT], [ints(1), DATATYPES["FLOAT"]]),
        (ints(1), ints(1, 2)),
    ):
        with pytest.raises(ValueError, match="message: the"):
            comm.Allreduce(*arguments)
    with pytest.raises(ValueError, match="expecting count"):
        comm.Reduce_scatter(ints(1), ints(1), [5] * comm.size)
    for operation, data in ((OP_NULL, ints(1)), (OPERATIONS["BAND"], array("d", [1.0]))):
        with pytest.raises(MPIException) as caught:
            comm.Allreduce(IN_PLACE, data, operation)
        assert caught.value.Get_error_class() == ERR_OP


PROGRAMS = (
    "gathers",
    "scatters",
    "all_to_all",
    "broadcasts",
    "reductions",
    "reduced_parts",
    "user_operations",
    "user_operations_again",
    "wrong_arguments",
)
