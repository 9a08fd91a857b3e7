"""Programs of one rank each: messages and collectives of Python objects."""

from __future__ import annotations

from copy import deepcopy
from pickle import PickleBuffer, PicklingError
from typing import Any

import pytest
from ompy.data.constants import ANY_SOURCE, PROC_NULL
from ompy.data.errors import ERR_ROOT, ERR_TRUNCATE
from ompy.mpi.collectives.operation import OPERATIONS, Op
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.errors import MPIException
from ompy.mpi.point_to_point.request import Request
from ompy.mpi.point_to_point.status import Status
from ompy.runtime.ranks.process import RankProcess

MESSAGES: tuple[Any, ...] = (
    None,
    True,
    -(2**70),
    2.5,
    "text",
    b"bytes",
    (1, [2, {"three": 3}]),
    {"a": list(range(3000))},
    "x" * 200_000,
)


class Block:
    """An object with a large buffer, which pickle protocol 5 keeps out of the pickle."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __reduce_ex__(self, protocol: int) -> Any:
        return Block, (PickleBuffer(self.data),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Block) and bytes(self.data) == bytes(other.data)

    __hash__ = None  # type: ignore[assignment]


def blocks(salt: int) -> list[Block]:
    return [Block(bytearray((salt + i) % 256 for i in range(n))) for n in (10, 20_000, 300_001)]


def ring(process: RankProcess) -> None:
    """Every kind of object to the next rank."""
    comm = world_of(process)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for message in MESSAGES:
        request = comm.irecv(source=left)
        comm.send(message, right, 4)
        assert request.wait() == message
        status = Status()
        got = comm.sendrecv((comm.rank, message), right, 5, None, left, 5, status)
        assert got == (left, message)
        assert (status.source, status.tag) == (left, 5)
    sending = comm.isend(blocks(comm.rank), right)
    got = comm.recv(source=left)
    assert got == blocks(left)
    sending.wait()
    got[2].data[0] = 255  # what arrives is the receiver's own, and writable


def arrays(process: RankProcess) -> None:
    """NumPy arrays, alone and in others, by every call; what arrives is the receiver's own."""
    import numpy as np

    comm = world_of(process)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size

    def made(rank: int) -> list[Any]:
        numbers = np.arange(150_000.0) + rank
        return [
            np.array(rank),
            np.zeros((3, 0), "f4"),
            numbers[:7].astype(">i4"),
            np.asfortranarray(numbers[:1000].reshape(20, 50)),
            numbers,
            {"name": "field", "data": numbers.reshape(3, -1)},
            [numbers[::2], numbers[:5], numbers[1:]],
        ]

    def assert_equal(got: Any, expected: Any) -> None:
        if isinstance(expected, np.ndarray):
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
            assert got.flags.f_contiguous == np.array(expected).flags.f_contiguous
            assert got.tobytes() == expected.tobytes()
            got[...] = 0  # it may be written to, and is nobody else's
            return
        assert len(got) == len(expected)
        for key in expected if isinstance(expected, dict) else range(len(expected)):
            if not isinstance(expected[key], str):
                assert_equal(got[key], expected[key])

    for number in range(len(made(0))):
        own = made(comm.rank)[number]
        for send in (comm.isend, comm.issend):
            request = send(own, right, number)
            assert_equal(comm.recv(source=left, tag=number), made(left)[number])
            request.wait()
        assert_equal(comm.sendrecv(own, right, source=left), made(left)[number])
        assert_equal(comm.bcast(own if comm.rank == 0 else None), made(0)[number])
        assert_equal(comm.allgather(own), [made(rank)[number] for rank in range(comm.size)])
        assert_equal(deepcopy(own), made(comm.rank)[number])


def no_process(process: RankProcess) -> None:
    """PROC_NULL swallows objects and gives None."""
    comm = world_of(process)
    comm.send("x", PROC_NULL)
    assert comm.recv(source=PROC_NULL) is None
    assert comm.irecv(source=PROC_NULL).wait() is None
    assert comm.sendrecv("x", PROC_NULL, 0, None, PROC_NULL) is None


def buffers_given(process: RankProcess) -> None:
    """`irecv` into the user's memory: the object does not lie in it; too little is an error."""
    comm = world_of(process)
    if comm.rank == 0:
        for _ in range(2):
            comm.send(blocks(0), 1)
    elif comm.rank == 1:
        memory = bytearray(400_000)
        got = comm.irecv(memory, 0).wait()
        memory[:] = bytes(len(memory))
        assert got == blocks(0)
        with pytest.raises(MPIException) as caught:
            comm.irecv(100, 0).wait()
        assert caught.value.Get_error_class() == ERR_TRUNCATE


