"""Programs of one rank each: partitioned messages."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from ompy.data.constants import ANY_SOURCE, ANY_TAG, PROC_NULL
from ompy.data.errors import ERR_ARG, ERR_RANK, ERR_REQUEST, ERR_TAG, ERR_TRUNCATE
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.datatypes.predefined import DATATYPES
from ompy.mpi.errors import MPIException
from ompy.mpi.point_to_point.partition_channels import RUN_BYTES, SMALL
from ompy.mpi.point_to_point.request import Prequest, Request
from ompy.mpi.point_to_point.status import Status
from ompy.runtime.ranks.process import RankProcess

DOUBLE = DATATYPES["DOUBLE"]
CHANNELS = ((1, 1), (4, 6), (12, 1), (1, 12), (3, 3))  # partitions of the sender, of the receiver
TOTAL = 12  # of elements a partition has at least one
ROUNDS = 3


def fails(code: int, call: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(MPIException) as caught:
        call(*arguments, **named)
    assert caught.value.Get_error_class() == code, caught.value
    return str(caught.value)


def neighbours(comm: Any) -> tuple[int, int]:
    return (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size


def values(source: int, channel: int, round_: int, items: int) -> np.ndarray:
    return np.arange(TOTAL * items) + 1e6 * source + 1e4 * channel + 1e2 * round_


def in_any_order(process: RankProcess) -> None:
    """Several messages around a ring, of one tag and of others, of small and large partitions."""
    for items in (1, 3000):
        _ring(process, items)


def _ring(process: RankProcess, items: int) -> None:
    comm, chance = world_of(process), Random(process.context.rank)
    right, left = neighbours(comm)
    out = [np.zeros(TOTAL * items) for _ in CHANNELS]
    into = [np.zeros(TOTAL * items) for _ in CHANNELS]
    tags = [7, 7, 1 << 30, 7, 0]
    sends = [
        comm.Psend_init(out[k], parts, right, tags[k]) for k, (parts, _) in enumerate(CHANNELS)
    ]
    receives = [
        comm.Precv_init(into[k], parts, left, tags[k]) for k, (_, parts) in enumerate(CHANNELS)
    ]
    for round_ in range(ROUNDS):
        for channel, room in enumerate(out):
            room[:] = values(comm.rank, channel, round_, items)
            into[channel][:] = -1
        everything = [*sends, *receives]
        chance.shuffle(everything)
        Prequest.Startall(everything)
        ready = [(k, part) for k, (parts, _) in enumerate(CHANNELS) for part in range(parts)]
        chance.shuffle(ready)
        for channel, part in ready:
            sends[channel].Pready(part)
        wanted = [
            (k, part, parts) for k, (_, parts) in enumerate(CHANNELS) for part in range(parts)
        ]
        for channel, part, parts in wanted:
            while not receives[channel].Parrived(part):
                pass
            size = TOTAL * items // parts
            piece = slice(part * size, (part + 1) * size)
            assert (into[channel][piece] == values(left, channel, round_, items)[piece]).all()
        statuses = [Status() for _ in receives]
        Request.Waitall(receives, statuses)
        Request.Waitall(sends)
        for channel, status in enumerate(statuses):
            assert (status.source, status.tag) == (left, tags[channel])
            assert status.Get_count(DOUBLE) == TOTAL * items
    for request in (*sends, *receives):
        request.Free()
    comm.barrier()


def each_when_it_is_ready(process: RankProcess) -> None:
    """A partition is there before the others are ready."""
    comm = world_of(process)
    right, left = neighbours(comm)
    out, into = np.arange(6.0) + comm.rank, np.full(6, -1.0)
    send = comm.Psend_init(out, 3, right)
    receive = comm.Precv_init(into, 6, left, 0)
    assert receive.Parrived(5), "nothing is started"
    receive.Start()
    send.Start()
    send.Pready(1)
    while not (receive.Parrived(2) and receive.Parrived(3)):
        pass
    assert into.tolist() == [-1, -1, left + 2, left + 3, -1, -1]
    assert not receive.Test()
    assert not any(receive.Parrived(part) for part in (0, 1, 4, 5))
    comm.barrier()  # before this nobody's other partitions are ready
    send.Pready_list([2, 0])
    receive.Wait()
    send.Wait()
    assert (into == np.arange(6.0) + left).all()
    assert receive.Parrived(0)
    comm.barrier()


def other_layouts(process: RankProcess) -> None:
    """Columns are sent, a partition each; they come as rows."""
    comm = world_of(process)
    right, left = neighbours(comm)
    matrix = np.arange(12.0).reshape(3, 4) + comm.rank
    column = DOUBLE.Create_vector(3, 1, 4).Create_resized(0, 8).Commit()
    room = np.zeros((4, 3))
    send = comm.Psend_init([matrix, 1, column], 4, right, 3)
    receive = comm.Precv_init([room, DOUBLE], 2, left, 3)
    for _ in range(2):
        room[:] = 0
        Prequest.Startall([receive, send])
        send.Pready_range(0, 3)
        Request.Waitall([send, receive])
        assert (room == (np.arange(12.0).reshape(3, 4) + left).T).all()


def more_than_a_run(process: RankProcess) -> None:
    """Small partitions side by side are one message, up to a size; here are several, and gaps."""
    comm = world_of(process)
    right, left = neighbours(comm)
    parts = 3 * RUN_BYTES // SMALL + 1
    for size in (SMALL, SMALL + 8):  # the second are messages of their own
        items = size // 8
        out, into = np.arange(float(parts * items)) + comm.rank, np.zeros(parts * items)
        send = comm.Psend_init([out, items, DOUBLE], parts, right, 1)
        receive = comm.Precv_init([into, items, DOUBLE], parts, left, 1)
        for _ in range(2):
            into[:] = -1
            Prequest.Startall([send, receive])
            send.Pready_list([parts - 1, 2, 0, 3])
            while not all(receive.Parrived(part) for part in (0, 2, 3, parts - 1)):
                pass
            assert not receive.Parrived(1)
            assert into[items] == -1, "what is not ready does not come along"
            comm.barrier()
            send.Pready(1)
            send.Pready_range(4, parts - 2)
            Request.Waitall([send, receive])
            assert (into == np.arange(float(parts * items)) + left).all()


def nobody(process: RankProcess) -> None:
    """PROC_NULL, no partitions, and partitions of nothing."""
    comm = world_of(process)
    right, left = neighbours(comm)
    buffer = np.zeros(4)
    for request in (comm.Psend_init(buffer, 2, PROC_NULL), comm.Precv_init(buffer, 2, PROC_NULL)):
        for _ in range(2):
            request.Start()
            request.Wait()
    null = comm.Psend_init(buffer, 2, PROC_NULL)
    null.Start()
    null.Pready_range(0, 1)
    null.Wait()
    empty = bytearray()
    for parts, others in ((0, 0), (0, 3), (2, 3)):
        requests = [comm.Psend_init(empty, parts, right), comm.Precv_init(empty, others, left, 0)]
        Prequest.Startall(requests)
        comm.barrier()
        for part in range(others if parts else 0):
            assert not requests[1].Parrived(part), "nobody has made it ready"
        comm.barrier()
        requests[0].Pready_list(range(parts))
        Request.Waitall(requests)


def wrong_calls(process: RankProcess) -> None:
    """What is wrong with arguments, and with calls for a request of another kind."""
    comm = world_of(process)
    right, left = neighbours(comm)
    buffer = np.zeros(4)
    fails(ERR_RANK, comm.Precv_init, buffer, 2, ANY_SOURCE, 0)
    fails(ERR_TAG, comm.Precv_init, buffer, 2, left, ANY_TAG)
    fails(ERR_RANK, comm.Psend_init, buffer, 2, comm.size)
    fails(ERR_TAG, comm.Psend_init, buffer, 2, right, -5)
    fails(ERR_ARG, comm.Psend_init, buffer, -1, right)
    with pytest.raises(ValueError, match="message: "):
        comm.Psend_init(buffer, 3, right)
    with pytest.raises(BufferError):
        comm.Precv_init(b"1234", 2, left, 0)
    send = comm.Psend_init(buffer, 2, right)
    receive = comm.Precv_init(np.zeros(4), 2, left, 0)
    fails(ERR_REQUEST, send.Pready, 0)
    Prequest.Startall([send, receive])
    fails(ERR_REQUEST, send.Start)
    for part in (-1, 2):
        fails(ERR_ARG, send.Pready, part)
        fails(ERR_ARG, receive.Parrived, part)
    send.Pready(1)
    assert "ready already" in fails(ERR_ARG, send.Pready_range, 0, 1)
    assert "ready already" in fails(ERR_ARG, send.Pready_list, [0, 0])
    assert not send.Test()
    send.Pready(0)
    fails(ERR_REQUEST, send.Parrived, 0)
    fails(ERR_REQUEST, receive.Pready, 0)
    fails(ERR_REQUEST, send.Cancel)
    fails(ERR_REQUEST, Prequest().Pready, 0)
    Request.Waitall([send, receive])
    plain = comm.Send_init(buffer, right)
    fails(ERR_REQUEST, plain.Pready, 0)
    fails(ERR_REQUEST, plain.Parrived, 0)


def sizes_that_differ(process: RankProcess) -> None:
    """Both sides are told, and the next message is not touched."""
    comm = world_of(process)
    right, left = neighbours(comm)
    out, into = np.arange(8.0), np.zeros(8)
    for sent, room in ((4, 3), (3, 4)):
        requests = [comm.Psend_init(out[:sent], 1, right), comm.Precv_init(into[:room], 1, left, 0)]
        Prequest.Startall(requests)
        requests[0].Pready(0)
        for request in requests:
            fails(ERR_TRUNCATE, request.Wait)
        requests[1].Start()
        fails(ERR_TRUNCATE, request.Wait)
        requests[0].Free()
    good = [comm.Psend_init(out, 2, right), comm.Precv_init(into, 4, left, 0)]
    Prequest.Startall(good)
    good[0].Pready_range(0, 1)
    Request.Waitall(good)
    assert (into == out).all()


def freed_before_it_is_offered(process: RankProcess) -> None:
    """The sender is told that the receive it belongs to is gone."""
    comm = world_of(process)
    right, left = neighbours(comm)
    comm.Precv_init(bytearray(4), 1, left, 0).Free()
    comm.barrier()
    send = comm.Psend_init(bytes(4), 1, right)
    send.Start()
    send.Pready(0)
    fails(ERR_REQUEST, send.Wait)
    comm.barrier()  # who has left answers nothing


def tags_are_given_back(process: RankProcess) -> None:
    """Requests made and freed for ever; one freed while its message is under way, too."""
    comm = world_of(process)
    right, left = neighbours(comm)
    out, into = bytes(8), bytearray(8)
    for _ in range(20):
        requests = [comm.Psend_init(out, 8, right), comm.Precv_init(into, 2, left, 0)]
        Prequest.Startall(requests)
        requests[0].Pready_range(0, 7)
        requests[0].Wait()
        requests[1].Free()
        requests[0].Free()
        comm.barrier()
    comm.barrier()
    while comm._state().partitions._tags[left]._used:
        process.context.engine.progress()


PROGRAMS = (
    "in_any_order",
    "each_when_it_is_ready",
    "other_layouts",
    "more_than_a_run",
    "nobody",
    "wrong_calls",
    "sizes_that_differ",
    "freed_before_it_is_offered",
    "tags_are_given_back",
)
