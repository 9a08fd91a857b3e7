"""What is read the short way is what the whole grammar makes of it, in every form there is."""

from __future__ import annotations

from itertools import product

import pytest
from ompy import MPI
from ompy.data.message import Blocks, Message
from ompy.mpi.buffers.common_forms import plain_or_derived
from ompy.mpi.buffers.spec import _parsed, even_blocks, plain_vector_blocks, vector_blocks
from ompy.mpi.collectives.collective_calls import blocks_of

ROOM = 240  # bytes; arbitrary: some of what is asked for fits
RANKS = 3
GAPS = MPI.INT.Create_vector(2, 1, 3).Commit()
AHEAD = MPI.INT.Create_indexed([1, 2], [1, 3]).Commit()
BEHIND = MPI.INT.Create_resized(0, 12).Commit()
BACK = MPI.INT.Create_hvector(2, 1, -8).Commit()
TYPES = {
    "numbers": MPI.INT,
    "code": "d",
    "gaps": GAPS,
    "a gap ahead": AHEAD,
    "a gap behind": BEHIND,
    "backwards": BACK,
}
COUNTS = (0, 1, 2, 5, 20, 60, 61, 1 << 40, 1 << 62, -1)
DISPLACEMENTS = (0, 1, 3, 19, 20, 60, 61, 1 << 33, 1 << 62, -1)


def _seen(made: Message) -> tuple[object, ...]:
    return len(made.memory), made.origin if made.count else 0, made.count, made.layout


def _all(made: Blocks) -> list[tuple[object, ...]]:
    return [_seen(made.block(rank)) for rank in range(made.ranks)]


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_messages(kind: str) -> None:
    short = 0
    forms = [[memoryview(bytearray(ROOM)), TYPES[kind]]]
    forms += [[forms[0][0], count, TYPES[kind]] for count in COUNTS]
    forms += [[forms[0][0], *at, TYPES[kind]] for at in product(COUNTS, DISPLACEMENTS)]
    for form in forms:
        found = plain_or_derived(form, True)
        if found is not None:
            short += 1
            assert _seen(found) == _seen(_parsed(form, True, 1).message), form[1:]
    assert short >= 5


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_equal_parts(kind: str) -> None:
    short = 0
    buffer = memoryview(bytearray(ROOM))
    forms = [[buffer, count, TYPES[kind]] for count in COUNTS]
    forms += [[buffer, *at, TYPES[kind]] for at in product(COUNTS, DISPLACEMENTS)]
    for form in [[buffer, TYPES[kind]], *forms]:
        try:
            whole = even_blocks(form, True, RANKS).blocks
        except (ValueError, OverflowError) as problem:
            with pytest.raises(type(problem)):
                blocks_of(form, True, RANKS, even_blocks)
            continue
        assert _all(blocks_of(form, True, RANKS, even_blocks)) == _all(whole), form[1:]
        short += 1
    assert short >= 5


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_parts_with_counts(kind: str) -> None:
    short = 0
    buffer = memoryview(bytearray(ROOM))
    for counts, at in product(product((0, 1, 3, 21), repeat=RANKS), (None, 0, 1, 7, 1 << 40, -1)):
        form = [buffer, list(counts), TYPES[kind]]
        if at is not None:
            form.insert(2, [at, 5, 0])
        found = plain_vector_blocks(form, True, RANKS)
        if found is not None:
            short += 1
            whole = vector_blocks(form, True, RANKS).blocks
            assert _all(found) == _all(whole), form[1:]
            assert found.regular == whole.regular
    assert short >= 5
