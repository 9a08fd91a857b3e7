"""Many ranks in few words: "ranks 0, 3-40"."""

from __future__ import annotations

from collections.abc import Iterable


def ranks_in_words(ranks: Iterable[int]) -> str:
    """What to call some ranks in a sentence: `rank 3`, `ranks 0, 3-40`; at least one."""
    spans: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    words = [str(a) if a == b else f"{a}-{b}" if b > a + 1 else f"{a}, {b}" for a, b in spans]
    return f"rank{'s' * (len(words) > 1 or spans[0][0] < spans[0][1])} {', '.join(words)}"
