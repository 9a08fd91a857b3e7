"""Which way a transfer goes, and how a get is made of aligned posts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from ompy_components.conduit.gni.rdma.get_alignment import get_pieces
from ompy_components.conduit.gni.rdma.transfer_choice import BUFFERED, Place, Ways
from ompy_components.nic.gni.generations import GENERATIONS

from tests.support.conduit_parameters import NAMES, values

MIB = 1 << 20
BOTH = pytest.mark.parametrize("generation", NAMES)


def ways(generation: str, **changed: object) -> Ways:
    kind: Any = next(known for known in GENERATIONS if known.name == generation)
    nic = SimpleNamespace(
        local_get_aligned=kind.local_get_aligned, fma_put_is_local=kind.fma_put_is_local
    )
    return Ways(values(generation, **changed), cast("Any", nic))


# reference gasnet.md 6.3: size, bulk inside, bulk outside, not bulk on Gemini, not bulk on Aries
PUTS = (
    (1, "direct", "direct", "direct", "immediate"),
    (127, "direct", "direct", "direct", "immediate"),
    (128, "direct", "direct", "direct", "immediate"),
    (129, "direct", "direct", "direct", "bounce"),
    (4096, "direct", "direct", "direct", "bounce"),
    (4097, "segment", "bounce", "bounce", "bounce"),
    (8192, "segment", "bounce", "bounce", "bounce"),
    (8193, "segment", "register", None, None),
    (MIB, "segment", "register", None, None),
)


@pytest.mark.parametrize(("size", "inside", "outside", "gemini", "aries"), PUTS)
def test_puts(size: int, inside: str, outside: str, gemini: str | None, aries: str | None) -> None:
    for generation, expected in (("gemini", gemini), ("aries", aries)):
        rules = ways(generation)
        assert rules.put(size, inside=True, bulk=True).value == inside
        assert rules.put(size, inside=False, bulk=True).value == outside
        assert (size <= rules.max_put_local) is (expected is not None)
        for where in (True, False) if expected else ():
            assert rules.put(size, inside=where, bulk=False).value == expected


@BOTH
@pytest.mark.parametrize(
    ("size", "place"),
    [
        (4, "immediate"),
        (128, "immediate"),
        (132, "bounce"),
        (4096, "bounce"),
        (8192, "bounce"),
        (8196, "register"),
        (MIB, "register"),
    ],
)
def test_aligned_gets(generation: str, size: int, place: str) -> None:
    rules = ways(generation)
    for inside, expected in ((True, Place.SEGMENT), (False, Place(place))):
        (piece,) = get_pieces(64, size, 4096, inside=inside, ways=rules)
        assert piece == (64, size, 0, 0, size, expected)


@BOTH
@pytest.mark.parametrize("cutover", [0, 4, 127, 128, 130, 1000, 8192, 32768])
def test_every_get_is_made_of_aligned_posts_that_have_room(generation: str, cutover: int) -> None:
    rules = ways(generation, get_bounce_register_cutover=cutover)
    sizes = (1, 3, 4, 5, 123, 127, 128, 129, 133, 1000, 8191, 8193, 20_000)
    for size in sizes:
        for offset in range(64, 68):
            for address in range(4096, 4100):
                for inside in (True, False):
                    check(rules, offset, size, address, inside)


def check(rules: Ways, offset: int, size: int, address: int, inside: bool) -> None:
    pieces = get_pieces(offset, size, address, inside=inside, ways=rules)
    reached = 0
    for piece in sorted(pieces, key=lambda piece: piece.at):
        assert piece.at == reached, "every byte once"
        reached += piece.size
        assert not (piece.start | piece.length) % 4
        assert piece.start + piece.lead == offset + piece.at
        assert piece.lead + piece.size <= piece.length <= piece.lead + piece.size + 3
        assert piece.start >= offset - 3
        assert piece.start + piece.length <= offset + size + 3
        if piece.place in BUFFERED:
            room = 128 if piece.place is Place.IMMEDIATE else rules.get_bounce
            assert piece.length <= room
        else:
            assert piece.lead == 0
            assert piece.length == piece.size
            assert (piece.place is Place.SEGMENT) is inside
            assert not (rules.local_get_aligned and (address + piece.at) % 4)
    assert reached == size


def test_an_odd_local_address_costs_buffers_on_gemini_alone() -> None:
    found = {
        generation: [
            piece.place for piece in get_pieces(64, MIB, 4097, inside=True, ways=ways(generation))
        ]
        for generation in NAMES
    }
    assert found["aries"] == [Place.SEGMENT]
    assert found["gemini"] == [Place.BOUNCE] * (MIB // 8192)
