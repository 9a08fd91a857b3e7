"""Programs of one rank each: messages in buffers. They run in both worlds and check themselves."""

from __future__ import annotations

from array import array

import pytest
from ompy.data.constants import ANY_SOURCE, ANY_TAG, PROC_NULL, UNDEFINED
from ompy.data.errors import ERR_BUFFER, ERR_RANK, ERR_TAG, ERR_TRUNCATE
from ompy.mpi.communicators.predefined_comms import self_of, world_of
from ompy.mpi.constants import BSEND_OVERHEAD
from ompy.mpi.datatypes.datatype import Datatype
from ompy.mpi.datatypes.predefined import BYTE, DATATYPES
from ompy.mpi.errors import MPIException
from ompy.mpi.point_to_point.buffering import attach_buffer, detach_buffer
from ompy.mpi.point_to_point.matched import Message
from ompy.mpi.point_to_point.request import REQUEST_NULL, Prequest, Request
from ompy.mpi.point_to_point.status import Status
from ompy.runtime.ranks.process import RankProcess

DOUBLE = DATATYPES["DOUBLE"]
INT = DATATYPES["INT"]
# around the eager limits of self, sm and tcp, and far above them
SIZES = (0, 1, 7, 500, 512, 8191, 8192, 70_000, 300_000)


def numbers(size: int, salt: int) -> array:
    return array("d", [salt + index for index in range(size)])


def ring(process: RankProcess) -> None:
    """Every size to the next rank, in every form a buffer is named in, and in every mode."""
    comm = world_of(process)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for size in SIZES:
        out, room = numbers(size, comm.rank), array("d", bytes(8 * size))
        status = Status()
        request = comm.Irecv([room, DOUBLE], left, 3)
        comm.Send(out, right, 3)
        request.Wait(status)
        assert room == numbers(size, left)
        assert (status.source, status.tag, status.Get_count(DOUBLE)) == (left, 3, size)
        for send in (comm.Issend, comm.Isend, comm.Irsend):
            room = array("d", bytes(8 * size))
            incoming = comm.Irecv((room, size, "d"), left)
            Request.Waitall([send([out, (size, 0), DOUBLE], right), incoming])
            assert room == numbers(size, left)
    process.pml.finalize()


def exchanges(process: RankProcess) -> None:
    """Sendrecv and Sendrecv_replace, with and without PROC_NULL."""
    comm = world_of(process)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for size in SIZES:
        room = array("d", bytes(8 * size))
        status = Status()
        comm.Sendrecv(numbers(size, comm.rank), right, 1, room, left, 1, status)
        assert room == numbers(size, left)
        assert status.Get_count(DOUBLE) == size
        comm.Sendrecv_replace(room, right, 2, left, 2)
        assert room == numbers(size, (left - 1) % comm.size)
    room = array("d", [5.0])
    status = Status()
    comm.Sendrecv(None, PROC_NULL, 0, None, PROC_NULL, 0, status)
    assert (status.source, status.tag, status.count) == (PROC_NULL, ANY_TAG, 0)
    comm.Sendrecv([room, DOUBLE], right, 4, None, PROC_NULL)
    comm.Sendrecv(None, PROC_NULL, 0, room, left, 4)


def wildcards(process: RankProcess) -> None:
    """The first rank hears of all others, in any order, each one's messages in theirs."""
    comm = world_of(process)
    rounds = 4
    if comm.rank:
        for turn in range(rounds):
            comm.Send([array("i", [comm.rank, turn]), INT], 0, turn)
        return
    heard: dict[int, list[int]] = {}
    for _ in range(rounds * (comm.size - 1)):
        room, status = array("i", [0, 0]), Status()
        comm.Recv(room, ANY_SOURCE, ANY_TAG, status)
        assert (status.source, status.tag) == tuple(room)
        heard.setdefault(room[0], []).append(room[1])
    assert heard == {rank: list(range(rounds)) for rank in range(1, comm.size)}


