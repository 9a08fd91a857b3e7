"""The grammar of message specifications: reference mpi4py.md 8."""

from __future__ import annotations

import ctypes
import sys
from array import array
from typing import Any

import numpy as np
import pytest
from ompy.mpi.buffers import spec as spec_module
from ompy.mpi.buffers.addresses import address_of
from ompy.mpi.buffers.common_forms import plain, plain_or_derived
from ompy.mpi.buffers.markers import BOTTOM, BUFFER_AUTOMATIC, IN_PLACE
from ompy.mpi.buffers.message_convertors import recv_convertor, send_convertor
from ompy.mpi.buffers.spec import (
    even_blocks,
    message,
    plain_vector_blocks,
    typed_blocks,
    vector_blocks,
)
from ompy.mpi.datatypes.datatype import Datatype
from ompy.mpi.datatypes.predefined import BYTE, DATATYPE_NULL, DATATYPES
from ompy.mpi.errors import MPIException

INT, DOUBLE, CHAR, INT64_T = (DATATYPES[name] for name in ("INT", "DOUBLE", "CHAR", "INT64_T"))
POINT = INT.Create_resized(0, 0).Commit()
DATA = array("i", range(6))


def shape(spec: object, blocks: int = 1) -> tuple[int, int, str]:
    """Origin, count and datatype's name of a message."""
    found, datatype = message(spec, False, blocks)
    return found.origin, found.count, datatype.name


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (DATA, (0, 6, "MPI_INT")),
        ([DATA, None], (0, 6, "MPI_INT")),
        ([DATA, INT], (0, 6, "MPI_INT")),
        ((DATA, "i"), (0, 6, "MPI_INT")),
        ((DATA, "i4"), (0, 6, "MPI_INT32_T")),
        ([DATA, "d"], (0, 3, "MPI_DOUBLE")),
        ([DATA, 2], (0, 2, "MPI_INT")),
        ([DATA, (2, None)], (0, 2, "MPI_INT")),
        ([DATA, (None, 4)], (16, 2, "MPI_INT")),
        ([DATA, (1, 4)], (16, 1, "MPI_INT")),
        ([DATA, 3, INT], (0, 3, "MPI_INT")),
        ([DATA, None, "i"], (0, 6, "MPI_INT")),
        ([DATA, (1, 2), INT], (8, 1, "MPI_INT")),
        ([DATA, 1, 2, "i"], (8, 1, "MPI_INT")),
        ([DATA, np.int64(2), np.array(1), INT], (4, 2, "MPI_INT")),
        ([None, 0, "B"], (0, 0, "MPI_UNSIGNED_CHAR")),
        ([BOTTOM, INT], (0, 0, "MPI_INT")),
        ([DATA, [2, 1], INT], (4, 2, "MPI_INT")),
        ([DATA, [2, 1]], (4, 2, "MPI_INT")),
        ([DATA, [None, 4], INT], (16, 2, "MPI_INT")),
        ((np.zeros(2, "N"), None), (0, 2, "MPI_UNSIGNED_LONG")),
        ((ctypes.c_wchar * 4)(), (0, 4, "MPI_WCHAR")),
        (np.array([b"a", b"b"]), (0, 2, "MPI_CHAR")),
        ([DATA, "S"], (0, 24, "MPI_CHAR")),
        (b"abc", (0, 3, "MPI_UNSIGNED_CHAR")),
        (np.zeros((2, 3)).T, (0, 6, "MPI_DOUBLE")),
        (np.zeros(0), (0, 0, "MPI_DOUBLE")),
        (np.zeros(2, "F"), (0, 2, "MPI_C_FLOAT_COMPLEX")),
        (np.zeros(2, "?"), (0, 2, "MPI_C_BOOL")),
        (np.zeros(2, "g"), (0, 2, "MPI_LONG_DOUBLE")),
        (memoryview(np.zeros(2, "<i8")), (0, 2, "MPI_LONG")),
    ],
)
def test_forms(spec: object, expected: tuple[int, int, str]) -> None:
    assert shape(spec) == expected


FOREIGN = ">i4" if sys.byteorder == "little" else "<i4"
DATED = np.dtype([("when", "M8[s]"), ("what", "i1")])


