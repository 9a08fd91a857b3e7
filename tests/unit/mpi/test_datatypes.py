"""Derived datatypes: where their data lie, how they are described, packed and pickled."""

from __future__ import annotations

import pickle
import random
import struct
from array import array
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.data.errors import ERR_ARG, ERR_COUNT, ERR_TYPE, ERR_VALUE_TOO_LARGE
from ompy.mpi import constants
from ompy.mpi.buffers.spec import message
from ompy.mpi.datatypes import external32
from ompy.mpi.datatypes.datatype import Datatype
from ompy.mpi.datatypes.predefined import DATATYPE_NULL, DATATYPES
from ompy.mpi.datatypes.signatures import elements_in
from ompy.mpi.errors import MPIException
from ompy.mpi.processes import environment

BYTE, CHAR, SHORT, INT, LONG, DOUBLE = (
    DATATYPES[name] for name in ("BYTE", "CHAR", "SHORT", "INT", "LONG", "DOUBLE")
)


def bounds(datatype: Datatype) -> tuple[int, int, int, int, int]:
    """Size, lower bound, extent, true lower bound, true extent."""
    return (datatype.size, *datatype.Get_extent(), *datatype.Get_true_extent())


def picked(datatype: Datatype, count: int = 1, size: int = 200) -> list[int]:
    """Which bytes of memory an element takes, in order."""
    memory = bytes(index % 256 for index in range(size))
    return list(message([memory, count, datatype.Commit()], False).message.packed())


@pytest.mark.parametrize(
    ("datatype", "expected"),
    [
        (INT.Create_contiguous(3), (12, 0, 12, 0, 12)),
        (INT.Create_contiguous(0), (0, 0, 0, 0, 0)),
        (INT.Create_vector(3, 2, 4), (24, 0, 40, 0, 40)),
        (INT.Create_vector(3, 1, -2), (12, -16, 20, -16, 20)),
        (INT.Create_hvector(2, 1, 10), (8, 0, 16, 0, 14)),
        (INT.Create_indexed([2, 0, 1], [4, 100, 0]), (12, 0, 24, 0, 24)),
        (INT.Create_hindexed([1, 1], [8, 1]), (8, 1, 12, 1, 11)),
        (INT.Create_indexed_block(2, [3, 0]), (16, 0, 20, 0, 20)),
        (INT.Create_hindexed_block(1, [4, 12]), (8, 4, 12, 4, 12)),
        (Datatype.Create_struct([1, 1], [0, 8], [DOUBLE, CHAR]), (9, 0, 16, 0, 9)),
        (Datatype.Create_struct([1, 2], [2, 8], [SHORT, INT]), (10, 2, 16, 2, 14)),
        (INT.Create_subarray([4, 5], [2, 3], [1, 1]), (24, 0, 80, 24, 32)),
        (INT.Create_resized(-4, 12), (4, -4, 12, 0, 4)),
        (INT.Create_resized(-4, 12).Create_contiguous(2), (8, -4, 24, 0, 16)),
        (INT.Dup(), (4, 0, 4, 0, 4)),
        (DATATYPES["SHORT_INT"], (6, 0, 8, 0, 8)),
        (DATATYPES["LONG_DOUBLE_INT"], (20, 0, 32, 0, 20)),
    ],
)
def test_bounds(datatype: Datatype, expected: tuple[int, ...]) -> None:
    assert bounds(datatype) == expected
    assert datatype.ub == datatype.lb + datatype.extent


def test_the_bytes_they_take() -> None:
    assert picked(SHORT.Create_vector(2, 1, 3)) == [0, 1, 6, 7]
    assert picked(SHORT.Create_vector(2, 1, 3), 2) == [0, 1, 6, 7, 8, 9, 14, 15]
    assert picked(BYTE.Create_indexed([2, 1], [5, 0])) == [5, 6, 0]
    nested = BYTE.Create_vector(2, 1, 2).Create_resized(0, 5).Create_contiguous(2)
    assert picked(nested) == [0, 2, 5, 7]
    box = BYTE.Create_subarray([3, 4], [2, 2], [1, 2])
    assert picked(box) == [6, 7, 10, 11]
    assert picked(box, 2) == [6, 7, 10, 11, 18, 19, 22, 23]
    fortran = BYTE.Create_subarray([4, 3], [2, 2], [2, 1], constants.ORDER_FORTRAN)
    assert picked(fortran) == [6, 7, 10, 11]


