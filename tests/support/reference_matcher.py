"""MPI's matching rule in its plainest form, to compare a PML with.

Between one sender and one receiver nothing depends on time: whether messages come before their
receives are posted or after, each receive, in the order they were posted, gets the first message
it fits that no receive before it got. A receive from any source adds one choice, whose message
it takes; that is asked of the run. Everything else follows.

Source: MPI-4.0, 3.5 (order), 3.8.1 (wildcards).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ompy.data.constants import ANY_SOURCE, ANY_TAG

Message = tuple[int, int]  # its source, and its number among those of that source


def match(
    posted: Sequence[tuple[int, int]],
    sent: Mapping[int, Sequence[int]],
    chosen: Sequence[int | None],
) -> tuple[list[Message | None], list[Message]]:
    """Which message each receive gets, and which are left over.

    Args:
        posted: source and tag of each receive, in the order of posting.
        sent: the tags of the messages of each source, in the order of sending.
        chosen: the source from which a receive got its message, None if it got none; looked at
            for receives from any source only.
    """
    left = {source: dict(enumerate(tags)) for source, tags in sent.items()}
    got: list[Message | None] = []
    for (source, tag), choice in zip(posted, chosen, strict=True):
        if source == ANY_SOURCE and choice is None:
            sources = sorted(left)  # with no choice made, nothing may have fitted
        else:
            sources = [choice if source == ANY_SOURCE and choice is not None else source]
        fitting = [
            (other, number)
            for other in sources
            for number, its_tag in left[other].items()
            if tag in (ANY_TAG, its_tag)
        ]
        got.append(fitting[0] if fitting else None)
        if fitting:
            del left[fitting[0][0]][fitting[0][1]]
    return got, [(source, number) for source in sorted(left) for number in left[source]]
