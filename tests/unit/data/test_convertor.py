"""Convertors pack and unpack at any offset, in any pieces."""

from __future__ import annotations

import sys

import ompy.data
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.data import slabs_numpy, slabs_plain
from ompy.data.convertor import (
    HUGE_FROM,
    ContiguousConvertor,
    Convertor,
    GatherConvertor,
    GrowingConvertor,
)
from ompy.data.layout import BYTES, Layout, combine_layouts, repeat_layout, resize, strided
from ompy.data.strided import IMPORT_NUMPY_FROM, _copying
from ompy.data.typemap import Loop


def unpack_all(convertor: Convertor, data: bytes, cuts: list[int]) -> None:
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = list(zip(edges, edges[1:], strict=False))
    for begin, end in reversed(pieces):  # order is free
        convertor.unpack(begin, memoryview(data)[begin:end])


def pack_all(convertor: Convertor, step: int) -> bytes:
    packed = b""
    while len(packed) < convertor.size:
        target = bytearray(step)
        count = convertor.pack(len(packed), memoryview(target))
        assert count > 0
        packed += target[:count]
    return packed


@given(st.binary(max_size=60), st.lists(st.integers(1, 60), max_size=4), st.integers(1, 9))
def test_contiguous(data: bytes, cuts: list[int], step: int) -> None:
    memory = bytearray(len(data))
    convertor = ContiguousConvertor(memoryview(memory))
    unpack_all(convertor, data, cuts)
    assert memory == data
    assert pack_all(convertor, step) == data


def test_unpack_drops_what_does_not_fit() -> None:
    memory = bytearray(b"......")
    convertor = ContiguousConvertor(memoryview(memory)[:4])
    assert convertor.unpack(2, memoryview(b"abcd")) == 2
    assert convertor.unpack(4, memoryview(b"xy")) == 0
    assert convertor.unpack(9, memoryview(b"xy")) == 0
    assert memory == b"..ab.."


@given(st.lists(st.binary(max_size=8), max_size=6), st.integers(1, 11))
def test_gather(pieces: list[bytes], step: int) -> None:
    convertor = GatherConvertor([memoryview(piece) for piece in pieces])
    assert convertor.view is None
    assert pack_all(convertor, step) == b"".join(pieces)


@pytest.mark.parametrize("size", [0, 1, 5000, HUGE_FROM - 1, HUGE_FROM, HUGE_FROM + 4097])
def test_growing_makes_room_when_bound(size: int) -> None:
    convertor = GrowingConvertor()
    convertor.bind(size)
    assert convertor.size == size
    assert convertor.view is not None
    assert len(convertor.view) == size
    assert not convertor.view.readonly
    if size:
        convertor.unpack(size - 1, memoryview(b"z"))
        assert convertor.view[size - 1] == ord("z")


def naive(memory: bytes, layout: Layout, origin: int, count: int) -> bytes:
    return b"".join(
        memory[origin + element * layout.extent + start :][:length]
        for element in range(count)
        for start, length in layout.blocks
    )


layouts = st.recursive(
    st.just(BYTES) | st.builds(lambda n: repeat_layout(BYTES, range(n)), st.integers(1, 5)),
    lambda inner: st.one_of(
        st.builds(repeat_layout, inner, st.lists(st.integers(0, 6), min_size=1, max_size=3)),
        st.builds(
            lambda parts: combine_layouts(parts),
            st.lists(st.tuples(st.integers(0, 9), inner), min_size=1, max_size=3),
        ),
        st.builds(
            lambda layout, more: resize(layout, 0, layout.extent + more), inner, st.integers(0, 4)
        ),
    ),
    max_leaves=4,
)


@given(layouts, st.integers(0, 4), st.integers(1, 7), st.lists(st.integers(1, 80), max_size=5))
def test_strided_equals_the_naive_walk(
    layout: Layout, count: int, step: int, cuts: list[int]
) -> None:
    first, length = layout.span(count)
    memory = bytearray(index % 251 for index in range(length + 16))
    origin = 8 - first
    convertor = layout.convertor(memoryview(memory), origin, count)
    packed = pack_all(convertor, step)
    assert packed == naive(bytes(memory), layout, origin, count)
    assert convertor.size == layout.size * count
    # what overlaps is written twice with the same bytes: unpacking what was packed changes nothing
    before = bytes(memory)
    unpack_all(convertor, packed, cuts)
    assert bytes(memory) == before


def test_strided_writes_between_no_gaps() -> None:
    column = resize(repeat_layout(BYTES, [0, 3, 6]), 0, 9)
    memory = bytearray(18)
    column.convertor(memoryview(memory), 0, 2).unpack(0, memoryview(b"abcdef"))
    assert memory == b"a\0\0b\0\0c\0\0d\0\0e\0\0f\0\0"


def test_who_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy where it is loaded or where a message is worth its import; it can be done without."""
    few, many = (repeat_layout(BYTES, [0, 2, 4]).node, strided(BYTES, IMPORT_NUMPY_FROM, 2).node)
    assert _copying(few) is _copying(many) is slabs_numpy
    monkeypatch.delitem(sys.modules, "numpy")
    assert _copying(few) is slabs_plain
    assert _copying(many) is slabs_numpy
    monkeypatch.delattr(ompy.data, "slabs_numpy")
    monkeypatch.setitem(sys.modules, "ompy.data.slabs_numpy", None)
    assert _copying(many) is slabs_plain
    memory = bytearray(b"a.b.c.")
    convertor = strided(BYTES, 3, 2).convertor(memoryview(memory), 0, 1)
    assert pack_all(convertor, 2) == b"abc"
    unpack_all(convertor, b"xyz", [1])
    assert memory == b"x.y.z."


def test_regular_types_take_little_memory() -> None:
    """However many pieces there are: nested loops, adjacent ones made one."""
    column = strided(BYTES, 1 << 30, 4)
    assert isinstance(column.node, Loop)
    assert column.node.body.size == 1
    plane = strided(column, 7, 4 << 30)
    assert isinstance(plane.node, Loop)
    assert (plane.node.count, plane.node.stride) == (7 << 30, 4)
    assert strided(BYTES, 1 << 40, 1).single == (0, 1 << 40)
    assert isinstance(repeat_layout(BYTES, [0, 3, 6, 9]).node, Loop)
    assert strided(BYTES, 0, 5).size == strided(Layout((), 0, 0), 5, 5).size == 0


def test_layout_bounds() -> None:
    layout = combine_layouts([(4, repeat_layout(BYTES, range(4))), (-2, BYTES)])
    assert (layout.size, layout.lower, layout.extent) == (5, -2, 10)
    assert (layout.true_lower, layout.true_extent) == (-2, 10)
    assert not layout.contiguous
    assert repeat_layout(BYTES, range(8)).contiguous
    assert not resize(BYTES, 0, 2).contiguous
    assert layout.span(0) == (0, 0)
    assert layout.span(3) == (-2, 30)
