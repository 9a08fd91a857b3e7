"""Places of a power of two, for algorithms that want one."""

from __future__ import annotations


class Places:
    """Of the members beyond a power of two, as many pairs of neighbours as there are work as one.

    The even rank of a pair hands its data to the odd one, which takes the pair's place.

    Attributes:
        power: places, the largest power of two that the members fill.
        pairs: how many of them two members share: the first ones.
        paired: this rank shares its place.
        idle: it is the one of a pair that only hands its data over.
        place: of this rank.
    """

    __slots__ = ("idle", "paired", "pairs", "place", "power")

    def __init__(self, rank: int, size: int) -> None:
        self.power = 1 << (size.bit_length() - 1)
        self.pairs = size - self.power
        self.paired = rank < 2 * self.pairs
        self.idle = self.paired and rank % 2 == 0
        self.place = rank // 2 if self.paired else rank - self.pairs

    def rank(self, place: int) -> int:
        """Who works at `place`."""
        return 2 * place + 1 if place < self.pairs else place + self.pairs

    def first(self, place: int) -> int:
        """The first rank that belongs to `place`, or the number of members for one too many."""
        return 2 * place if place < self.pairs else place + self.pairs
