"""Communicators with a pickle of their own, sending to themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from ompy import MPI
from ompy.addons import pkl5


@pytest.fixture
def comm() -> Iterator[pkl5.Intracomm]:
    made = pkl5.Intracomm(MPI.COMM_SELF.Dup())
    yield made
    made.Free()


@pytest.fixture
def others_pickle() -> Iterator[None]:
    """A program that has given `MPI.pickle` functions of its own."""
    MPI.pickle.__init__(lambda obj: json.dumps(obj).encode(), lambda data: json.loads(bytes(data)))
    yield
    MPI.pickle.__init__()


OBJECTS: list[Any] = [
    None,
    7,
    "text",
    b"bytes",
    [1, (2, {3})],
    {"large": bytes(1 << 18), "array": 3},
]


def test_objects_come_as_they_were(comm: pkl5.Intracomm) -> None:
    for obj in OBJECTS:
        assert comm.sendrecv(obj, 0, source=0) == obj
        request = comm.isend(obj, 0, 5)
        assert comm.mprobe().recv() == obj
        assert request.wait() is None
        assert comm.bcast(obj) == comm.scatter([obj]) == obj
        assert comm.gather(obj) == comm.allgather(obj) == comm.alltoall([obj]) == [obj]


def test_functions_of_mpi_pickle_see_none_of_it(comm: pkl5.Intracomm, others_pickle: None) -> None:
    for obj in OBJECTS:
        assert comm.sendrecv(obj, 0, source=0) == obj
        assert comm.allgather(obj) == [obj]
    assert MPI.COMM_SELF.sendrecv((1, 2), 0, source=0) == [1, 2]  # as json has it
    with pytest.raises(TypeError):
        MPI.COMM_SELF.bcast({1})


def test_large_buffers_are_not_copied_into_the_pickle(comm: pkl5.Intracomm) -> None:
    array = np.arange(1 << 16)
    data, buffers = pkl5.pickle.dumps_oob([array])
    assert len(data) < 1000
    assert [memoryview(each).nbytes for each in buffers] == [array.nbytes]
    found = comm.sendrecv([array], 0, source=0)[0]
    assert (found == array).all()
    found[0] = 5  # the receiver may write to it, and it is his own
    assert array[0] == 0


def test_one_object_is_one_message(comm: pkl5.Intracomm) -> None:
    status = MPI.Status()
    request = comm.isend([np.zeros(1 << 15), np.ones(1 << 15)], 0, 9)
    message = comm.improbe(status=status)
    assert message
    assert status.tag == 9
    assert not comm.iprobe()
    pair = message.irecv().wait()
    assert [float(each.sum()) for each in pair] == [0, 1 << 15]
    request.wait()


def test_requests_that_end_together(comm: pkl5.Intracomm) -> None:
    sent = [comm.issend(place, 0, place) for place in range(3)]
    assert pkl5.Request.testall(sent) == (False, None)
    received = [comm.mprobe(tag=place).irecv() for place in range(3)]
    statuses: list[MPI.Status] = []
    assert pkl5.Request.waitall(received, statuses) == [0, 1, 2]
    assert [status.tag for status in statuses] == [0, 1, 2]
    assert pkl5.Request.testall(sent) == (True, [None] * 3)
    assert not any(sent)


def test_statuses_that_nobody_can_add_to(comm: pkl5.Intracomm) -> None:
    """All requests are waited for, and not only those that have a status."""
    sent = [comm.issend(number, 0, tag=number) for number in range(3)]
    received = [comm.mprobe(0, number).irecv() for number in range(3)]
    assert pkl5.Request.waitall(received, (MPI.Status(),)) == [0, 1, 2]
    pkl5.Request.waitall(sent, (MPI.Status(),))
    assert not any(sent)


def test_no_irecv(comm: pkl5.Intracomm) -> None:
    with pytest.raises(RuntimeError, match="mprobe"):
        comm.irecv()
