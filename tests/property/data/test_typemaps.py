"""Random datatypes against a naive model: the list of an element's bytes, one by one.

The model follows the type maps of the MPI standard (chapter on datatypes) and shares nothing with
the code. Every range of packed bytes must come out right, in both modules that copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from types import ModuleType

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from ompy.data import loops, slabs_numpy, slabs_plain
from ompy.data.convertor import Convertor
from ompy.data.loops import convertor_of_runs, shape_of
from ompy.data.strided import StridedConvertor
from ompy.data.typemap import Loop, Piece, Run, loop
from ompy.mpi import constants
from ompy.mpi.datatypes.datatype import Datatype
from ompy.mpi.datatypes.predefined import DATATYPES

from tests.support.effort import effort

MODULES = (slabs_plain, slabs_numpy)
LIMIT = 6000  # bytes of an element: a model is a list of them
PROFILE = settings(
    max_examples=effort(250),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@dataclass(frozen=True)
class Model:
    """Displacements of the bytes in packed order, bounds, strictest alignment."""

    places: tuple[int, ...]
    lower: int
    upper: int
    align: int
    bounded: bool = False

    @property
    def extent(self) -> int:
        return self.upper - self.lower


Pair = tuple[Datatype, Model]


def at(parts: list[tuple[int, Model]], align: int, *, bounded: bool = False) -> Model:
    """Elements at displacements; the extent is rounded up to the alignment."""
    places = tuple(shift + place for shift, model in parts for place in model.places)
    lower = min((shift + model.lower for shift, model in parts), default=0)
    upper = max((shift + model.upper for shift, model in parts), default=0)
    if not bounded and upper > lower:
        upper += -(upper - lower) % align
    return Model(places, lower, upper, align, bounded)


def runs(model: Model, lengths: list[int], displacements: list[int]) -> Model:
    """Runs of elements at byte displacements."""
    parts = [
        (shift + index * model.extent, model)
        for shift, length in zip(displacements, lengths, strict=True)
        for index in range(length)
    ]
    return at(parts, model.align, bounded=model.bounded)


def basic(name: str) -> Pair:
    datatype = DATATYPES[name]
    size = datatype.size
    return datatype, Model(tuple(range(size)), 0, size, size)


def contiguous(base: Pair, count: int) -> Pair:
    return base[0].Create_contiguous(count), runs(base[1], [count], [0])


def vector(base: Pair, count: int, length: int, step: int) -> Pair:
    places = [index * step * base[1].extent for index in range(count)]
    return base[0].Create_vector(count, length, step), runs(base[1], [length] * count, places)


def hvector(base: Pair, count: int, length: int, step: int) -> Pair:
    places = [index * step for index in range(count)]
    return base[0].Create_hvector(count, length, step), runs(base[1], [length] * count, places)


def indexed(base: Pair, blocks: list[tuple[int, int]]) -> Pair:
    lengths, places = [block[0] for block in blocks], [block[1] for block in blocks]
    scaled = [place * base[1].extent for place in places]
    return base[0].Create_indexed(lengths, places), runs(base[1], lengths, scaled)


def hindexed(base: Pair, blocks: list[tuple[int, int]]) -> Pair:
    lengths, places = [block[0] for block in blocks], [block[1] for block in blocks]
    return base[0].Create_hindexed(lengths, places), runs(base[1], lengths, places)


def indexed_block(base: Pair, length: int, places: list[int]) -> Pair:
    scaled = [place * base[1].extent for place in places]
    made = base[0].Create_indexed_block(length, places)
    return made, runs(base[1], [length] * len(places), scaled)


def hindexed_block(base: Pair, length: int, places: list[int]) -> Pair:
    made = base[0].Create_hindexed_block(length, places)
    return made, runs(base[1], [length] * len(places), places)


def struct(parts: list[tuple[Pair, int, int]]) -> Pair:
    made = Datatype.Create_struct(
        [length for _, length, _ in parts],
        [place for _, _, place in parts],
        [pair[0] for pair, _, _ in parts],
    )
    every = [
        (place + index * pair[1].extent, pair[1])
        for pair, length, place in parts
        for index in range(length)
    ]
    bounded = [part for part in every if part[1].bounded]
    model = at(every, max((part.align for _, part in every), default=1), bounded=bool(bounded))
    if not bounded:
        return made, model
    bounds = at(bounded, 1, bounded=True)  # markers count instead of all data
    return made, Model(model.places, bounds.lower, bounds.upper, model.align, bounded=True)


def resized(base: Pair, lower: int, extent: int) -> Pair:
    model = Model(base[1].places, lower, lower + extent, base[1].align, bounded=True)
    return base[0].Create_resized(lower, extent), model


def dup(base: Pair) -> Pair:
    return base[0].Dup(), base[1]


def box(base: Pair, sizes: list[int], owned: list[list[int]], *, fortran: bool) -> Model:
    """The elements of an array whose indices are owned in every dimension, in its order."""
    order = list(range(len(sizes)))
    if fortran:
        order.reverse()  # the first index varies fastest
    parts = []
    for indices in product(*(owned[dimension] for dimension in order)):
        place = 0
        for dimension, index in zip(order, indices, strict=True):
            place = place * sizes[dimension] + index
        parts.append((place * base[1].extent, base[1]))
    places = tuple(shift + place for shift, model in parts for place in model.places)
    total = base[1].extent
    for size in sizes:
        total *= size
    return Model(places, 0, total, base[1].align, bounded=True)


def subarray(base: Pair, dimensions: list[tuple[int, int, int]], fortran: bool) -> Pair:
    starts = [min(first, size - 1) for size, first, _ in dimensions]
    sizes = [size for size, _, _ in dimensions]
    parts = [min(d[2] or 1, d[0] - start) for d, start in zip(dimensions, starts, strict=True)]
    code = constants.ORDER_FORTRAN if fortran else constants.ORDER_C
    owned = [list(range(start, start + part)) for start, part in zip(starts, parts, strict=True)]
    made = base[0].Create_subarray(sizes, parts, starts, code)
    return made, box(base, sizes, owned, fortran=fortran)


def darray(
    base: Pair, dimensions: list[tuple[int, int, int]], place: int, fortran: bool, cyclic: bool
) -> Pair:
    sizes = [size for size, _, _ in dimensions]
    grid = [width for _, width, _ in dimensions]
    ranks = 1
    for width in grid:
        ranks *= width
    rank = place % ranks
    blocks = [more if cyclic else -(-size // width) + more - 1 for size, width, more in dimensions]
    coordinates: list[int] = []
    rest = rank
    for width in reversed(grid):
        coordinates.insert(0, rest % width)
        rest //= width
    owned = [
        [index for index in range(size) if index // block % width == mine]
        for size, block, width, mine in zip(sizes, blocks, grid, coordinates, strict=True)
    ]
    kind = constants.DISTRIBUTE_CYCLIC if cyclic else constants.DISTRIBUTE_BLOCK
    code = constants.ORDER_FORTRAN if fortran else constants.ORDER_C
    made = base[0].Create_darray(ranks, rank, sizes, [kind] * len(sizes), blocks, grid, code)
    return made, box(base, sizes, owned, fortran=fortran)


def derived(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    few, places = st.integers(0, 4), st.integers(-9, 30)
    blocks = st.lists(st.tuples(few, places), max_size=6)
    many = st.lists(st.integers(0, 90), min_size=17, max_size=24)  # enough for an index array
    dimensions = st.lists(
        st.tuples(st.integers(1, 5), st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=3
    )
    dealt = st.lists(
        st.tuples(st.integers(1, 7), st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=3
    )
    made = st.one_of(
        st.builds(contiguous, inner, few),
        st.builds(vector, inner, st.integers(0, 20), few, st.integers(-3, 6)),
        st.builds(hvector, inner, few, few, st.integers(-20, 40)),
        st.builds(indexed, inner, blocks),
        st.builds(hindexed, inner, blocks),
        st.builds(indexed_block, inner, st.integers(0, 2), many | st.lists(places, max_size=4)),
        st.builds(hindexed_block, inner, st.integers(0, 3), many | st.lists(places, max_size=4)),
        st.builds(struct, st.lists(st.tuples(inner, few, places), min_size=1, max_size=4)),
        st.builds(subarray, inner, dimensions, st.booleans()),
        st.builds(darray, inner, dealt, st.integers(0, 30), st.booleans(), st.booleans()),
        st.builds(resized, inner, st.integers(-8, 8), st.integers(-10, 60)),
        st.builds(dup, inner),
    )
    return made.filter(lambda pair: len(pair[1].places) <= LIMIT and abs(pair[1].extent) <= LIMIT)


pairs = st.recursive(
    st.sampled_from(["BYTE", "SHORT", "INT", "DOUBLE"]).map(basic), derived, max_leaves=4
)


def bounds_of(model: Model) -> tuple[int, int, int, int, int]:
    """Size, bounds, true bounds."""
    first = min(model.places, default=0)
    length = max(model.places, default=first - 1) + 1 - first
    return len(model.places), model.lower, model.extent, first, length


def examine(pair: Pair, count: int, cuts: list[int], order: list[int], copying: ModuleType) -> None:
    """Bounds; every range packed; ranges unpacked in any order, and nothing else touched."""
    datatype, model = pair
    bounds = (datatype.size, *datatype.Get_extent(), *datatype.Get_true_extent())
    assert bounds == bounds_of(model)
    layout = datatype._inner.layout
    places = [element * model.extent + place for element in range(count) for place in model.places]
    low, high = min(places, default=0), max(places, default=0)
    shift = 5 - low
    memory = bytearray((index * 7 + index // 256) % 256 for index in range(high - low + 11))
    expected = bytes(memory[place + shift] for place in places)
    node = loop(count, layout.extent, layout.node)
    convertor: Convertor | None
    if copying is loops:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loops, "TABLE_MOST", 1 << 16)  # interpreted too
            runs = loops.Elements(layout.displacement, layout.node, layout.extent).runs(count)
        assert (runs is None) == (not expected)
        assume(runs is not None)
        assert runs is not None
        assert runs.size == len(expected)
        assert (runs.first, runs.last) == (low, high + 1)
        assert convertor_of_runs(memory, shift, runs, True) is not None
        assert convertor_of_runs(memory[: high + shift], shift, runs, True) is None
        assert convertor_of_runs(memory[6:], shift - 6, runs, True) is None
        convertor = convertor_of_runs(memoryview(memory), shift, runs, True)
        assert convertor is not None
    else:
        convertor = StridedConvertor(memoryview(memory), shift + layout.displacement, node)
        convertor._copying = copying
    assert convertor.size == len(expected)
    edges = sorted({0, len(expected), *(cut % (len(expected) + 1) for cut in cuts)})
    ranges = list(pairwise(edges))
    for begin, end in ranges:
        target = bytearray(b"\xee" * (end - begin))
        assert convertor.pack(begin, memoryview(target)) == end - begin
        assert target == expected[begin:end]
    if len(set(places)) < len(places):
        return  # what overlaps cannot be received into
    fresh = bytes((index * 31 + 1) % 256 for index in range(len(expected)))
    model_memory = bytearray(memory)
    for place, byte in zip(places, fresh, strict=True):
        model_memory[place + shift] = byte
    for _, (begin, end) in sorted(zip(order * len(ranges), ranges, strict=False)):
        assert convertor.unpack(begin, memoryview(fresh)[begin:end]) == end - begin
    assert memory == model_memory


every = given(
    pairs,
    st.integers(0, 4),
    st.lists(st.integers(0, 10_000), max_size=6),
    st.permutations(range(7)),
    st.sampled_from((*MODULES, loops)),
)
test_any_range_of_any_type = PROFILE(every(examine))


# ends at the first that fails
hunt = settings(PROFILE, phases=[Phase.generate], max_examples=5000)(every(examine))


def loop_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The beginning of a last element is left out."""
    part = Loop.part

    def defect(self: Loop, memory: int, packed: int, begin: int, end: int) -> Iterator[Piece]:
        pieces = list(part(self, memory, packed, begin, end))
        yield from pieces[:2]

    monkeypatch.setattr(Loop, "part", defect)