def probes(process: RankProcess) -> None:
    """Probe, Iprobe, Mprobe, Improbe and what they say."""
    comm = world_of(process)
    if comm.rank == 0:
        comm.Send(b"abc", 1, 5)
        comm.Send(b"defgh", 1, 6)
        comm.Send(b"", 1, 7)
        return
    if comm.rank > 1:
        return
    status = Status()
    comm.Probe(0, 6, status)
    assert (status.source, status.tag, status.Get_count(BYTE)) == (0, 6, 5)
    message = comm.Mprobe(0, 6, status)
    assert status.count == 5
    while not comm.Iprobe(ANY_SOURCE, ANY_TAG, status):
        pass
    assert status.tag == 5, "the taken message is no longer to be seen"
    first = bytearray(3)
    comm.Recv(first, 0, 5)
    second = bytearray(5)
    message.Recv(second, status)
    assert (first, second, bool(message)) == (b"abc", b"defgh", False)
    taken = None
    while taken is None:
        taken = Message.Iprobe(comm, 0, 7)
    request = taken.Irecv(bytearray(1))
    request.Wait(status)
    assert status.count == 0
    assert not comm.Iprobe()
    assert comm.Improbe() is None
    with pytest.raises(MPIException, match="null"):
        taken.Recv(bytearray(1))


def truncation(process: RankProcess) -> None:
    """A message too long for its buffer is an error that says so; the next one is fine."""
    comm = world_of(process)
    for size in (16, 100_000):
        if comm.rank == 0:
            comm.Send(bytes(size), 1, 1)
            comm.Send(b"after", 1, 1)
        elif comm.rank == 1:
            with pytest.raises(
                MPIException, match=f"{size} bytes from rank 0 with tag 1"
            ) as caught:
                comm.Recv(bytearray(size - 1), 0, 1)
            assert caught.value.Get_error_class() == ERR_TRUNCATE
            room = bytearray(5)
            comm.Recv(room, 0, 1)
            assert room == b"after"


def persistent(process: RankProcess) -> None:
    """Requests that are started again and again, alone and together."""
    comm = world_of(process)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    out, room = array("i", [0]), array("i", [0])
    send = comm.Send_init([out, INT], right, 9)
    receive = comm.Recv_init([room, INT], left, 9)
    assert send.Test(), "a request that is not active is complete"
    for turn in range(5):
        out[0] = 100 * turn + comm.rank
        if turn % 2:
            Prequest.Startall([receive, send])
        else:
            receive.Start()
            send.Start()
            with pytest.raises(MPIException, match="active"):
                receive.Start()
        places = set()
        while (place := Request.Waitany([receive, send])) != UNDEFINED:
            places.add(place)
        assert places == {0, 1}
        assert room[0] == 100 * turn + left
    for request in (send, receive):
        request.Free()
        assert request == REQUEST_NULL
    nothing = comm.Recv_init(None, PROC_NULL)
    nothing.Start()
    nothing.Wait()


def cancelling(process: RankProcess) -> None:
    """A receive that nothing matched can be cancelled; a send goes on."""
    comm = world_of(process)
    request = comm.Irecv(bytearray(4), ANY_SOURCE, 77)
    request.Cancel()
    status = Status()
    request.Wait(status)
    assert status.Is_cancelled()
    assert not request
    own = self_of(process)
    sending = own.Issend(b"x", 0, 1)
    sending.Cancel()
    assert not sending.Test(status)
    own.Recv(bytearray(1), 0, 1)
    sending.Wait(status)
    assert not status.Is_cancelled()


def several(process: RankProcess) -> None:
    """Waitany, Waitsome, Testall and their fellows account for every request once."""
    comm = world_of(process)
    others = [rank for rank in range(comm.size) if rank != comm.rank]
    rooms = {rank: array("i", [-1]) for rank in others}
    receives = [comm.Irecv(rooms[rank], rank, 2) for rank in others]
    sends = [comm.Isend(array("i", [comm.rank]), rank, 2) for rank in others]
    done: list[int] = []
    while True:
        places = Request.Waitsome(receives) if len(done) % 2 else None
        if places is None:
            place = Request.Waitany(receives)
            places = [] if place == UNDEFINED else [place]
        if not places:
            break
        done += places
    assert sorted(done) == list(range(len(others)))
    assert all(rooms[rank][0] == rank for rank in others)
    while not Request.Testall(sends):
        pass
    assert not any(sends)
    assert Request.Testsome(sends) is None


