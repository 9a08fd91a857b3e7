"""Views: positions and bytes of the file, against the datatype's blocks one by one."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from ompy.data.layout import BYTES, Layout, combine_layouts, resize, strided
from ompy.frameworks.io_base.view import WHOLE_FILE, FileView
from ompy_components.io.ompio.coverage import covered_runs

ROW = Layout(((0, 4), (8, 2), (13, 1)), 0, 20)
ORDERED = {
    "bytes": BYTES,
    "block": Layout(((0, 6),), 0, 6),
    "shifted": Layout(((3, 4),), 0, 4),
    "column": resize(strided(Layout(((0, 8),), 0, 8), 1, 8), 0, 32),
    "vector": strided(Layout(((0, 2),), 0, 2), 5, 6),
    "indexed": ROW,
    "rows": strided(ROW, 3, 25),
    "series": combine_layouts([(0, strided(BYTES, 4, 3)), (20, ROW), (50, BYTES)]),
    "series of rows": strided(combine_layouts([(0, ROW), (20, strided(ROW, 2, 30))]), 3, 90),
    "two dimensions": strided(strided(Layout(((0, 2),), 0, 2), 3, 4), 4, 20),
}
DISORDERED = {
    "backwards": strided(BYTES, 3, -4),
    "overlapping tiles": resize(ROW, 0, 6),
    "twice": Layout(((0, 4), (2, 4)), 0, 8),
    "crossed": combine_layouts([(0, strided(BYTES, 3, 10)), (5, strided(BYTES, 3, 10))]),
}


def places(layout: Layout, displacement: int, count: int) -> list[int]:
    """The bytes of the file that the first positions are."""
    tile = [at + i for at, length in layout.blocks for i in range(length)]
    found = []
    for number in range(count):
        rounds, place = divmod(number, len(tile))
        found.append(displacement + rounds * layout.extent + tile[place])
    return found


@pytest.mark.parametrize("name", ORDERED)
def test_ordered_views(name: str) -> None:
    layout = ORDERED[name]
    view = FileView(7, layout)
    assert view.ordered
    expected = places(layout, 7, 3 * layout.size)
    assert [view.byte_at(position) for position in range(len(expected))] == expected
    for byte in range(max(expected) + 1):
        assert view.position_at(byte) == sum(place < byte for place in expected), byte


@pytest.mark.parametrize("name", DISORDERED)
def test_disordered_views(name: str) -> None:
    layout = DISORDERED[name]
    view = FileView(30, layout)
    assert not view.ordered
    expected = places(layout, 30, 3 * layout.size)
    assert [view.byte_at(position) for position in range(len(expected))] == expected


@pytest.mark.parametrize("name", [*ORDERED, *DISORDERED])
def test_runs_gather_and_scatter(name: str) -> None:
    layout = (ORDERED | DISORDERED)[name]
    chance = random.Random(name)
    view = FileView.from_bytes(FileView(40, layout).to_bytes())
    for _ in range(30):
        begin = chance.randrange(3 * layout.size)
        end = begin + chance.randrange(1, 3 * layout.size)
        expected = places(layout, 40, end)[begin:]
        found: list[int] = []
        for at, position, length in view.runs(begin, end):
            assert position == len(found), "in the order of positions"
            assert not found or at != found[-1] + 1, "neighbours are one"
            found += range(at, at + length)
        assert found == expected
        first, last = min(expected), max(expected) + 1
        piece = memoryview(bytearray(chance.randbytes(last - first)))
        packed = memoryview(bytearray(end - begin))
        view.gather(piece, first, begin, packed)
        assert list(packed) == [piece[place - first] for place in expected]
        again = memoryview(bytearray(last - first))
        view.scatter(again, first, begin, packed)
        assert all(again[place - first] == piece[place - first] for place in expected)


def test_neighbouring_runs_are_one() -> None:
    assert list(WHOLE_FILE.runs(5, 5)) == []
    assert list(WHOLE_FILE.runs(5, 9)) == [(5, 0, 4)]
    block = FileView(2, Layout(((1, 3),), 0, 3))
    assert block.contiguous
    assert list(block.runs(0, 9)) == [(3, 0, 9)]
    assert len(list(FileView(0, ORDERED["vector"]).runs(0, 10))) == 5


@pytest.mark.parametrize("name", ORDERED)
def test_what_is_seen_repeats(name: str) -> None:
    layout = ORDERED[name]
    view = FileView(7, layout)
    expected = places(layout, 7, 5 * layout.size)
    chance = random.Random(name)
    for _ in range(50):
        begin = chance.randrange(2 * layout.size)
        end = chance.randrange(begin + 1, 5 * layout.size + 1)
        period = view.period(begin, end)
        part = set(expected[begin:end])
        for byte in range(expected[begin], expected[end - 1] + 1 - period):
            assert (byte in part) == (byte + period in part), (begin, end, byte)


@pytest.mark.parametrize("seed", range(60))
def test_what_ranks_cover_is_what_they_see(seed: int) -> None:
    """Columns with and without gaps, of equal and of different periods, and any other views."""
    chance = random.Random(seed)
    unit = chance.choice((1, 2, 8))
    word = Layout(((0, unit),), 0, unit)
    columns = chance.randrange(2, 5)
    views = [
        FileView(number * unit, resize(word, 0, unit * columns))
        if chance.random() < 0.6
        else FileView(number * unit, strided(word, 40, unit * columns))
        for number in range(columns)
        if chance.random() < 0.9
    ]
    if chance.random() < 0.3:
        views.append(FileView(chance.randrange(9), ORDERED[chance.choice(list(ORDERED))]))
    seen = []
    covered: set[int] = set()
    for view in views:
        begin, size = chance.randrange(0, 9), chance.randrange(1, 60 * unit)
        seen.append((view, begin, size))
        covered |= {view.byte_at(position) for position in range(begin, begin + size)}
    if not covered:
        return
    low, high = min(covered) - chance.randrange(2), max(covered) + 1 + chance.randrange(2)
    low = max(low, 0)
    found = list(covered_runs(seen, low, high))
    assert [byte for first, last in found for byte in range(first, last)] == sorted(covered)
    assert all(first < last for first, last in found)
    assert all(after[0] > before[1] for before, after in pairwise(found)), "neighbours are one"


def test_what_ranks_cover_has_no_gaps() -> None:
    even = FileView(0, resize(Layout(((0, 2),), 0, 2), 0, 8))
    odd = FileView(2, resize(Layout(((0, 2),), 0, 2), 0, 8))
    assert list(covered_runs([], 0, 10)) == []
    both = [(even, 0, 6), (odd, 0, 6)]
    assert list(covered_runs(both, 0, 24)) == [(0, 4), (8, 12), (16, 20)]
    assert list(covered_runs([(even, 2, 2), (WHOLE_FILE, 10, 8)], 8, 18)) == [(8, 18)]


@pytest.mark.parametrize("name", [*ORDERED, *DISORDERED])
def test_a_piece_is_where_its_positions_are(name: str) -> None:
    layout = ORDERED.get(name) or DISORDERED[name]
    view = FileView(11, layout)
    known = places(layout, 11, 8 * layout.size + 8)
    found = 0
    for position in range(4 * view.size):
        for size in range(1, view.size + 3):
            at = view.piece_at(position, size)
            if at >= 0:
                found += 1
                assert known[position : position + size] == list(range(at, at + size))
    single = layout.single is not None
    assert bool(found) == single
    if single:
        assert view.piece_at(0, view.size) == known[0]
    if name == "column":
        assert view.piece_at(1, view.size) == -1
