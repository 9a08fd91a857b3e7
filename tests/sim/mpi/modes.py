"""Programs of one rank each: the communication modes of MPI, and requests in large numbers."""

from __future__ import annotations

from array import array

import pytest
from ompy.data.constants import ANY_SOURCE, ANY_TAG, PROC_NULL, UNDEFINED
from ompy.data.errors import ERR_BUFFER, ERR_REQUEST, ERR_TRUNCATE
from ompy.mpi.buffers.markers import BUFFER_AUTOMATIC
from ompy.mpi.communicators.predefined_comms import self_of, world_of
from ompy.mpi.constants import BSEND_OVERHEAD
from ompy.mpi.datatypes.datatype import Datatype
from ompy.mpi.datatypes.predefined import DATATYPES
from ompy.mpi.errors import MPIException
from ompy.mpi.point_to_point.buffering import (
    attach_buffer,
    begin_flush,
    detach_buffer,
    flush_buffer,
)
from ompy.mpi.point_to_point.matched import MESSAGE_NO_PROC
from ompy.mpi.point_to_point.request import Prequest, Request
from ompy.mpi.point_to_point.requeststate import RequestState
from ompy.mpi.point_to_point.status import Status
from ompy.runtime.ranks.process import RankProcess

from tests.support.effort import effort

DOUBLE, INT, BYTE, SHORT = (DATATYPES[name] for name in ("DOUBLE", "INT", "BYTE", "SHORT"))
# below and above the eager limits, and many fragments
SIZES = (0, 1, 5000, 140_000)


BLOCK = bytes((index * 7) % 251 for index in range(251)) * 4