@pytest.mark.parametrize(
    ("spec", "error", "text"),
    [
        ([DATA, 0, 0, "i", None], ValueError, "2 to 4 items"),
        ([DATA], ValueError, "2 to 4 items"),
        ([DATA, 0, "\0"], KeyError, "cannot map"),
        ([DATA, "no such code"], KeyError, "cannot map"),
        ([DATA, -1, "i"], ValueError, "negative count"),
        ([DATA, 0, -1, "i"], ValueError, "negative displacement"),
        ([DATA, 0, 7, "i"], ValueError, "beyond"),
        ([DATA, 7, "i"], ValueError, "24 bytes"),
        ([DATA, 4, 3, "i"], ValueError, "24 bytes"),
        ([None, 1, "i"], ValueError, "buffer is None"),
        ([b"abcde", "i"], ValueError, "not a multiple"),
        ([DATA, 0, 1, DATATYPE_NULL], ValueError, "displacement 1 of a datatype that is null"),
        ([DATA, 0, -1, DATATYPE_NULL], ValueError, "negative displacement"),
        ([DATA, DATATYPE_NULL], ValueError, "cannot infer count, the datatype is null"),
        ([DATA, 0, 0, DATATYPE_NULL], MPIException, "the datatype is null"),
        ([b"", DATATYPE_NULL], MPIException, "the datatype is null"),
        ([DATA, [1, 2, 3], INT], ValueError, "unpack"),
        ([DATA, 1 << 63, "i"], OverflowError, "beyond any count"),
        ([DATA, 1, 1 << 63, "i"], OverflowError, "beyond any count"),
        ([None, None, 2, INT], ValueError, "beyond the buffer's 0 bytes"),
        ([DATA, 1, 1, POINT], ValueError, "extent 0"),
        (None, TypeError, "not None"),
        ([], ValueError, "2 to 4 items"),
        ((), ValueError, "2 to 4 items"),
        ([None, 2], KeyError, "expecting a datatype"),
        (BOTTOM, KeyError, "expecting a datatype"),
        ([BOTTOM, 2, BYTE], MPIException, "address 0"),
        ([BUFFER_AUTOMATIC, 2], MPIException, "address 0"),
        (IN_PLACE, MPIException, "IN_PLACE"),
        ([IN_PLACE, 1, INT], MPIException, "IN_PLACE"),
        (np.zeros(2, "M8[s]"), BufferError, "cannot map buffer format 'M'"),
        (np.zeros(2, DATED), BufferError, "cannot map buffer format"),
        ([np.zeros(4, DATED)[::2], BYTE], BufferError, "contiguous"),
        (np.array(["a"], np.dtypes.StringDType()), ValueError, "StringDType"),
        ([np.zeros(2, "m8[ns]"), 2], BufferError, "cannot map buffer format 'm'"),
        ([np.zeros(4, "M8[s]")[::2], INT], BufferError, "contiguous"),
        ([DATA, 1, INT.Dup().Create_contiguous(2)], MPIException, "Commit"),
        ([1, 2], TypeError, "expecting a buffer"),
        ({1: 2}, TypeError, "expecting a buffer"),
        ([[1, 2], 2, "i"], TypeError, "expecting a buffer"),
        ([DATA, 1, 2.5], KeyError, "expecting a datatype"),
        ([DATA, 1.5, INT], TypeError, "integer"),
        (np.zeros(3, FOREIGN), BufferError, "byte order"),
        (np.zeros(3, "i,f"), KeyError, "cannot map"),
        (np.array([{}]), KeyError, "cannot map"),
        (np.zeros((3, 3))[:, 0], BufferError, "contiguous"),
    ],
)
def test_errors(spec: object, error: type[BaseException], text: str) -> None:
    with pytest.raises(error, match=text):
        message(spec, False)


@pytest.mark.parametrize("made", [send_convertor, recv_convertor])
def test_errors_are_those_of_any_way(made: Any) -> None:
    """What the fast forms ask of a specification first must not be what the user is told."""
    for spec in ([], ()):
        with pytest.raises(ValueError, match="2 to 4 items"):
            made(spec)
    with pytest.raises(MPIException, match="address 0"):
        made([BOTTOM, 1, INT])


@pytest.mark.parametrize("kind", ["M8[s]", "m8[D]"])
def test_dates_with_a_datatype(kind: str) -> None:
    dates = np.arange(4).astype(kind)
    for spec in ([dates, INT64_T], [dates, 4, "l"], [dates, "M"]):
        assert message(spec, True).message.packed() == dates.tobytes()
    dates.setflags(write=False)
    assert send_convertor([dates, INT64_T]).size == 32
    with pytest.raises(BufferError, match="read-only"):
        recv_convertor([dates, INT64_T])