@pytest.mark.parametrize(
    "given", [([4], [0], [0]), ([4], [-1], [0]), ([4], [1], [-1]), ([4], [2], [3]), ([0], [0], [0])]
)
def test_a_box_has_something_in_it_and_lies_in_its_array(given: tuple[list[int], ...]) -> None:
    with pytest.raises(MPIException) as raised:
        INT.Create_subarray(*given)
    assert raised.value.Get_error_class() == ERR_ARG


def test_an_order_is_one_of_two() -> None:
    dealt, whole = [constants.DISTRIBUTE_BLOCK], [constants.DISTRIBUTE_DFLT_DARG]
    for make in (
        lambda order: INT.Create_subarray([4], [2], [1], order),
        lambda order: INT.Create_darray(1, 0, [4], dealt, whole, [1], order),
    ):
        with pytest.raises(MPIException, match="order 5"):
            make(5)


@given(st.data())
def test_subarrays_are_numpys(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    starts = [data.draw(st.integers(0, size - 1)) for size in sizes]
    parts = [data.draw(st.integers(1, size - at)) for size, at in zip(sizes, starts, strict=True)]
    box = tuple(slice(at, at + size) for at, size in zip(starts, parts, strict=True))
    for order, code in (("C", constants.ORDER_C), ("F", constants.ORDER_FORTRAN)):
        whole = np.arange(np.prod(sizes), dtype="i2").reshape(sizes, order=order)
        datatype = SHORT.Create_subarray(sizes, parts, starts, code).Commit()
        packed = message([whole, 1, datatype], False).message.packed()
        assert list(np.frombuffer(packed, "i2")) == list(whole[box].flatten(order))


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 3)), min_size=1, max_size=3),
    st.sampled_from([constants.DISTRIBUTE_BLOCK, constants.DISTRIBUTE_CYCLIC]),
    st.sampled_from([constants.ORDER_C, constants.ORDER_F]),
)
def test_a_distributed_array_is_dealt_out_once(
    dimensions: list[tuple[int, int]], distribution: int, order: int
) -> None:
    sizes, grid = [d[0] for d in dimensions], [d[1] for d in dimensions]
    ranks = int(np.prod(grid))
    total = int(np.prod(sizes))
    whole = array("h", range(total))
    default = [constants.DISTRIBUTE_DFLT_DARG] * len(sizes)
    seen: list[int] = []
    for rank in range(ranks):
        part = SHORT.Create_darray(
            ranks, rank, sizes, [distribution] * len(sizes), default, grid, order
        ).Commit()
        assert part.extent == 2 * total
        seen += np.frombuffer(message([whole, 1, part], False).message.packed(), "h").tolist()
    assert sorted(seen) == list(range(total))


DERIVED = {
    "CONTIGUOUS": INT.Create_contiguous(3),
    "VECTOR": INT.Create_vector(3, 2, 4),
    "HVECTOR": INT.Create_hvector(3, 2, 16),
    "INDEXED": INT.Create_indexed([1, 2], [0, 4]),
    "HINDEXED": INT.Create_hindexed([1, 2], [0, 16]),
    "INDEXED_BLOCK": INT.Create_indexed_block(2, [0, 4]),
    "HINDEXED_BLOCK": INT.Create_hindexed_block(2, [0, 16]),
    "STRUCT": Datatype.Create_struct([1, 2], [0, 8], [INT, DOUBLE.Create_contiguous(2)]),
    "SUBARRAY": INT.Create_subarray([4, 5], [2, 3], [1, 1]),
    "DARRAY": INT.Create_darray(2, 1, [5], [0], [-1], [2]),
    "RESIZED": INT.Create_resized(-4, 12),
    "DUP": INT.Dup(),
}


@pytest.mark.parametrize(
    "none",
    [
        lambda base: base.Create_contiguous(0),
        lambda base: base.Create_contiguous(0).Dup(),
        lambda base: base.Create_contiguous(0).Create_contiguous(3),
        lambda base: base.Create_vector(0, 1, 2),
        lambda base: base.Create_hvector(2, 0, 5),
        lambda base: base.Create_indexed([], []),
        lambda base: base.Create_hindexed([0, 0], [3, 9]),
        lambda base: base.Create_indexed_block(0, [1, 2]),
        lambda base: base.Create_hindexed_block(1, []),
    ],
)
def test_what_has_no_element_has_no_bounds_and_no_alignment(
    none: Callable[[Datatype], Datatype],
) -> None:
    """A structure took them for its own: its elements lay on top of each other."""
    empty = none(INT.Create_resized(17, 24))
    pair = Datatype.Create_struct([1, 1], [0, 8], [empty, DOUBLE])
    assert bounds(pair) == (8, 0, 16, 8, 8)
    assert picked(pair, 2) == [*range(8, 16), *range(24, 32)]
    assert bounds(Datatype.Create_struct([1, 1], [40, 8], [empty, DOUBLE])) == (8, 8, 32, 8, 8)
    padded = Datatype.Create_struct([1, 1], [0, 8], [none(DOUBLE), CHAR])
    assert bounds(padded) == (1, 0, 9, 8, 1), "what is not there need not be aligned"
    one = Datatype.Create_struct([1, 1], [0, 8], [INT.Create_resized(0, 40).Dup(), DOUBLE])
    assert bounds(one) == (12, 0, 40, 0, 16), "what has one sets them"


