"""How far apart the points of a world are saved."""

from __future__ import annotations

import pytest
from ompy.runtime.exploration.told_world import BYTES, Point, _until_next


@pytest.mark.parametrize(("size", "choices"), [(0, 3), (5, 5), (10, 10), (100, 10), (1000, 100)])
def test_a_point_takes_at_most_ten_times_as_long_as_the_choices_until_the_next(
    size: int, choices: int
) -> None:
    point = Point(bytes(size * BYTES), (), (), (), 0, 0)
    assert _until_next(point) == choices
