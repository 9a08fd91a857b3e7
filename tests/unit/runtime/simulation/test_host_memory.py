"""Where the named segments of a simulated host lie."""

from __future__ import annotations

import mmap

import pytest
from ompy.net.base import LinkError
from ompy.runtime.simulation.host_memory import ROOM, Segments


def test_segments_lie_beside_each_other_on_pages() -> None:
    segments = Segments()
    first, second, third = (
        segments.place(name, size) for name, size in (("a", 1), ("b", 5000), ("c", 0))
    )
    assert (first, second, third) == (0, mmap.PAGESIZE, mmap.PAGESIZE * 3)
    assert segments.place("a", 1) == first
    assert segments.place("b", 5000) == second
    assert segments.place("d", 1) == mmap.PAGESIZE * 4


def test_another_size_and_no_room() -> None:
    segments = Segments()
    segments.place("a", 10)
    with pytest.raises(LinkError, match="segment a has 10 bytes, not 11"):
        segments.place("a", 11)
    with pytest.raises(LinkError, match="no room"):
        segments.place("b", ROOM)