@pytest.mark.parametrize("order", ["C", "F"])
def test_records_with_dates_go_as_bytes(order: Any) -> None:
    """NumPy gives no buffer of them with a format, but one of their bytes."""
    records = np.zeros((2, 3), DATED, order=order)
    records["when"] = np.arange(6).reshape(2, 3)
    assert message([records, BYTE], True).message.packed() == records.tobytes("A")
    assert send_convertor([records, 9, BYTE]).size == 9
    records.setflags(write=False)
    with pytest.raises(BufferError, match="read-only"):
        recv_convertor([records, BYTE])


def test_the_fast_forms_are_the_general_ones() -> None:
    view = memoryview(DATA).cast("B")
    for spec in (DATA, [DATA, INT], (DATA, 6, INT), [DATA, "i"], [DATA, 6, "i"]):
        for convertor in (send_convertor(spec), recv_convertor(spec)):
            assert convertor.view == view
    assert send_convertor([DATA, 2, INT]).view == view[:8]
    assert send_convertor([DATA, 0, INT]).size == 0
    for spec, text in (([DATA, 7, INT], "24 bytes"), ([DATA, -1, INT], "negative")):
        with pytest.raises(ValueError, match=text):
            send_convertor(spec)
    with pytest.raises(BufferError, match="read-only"):
        recv_convertor(b"abc")
    with pytest.raises(BufferError, match="read-only"):
        recv_convertor([b"abcd", 1, "i"])


def test_blocks_side_by_side() -> None:
    blocks = even_blocks(DATA, False, 3).blocks
    assert (blocks.counts, blocks.origins, blocks.regular) == ([2] * 3, [0, 8, 16], True)
    assert even_blocks([DATA, 1, INT], False, 4).blocks.origins == [0, 4, 8, 12]
    with pytest.raises(ValueError, match="number of blocks 4"):
        even_blocks(DATA, False, 4)
    with pytest.raises(ValueError, match="24 bytes"):
        even_blocks([DATA, 2, INT], False, 4)


@pytest.mark.parametrize(
    ("spec", "counts", "origins"),
    [
        (DATA, [2, 2, 1, 1], [0, 8, 16, 20]),
        ([DATA, 1], [1] * 4, [0, 4, 8, 12]),
        ([DATA, [3, 0, 2, 1]], [3, 0, 2, 1], [0, 12, 12, 20]),
        ([DATA, (1, None), INT], [1] * 4, [0, 4, 8, 12]),
        ([DATA, ([1, 0, 1, 2], [5, 0, 4, 0]), INT], [1, 0, 1, 2], [20, 0, 16, 0]),
        ([DATA, 1, 1, INT], [1] * 4, [0, 4, 8, 12]),
        ([DATA, (0, 2), INT], [0] * 4, [0, 8, 16, 24]),
        ([DATA, np.array([1, 1, 1, 1]), None, "i"], [1] * 4, [0, 4, 8, 12]),
        ([None, INT], [0] * 4, [0] * 4),
    ],
)
def test_vectors(spec: object, counts: list[int], origins: list[int]) -> None:
    blocks = vector_blocks(spec, False, 4).blocks
    assert (blocks.counts, blocks.origins) == (counts, origins)


@pytest.mark.parametrize(
    ("spec", "error", "text"),
    [
        ([DATA, [1, 2]], ValueError, "expecting 4 counts, got 2"),
        ([DATA, 1, [0], INT], ValueError, "expecting 4 displacements, got 1"),
        ([DATA, -1], ValueError, "negative count"),
        ([DATA, [1, 1, 1, 4]], ValueError, "24 bytes"),
        ([DATA, [1] * 4, [-1, 0, 0, 0], INT], ValueError, "24 bytes"),
        ([DATA, np.array([1.5] * 4)], TypeError, "integer"),
        ([None, 1, INT], ValueError, "buffer is None"),
        ([bytes(7), INT], ValueError, "not a multiple"),
        ([DATA, {0, 1, 2, 3}, INT], TypeError, "expecting a list/tuple of counts, not set"),
        ([DATA, dict.fromkeys(range(4)), INT], TypeError, "expecting a list/tuple of counts"),
        ([DATA, [0, 0, 0, 1 << 63], INT], OverflowError, "beyond any count"),
        (None, TypeError, "not None"),
        ([DATA, None, [0] * 4, DATATYPE_NULL], ValueError, "cannot infer count"),
        ([DATA, 0, [0] * 4, DATATYPE_NULL], MPIException, "the datatype is null"),
        ([BOTTOM, [1, 0, 0, 0], INT], MPIException, "address 0"),
        ([IN_PLACE, [1, 0, 0, 0], INT], MPIException, "IN_PLACE"),
    ],
)
def test_vector_errors(spec: object, error: type[BaseException], text: str) -> None:
    with pytest.raises(error, match=text):
        vector_blocks(spec, False, 4)


