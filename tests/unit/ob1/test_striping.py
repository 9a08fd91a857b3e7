"""How a message is shared out over rails, and the order in which they take pieces."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ompy.frameworks.bml import Rail
from ompy.frameworks.btl import BtlModule
from ompy_components.pml.ob1.rendezvous.striping import (
    Share,
    heaviest_first,
    next_share,
    piece_of,
    share_out,
)

STEADY = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


def rails(*weights: float, eager_limit: int = 100) -> list:
    module = BtlModule.__new__(BtlModule)
    module.eager_limit = eager_limit
    made = [Rail(module, None) for _ in weights]  # no part of the rule looks at the endpoint
    for rail, weight in zip(made, weights, strict=True):
        rail.weight = weight
    return made


def test_by_weight_and_the_rest_to_the_first() -> None:
    assert share_out(rails(0.5, 0.25, 0.25), 10_003) == [5003, 2500, 2500]
    assert share_out(rails(0.3, 0.1), 8000) == [6000, 2000], "weights of those that were chosen"


def test_what_fits_an_eager_fragment_is_not_split() -> None:
    assert share_out(rails(0.5, 0.5), 100) == [100, 0]
    assert share_out(rails(0.5, 0.5), 101) == [50, 51], "the rest fits one"


def test_rails_without_bandwidth() -> None:
    assert share_out(rails(0.0, 0.0), 5000) == [5000, 0]


@STEADY
@given(
    st.lists(st.floats(0.001, 1), min_size=1, max_size=5),
    st.integers(0, 10**10),
    st.sampled_from([1, 8, 64]),
)
def test_nothing_is_lost(weights: list[float], length: int, alignment: int) -> None:
    parts = share_out(heaviest_first(rails(*weights)), length, alignment)
    assert sum(parts) == length
    assert all(part >= 0 for part in parts)
    assert all(part % alignment == 0 for part in parts[1:])


@STEADY
@given(
    st.lists(st.tuples(st.floats(0.01, 1), st.integers(0, 500)), min_size=1, max_size=4),
    st.integers(0, 100),
    st.sampled_from([1, 8, 64]),
)
def test_pieces_are_aligned_while_they_can_be(
    parts: list[tuple[float, int]], limit: int, alignment: int
) -> None:
    """Shares as `share_out` makes them: all but one are multiples of the alignment."""
    limit = max(limit, alignment) if limit else 0
    shares = [
        Share(rail, left if index == 0 else left - left % alignment)
        for index, (rail, (_, left)) in enumerate(
            zip(rails(*[weight for weight, _ in parts]), parts, strict=True)
        )
    ]
    total = sum(share.left for share in shares)
    offset = 0
    while (share := next_share(shares, alignment, [])) is not None:
        size = piece_of(share.left, limit, alignment)
        assert 0 < size <= (limit or size)
        assert offset % alignment == 0
        share.left -= size
        offset += size
    assert offset == total


@pytest.mark.parametrize("turns", [1, 11, 33])
def test_turns_are_by_weight(turns: int) -> None:
    shares = [Share(rail, left) for rail, left in zip(rails(10, 1), (10_000, 1000), strict=True)]
    taken = [0, 0]
    for _ in range(turns):
        share = next_share(shares, 1, [])
        assert share is not None
        share.left -= 10
        taken[shares.index(share)] += 1
    assert taken[1] <= turns / 11 + 1
    assert taken[0] <= turns * 10 / 11 + 1


def test_rails_without_room_are_passed_over() -> None:
    shares = [Share(rail, 100) for rail in rails(1, 1, 1)]
    assert next_share(shares, 1, shares[:2]) is shares[2]
    assert next_share(shares, 1, shares) is None
