"""One rank's reads and writes: what is in several pieces in memory, in the file, or both."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from ompy.data.layout import Layout, resize
from ompy.data.message import Message
from ompy.frameworks.io import Access
from ompy.frameworks.io_base.view import WHOLE_FILE, FileView
from ompy.net.faults.work import SHORT
from ompy.net.storage import PIECES_MAX, StoredFile
from ompy_components.io.ompio.independent import VECTORED_RUN, read_through, write_through

from tests.unit.net.test_storage import Network

BLOCK = Layout(((0, VECTORED_RUN),), 0, VECTORED_RUN)
SPREAD = resize(BLOCK, 0, 2 * VECTORED_RUN)
THIN = resize(Layout(((0, 3),), 0, 3), 0, 7)
UNEVEN = Layout(((0, VECTORED_RUN), (3 * VECTORED_RUN, 2 * VECTORED_RUN)), 0, 5 * VECTORED_RUN + 40)
VIEWS = {
    "whole": WHOLE_FILE,
    "spread": FileView(11, SPREAD),
    "thin": FileView(5, THIN),
    "thinner than a page": FileView(0, resize(Layout(((0, 3),), 0, 3), 0, 9000)),
    "uneven": FileView(11, UNEVEN),
    "uneven and thin": FileView(0, Layout(((0, 16), (3216, 8)), 0, 9624)),
}
LONG = {"whole", "spread", "uneven"}


class Counted(StoredFile):
    """A file that counts what is asked of it in several pieces."""

    __slots__ = ("vectored",)

    def write_pieces(self, pieces: Any, at: int) -> None:
        self.vectored = getattr(self, "vectored", 0) + 1
        super().write_pieces(pieces, at)


@pytest.mark.parametrize("struck", [(), (SHORT,) * 5])
@pytest.mark.parametrize("layout", [SPREAD, THIN, UNEVEN], ids=["long", "short", "uneven"])
@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("atomic", [False, True])
def test_there_and_back(
    tmp_path: Path, name: str, layout: Layout, struck: tuple[int, ...], atomic: bool
) -> None:
    view = VIEWS[name]
    chance = random.Random(name)
    count = 200 if layout is THIN else 5
    memory = memoryview(bytearray(chance.randbytes(count * layout.extent)))
    message = Message(memory, 0, count, layout)
    file = Counted(Network(), str(tmp_path / "x"), reads=True, writes=True, create=True)
    file._network = Network(*struck)
    access = Access(17, message.convertor(), message)
    write_through(file, view, access, atomic=atomic)
    assert hasattr(file, "vectored") is (layout is not THIN and name in LONG)
    content = (tmp_path / "x").read_bytes()
    places = [view.byte_at(17 + position) for position in range(message.size)]
    assert bytes(content[place] for place in places) == bytes(message.packed())
    gaps = bytearray(content)
    for place in places:
        gaps[place] = 0
    assert gaps.count(0) == len(gaps)
    file._network = Network()
    room = Message(memoryview(bytearray(len(memory))), 0, count, layout)
    assert read_through(file, view, Access(17, room.convertor(), room), atomic=atomic) == room.size
    assert room.packed() == message.packed()
    file.resize(places[message.size // 2])
    room = Message(memoryview(bytearray(len(memory))), 0, count, layout)
    took = read_through(file, view, Access(17, room.convertor(), room), atomic=atomic)
    assert took == message.size // 2
    assert room.packed()[:took] == message.packed()[:took]
    assert not any(room.packed()[took:])


@pytest.mark.parametrize("end", [9624, 9628, 9632, 9640, 12840, 12844, 12848, 19248, 19256, 48200])
@pytest.mark.parametrize("second", [3216, 402, 24], ids=["far", "nearer", "near"])
@pytest.mark.parametrize("pieces", [1, 3], ids=["one piece", "pieces"])
def test_a_read_ends_where_the_file_does(
    tmp_path: Path, end: int, second: int, pieces: int
) -> None:
    """What is seen before the end of the file is read, all of it and in its place.

    Runs once came block by block: those of the first block in all tiles, then those of the second,
    which were left out when a tile of the first was behind the end.
    """
    content = random.Random(end).randbytes(end)
    (tmp_path / "x").write_bytes(content)
    file = StoredFile(Network(), str(tmp_path / "x"), reads=True, writes=False)
    view = FileView(0, Layout(((0, 16), (second, 8)), 0, 9624))
    layout = resize(Layout(((0, 136 // pieces),), 0, 136 // pieces), 0, 200)
    room = Message(memoryview(bytearray(200 * pieces)), 0, pieces, layout)
    places = [view.byte_at(position) for position in range(room.size)]
    there = bytes(content[place] for place in places if place < end)
    access = Access(0, room.convertor(), room)
    assert read_through(file, view, access, atomic=False) == len(there)
    assert bytes(room.packed()) == there + bytes(room.size - len(there))


def test_more_pieces_than_a_call_may_have(tmp_path: Path) -> None:
    file = StoredFile(Network(), str(tmp_path / "x"), reads=True, writes=True, create=True)
    pieces = [memoryview(bytes([i % 251]) * (i % 5)) for i in range(2 * PIECES_MAX + 3)]
    file.write_pieces(pieces, 4)
    content = (tmp_path / "x").read_bytes()
    assert content == b"\0\0\0\0" + b"".join(pieces)
    rooms = [memoryview(bytearray(len(piece))) for piece in pieces]
    assert file.read_pieces(rooms, 4) == len(content) - 4
    assert list(map(bytes, rooms)) == list(map(bytes, pieces))
    assert file.read_pieces(rooms, 10) == len(content) - 10