def test_blocks_of_their_own_types() -> None:
    blocks = typed_blocks([DATA, [1, 2], [20, 0], [INT, DOUBLE]], False, 2)
    assert (blocks.counts, blocks.origins) == ([1, 2], [20, 0])
    assert [layout.size for layout in blocks.layouts] == [4, 8]
    assert typed_blocks([DATA, [CHAR, INT]], False, 2).counts == [1, 1]
    for spec, text in (
        ([DATA], "2 to 4 items"),
        ([BOTTOM, None, [0], [CHAR]], "BOTTOM needs"),
        ([DATA, [1, 2], [20, 0], [INT]], "expecting 2 datatypes"),
        ([DATA, [1, 2], [20, 0], [INT, INT.Create_contiguous(4)]], "committed"),
        ([DATA, [1, 4], [0, 0], [INT, DOUBLE]], "24 bytes"),
    ):
        with pytest.raises((ValueError, MPIException), match=text):
            typed_blocks(spec, False, 2)


COLUMN = INT.Create_vector(2, 1, 3).Commit()  # numbers 0 and 3
BACK = INT.Create_hvector(2, 1, -4).Commit()  # a number, and the one before it
NUMBERS = ([1, 2], (1, 2), np.array([1, 2]), array("q", [1, 2]), [np.int64(1), np.int32(2)])


@pytest.mark.parametrize("counts", NUMBERS, ids=lambda each: type(each).__name__)
def test_counts_in_any_sequence(counts: Any) -> None:
    """Lists are read straight, and all else that is a sequence of integers means the same."""
    given = vector_blocks([DATA, counts, [4, 0], INT], False, 2).blocks
    plain = plain_vector_blocks([DATA, counts, [4, 0], INT], False, 2)
    for blocks in (given, plain or given):
        assert (blocks.counts, blocks.origins, blocks.regular) == ([1, 2], [16, 0], False)
    typed = typed_blocks([DATA, counts, [20, 0], [INT, DOUBLE]], False, 2)
    assert (typed.counts, typed.origins) == ([1, 2], [20, 0])
    assert [blocks.block(1).size for blocks in (given, typed)] == [8, 16]


def test_plain_blocks_are_those_of_the_whole_grammar() -> None:
    specs: list[Any] = [
        [DATA, [3, 3], None, "i"],
        [DATA, ([1, 2], [5, 0]), INT],
        [DATA, [2, 1], INT],
        [DATA, [0, 6], [6, 0], INT],
    ]
    for spec in specs:
        plain, given = plain_vector_blocks(spec, False, 2), vector_blocks(spec, False, 2).blocks
        assert plain is not None
        for name in ("counts", "origins", "layouts", "regular"):
            assert getattr(plain, name) == getattr(given, name), (spec, name)
    odd: list[Any] = [
        [DATA, 3, None, INT],
        [DATA, [3, 4], None, INT],
        [DATA, [-1, 1], None, INT],
        [DATA, [1, 1], [0, 6], INT],
        [DATA, [1, 1], [-1, 0], INT],
        [DATA, [1, 1], [1 << 62, 0], INT],
        [DATA, [1 << 62, 0], [0, 0], INT],
        [DATA, [1.0, 1], None, INT],
        [DATA, [1, 1], None, COLUMN],
        [DATA, [1, 1, 1], None, INT],
        [BOTTOM, [0, 0], None, INT],
    ]
    for spec in odd:
        assert plain_vector_blocks(spec, False, 2) is None, spec
    assert plain_vector_blocks([bytes(8), [1, 1], None, INT], True, 2) is None, "not writable"
    assert plain_vector_blocks([DATA, [], None, INT], False, 0) is None


