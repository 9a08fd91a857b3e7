"""What mpi4py makes a C int of is an integer here, and what it refuses is refused in its words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ompy import MPI
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.integers import takes_integers, whole_number
from ompy.runtime.ranks.process import RankProcess

from tests.support.worlds import virtual


class Zero:
    """It has `__int__` alone."""

    def __int__(self) -> int:
        return 0


TAKEN = [np.bool_(False), np.float64(0), np.int8(0), 0.0, False, Zero()]
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "Split": lambda c, v: c.Split(v, key=v),
    "Split_type": lambda c, v: c.Split_type(split_type=MPI.COMM_TYPE_SHARED, key=v),
    "Create_group": lambda c, v: c.Create_group(c.group, v),
    "Isend": lambda c, v: (c.Isend(bytes(1), v, v), c.Recv(bytearray(1), v, v)),
    "Irecv": lambda c, v: (c.Irecv(bytearray(1), v, v), c.Send(bytes(1), v, v))[0].Wait(),
    "isend": lambda c, v: (c.isend(1, dest=v, tag=v), c.recv(source=v, tag=v)),
    "Sendrecv": lambda c, v: c.Sendrecv(bytes(1), v, v, bytearray(1), v, v),
    "sendrecv": lambda c, v: c.sendrecv(1, v, v, None, v, v),
    "Send_init": lambda c, v: c.Send_init(bytes(1), v, v),
    "Recv_init": lambda c, v: c.Recv_init(bytearray(1), v, v),
    "Psend_init": lambda c, v: c.Psend_init(bytes(0), v, v, v),
    "Iprobe": lambda c, v: c.Iprobe(v, v),
    "improbe": lambda c, v: c.improbe(v, v),
    "Shift": lambda c, v: c.Create_cart([1]).Shift(v, v),
    "Create_contiguous": lambda _, v: MPI.INT.Create_contiguous(v),
    "Create_vector": lambda _, v: MPI.INT.Create_vector(v, v, v),
    "Create_resized": lambda _, v: MPI.INT.Create_resized(v, v),
    "Alloc_mem": lambda _, v: MPI.Alloc_mem(v),
    "Get_error_string": lambda _, v: MPI.Get_error_string(v),
}


def in_world(body: Callable[[Any], None]) -> None:
    def program(process: RankProcess) -> None:
        body(world_of(process).Dup())

    virtual(1, program)


@pytest.mark.parametrize("name", CALLS)
def test_what_has_int(name: str) -> None:
    def body(comm: Any) -> None:
        for value in TAKEN:
            CALLS[name](comm, value)

    in_world(body)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("value", ["0", None, [0]])
def test_what_has_not(name: str, value: Any) -> None:
    def body(comm: Any) -> None:
        with pytest.raises(TypeError, match="an integer is required"):
            CALLS[name](comm, value)

    in_world(body)


def test_a_fraction_is_dropped() -> None:
    assert [whole_number(each) for each in (1.9, np.float32(-1.9), True)] == [1, -1, 1]
    assert type(whole_number(True)) is int


def test_names_places_and_the_rest_are_kept() -> None:
    @takes_integers("first", "last")
    def called(first: int, middle: Any, last: int = 7) -> Any:
        return first, middle, last

    assert called(1.0, 2.5) == (1, 2.5, 7)
    assert called(True, middle="m", last=np.int8(3)) == (1, "m", 3)
    with pytest.raises(TypeError, match="missing 1 required"):
        called(1)  # type: ignore[call-arg]
