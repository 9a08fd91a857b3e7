"""Which of a peer's interfaces each of ours talks to: the best pairing of the two sets.

A pair weighs more when both are in one network, then by the slower of the two links, and any
pair is better than none. Of all pairings with as many pairs as possible the heaviest is taken:
successive shortest paths, each found by Bellman-Ford. Both sides put the lower rank's interfaces
first, so both come to the same result. Interfaces that take packets of different sizes do not pair.

Source: reference usnic.md 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

SAME_NETWORK: Final = 1 << 48  # reference usnic.md 5: weights
SPEED_SHIFT: Final = 40
ANY: Final = 1 << 32
GIGABITS_MAX: Final = 255


def weight(same_network: bool, speed: int) -> int:
    """What a pair is worth; `speed` of the slower link in Mbit/s."""
    gigabits = min(speed // 1000, GIGABITS_MAX)
    return (SAME_NETWORK if same_network else 0) + (gigabits << SPEED_SHIFT) + ANY


def assign(weights: Sequence[Sequence[int]]) -> list[int | None]:
    """The heaviest of the largest pairings.

    Args:
        weights: of each left one with each right one; 0 where they cannot be paired.

    Returns:
        Of each left one the index of its right one, or None.
    """
    left = len(weights)
    right = len(weights[0]) if weights else 0
    partner: list[int | None] = [None] * left
    while pairs := _augmenting(weights, partner, right):
        for mine, other in pairs:
            partner[mine] = other
    return partner


def _augmenting(
    weights: Sequence[Sequence[int]], partner: Sequence[int | None], right: int
) -> list[tuple[int, int]]:
    """The pairs to make that add one pair at the least cost; empty when none can be added."""
    owner = {theirs: mine for mine, theirs in enumerate(partner) if theirs is not None}
    # cost of reaching each right one from a left one that is free, and from which left one
    cost: list[float] = [float("inf")] * right
    via: list[int | None] = [None] * right
    changed = True
    while changed:
        changed = False
        for mine, row in enumerate(weights):
            held = partner[mine]
            base: float = 0 if held is None else cost[held] + row[held]
            for theirs, worth in enumerate(row):
                if worth and theirs != held and base - worth < cost[theirs]:
                    cost[theirs], via[theirs] = base - worth, mine
                    changed = True
    free = [theirs for theirs in range(right) if theirs not in owner and via[theirs] is not None]
    if not free:
        return []
    path: list[tuple[int, int]] = []
    at: int | None = min(free, key=lambda index: (cost[index], index))
    while at is not None:
        source = via[at]
        assert source is not None, "a right one that was reached was reached from somewhere"
        path.append((source, at))
        at = partner[source]
    return path