def test_blocks_of_types_with_gaps() -> None:
    typed = typed_blocks([DATA, [1, 2], [8, 4], [COLUMN, BACK]], False, 2)
    assert np.frombuffer(typed.block(0).packed(), "i").tolist() == [2, 5]
    assert np.frombuffer(typed.block(1).packed(), "i").tolist() == [1, 0, 3, 2]
    for spec, text in (
        ([DATA, [1, 1], [12, 4], [COLUMN, BACK]], "24 bytes"),
        ([DATA, [1, 1], [8, 0], [COLUMN, BACK]], "24 bytes"),
        ([DATA, [1, 1 << 62], [8, 4], [INT, INT]], "beyond memory"),
        ([DATA, [1, 1 << 61], [8, 4], [INT, COLUMN]], "beyond memory"),
        ([DATA, [1, 1], [-4, 0], [INT, INT]], "24 bytes"),
        ([DATA, [1, -1], [0, 0], [INT, INT]], "negative count"),
    ):
        with pytest.raises((ValueError, OverflowError), match=text):
            typed_blocks(spec, False, 2)
    none = typed_blocks([DATA, [0, 0], [1000, 24], [INT, COLUMN]], False, 2)
    assert [none.block(rank).size for rank in (0, 1)] == [0, 0]
    with pytest.raises(BufferError):
        typed_blocks([bytes(8), [1, 1], [0, 4], [INT, INT]], True, 2)


def test_absolute_addresses() -> None:
    one, two = bytearray(b"spam"), bytearray(b"eggs")
    where = [address_of(one), address_of(two)]
    both = Datatype.Create_struct([4, 4], where, [CHAR, CHAR]).Commit()
    found = message([BOTTOM, 1, both], True).message
    assert found.packed() == b"spameggs"
    found.store(b"hamdrums")
    assert (one, two) == (b"hamd", b"rums")
    blocks = typed_blocks([BOTTOM, [4, 4], where, [CHAR, BYTE]], True, 2)
    assert [bytes(blocks[rank].packed()) for rank in (0, 1)] == [b"hamd", b"rums"]


@pytest.mark.parametrize(
    "buffer",
    [
        DATA,
        memoryview(DATA),
        memoryview(bytes(DATA)).cast("i"),
        np.arange(6.0),
        np.arange(6.0).reshape(2, 3),
        np.array([True, False, True]),
        np.array(7.0),
        bytearray(5),
    ],
    ids=["array", "view", "cast view", "1-d", "2-d", "bool", "0-d", "bytes"],
)
def test_the_bytes_of_a_buffer_leave_views_of_others_as_they_are(buffer: Any) -> None:
    """Compiled, the view is made one of bytes in place: only ours is."""
    before = memoryview(buffer)
    kept = before.format, before.shape, before.strides, before.tobytes()
    for writable in (False, not before.readonly):
        found = message(buffer, writable).message
        assert (found.memory.format, found.memory.ndim) == ("B", 1)
        assert found.memory.tobytes() == kept[3]
        assert len(found.memory) == found.memory.nbytes == before.nbytes
        assert found.memory[:1].tobytes() == kept[3][:1]
        assert found.memory.cast("b").tobytes() == kept[3]
        assert found.count * found.layout.size == before.nbytes
    again = memoryview(buffer)
    assert (again.format, again.shape, again.strides, again.tobytes()) == kept
    assert (before.format, before.shape, before.strides, before.tobytes()) == kept


def _kinds() -> list[Datatype]:
    made = [
        INT.Create_vector(2, 1, 2),
        INT.Create_contiguous(2),
        INT.Create_indexed([1, 1], [0, 2]),
    ]
    return [INT, CHAR, BYTE, *(each.Commit() for each in made)]


KINDS = _kinds()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.Get_name() or "derived")
@pytest.mark.parametrize("count", [None, -1, 0, 1, 2, 3, 7, 1 << 41])
@pytest.mark.parametrize("form", [list, tuple])
def test_a_buffer_with_its_datatype_is_read_alike_the_short_way(
    kind: Datatype, count: int | None, form: type
) -> None:
    spec = form([DATA, kind] if count is None else [DATA, count, kind])
    for short in (plain, plain_or_derived):
        found = short(spec, False)
        if found is None:
            continue  # the longer way reads it
        slow = message(spec, False).message
        assert found.layout is slow.layout
        assert (found.count, found.origin) == (slow.count, slow.origin)
        assert bytes(found.packed()) == bytes(slow.packed())
    if plain(spec, False) is not None:
        assert kind in KINDS[:3]
    usual = count in (1, 2) or (count is None and kind in KINDS[:2])
    assert not usual or plain_or_derived(spec, False) is not None


def test_the_short_way_takes_no_read_only_room() -> None:
    spec = [bytes(8), INT]
    assert plain(spec, False) is not None
    assert plain(spec, True) is None
    assert plain_or_derived([bytes(24), 1, KINDS[3]], True) is None


