"""Which NICs usnic uses, which peer's module each talks to, what it says about itself."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ompy_components.btl.usnic import modex
from ompy_components.btl.usnic.headers import CHUNK, Header
from ompy_components.btl.usnic.modex import ModuleRecord
from ompy_components.btl.usnic.pairing import assign, weight
from ompy_components.btl.usnic.reassembly import Reassembly

RECORD = ModuleRecord("10.1.2.3", (1025, 65535), 24, 65535, 1472, 40_000)

graphs = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.lists(st.integers(0, 5), min_size=width, max_size=width), min_size=1, max_size=4
    )
)


def best(weights: list[list[int]]) -> tuple[int, int]:
    """Most pairs, then most weight, by trying all pairings."""
    left, right = len(weights), len(weights[0])
    slots: list[int | None] = [*range(right), *[None] * left]
    found = set()
    for order in set(permutations(slots, left)):
        worth = [weights[row][slot] for row, slot in enumerate(order) if slot is not None]
        if all(worth):
            found.add((len(worth), sum(worth)))
    return max(found)


@settings(deadline=None)
@given(graphs)
def test_the_best_pairing(weights: list[list[int]]) -> None:
    partner = assign(weights)
    taken = [slot for slot in partner if slot is not None]
    assert len(set(taken)) == len(taken)
    worth = [weights[row][slot] for row, slot in enumerate(partner) if slot is not None]
    assert all(worth), "what cannot be paired is not"
    assert (len(worth), sum(worth)) == best(weights)


def test_weights() -> None:
    """A common network beats any speed, speed beats nothing, and any pair is worth something."""
    assert weight(True, 0) > weight(False, 10**9) > weight(False, 1_000) > weight(False, 0) > 0
    assert weight(False, 255_000) == weight(False, 10**9)


def test_crossed_interfaces_find_their_networks() -> None:
    same, other = weight(True, 10_000), weight(False, 10_000)
    assert assign([[other, same], [same, other]]) == [1, 0]
    assert assign([[other], [same]]) == [None, 0], "one of ours is left over"
    assert assign([]) == []


def test_modex_records() -> None:
    records = [RECORD, RECORD._replace(host="rail0/17", isn=0)]
    blob = modex.pack_records(records)
    assert modex.unpack_records(blob) == records
    assert modex.unpack_records(b"") == []
    assert modex.unpack_records(blob[:-1]) == []
    assert modex.unpack_records(blob[:-4] + b"\xff\0\0\0") == [], "another version of the protocol"
    assert RECORD.addresses == (("10.1.2.3", 1025), ("10.1.2.3", 65535))


def chunk(number: int, total: int, offset: int, length: int) -> Header:
    return Header(1, CHUNK, fragment=number, total=total, offset=offset, length=length)


@settings(deadline=None)
@given(st.permutations(range(5)), st.permutations(range(5)))
def test_chunks_in_any_order(first: list[int], second: list[int]) -> None:
    """Two fragments whose chunks come mixed and in any order."""
    reassembly = Reassembly()
    data = {7: bytes(range(50)), 8: bytes(range(100, 150))}
    whole = {}
    for pair in zip(first, second, strict=True):
        for number, piece in zip((7, 8), pair, strict=True):
            header = chunk(number, 50, 10 * piece, 10)
            incoming = reassembly.claim(header)
            assert incoming is not None
            view = memoryview(data[number])[10 * piece : 10 * piece + 10]
            if reassembly.add_chunk(incoming, header, view):
                whole[number] = bytes(incoming.memory)
    assert whole == data


def test_chunks_that_disagree_about_the_size() -> None:
    reassembly = Reassembly()
    assert reassembly.claim(chunk(3, 20, 0, 10)) is not None
    assert reassembly.claim(chunk(3, 21, 0, 10)) is None
    again = reassembly.claim(chunk(3, 20, 10, 10))
    assert again is not None
    assert not reassembly.add_chunk(again, chunk(3, 20, 10, 10), memoryview(bytes(10)))
    assert reassembly.add_chunk(again, chunk(3, 20, 0, 10), memoryview(bytes(10)))
    assert reassembly.claim(chunk(3, 21, 0, 10)) is not None, "it is another fragment now"


@pytest.mark.parametrize("length", range(len(modex.pack_records([RECORD])) + 1))
def test_cut_records_are_none(length: int) -> None:
    found = modex.unpack_records(modex.pack_records([RECORD])[:length])
    assert found == ([RECORD] if length == len(modex.pack_records([RECORD])) else [])