def bytes_of(size: int, salt: int) -> bytearray:
    salt %= 251
    return bytearray((BLOCK[salt : salt + 251] * (size // 251 + 1))[:size])


def every_mode_to_everybody(process: RankProcess) -> None:
    """All modes and sizes, to the own rank too, receives posted first or last."""
    comm = world_of(process)
    attach_buffer(comm._state().world, BUFFER_AUTOMATIC)
    for size in SIZES:
        for late in (False, True):
            sends, receives, rooms = [], [], []

            def post(size: int, rooms: list, receives: list) -> None:
                for peer in range(comm.size):
                    for mode in range(4):
                        rooms.append((peer, mode, bytearray(size)))
                        receives.append(comm.Irecv(rooms[-1][2], peer, mode))

            if not late:
                post(size, rooms, receives)
                comm.Barrier()  # a ready send wants its receive posted
            for peer in range(comm.size):
                modes = (comm.Isend, comm.Ibsend, comm.Issend, comm.Isend if late else comm.Irsend)
                for mode, send in enumerate(modes):
                    sends.append(send(bytes_of(size, comm.rank + mode), peer, mode))
            if late:
                post(size, rooms, receives)
            Request.Waitall([*receives, *sends])
            for peer, mode, room in rooms:
                assert room == bytes_of(size, peer + mode), (size, late, peer, mode)
    detach_buffer(comm._state().world, comm._state().world)


def buffer_space(process: RankProcess) -> None:
    """The attached memory is used to the last byte, and again when a message has left it."""
    comm = world_of(process)
    world = comm._state().world
    size = 200_000
    if comm.rank == 1:
        comm.Recv(bytearray(1), 0, 99)  # the others are under way before any is received
        for tag in (1, 0, 2, 3):
            room = bytearray(size)
            comm.Recv(room, 0, tag)
            assert room == bytes_of(size, tag)
            if tag != 3:
                comm.Send(b"", 0, 50 + tag)
        return
    if comm.rank > 1:
        return
    memory = bytearray(3 * (size + BSEND_OVERHEAD))
    attach_buffer(world, memory)
    requests = []
    for tag in range(3):
        data = bytes_of(size, tag)
        requests.append(comm.Ibsend(data, 1, tag))
        data[:] = bytes(size)  # the memory is the user's again at once
    Request.Waitall(requests)
    assert any(memory), "what is not sent yet is in the attached memory"
    with pytest.raises(MPIException, match="in one piece") as caught:
        comm.Bsend(b"", 1, 77)
    assert caught.value == ERR_BUFFER
    comm.Send(b"g", 1, 99)
    comm.Recv(bytearray(), 1, 51)  # number 1, the one in the middle, has been received
    sent = False
    while not sent:  # its space is free when its last fragment is done on this side too
        try:
            comm.Bsend(bytes_of(size, 3), 1, 3)
            sent = True
        except MPIException as problem:
            assert problem == ERR_BUFFER
            comm.Iprobe()
    flushed = begin_flush(world, world)
    Request._adopt(_state_of(comm, flushed)).Wait()
    assert not world.buffers.under_way()
    assert len(detach_buffer(world, world)) == len(memory)
    for tag in (0, 2):
        comm.Recv(bytearray(), 1, 50 + tag)


def _state_of(comm, operation) -> RequestState:
    return RequestState(comm._state(), operation, None)


def buffers_of_communicators(process: RankProcess) -> None:
    """A communicator's own buffer comes first; flushing waits for what is in it."""
    comm = world_of(process)
    world = comm._state().world
    own_memory = bytearray(10 + BSEND_OVERHEAD)
    comm.Attach_buffer(own_memory)
    attach_buffer(world, bytearray(1000 + BSEND_OVERHEAD))
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    with pytest.raises(MPIException, match=f"{10 + BSEND_OVERHEAD} are in use") as caught:
        comm.Bsend(bytes(11), right)
    assert caught.value == ERR_BUFFER
    comm.Bsend(b"0123456789", right)
    comm.Bsend(None, PROC_NULL)
    own = self_of(process)
    own.Bsend(bytes(1000), 0)
    room = bytearray(10)
    comm.Recv(room, left)
    assert room == b"0123456789"
    own.Recv(bytearray(1000), 0)
    comm.Flush_buffer()
    comm.Iflush_buffer().Wait()
    flush_buffer(world, world)
    assert comm.Detach_buffer() is own_memory
    assert len(detach_buffer(world, world)) == 1000 + BSEND_OVERHEAD
    comm.Flush_buffer()
    with pytest.raises(MPIException, match="no buffer is attached"):
        comm.Bsend(b"", right)
    prepared = comm.Bsend_init(b"", right)
    with pytest.raises(MPIException, match="no buffer is attached"):
        prepared.Start()
    prepared.Free()
    assert own.Detach_buffer() is None


def synchronous(process: RankProcess) -> None:
    """A synchronous send is complete when it is matched and not before; the others need nobody."""
    comm = world_of(process)
    if comm.rank == 0:
        requests = [comm.Issend(bytes_of(size, 1), 1, size) for size in SIZES]
        comm.Recv(bytearray(1), 1, 1)
        assert not any(request.Test() for request in requests)
        comm.Send(b"", 1, 2)
        Request.Waitall(requests)
    elif comm.rank == 1:
        comm.Probe(0, SIZES[-1])
        comm.Send(b"x", 0, 1)
        comm.Recv(bytearray(), 0, 2)
        for size in reversed(SIZES):
            room = bytearray(size)
            comm.Recv(room, 0, size)
            assert room == bytes_of(size, 1)


def persistent_in_every_mode(process: RankProcess) -> None:
    """Restarted in every mode, with new data each time; inactive ones are complete and empty."""
    comm = world_of(process)
    attach_buffer(comm._state().world, BUFFER_AUTOMATIC)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for size in (0, 100_000):
        outs = [bytearray(size) for _ in range(4)]
        rooms = [bytearray(size) for _ in range(4)]
        inits = (comm.Send_init, comm.Bsend_init, comm.Ssend_init, comm.Rsend_init)
        sends = [init([out, BYTE], right, 5) for init, out in zip(inits, outs, strict=True)]
        receives = [comm.Recv_init([room, BYTE], left, 5) for room in rooms]
        for turn in range(3):
            inactive(sends + receives)
            for mode, out in enumerate(outs):
                out[:] = bytes_of(size, comm.rank + 10 * turn + mode)
            Prequest.Startall(receives)
            comm.Barrier()  # the ready one wants its receive posted
            Prequest.Startall(sends)
            if turn == 1:
                while not Request.Testall([*sends, *receives]):
                    pass
            else:
                statuses: list[Status] = []
                Request.Waitall([*receives, *sends], statuses)
                assert [status.Get_count(BYTE) for status in statuses[:4]] == [size] * 4
            for mode, room in enumerate(rooms):
                assert room == bytes_of(size, left + 10 * turn + mode), (size, turn, mode)
        for request in (*sends, *receives):
            request.Free()
    detach_buffer(comm._state().world, comm._state().world)


def inactive(requests: list[Prequest]) -> None:
    """What MPI says of requests that were not started: nothing to wait for, empty statuses."""
    for request in requests:
        status = Status()
        status.Set_source(3)
        request.Wait(status)
        assert request.Test()
        empty = (status.source, status.tag, status.error, status.count)
        assert empty == (ANY_SOURCE, ANY_TAG, 0, 0)
        assert request, "it is still there to be started"
    assert Request.Waitany(requests) == UNDEFINED
    assert Request.Testany(requests) == (UNDEFINED, True)
    assert Request.Waitsome(requests) is None
    assert Request.Waitall(requests)


def persistent_receive_cancelled(process: RankProcess) -> None:
    """A started receive can be cancelled, and started again afterwards."""
    comm = self_of(process)
    room = bytearray(3)
    receive = comm.Recv_init(room, 0, 4)
    for turn in range(3):
        receive.Start()
        with pytest.raises(MPIException, match="active") as caught:
            receive.Start()
        assert caught.value == ERR_REQUEST
        status = Status()
        if turn == 1:
            receive.Cancel()
        else:
            comm.Send(b"abc", 0, 4)
        receive.Wait(status)
        assert status.Is_cancelled() is (turn == 1)
    assert room == b"abc"
    receive.Free()
    request = comm.Irecv(room, 0, 4)
    comm.Ssend(b"xyz", 0, 4)
    request.Cancel()  # too late: it is matched
    request.Wait(status)
    assert not status.Is_cancelled()
    assert room == b"xyz"


def matched_with_nobody(process: RankProcess) -> None:
    """Matched probes of PROC_NULL give a message that can be received at once."""
    comm = world_of(process)
    for probe in (comm.Mprobe, comm.Improbe):
        status = Status()
        message = probe(PROC_NULL, 3, status)
        assert message == MESSAGE_NO_PROC
        assert (status.source, status.tag, status.count) == (PROC_NULL, ANY_TAG, 0)
        request = message.Irecv(None)
        request.Wait(status)
        assert status.source == PROC_NULL
    for send in (comm.Isend, comm.Issend, comm.Irsend, comm.Ibsend):
        assert send(None, PROC_NULL).Test()


def many_requests(process: RankProcess) -> None:
    """Hundreds of requests under way, thousands in the long runs, completed in any order."""
    comm = world_of(process)
    count = effort(250)
    peer = comm.rank ^ 1
    if peer >= comm.size:
        return
    rooms = [array("i", [-1]) for _ in range(count)]
    backwards = range(count - 1, -1, -1)
    receives = [comm.Irecv(rooms[number], peer, number) for number in range(count)]
    sends = [comm.Isend(array("i", [number * 2 + peer]), peer, number) for number in backwards]
    seen: set[int] = set()
    while len(seen) < count // 2:
        places = Request.Waitsome(receives)
        assert places
        assert not seen & set(places)
        seen |= set(places)
    Request.Waitall(receives)
    Request.Waitall(sends)
    assert [room[0] for room in rooms] == [number * 2 + comm.rank for number in range(count)]
    unexpected = [comm.Isend(array("i", [number]), peer, number) for number in range(count)]
    comm.Send(b"", peer, count)
    comm.Recv(bytearray(), peer, count)
    for number in backwards:  # the whole queue is searched
        room = array("i", [-1])
        comm.Recv(room, peer, number)
        assert room[0] == number
    Request.Waitall(unexpected)


def gaps_in_fragments(process: RankProcess) -> None:
    """Data with gaps on either side or both, in many fragments; a tail that is no whole element."""
    comm = world_of(process)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    pair = Datatype.Create_struct([1, 1], [0, 8], [INT, DOUBLE])
    kinds = [
        INT.Create_vector(3, 2, 5).Commit(),
        pair.Create_resized(0, 24).Commit(),
        SHORT.Create_hindexed([1, 3, 2], [20, 2, 11]).Commit(),
        INT.Create_subarray([6, 7], [3, 5], [1, 2]).Commit(),
    ]
    total = 20_000
    for index, out_kind in enumerate(kinds):
        for in_kind in (out_kind, kinds[index - 1]):
            out, out_data = spread(out_kind, total, comm.rank)
            room, _ = spread(in_kind, total + 100, 77)
            status = Status()
            send = [out, total // out_kind.size, out_kind]
            receive = [room, (total + 100) // in_kind.size, in_kind]
            comm.Sendrecv(send, right, 0, receive, left, 0, status)
            assert status.count == len(out_data) <= total
            _, expected = spread(out_kind, total, left)
            assert gathered(in_kind, room, total + 100)[: len(expected)] == expected
    narrow = bytearray(12)
    own = self_of(process)
    for place in (0, 1):
        request = own.Irecv([narrow, 1, INT.Create_contiguous(3).Commit()], 0, place)
        own.Send(bytes(8 + 8 * place), 0, place)
        if place:
            with pytest.raises(MPIException) as caught:
                request.Wait()
            assert caught.value == ERR_TRUNCATE
        else:
            request.Wait(status)
            assert status.Get_count(INT.Create_contiguous(3)) == UNDEFINED
            assert status.Get_elements(INT.Create_contiguous(3)) == 2


def spread(kind: Datatype, total: int, salt: int) -> tuple[bytearray, bytes]:
    """Memory for up to `total` bytes of data of a datatype, and the data that are in it."""
    memory = bytes_of(total // kind.size * kind.extent + kind.true_ub, salt)
    return memory, gathered(kind, memory, total)


def gathered(kind: Datatype, memory: bytearray, total: int) -> bytes:
    """The data of a datatype in memory, element by element."""
    blocks, extent = kind._inner.layout.blocks, kind.extent
    return b"".join(
        memory[element + start : element + start + length]
        for element in range(0, total // kind.size * extent, extent)
        for start, length in blocks
    )


PROGRAMS = (
    "every_mode_to_everybody",
    "buffer_space",
    "buffers_of_communicators",
    "synchronous",
    "persistent_in_every_mode",
    "persistent_receive_cancelled",
    "matched_with_nobody",
    "many_requests",
    "gaps_in_fragments",
)