def stride_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are taken side by side."""

    def defect(memory: memoryview, start: int, count: int, stride: int, word: int, code: str):
        return memory[start : start + count * word].cast(code)

    monkeypatch.setattr(slabs_plain, "_words", defect)


def gathered_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are gathered one byte further on."""
    windows = slabs_numpy._windows
    monkeypatch.setattr(slabs_numpy, "_windows", lambda memory, length: windows(memory[1:], length))


@pytest.mark.parametrize("plant", [loop_cut_short, stride_ignored, gathered_elsewhere])
def test_the_model_notices_a_planted_defect(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, IndexError, TypeError, ValueError)):
        hunt()


@pytest.mark.parametrize("copying", MODULES)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.data())
def test_runs_of_many_lengths(copying: ModuleType, lengths: list[int], data: st.DataObject) -> None:
    """Indexed types whose blocks differ in length: gathered length by length."""
    gaps = data.draw(st.permutations([index % 5 for index in range(len(lengths))]))
    places = [sum(lengths[:index]) + sum(gaps[: index + 1]) for index in range(len(lengths))]
    blocks = list(zip(lengths, data.draw(st.permutations(places)), strict=True))
    spread = [(length, place * 2) for length, place in blocks]
    pair = hindexed(basic("BYTE"), spread)
    assume(len(set(pair[1].places)) == len(pair[1].places))
    size = pair[0].size
    cuts = data.draw(st.lists(st.integers(0, 3 * size), max_size=4))
    examine(pair, data.draw(st.integers(1, 3)), cuts, [2, 0, 1], copying)


