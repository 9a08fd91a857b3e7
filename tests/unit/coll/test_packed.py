"""Messages as packed bytes, without a copy where that can be."""

from __future__ import annotations

import pytest
from ompy.data.errors import ERR_TRUNCATE, MPIError
from ompy.data.layout import Layout
from ompy.data.message import Message
from ompy.data.packed import Room, copy_message, in_place, to_send

INT = Layout(((0, 4),), 0, 4, "i")
GAPPED = Layout(((0, 4), (8, 4)), 0, 16, "i")
ONE_BLOCK = Layout(((8, 4),), 0, 16, "i")
SHIFTED = Layout(((8, 4),), 8, 4, "i")


def message(layout: Layout, count: int, origin: int = 4) -> tuple[bytearray, Message]:
    memory = bytearray(range(100))
    return memory, Message(memoryview(memory), origin, count, layout)


@pytest.mark.parametrize(
    ("layout", "count", "start"), [(INT, 3, 4), (ONE_BLOCK, 1, 12), (SHIFTED, 3, 12), (INT, 0, 4)]
)
def test_one_piece_is_the_users_memory(layout: Layout, count: int, start: int) -> None:
    memory, made = message(layout, count)
    view = in_place(made)
    assert view is not None
    assert bytes(view) == bytes(made.packed()) == memory[start : start + 4 * count]
    assert to_send(made).obj is memory
    if count:
        view[0] = 255
        assert memory[start] == 255


@pytest.mark.parametrize(("layout", "count"), [(GAPPED, 1), (ONE_BLOCK, 2)])
def test_several_pieces_are_copied(layout: Layout, count: int) -> None:
    memory, made = message(layout, count)
    assert in_place(made) is None
    data = to_send(made)
    assert bytes(data) == bytes(made.packed())
    assert data.obj is not memory


def test_room_in_place_and_beside() -> None:
    memory, made = message(INT, 2)
    room = Room(made)
    room.view[:] = b"ABCDEFGH"
    assert memory[4:12] == b"ABCDEFGH"
    memory, made = message(GAPPED, 1)
    room = Room(made, made)
    assert bytes(room.view) == bytes(made.packed())
    room.view[:] = b"ABCDEFGH"
    assert memory[4:8] != b"ABCD"
    room.settle()
    assert memory[4:8] == b"ABCD"
    assert memory[8:12] == bytes(range(8, 12))
    assert memory[12:16] == b"EFGH"


def test_a_block_too_long_for_its_room_is_an_error() -> None:
    with pytest.raises(MPIError, match=r"12 bytes from rank 3 .* 8 bytes") as caught:
        copy_message(message(INT, 3)[1], message(INT, 2)[1], 3)
    assert caught.value.code == ERR_TRUNCATE
    with pytest.raises(MPIError):
        Room(message(INT, 2)[1], message(INT, 3)[1])
