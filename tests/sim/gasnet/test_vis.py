"""Vector, indexed and strided put and get against a plain copy, over all conduits."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest
from ompy.gasnet import INVALID_HANDLE, BadArgument, Gasnet
from ompy.gasnet.vis import paired, rows, strided

from tests.support.effort import effort
from tests.support.gasnet_worlds import CHOSEN, CONDUITS, run

PAGE = 4096
SIZE = 8 * PAGE
FORMS = ("blocking", "nb", "nbi")


def call(gasnet: Gasnet, name: str, form: str, *arguments: Any) -> None:
    """One of the three forms, synced."""
    middle = {"blocking": "", "nb": "_nb", "nbi": "_nbi"}[form]
    handle = getattr(gasnet, f"{name}{middle}_bulk")(*arguments)
    if form == "nb":
        gasnet.wait_syncnb(handle)
    elif form == "nbi":
        gasnet.wait_syncnbi_all()


def cut(chance: Random, total: int) -> list[int]:
    """Sizes that add up to it, some of them 0."""
    sizes = []
    while total:
        sizes.append(min(total, chance.choice((0, 1, 3, 64, 700, 5000))))
        total -= sizes[-1]
    chance.shuffle(sizes)
    return sizes


def places_of(chance: Random, sizes: list[int]) -> list[tuple[int, int]]:
    """Places in the upper half of a segment that do not touch each other."""
    at, places = SIZE // 2, []
    for size in sizes:
        at += chance.randrange(5)
        places.append((at, size))
        at += size
    chance.shuffle(places)
    return places


@pytest.mark.parametrize("name", CHOSEN)
@pytest.mark.parametrize("seed", range(effort(1)))
def test_vectors(name: str, seed: int) -> None:
    def program(gasnet: Gasnet) -> None:
        chance = Random(seed)
        gasnet.init()
        gasnet.attach(segment_size=SIZE)
        memory = gasnet.segment().memory
        peer = (gasnet.mynode() + 1) % gasnet.nodes()
        for form, total in product(FORMS, (0, 1, 5000)):
            places = places_of(chance, cut(chance, total))
            data = chance.randbytes(total)
            ends, parts = 0, []
            for size in cut(chance, total):
                parts.append(data[ends : ends + size])
                ends += size
            memory[:] = bytes(SIZE)
            gasnet.barrier()
            call(gasnet, "putv", form, peer, places, parts)
            gasnet.barrier()
            wanted, at = bytearray(SIZE), 0
            for offset, size in places:
                wanted[offset : offset + size] = data[at : at + size]
                at += size
            assert memory == wanted  # what the left one has put, who draws the same
            rooms = [bytearray(size) for size in cut(chance, total)]
            call(gasnet, "getv", form, rooms, peer, places)
            assert b"".join(rooms) == data
            gasnet.barrier()

    run(CONDUITS[name], 2, program)


@pytest.mark.parametrize("name", CHOSEN)
def test_indexed_and_strided(name: str) -> None:
    def program(gasnet: Gasnet) -> None:
        gasnet.init()
        gasnet.attach(segment_size=SIZE)
        memory = gasnet.segment().memory
        peer = (gasnet.mynode() + 1) % gasnet.nodes()
        for form in FORMS:
            memory[:] = bytes(SIZE)
            gasnet.barrier()
            call(gasnet, "puti", form, peer, [100, 7, 300], 4, [b"abcdef", b"ghijkl"])
            # a block of 2 x 3 rows of 5 bytes, out of an array with rows of 8 and planes of 40
            source = bytes(range(200))
            counts, here, there = (5, 3, 2), (8, 40), (6, 64)
            call(gasnet, "puts", form, peer, 1000, there, source, here, counts)
            gasnet.barrier()
            assert [bytes(memory[at : at + 4]) for at in (100, 7, 300)] == [
                b"abcd",
                b"efgh",
                b"ijkl",
            ]
            wanted = bytearray(SIZE)
            wanted[100:104], wanted[7:11], wanted[300:304] = b"abcd", b"efgh", b"ijkl"
            for plane, row in product(range(2), range(3)):
                at, begin = 1000 + 64 * plane + 6 * row, 40 * plane + 8 * row
                wanted[at : at + 5] = source[begin : begin + 5]
            assert memory == wanted
            room = bytearray(12)
            call(gasnet, "geti", form, [room], peer, [100, 7, 300], 4)
            assert room == b"abcdefghijkl"
            back = bytearray(200)
            call(gasnet, "gets", form, back, here, peer, 1000, there, counts)
            rows_there = {40 * plane + 8 * row for plane, row in product(range(2), range(3))}
            kept = {begin + byte for begin in rows_there for byte in range(5)}
            assert back == bytes(n if n in kept else 0 for n in range(200))
            gasnet.barrier()

    run(CONDUITS[name], 2, program)


def test_what_is_refused_has_sent_nothing() -> None:
    def program(gasnet: Gasnet) -> None:
        gasnet.init()
        gasnet.attach(segment_size=PAGE)
        peer = 1 - gasnet.mynode()
        wrong: list[tuple[Any, ...]] = [
            ("putv", peer, [(0, 4), (PAGE - 1, 2)], [b"abcdef"]),
            ("putv", peer, [(0, 4)], [b"abcde"]),
            ("putv", peer, [(0, 4), (8, -4)], [b""]),
            ("putv", 7, [(0, 1)], [b"a"]),
            ("puti", peer, [0, -1], 1, [b"ab"]),
            ("puts", peer, 0, (1,), b"ab", (), (2,)),
            ("puts", peer, 0, (-1,), b"abcd", (2,), (2, 2)),
            ("puts", peer, 0, (2,), b"abc", (2,), (2, 2)),
            ("getv", [b"four"], peer, [(0, 4)]),
        ]
        for name, *arguments in wrong:
            for form in FORMS:
                with pytest.raises(BadArgument):
                    call(gasnet, name, form, *arguments)
        gasnet.barrier()
        assert not any(gasnet.segment().memory)
        gasnet.barrier()
        assert gasnet.putv_nb_bulk(peer, [], []) is INVALID_HANDLE
        handles = gasnet._state().handles
        gasnet.begin_nbi_accessregion()
        region = gasnet._state().region
        gasnet.putv_bulk(peer, [(0, 3)], [b"abc"])  # its own region leaves the user's as it was
        assert gasnet._state().region is region
        gasnet.putv_nbi_bulk(peer, [(3, 3)], [b"def"])
        gasnet.wait_syncnb(gasnet.end_nbi_accessregion())
        assert gasnet._state().handles == handles
        gasnet.barrier()
        assert gasnet.segment().memory[:6] == b"abcdef"

    run(CONDUITS["aries, smsg"], 2, program)


def test_parts() -> None:
    assert list(rows((), (4,))) == [0]
    assert list(rows((10, 100), (4, 2, 3))) == [0, 10, 100, 110, 200, 210]
    assert strided(0, (8,), memoryview(b""), (8,), (0, 5)) == []
    found = paired([(10, 3), (0, 2)], [memoryview(b"a"), memoryview(b""), memoryview(b"bcde")])
    assert [(at, bytes(view)) for at, view in found] == [(10, b"a"), (11, b"bc"), (0, b"de")]