@pytest.mark.parametrize("wrong", [None, "d", 3, BYTE.Get_size])
def test_a_part_of_a_structure_is_a_datatype(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"expected mpi4py\.MPI\.Datatype"):
        Datatype.Create_struct([1, 1], [0, 8], [INT, wrong])  # type: ignore[list-item]


@pytest.mark.parametrize("combiner", DERIVED)
def test_decoded_and_pickled(combiner: str) -> None:
    datatype = DERIVED[combiner]
    base, name, params = datatype.decode()
    assert name == combiner
    assert datatype.combiner == getattr(constants, f"COMBINER_{combiner}")
    again = getattr(base, f"Create_{name.lower()}")(**params)
    copy = pickle.loads(pickle.dumps(datatype))
    for made in (again, copy):
        assert made != datatype
        assert made._inner.layout.blocks == datatype._inner.layout.blocks
        assert bounds(made) == bounds(datatype)
        assert made.Get_envelope() == datatype.Get_envelope()
    integers, addresses, counts, datatypes = datatype.Get_contents()
    numbers = (len(integers), len(addresses), len(counts), len(datatypes))
    assert datatype.envelope == (*numbers, datatype.combiner)


def test_contents_have_the_order_of_the_standard() -> None:
    assert DERIVED["VECTOR"].Get_contents()[:2] == ([3, 2, 4], [])
    assert DERIVED["HVECTOR"].Get_contents()[:2] == ([3, 2], [16])
    assert DERIVED["HINDEXED"].Get_contents()[:2] == ([2, 1, 2], [0, 16])
    assert DERIVED["SUBARRAY"].Get_contents()[0] == [2, 4, 5, 2, 3, 1, 1, 0]
    assert DERIVED["VECTOR"].Get_contents()[3][0] is INT
    with pytest.raises(MPIException):
        INT.Get_contents()


# mpi4py's name for an integer of a size, which has another handle than C's type of that size
_SIZED = (("i", "INT"), ("u", "UINT"))


def test_codes_and_names() -> None:
    assert [DATATYPES[n].tocode() for n in ("INT", "DOUBLE", "BYTE", "C_BOOL")] == [
        *"idB",
        "b1",
    ]
    assert [DATATYPES[n].typestr for n in ("INT64_T", "FLOAT", "CHAR", "INT_INT")] == [
        "i8",
        "f4",
        "S1",
        "V8",
    ]
    assert Datatype.fromcode("d") is DOUBLE
    named = {f"{kind}{n}": f"{word}{8 * n}_T" for kind, word in _SIZED for n in (1, 2, 4, 8)}
    for code, name in {
        **named,
        "n": "COUNT",
        "P": "UNSIGNED_LONG",
        "i": "INT",
        "l": "LONG",
    }.items():
        assert Datatype.fromcode(code) is Datatype.fromcode(f"={code}") is DATATYPES[name]
    for character in "bhilqBHILQfdgFDG?":
        known = np.dtype(character)
        found = Datatype.fromcode(character)
        assert (found.size, found.typestr) == (known.itemsize, known.str[1:])
    with pytest.raises(ValueError, match="cannot map"):
        DERIVED["VECTOR"].tocode()
    own = INT.Dup()
    own.name = "mine"
    assert (own.name, INT.name, DATATYPE_NULL.name) == ("mine", "MPI_INT", "MPI_DATATYPE_NULL")


