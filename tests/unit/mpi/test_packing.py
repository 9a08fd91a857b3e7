"""Pack and Unpack: the straight way does what the longer one does, and leaves it what is wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ompy import MPI
from ompy.data import loops
from ompy.data.errors import ERR_ARG, ERR_TRUNCATE, ERR_TYPE
from ompy.mpi.datatypes import packing

MAKERS: dict[str, Callable[[], MPI.Datatype]] = {
    "double": lambda: MPI.DOUBLE.Dup(),
    "vector": lambda: MPI.DOUBLE.Create_vector(3, 1, 2),
    "vector of shorts": lambda: MPI.SHORT.Create_vector(3, 3, 4),
    "indexed": lambda: MPI.INT.Create_indexed([1, 3, 2], [0, 9, 4]),
    "struct": lambda: MPI.Datatype.Create_struct(
        [1, 2, 1], [0, 12, 8], [MPI.DOUBLE, *[MPI.INT] * 2]
    ),
    "subarray": lambda: MPI.FLOAT.Create_subarray([4, 5, 3], [2, 3, 2], [1, 1, 1]),
    "complex": lambda: MPI.C_DOUBLE_COMPLEX.Create_vector(2, 1, 2),
    "longs": lambda: MPI.LONG.Create_vector(2, 1, 2),
    "pair": lambda: MPI.DOUBLE_INT.Dup(),
}


@pytest.fixture(autouse=True)
def loops_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpreted, the loops are for a few runs only."""
    monkeypatch.setattr(loops, "TABLE_MOST", 1 << 16)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("portable", [False, True], ids=["native", "external32"])
def test_both_ways_give_the_same_bytes(name: str, count: int, portable: bool) -> None:
    kind = MAKERS[name]().Commit()
    data = bytearray(
        i * 37 % 256 if name != "longs" or i % 8 < 3 else 0 for i in range(kind.extent * count + 3)
    )
    size = kind.Pack_external_size("external32", count) if portable else count * kind.size
    straight, longer = bytearray(size + 9), bytearray(size + 9)
    back, unpacked = bytearray(len(data)), bytearray(len(data))
    if portable:
        end = kind.Pack_external("external32", data, straight, 5)
        assert packing.pack_external(kind, "external32", data, longer, 5) == end
        assert kind.Unpack_external("external32", straight, 5, back) == end
        packing.unpack_external(kind, "external32", longer, 5, unpacked)
    else:
        end = kind.Pack(data, straight, 5, MPI.COMM_SELF)
        assert packing.pack_buffer(kind, data, longer, 5) == end
        assert kind.Unpack(straight, 5, back, MPI.COMM_SELF) == end
        packing.unpack_buffer(kind, longer, 5, unpacked)
    assert end == 5 + size
    assert straight == longer
    assert back == unpacked
    assert any(back) == (count > 0)


def test_a_complex_number_is_its_real_part_first() -> None:
    """MPI 4.1, 14.5.2: external32 of a complex number is two floats."""
    from array import array

    packed = bytearray(16)
    MPI.C_DOUBLE_COMPLEX.Pack_external("external32", array("d", [1, 2]), packed, 0)
    assert packed.hex() == "3ff0000000000000" + "4000000000000000"
    MPI.C_FLOAT_COMPLEX.Pack_external("external32", array("f", [1, 2]), packed, 0)
    assert packed[:8].hex() == "3f800000" + "40000000"
    back = array("f", [0, 0])
    MPI.C_FLOAT_COMPLEX.Unpack_external("external32", packed[:8], 0, back)
    assert list(back) == [1, 2]
    assert MPI.C_LONG_DOUBLE_COMPLEX.Pack_external_size("external32", 1) == 32


def test_what_is_wrong_is_said() -> None:
    kind = MPI.INT.Create_vector(2, 1, 2)
    data = bytearray(16)
    with pytest.raises(MPI.Exception) as caught:
        kind.Pack(data, bytearray(8), 0, MPI.COMM_SELF)
    assert caught.value.Get_error_class() == ERR_TYPE  # never committed
    kind.Commit()
    for position, code in ((1, ERR_TRUNCATE), (-1, ERR_ARG)):
        with pytest.raises(MPI.Exception) as caught:
            kind.Pack(data, bytearray(8), position, MPI.COMM_SELF)
        assert caught.value.Get_error_class() == code
        with pytest.raises(MPI.Exception) as caught:
            kind.Unpack(bytes(8), position, data, MPI.COMM_SELF)
        assert caught.value.Get_error_class() == code
    with pytest.raises(BufferError):
        kind.Pack(data, bytes(8), 0, MPI.COMM_SELF)
    with pytest.raises(BufferError):
        kind.Unpack(bytes(8), 0, bytes(16), MPI.COMM_SELF)
    with pytest.raises(MPI.Exception):
        kind.Pack(data, bytearray(8), 0, MPI.COMM_NULL)
    kind.Free()
    with pytest.raises(MPI.Exception):
        kind.Pack(data, bytearray(8), 0, MPI.COMM_SELF)


def test_bottom_does_not_say_how_many_there_are() -> None:
    room = bytearray(b"untouched")
    assert MPI.INT.Pack(MPI.BOTTOM, room, 3, MPI.COMM_SELF) == 3
    assert MPI.INT.Unpack(room, 2, MPI.BOTTOM, MPI.COMM_SELF) == 2
    assert room == b"untouched"


def test_arguments_that_change_later_change_nothing() -> None:
    """A layout is made when it is needed, of the arguments as they were."""
    lengths, places = [1, 2], [0, 4]
    kind = MPI.INT.Create_indexed(lengths, places)
    lengths[0] = places[1] = 9
    _, _, told = kind.decode()
    told["blocklengths"][0] = 7
    assert (kind.size, kind.extent) == (12, 24)
    assert kind.decode()[2] == {"blocklengths": [1, 2], "displacements": [0, 4]}