@PROFILE
@given(
    st.integers(1, 5),
    st.integers(1, 9),
    st.sampled_from([1, 2, 4, 7, 8, 16]),
    st.integers(0, 9),
    st.integers(0, 40),
    st.lists(st.integers(0, 1 << 16), max_size=4),
)
def test_loops_in_loops(
    outer: int, inner: int, length: int, gap: int, more: int, cuts: list[int]
) -> None:
    """Every range of runs in two loops, with and without gaps, is copied right both ways."""
    stride = length + gap
    node = Loop(outer, inner * stride + more + 1, Loop(inner, stride, Run(length)))
    assert shape_of(node) == (inner, stride, node.stride, length)
    memory = bytearray(index * 7 % 251 for index in range(node.high + 6))
    expected = b"".join(memory[3 + at : 3 + at + size] for at, size in node.blocks(0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "TABLE_MOST", 1 << 16)  # interpreted too
        runs = loops.Elements(0, node, 0).runs(1)
    assert runs is not None
    convertor = convertor_of_runs(memory, 3, runs, True)
    assert convertor is not None
    edges = sorted({0, node.size, *(cut % (node.size + 1) for cut in cuts)})
    for begin, end in pairwise(edges):
        target = bytearray(end - begin + 2)
        assert convertor.pack(begin, memoryview(target)[1:-1]) == end - begin
        assert bytes(target) == b"\0" + expected[begin:end] + b"\0"
    whole = bytearray(node.size + 2)
    convertor.pack_at(memoryview(whole), 2, node.size)
    assert bytes(whole[2:]) == expected
    fresh = bytes((index * 31 + 1) % 256 for index in range(node.size))
    model = bytearray(memory)
    for at, (place, size) in zip(range(0, node.size, length), node.blocks(3), strict=True):
        model[place : place + size] = fresh[at : at + size]
    for begin, end in reversed(list(pairwise(edges))):
        assert convertor.unpack(begin, memoryview(fresh)[begin:end]) == end - begin
    assert memory == model
    assert convertor.unpack_from(memoryview(b"xx" + fresh), 2, node.size) == node.size
    assert memory == model