def test_predefined_ones_stay() -> None:
    for datatype in (INT, Datatype.Create_f90_real(6, 30)):
        with pytest.raises(MPIException) as caught:
            datatype.Free()
        assert caught.value == ERR_TYPE
    assert pickle.loads(pickle.dumps(INT)) is INT
    with pytest.raises(MPIException):
        DATATYPE_NULL.Dup()
    with pytest.raises(MPIException) as caught:
        INT.Create_contiguous(-1)
    assert caught.value == ERR_COUNT
    with pytest.raises(ValueError, match="datatypes"):
        Datatype.Create_struct([1], [0], [INT, INT])
    assert Datatype.Get_value_index(DOUBLE, INT) == DATATYPES["DOUBLE_INT"]
    assert Datatype.Get_value_index(DOUBLE, DOUBLE) == DATATYPE_NULL
    assert Datatype.Get_value_index(DATATYPES["UNSIGNED"], INT) == DATATYPE_NULL
    assert Datatype.Match_size(constants.TYPECLASS_REAL, 8).size == 8


def test_a_freed_type_lives_on_in_what_was_made_of_it() -> None:
    column = INT.Create_vector(2, 1, 2)
    both = column.Create_contiguous(2)
    column.Free()
    assert column == DATATYPE_NULL
    assert both.decode()[0].combiner == constants.COMBINER_VECTOR


def test_counting_basic_elements() -> None:
    mixed = Datatype.Create_struct([2, 1], [0, 8], [INT, DOUBLE])._inner
    sizes = (0, 4, 8, 16, 20, 24, 32, 6)
    assert [elements_in(mixed, size) for size in sizes] == [0, 1, 2, 3, 4, 5, 6, -32766]
    assert elements_in(INT.Create_contiguous(3)._inner, 8) == 2


class Comm:
    """What Pack wants of a communicator."""

    def Get_size(self) -> int:
        return 1


def test_packing_one_after_the_other() -> None:
    packed = bytearray(50)
    column = SHORT.Create_vector(2, 1, 2).Commit()
    numbers, words = array("d", [1.5, 2.5]), array("h", [1, 2, 3])
    place = DOUBLE.Pack(numbers, packed, 0, Comm())
    place = column.Pack(words, packed, place, Comm())
    assert place == DOUBLE.Pack_size(2, Comm()) + column.Pack_size(1, Comm()) == 20
    back, spread = array("d", bytes(16)), array("h", [0, 7, 0])
    place = DOUBLE.Unpack(packed, 0, back, Comm())
    assert column.Unpack(packed, place, spread, Comm()) == 20
    assert (back, list(spread)) == (numbers, [1, 7, 3])
    with pytest.raises(MPIException, match="beyond"):
        DOUBLE.Pack(numbers, packed, 40, Comm())
    with pytest.raises(MPIException, match="negative"):
        DOUBLE.Unpack(packed, -1, back, Comm())


def test_the_portable_representation() -> None:
    packed = bytearray(100)
    INT.Pack_external("external32", array("i", [1, -2]), packed, 0)
    assert packed[:8] == struct.pack(">ii", 1, -2)
    DOUBLE.Pack_external("external32", array("d", [2.5]), packed, 0)
    assert packed[:8] == struct.pack(">d", 2.5)
    assert LONG.Pack_external_size("external32", 3) == 12, "a long has 4 bytes there"
    for values in (array("l", [2**31 - 1, -1]), array("L", [2**32 - 1, 0])):
        datatype = Datatype.fromcode(values.typecode)
        datatype.Pack_external("external32", values, packed, 3)
        back = array(values.typecode, bytes(16))
        datatype.Unpack_external("external32", packed, 3, back)
        assert back == values
    with pytest.raises(MPIException) as caught:
        LONG.Pack_external("external32", array("l", [2**31]), packed, 0)
    assert caught.value == ERR_VALUE_TOO_LARGE
    with pytest.raises(MPIException, match="only representation"):
        INT.Pack_external_size("native", 1)


def test_pairs_have_two_basic_elements() -> None:
    """Also those whose value and index lie side by side."""
    packed = bytearray(12)
    datatype = DATATYPES["DOUBLE_INT"]
    assert datatype.Pack_external_size("external32", 1) == 12
    memory = bytearray(16)
    memory[:12] = struct.pack("<di", 1.5, 3)
    datatype.Pack_external("external32", memory, packed, 0)
    assert packed == struct.pack(">di", 1.5, 3)
    back = bytearray(16)
    datatype.Unpack_external("external32", packed, 0, back)
    assert back == memory
    for symbol, sizes in (("FLOAT_INT", (4, 4)), ("DOUBLE_INT", (8, 4)), ("SHORT_INT", (2, 4))):
        state = DATATYPES[symbol]._inner
        assert [elements_in(state, n) for n in (0, sizes[0], sum(sizes))] == [0, 1, 2]
        assert elements_in(state, 1) == -32766
    assert DATATYPES["LONG_INT"].Pack_external_size("external32", 1) == 8