RECORD = np.dtype([("x", "d"), ("n", "i")], align=True)
PAIR = DATATYPES["DOUBLE_INT"]
OTHERS = [
    (ctypes.c_double * 3)(1, 2, 3),
    (ctypes.c_int16 * 2)(4, 5),
    (ctypes.c_long * 2)(6, 7),
    ((ctypes.c_int * 2) * 3)(),
    memoryview(np.arange(6, dtype="D")),
    memoryview(np.arange(6, dtype="D"))[2:4],
    memoryview(np.arange(6, dtype="e")),
    memoryview(np.arange(6.0).reshape(2, 3)),
]


def arrays() -> list[Any]:
    """Of every kind of number that NumPy has, in every order."""
    found: list[Any] = []
    for kind in "?bBhHiIlLqQefdgFDG":
        numbers = np.arange(12).astype(kind)
        square = numbers.reshape(3, 4)
        found += [numbers, numbers[:0], numbers[3:5], numbers[5].reshape(()), square]
        found += [square.T, square[1], np.zeros((0, 3), kind)]
    return found


@pytest.mark.parametrize("buffer", [*arrays(), *OTHERS], ids=lambda one: type(one).__name__)
def test_every_buffer_of_numbers_is_read_alike_in_every_way(buffer: Any) -> None:
    """The ways in C take what the whole grammar takes, and it is the same to them."""
    whole, datatype = spec_module._parsed(buffer, False, 1)
    found, same = message(buffer, False)
    sent = send_convertor(buffer)
    there = np.asarray(memoryview(buffer))
    data = there.tobytes("A")
    assert same is datatype
    assert found.count == whole.count
    assert bytes(found.memory[found.origin : found.origin + len(data)]) == data
    assert bytes(whole.memory[whole.origin : whole.origin + len(data)]) == data
    room = bytearray(len(data))
    assert (sent.size, sent.pack(0, memoryview(room))) == (len(data), len(data))
    assert room == data
    typed = plain_or_derived([buffer, datatype], False)
    assert typed is None or (typed.count, bytes(typed.memory)) == (whole.count, data)
    if not memoryview(buffer).readonly:
        assert recv_convertor(buffer).unpack(0, memoryview(data[::-1])) == len(data)
        assert there.tobytes("A") == data[::-1]


def test_an_array_with_gaps_is_no_message() -> None:
    for kind in "dDge":
        for with_gaps in (np.zeros((3, 4), kind)[:, 1:], np.zeros(9, kind)[::2]):
            with pytest.raises(BufferError, match="not contiguous"):
                send_convertor(with_gaps)


def test_records_need_their_datatype() -> None:
    records = np.array([(1.5, 2), (3.5, 4)], RECORD)
    made = Datatype.Create_struct([1, 1], [0, 8], [DOUBLE, INT]).Create_resized(0, 16).Commit()
    for spec in ([records, 2, PAIR], [records, 2, made], [records, made]):
        data = bytearray(24)
        assert send_convertor(spec).pack(0, memoryview(data)) == 24
        assert data == b"".join(np.void(one).tobytes()[:12] for one in records)
        there = np.zeros(2, RECORD)
        assert recv_convertor([there, 2, made]).unpack(0, memoryview(data)) == 24
        assert there.tolist() == records.tolist()
    assert send_convertor([records, BYTE]).size == 32
    for wrong in (records, [records, 2], np.array(["a"], "U1").view("V4")):
        with pytest.raises(KeyError, match="cannot map"):
            send_convertor(wrong)


def test_nothing_is_received_over_objects_of_python() -> None:
    for objects in (np.array([1, "a"], object), np.zeros(2, [("x", "d"), ("o", object)])):
        for spec in ([objects, BYTE], [objects, 2, DOUBLE]):
            with pytest.raises(TypeError, match="Python objects"):
                recv_convertor(spec)


def test_equal_blocks_with_a_count_are_read_alike_in_every_way() -> None:
    records = np.zeros(6, RECORD)
    for spec, ranks in (([records, 2, PAIR], 3), ([records, 3, PAIR], 2), ([DATA, 2, INT], 3)):
        whole, _ = spec_module._parsed(spec, False, ranks)
        found = even_blocks(spec, False, ranks).blocks
        assert [block.count for block in found] == [whole.count] * ranks
        assert len({block.origin for block in found}) == ranks
    for spec, ranks in (([records, 3, PAIR], 3), ([DATA, 3, INT], 3)):
        with pytest.raises(ValueError, match="but the buffer has"):
            even_blocks(spec, False, ranks)
