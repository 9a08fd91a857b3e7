"""What the ranks of a small world send and receive, at random."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.frameworks.pml import BUFFERED, STANDARD, SYNCHRONOUS

from tests.property.ob1.test_matching_model import Posted, Sent


def draw_programs(
    random: Random, ranks: int, actions: int, sizes: Sequence[int]
) -> list[list[Sent | Posted]]:
    """A program for each rank, of up to `actions` sends and receives."""
    return [
        [_action(random, me, ranks, sizes) for _ in range(random.randint(actions // 2, actions))]
        for me in range(ranks)
    ]


def _action(random: Random, me: int, ranks: int, sizes: Sequence[int]) -> Sent | Posted:
    peer = random.choice([rank for rank in range(ranks) if rank != me])
    if random.random() < 0.6:
        mode = random.choice((STANDARD, STANDARD, STANDARD, SYNCHRONOUS, BUFFERED))
        return Sent(peer, random.randrange(3), random.choice(sizes), mode)
    source, tag = random.choice((peer, ANY_SOURCE)), random.choice((0, 1, 2, ANY_TAG))
    return Posted(source, tag, random.choice((None, None, None, 250)))
