"""Which ranks have to go when some that live do not reach each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def cut_off(cuts: Iterable[tuple[int, int]], living: set[int]) -> Iterator[tuple[int, list[int]]]:
    """Those that most are cut from, until all that are left reach each other; with whom each lost.

    Args:
        cuts: pairs of ranks that do not reach each other.
        living: ranks; of a pair with another one nothing is to be done.
    """
    left = {cut for cut in cuts if living.issuperset(cut)}
    while left:
        ranks = [rank for cut in left for rank in cut]
        most = max(ranks, key=lambda rank: (ranks.count(rank), rank))
        others = sorted({rank for cut in left if most in cut for rank in cut} - {most})
        left = {cut for cut in left if most not in cut}
        yield most, others
