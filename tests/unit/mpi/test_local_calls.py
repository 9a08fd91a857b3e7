"""What is answered without any message: numbers of handles, names, elements, places in memory."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from ompy import MPI
from ompy.data.constants import UNDEFINED
from ompy.mpi.buffers.addresses import address_of, view_at
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.datatypes.datatype import Datatype
from ompy.mpi.datatypes.predefined import BYTE, DATATYPES
from ompy.mpi.datatypes.signatures import bytes_of_elements, elements_in
from ompy.mpi.errors import MPIException
from ompy.mpi.info import Info
from ompy.mpi.point_to_point.status import Status
from ompy.mpi.strings import c_string
from ompy.runtime.ranks.process import RankProcess

from tests.support.worlds import virtual

INT, DOUBLE = DATATYPES["INT"], DATATYPES["DOUBLE"]
KINDS = {
    "named": DOUBLE,
    "vector": DOUBLE.Create_vector(3, 1, 2),
    "nested": DOUBLE.Create_vector(3, 1, 2).Create_contiguous(2),
    "resized": INT.Create_resized(0, 16),
    "empty": INT.Create_contiguous(0),
    "struct": Datatype.Create_struct([1, 2], [0, 8], [INT, DOUBLE]),
    "of structs": Datatype.Create_struct([1, 2], [0, 8], [INT, DOUBLE]).Create_contiguous(3),
    "pair": DATATYPES["DOUBLE_INT"],
    "bytes": BYTE,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [0, 1, 4, 8, 12, 24, 40, 60])
def test_elements_are_those_of_the_signature(kind: str, length: int) -> None:
    """Whatever is known of a type beforehand, its signature says the same."""
    datatype, status = KINDS[kind], Status()
    status.count = length
    assert status.Get_elements(datatype) == elements_in(datatype._state(), length)
    status.Set_elements(datatype, length)
    assert status.count == bytes_of_elements(datatype._state(), length)


def test_elements_beyond_32_bits() -> None:
    status = Status()
    status.Set_elements(DOUBLE, 1 << 40)
    assert status.count == 1 << 43
    assert status.Get_elements(KINDS["vector"]) == 1 << 40
    assert status.Get_count(KINDS["vector"]) == UNDEFINED


def test_a_name_like_the_usual_one_is_a_name() -> None:
    """Whoever has none is told by its context id to people, and has an empty one."""

    def program(process: RankProcess) -> list[str]:
        comm = world_of(process).Dup()
        names = [comm.Get_name()]
        usual = comm._state().communicator.name
        for name in (usual, "other", ""):
            comm.Set_name(name)
            names.append(comm.name)
        names.append(comm._state().communicator.name)
        names.append(usual)
        return names

    (said,) = virtual(1, program).results  # type: ignore[attr-defined]
    assert said[0] == ""
    assert said[1:4] == [said[5], "other", ""]
    assert said[4] == said[5]


def test_a_number_stands_for_its_handle_while_that_lives() -> None:
    info = Info.Create({"key": "value"})
    number = info.toint()
    assert number == info.handle == info.py2f() == Info(info).toint() != 0
    assert Info.fromint(number) == info
    assert Info.f2py(number).Get("key") == "value"
    del info
    gc.collect()
    with pytest.raises(MPIException, match="is no handle of a living Info"):
        Info.fromint(number)
    assert Info.Create().toint() > number


def test_where_memory_is() -> None:
    array = np.arange(6, dtype="d").reshape(2, 3)
    begins = array.ctypes.data
    assert address_of(array) == address_of(memoryview(array)) == begins == MPI.Get_address(array)
    assert MPI.memory(array).address == begins
    assert MPI.memory(array)[8:].address == begins + 8
    with pytest.raises(BufferError):
        address_of(memoryview(bytearray(8))[::2])
    with pytest.raises(TypeError):
        address_of(5)
    view = view_at(begins, array.nbytes)
    view[:8] = b"\0" * 8
    assert not array[0, 0]
    assert not view.readonly
    assert view_at(begins, 8, True).readonly
    there = MPI.memory.fromaddress(begins, array.nbytes)
    assert there[16:24].address == begins + 16
    assert there[16:24].tobytes() == array[0, 2].tobytes()


def test_a_part_of_memory_is_a_slice_without_steps() -> None:
    memory = MPI.memory(bytearray(b"abcdef"))
    assert memory[4:2].nbytes == 0
    assert memory[-2:].tobytes() == memory[4:100:1].tobytes() == b"ef"
    memory[1:3] = 65
    assert memory.tobytes() == b"aAAdef"
    with pytest.raises(IndexError):
        memory[::2]
    with pytest.raises(ValueError, match="2 bytes do not fit into 3"):
        memory[0:3] = b"xy"
    with pytest.raises(TypeError):
        memory["a":"b"]  # type: ignore[misc]


@pytest.mark.parametrize("text", ["", "plain", "größe", b"bytes", "größe".encode()])
def test_a_text_for_c(text: str | bytes) -> None:
    assert c_string(text) == (text if isinstance(text, str) else text.decode())


@pytest.mark.parametrize(
    ("text", "problem"),
    [("a\0b", ValueError), ("ä\0", ValueError), (5, TypeError), ("\ud800", UnicodeEncodeError)],
)
def test_no_text_for_c(text: object, problem: type[Exception]) -> None:
    with pytest.raises(problem):
        c_string(text)


def test_addresses_are_added_as_integers() -> None:
    assert MPI.Aint_add(1 << 62, -1) == (1 << 62) - 1
    assert MPI.Aint_diff(np.int64(5), 7.5) == -2  # type: ignore[arg-type]
    for wrong in (1 << 64, "1"):
        with pytest.raises((OverflowError, TypeError)):
            MPI.Aint_add(wrong, 0)  # type: ignore[arg-type]