def unpicklable(process: RankProcess) -> None:
    """The pickling error reaches the caller; nothing was sent."""
    errors = (AttributeError, TypeError, PicklingError)  # the last in Python 3.14
    comm = world_of(process)
    for send in (comm.send, comm.isend, comm.ssend):
        with pytest.raises(errors, match=r"pickle|local"):
            send(lambda: None, 0)
    with pytest.raises(errors):
        comm.sendrecv(lambda: None, 0, 0, None, ANY_SOURCE)
    comm.barrier()
    assert not comm.iprobe()


def several(process: RankProcess) -> None:
    """waitany, waitall and testsome give the objects."""
    comm = world_of(process)
    others = [rank for rank in range(comm.size) if rank != comm.rank]
    receives = [comm.irecv(source=rank, tag=1) for rank in others]
    sends = [comm.isend(["from", comm.rank], rank, 1) for rank in others]
    got: dict[int, Any] = {}
    while any(receives):
        place, obj = Request.waitany(receives)
        got[others[place]] = obj
    assert got == {rank: ["from", rank] for rank in others}
    assert Request.waitall(sends) == [None] * len(others)
    assert Request.testsome(sends) == (None, None)


def matched(process: RankProcess) -> None:
    """mprobe takes a message that then only its handle receives."""
    comm = world_of(process)
    if comm.rank == 0:
        comm.send("first", 1, 1)
        comm.send("second", 1, 2)
    elif comm.rank == 1:
        second = comm.mprobe(0, 2)
        assert comm.recv() == "first"
        assert second.recv() == "second"


def collectives(process: RankProcess) -> None:
    """Every collective of objects, from every root."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    for root in range(size):
        message = {"root": root, "blocks": blocks(root)} if rank == root else None
        got = comm.bcast(message, root)
        assert got["root"] == root
        assert got["blocks"] == blocks(root)
        assert got is not message
        gathered = comm.gather(("r", rank), root)
        assert gathered == ([("r", r) for r in range(size)] if rank == root else None)
        items = [[root, r] for r in range(size)] if rank == root else None
        assert comm.scatter(items, root) == [root, rank]
    assert comm.allgather({rank: blocks(rank)}) == [{r: blocks(r)} for r in range(size)]
    assert comm.alltoall([(rank, r) for r in range(size)]) == [(r, rank) for r in range(size)]
    comm.barrier()


def reductions(process: RankProcess) -> None:
    """Reductions keep the order of ranks, for MPI's operations and for any function."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    words = [chr(97 + r) for r in range(size)]
    own = words[rank]
    assert comm.allreduce(own) == "".join(words)
    for root in range(size):
        total = comm.reduce(own, root=root)
        assert total == ("".join(words) if rank == root else None)
    assert comm.scan(own) == "".join(words[: rank + 1])
    assert comm.exscan(own) == ("".join(words[:rank]) if rank else None)
    assert comm.allreduce(rank, OPERATIONS["MAX"]) == size - 1
    assert comm.allreduce((rank % 2, rank), OPERATIONS["MINLOC"]) == (0, 0)
    assert comm.allreduce(rank, lambda x, y: x + y) == sum(range(size))

    def extend(x: list[int], y: list[int], _: Any = None) -> list[int]:
        x.extend(y)
        return x

    mine = [rank]
    assert comm.allreduce(mine, extend) == list(range(size))
    assert comm.scan(mine, extend) == list(range(rank + 1))
    assert comm.exscan(mine, extend) == (list(range(rank)) if rank else None)
    assert mine == [rank], "the caller's object is not changed"
    operation = Op.Create(extend)
    assert comm.reduce(mine, operation) == (list(range(size)) if rank == 0 else None)
    operation.Free()


def wrong_arguments(process: RankProcess) -> None:
    """Roots that are not there, sequences of the wrong length."""
    comm = world_of(process)
    for call in (comm.bcast, comm.gather, comm.scatter, comm.reduce):
        with pytest.raises(MPIException, match="root") as caught:
            call([0] * comm.size, root=comm.size)
        assert caught.value.Get_error_class() == ERR_ROOT
    assert comm.scatter(None) is None
    with pytest.raises(ValueError, match=f"expecting {comm.size} items, got {comm.size + 1}"):
        comm.alltoall(range(comm.size + 1))


PROGRAMS = (
    "ring",
    "arrays",
    "no_process",
    "buffers_given",
    "unpicklable",
    "several",
    "matched",
    "collectives",
    "reductions",
    "wrong_arguments",
)