BASICS = {"SHORT": "h", "INT": "i", "LONG": "l", "UNSIGNED_LONG": "L", "DOUBLE": "d", "BYTE": "B"}


@given(
    st.lists(st.tuples(st.sampled_from(sorted(BASICS)), st.integers(1, 4)), min_size=1, max_size=4),
    st.integers(1, 5),
    st.integers(0, 6),
    st.randoms(use_true_random=False),
)
def test_portable_elements_one_by_one(
    parts: list[tuple[str, int]], repeated: int, count: int, chance: random.Random
) -> None:
    """What `struct` makes of each number, whatever a type is made of."""
    fields = [DATATYPES[name].Create_contiguous(number) for name, number in parts]
    places = [64 * index for index in range(len(parts))]
    of = Datatype.Create_struct([1] * len(parts), places, fields).Create_contiguous(repeated)
    codes = "".join(BASICS[name] * number for name, number in parts) * repeated * count
    values = [chance.randrange(100) for _ in codes]
    native, portable = (order + codes for order in ("=", ">"))
    native = native.replace("l", "q").replace("L", "Q")
    packed, expected = struct.pack(native, *values), struct.pack(portable, *values)
    assert external32.encode(of, packed) == expected
    assert external32.decode(of, expected) == packed
    assert external32.external32_size(of, count) == len(expected)
    assert elements_in(of._inner, len(packed)) == len(codes)


def test_longs_keep_their_sign() -> None:
    for value in (-(2**31), -1, 0, 1, 2**31 - 1):
        values = array("l", [value, 5, value])
        made = external32.encode(LONG, values.tobytes())
        assert made == struct.pack(">lll", value, 5, value)
        assert external32.decode(LONG, made) == values.tobytes()
    with pytest.raises(MPIException, match="-2147483649 does not fit"):
        external32.encode(LONG, array("l", [7, -(2**31) - 1, 2**40]).tobytes())
    with pytest.raises(MPIException, match="4294967296 does not fit"):
        external32.encode(DATATYPES["UNSIGNED_LONG"], array("L", [2**32]).tobytes())


@given(st.floats(width=64, allow_nan=False))
def test_long_doubles_are_quadruples_there(value: float) -> None:
    for code in "gG":
        datatype = Datatype.fromcode(code)
        values = np.array([value, -value], code)
        packed, back = bytearray(64), np.zeros(2, code)
        end = datatype.Pack_external("external32", values, packed, 0)
        assert end == datatype.Pack_external_size("external32", 2)
        assert datatype.Unpack_external("external32", packed, 0, back) == end
        assert (values == back).all()
    # sign and exponent of 2.5 as IEEE 754 quadruple: 0x4000, fraction 0x4...
    DATATYPES["LONG_DOUBLE"].Pack_external("external32", np.array([2.5], "g"), packed, 0)
    assert packed[:4].hex() == "40004000"


def test_packing_takes_whole_elements_and_leaves_the_rest_of_the_buffer() -> None:
    column = INT.Create_vector(2, 1, 2).Commit()  # 12 bytes from first to last
    words, packed = array("i", [1, 2, 3, 4]), bytearray(16)
    assert column.Pack(words, packed, 0, Comm()) == 8, "one element is whole in 16 bytes"
    assert array("i", packed[:8]).tolist() == [1, 3]
    back = array("i", [0] * 4)
    assert column.Unpack(packed, 0, back, Comm()) == 8
    assert back.tolist() == [1, 0, 3, 0]
    assert column.Pack(words[:2], packed, 0, Comm()) == 0, "none is whole"


def test_what_a_binary_interface_would_have() -> None:
    assert environment.Get_abi_version() == (-1, -1)  # MPI-5.0: there is none
    assert dict(environment.Get_abi_info()) == {
        f"mpi_{n}_size": "8" for n in ("aint", "count", "offset")
    }
    found = dict(environment.Get_abi_fortran_info())
    assert found.pop("mpi_double_precision_size") == "8"
    assert {found.pop(f"mpi_{name}_size") for name in ("logical", "integer", "real")} == {"4"}
    for key, text in found.items():
        name = key.removeprefix("mpi_").removesuffix("_supported").upper()
        assert text == str(DATATYPES[name] != DATATYPE_NULL).lower()
    assert len(found) == 19
