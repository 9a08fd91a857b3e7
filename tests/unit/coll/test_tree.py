"""The binomial tree."""

from __future__ import annotations

import pytest
from ompy.frameworks.coll_base.tree import children, parent, subtree_size


@pytest.mark.parametrize("size", range(1, 70))
def test_the_tree_is_one(size: int) -> None:
    assert subtree_size(0, size) == size
    for place in range(size):
        below = children(place, size)
        assert all(parent(child) == place for child in below)
        # neighbours: itself, then the children's subtrees without gap or overlap
        ends = [place + 1, *(child + subtree_size(child, size) for child in below)]
        assert below == ends[:-1]
        assert ends[-1] == place + subtree_size(place, size)
        assert len(below) <= (size - 1).bit_length()
