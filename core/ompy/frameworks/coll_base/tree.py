"""The binomial tree over places 0 to size-1, with place 0 on top.

The members of a subtree are neighbours: a place, then its children's subtrees in ascending
order. So data combined along the tree keep their order, and the blocks of a subtree are one
piece.
"""

from __future__ import annotations


def parent(place: int) -> int:
    """Who is above `place`; place 0 has nobody."""
    return place & (place - 1)


def subtree_size(place: int, size: int) -> int:
    """How many places there are in the subtree of `place`, itself included."""
    return min(place & -place, size - place) if place else size


def children(place: int, size: int) -> list[int]:
    """The places right below `place`, ascending."""
    below = []
    step = 1
    while step < subtree_size(place, size):
        below.append(place + step)
        step *= 2
    return below
