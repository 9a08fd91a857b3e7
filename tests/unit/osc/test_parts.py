"""The small parts of windows: layouts and commands as bytes, the queue of locks."""

from __future__ import annotations

from random import Random

import pytest
from ompy.data.errors import ERR_INTERN, ERR_PROC_FAILED, ERR_RMA_SYNC, ERR_TYPE, MPIError
from ompy.data.layout import Layout, combine_layouts, repeat_layout, resize, strided
from ompy.frameworks.osc_base.headers import (
    HEADER_SIZE,
    Command,
    Kind,
    pack_answer,
    parse_answer,
    parsed,
)
from ompy.frameworks.osc_base.layouts import decode_layout, encode_layout
from ompy.frameworks.osc_base.locks import LockQueue

INT = Layout(((0, 4),), 0, 4, "i")
PAIR = Layout(((0, 4), (8, 8)), 0, 16, "")
LAYOUTS = {
    "int": INT,
    "empty": Layout((), 0, 0),
    "vector": strided(strided(INT, 3, 4), 5, 40),
    "pieces": repeat_layout(INT, (0, 12, 100, 7)),
    "shifted": repeat_layout(INT, (-8, 16)),
    "series": combine_layouts([(0, PAIR), (64, strided(INT, 4, 8)), (200, PAIR)]),
    "resized": resize(strided(INT, 2, 8), -4, 64),
    "nested": strided(strided(strided(INT, 2, 8), 3, 40), 4, 200),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_comes_back(name: str) -> None:
    layout = LAYOUTS[name]
    again = decode_layout(memoryview(encode_layout(layout)))
    assert again.blocks == layout.blocks
    names = ("size", "lower", "extent", "format", "contiguous", "single")
    assert [getattr(again, each) for each in names] == [getattr(layout, each) for each in names]


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_cut_or_damaged_layout_is_refused_or_another(name: str) -> None:
    whole = encode_layout(LAYOUTS[name])
    for size in range(len(whole)):
        with pytest.raises(MPIError) as caught:
            decode_layout(memoryview(whole[:size]))
        assert caught.value.code == ERR_TYPE
    with pytest.raises(MPIError):
        decode_layout(memoryview(whole + b"\0"))
    chance = Random(name)
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        try:
            assert decode_layout(memoryview(damaged)).size >= 0
        except MPIError as problem:
            assert problem.code == ERR_TYPE


def test_a_command_comes_back() -> None:
    command = Command(Kind.ACCUMULATE, 8, -24, 3, 12, 2, encode_layout(INT), bytes(range(12)))
    again = parsed(memoryview(command.packed()))
    assert again._replace(layout=bytes(again.layout), data=bytes(again.data)) == command
    assert parse_answer(memoryview(pack_answer(7, "wrong \u00fc"))) == (7, "wrong \u00fc")


def test_what_is_no_command_is_refused() -> None:
    packed = Command(Kind.PUT, 2, 0, 1, 4, 0, encode_layout(INT), bytes(4)).packed()
    for size in [*range(HEADER_SIZE + 1), len(packed) - 1]:
        with pytest.raises(MPIError) as caught:
            parsed(memoryview(packed[:size]))
        assert caught.value.code == ERR_INTERN
    for kind, operation in ((0, 0), (99, 0), (1, 200)):
        with pytest.raises(MPIError):
            parsed(memoryview(bytes((kind, operation)) + packed[2:]))


class Asking:
    """Asks a queue for locks, and notes who got them."""

    def __init__(self) -> None:
        self.queue = LockQueue()
        self.told: list[tuple[int, int]] = []

    def ask(self, rank: int, *, exclusive: bool) -> None:
        self.queue.request(rank, exclusive, lambda code, _: self.told.append((rank, code)))

    def got(self) -> list[tuple[int, int]]:
        told, self.told = self.told, []
        return told


def test_first_come_first_served() -> None:
    asking = Asking()
    asking.ask(0, exclusive=False)
    asking.ask(1, exclusive=False)
    asking.ask(2, exclusive=True)
    asking.ask(3, exclusive=False)  # does not pass the exclusive one
    assert asking.got() == [(0, 0), (1, 0)]
    asking.queue.release(1)
    assert asking.got() == []
    asking.queue.release(0)
    assert asking.got() == [(2, 0)]
    assert asking.queue.contended
    asking.queue.release(2)
    assert asking.got() == [(3, 0)]
    assert not asking.queue.contended
    with pytest.raises(MPIError) as caught:
        asking.queue.release(2)
    assert caught.value.code == ERR_RMA_SYNC


def test_who_had_a_lock_and_ended_fails_those_who_wait() -> None:
    asking = Asking()
    for rank in range(3):
        asking.ask(rank, exclusive=True)
    asking.queue.departed(2)  # one that waits takes nobody's place
    asking.ask(3, exclusive=False)
    assert asking.got() == [(0, 0)]
    asking.queue.departed(0)
    assert asking.got() == [(1, ERR_PROC_FAILED), (3, ERR_PROC_FAILED)]
    asking.ask(1, exclusive=True)
    assert asking.got() == [(1, 0)]
    asking.queue.departed(1)
    assert asking.queue.holders() == []
