"""How many slots the rings of btl/sm have, and that a full one loses nothing."""

from __future__ import annotations

import pytest
from ompy.net.memory.ring import SLOT_HEADER
from ompy_components.btl.sm.layout import (
    RINGS_MOST,
    SLOTS_LEAST,
    SharedLayout,
    slots_of_ring,
)

INLINE = 4096


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8, 15])
def test_rings_of_few_ranks_stay_within_their_memory(ranks: int) -> None:
    slots = slots_of_ring(1 << 20, ranks, INLINE)
    assert slots > SLOTS_LEAST
    assert ranks * ranks * slots * (INLINE + SLOT_HEADER) <= RINGS_MOST
    more = SharedLayout(ranks, slots, INLINE, 1, 64).size
    assert more - SharedLayout(ranks, 0, INLINE, 1, 64).size <= RINGS_MOST


@pytest.mark.parametrize("ranks", [16, 64, 256])
def test_rings_of_many_ranks_have_the_least(ranks: int) -> None:
    assert slots_of_ring(1024, ranks, INLINE) == SLOTS_LEAST


@pytest.mark.parametrize("asked", [2, 3, 31])
def test_no_more_than_was_asked_for(asked: int) -> None:
    assert {slots_of_ring(asked, ranks, INLINE) for ranks in (2, 8, 64)} == {asked}
