"""What a simulated stream is offered: no more than it ever takes, however much there is."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.net.base import Address
from ompy.net.virtual.virtual_network import Rail, beginning
from ompy.net.virtual.virtual_rail import WINDOW
from ompy.runtime.simulation.remote import RemoteStream


@pytest.mark.parametrize(("most", "taken"), [(1, b"a"), (3, b"abc"), (5, b"abcde"), (9, b"abcdef")])
def test_the_beginning_of_pieces(most: int, taken: bytes) -> None:
    pieces = [memoryview(piece) for piece in (b"ab", b"", b"cd", b"ef")]
    assert beginning(pieces, most) == taken


def test_a_rank_hands_no_more_to_the_scheduler() -> None:
    """All that was left went there with each try, and what is large took the square of its size."""
    offered = []

    class World:
        def call(self, what: str, number: int, data: bytes) -> int:
            offered.append((what, number, data))
            return 7

    world: Any = World()
    stream = RemoteStream(world, 5, Address("rail0/0", 1))
    assert stream.send([memoryview(bytes(1 << 20)), memoryview(b"more")]) == 7
    assert offered == [("send", 5, bytes(WINDOW))]
    assert Rail("rail0").window == WINDOW