def one_fails_of_several(process: RankProcess) -> None:
    """Waitall says which request failed and ends the others."""
    comm = world_of(process)
    if comm.rank == 0:
        for tag, size in enumerate((4, 9, 4)):
            comm.Send(bytes(size), 1, tag)
    elif comm.rank == 1:
        requests = [comm.Irecv(bytearray(4), 0, tag) for tag in range(3)]
        statuses: list[Status] = []
        with pytest.raises(MPIException, match=r"request 1: .*TRUNCATE"):
            Request.Waitall(requests, statuses)
        assert [status.error for status in statuses] == [0, ERR_TRUNCATE, 0]
        assert not any(requests)


def buffered(process: RankProcess) -> None:
    """Buffered sends need attached memory, are copies, and are all delivered."""
    comm = world_of(process)
    world = comm._state().world
    if comm.rank == 1:
        for size in (10, 20_000):
            room = bytearray(size)
            comm.Recv(room, 0, size)
            assert room == b"y" * size
        return
    if comm.rank:
        return
    with pytest.raises(MPIException, match="attach") as caught:
        comm.Bsend(b"x", 1)
    assert caught.value == ERR_BUFFER
    attach_buffer(world, bytearray(20_010 + 2 * BSEND_OVERHEAD))
    with pytest.raises(MPIException, match="attached already"):
        attach_buffer(world, bytearray(1))
    data = bytearray(b"y" * 20_000)
    comm.Bsend(data[:10], 1, 10)
    comm.Ibsend(data, 1, 20_000).Wait()
    data[:] = bytes(len(data))
    with pytest.raises(MPIException, match="of the attached buffer") as caught:
        comm.Bsend(bytes(30_000), 1)
    assert caught.value == ERR_BUFFER
    assert len(detach_buffer(world, world)) == 20_010 + 2 * BSEND_OVERHEAD
    assert detach_buffer(world, world) is None


def wrong_arguments(process: RankProcess) -> None:
    """Ranks and tags that cannot be are errors that say what there is."""
    comm = world_of(process)
    size = comm.size
    plural = "rank" if size == 1 else "ranks"
    text = rf"rank {size + 7} does not exist in MPI_COMM_WORLD, which has {size} {plural}"
    for call in (comm.Send, comm.Isend, comm.Recv, comm.Irecv, comm.Ssend):
        with pytest.raises(MPIException, match=text) as caught:
            call(bytearray(1), size + 7)
        assert caught.value.Get_error_class() == ERR_RANK
        with pytest.raises(MPIException, match="tag -3") as caught:
            call(bytearray(1), 0, -3)
        assert caught.value.Get_error_class() == ERR_TAG
    with pytest.raises(MPIException, match="does not exist"):
        comm.Send(b"", ANY_SOURCE)
    for call in (comm.Send, comm.Recv):
        with pytest.raises(TypeError):
            call(bytearray(1), "0")


def columns(process: RankProcess) -> None:
    """A derived datatype on one side, another on the other."""
    comm = world_of(process)
    rows, width = 50, 30
    column = DOUBLE.Create_vector(rows, 1, width).Commit()
    if comm.rank == 0:
        matrix = numbers(rows * width, 0)
        comm.Send([matrix, 1, column], 1, 0)
        comm.Send([memoryview(matrix)[4:], 1, column], 1, 1)
    elif comm.rank == 1:
        plain = array("d", bytes(8 * rows))
        comm.Recv(plain, 0, 0)
        assert list(plain) == [float(width * row) for row in range(rows)]
        matrix = array("d", bytes(8 * rows * width))
        status = Status()
        comm.Recv([matrix, 1, column], 0, 1, status)
        assert list(matrix[::width]) == [float(width * row + 4) for row in range(rows)]
        assert sum(matrix) == sum(matrix[::width])
        assert (status.Get_count(column), status.Get_elements(column)) == (1, rows)
    pair = Datatype.Create_struct([1, 1], [0, 8], [DOUBLE, INT])
    with pytest.raises(MPIException, match="committed"):
        comm.Send([bytearray(16), 1, pair], 0)


PROGRAMS = (
    "ring",
    "exchanges",
    "wildcards",
    "probes",
    "truncation",
    "persistent",
    "cancelling",
    "several",
    "one_fails_of_several",
    "buffered",
    "wrong_arguments",
    "columns",
)
