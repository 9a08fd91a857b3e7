"""The neighbours of a member: along which edges neighbourhood collectives send and receive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ompy.compiled import cclass
from ompy.data.constants import PROC_NULL


@cclass
class Neighbours:
    """The edges that lead to a member, and those that lead away from it.

    Several edges may join the same two members, and an edge may lead back to its own member. The
    messages between two members match in the order they are sent in. So the edges from one member
    to another are sent along in the order in which the other one receives.

    Attributes:
        sources: the member at the other end of each edge that leads here; PROC_NULL for none.
        targets: the member at the other end of each edge that leads away; PROC_NULL for none.
        sending: places in `targets`, in the order of sending; without those of PROC_NULL.
        receiving: places in `sources` that have a member, in the order of receiving.
        turns: of each of these, how many edges before it come from the same member.
        members: those who send here, each once.
    """

    members: tuple[int, ...]
    receiving: tuple[int, ...]
    sending: tuple[int, ...]
    sources: tuple[int, ...]
    targets: tuple[int, ...]
    turns: tuple[int, ...]
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        sources: Sequence[int],
        targets: Sequence[int],
        sending: Sequence[int] | None = None,
    ) -> None:
        """Keep the edges.

        Args:
            sources: who sends here.
            targets: who receives from here.
            sending: the order of sending; that of `targets` if None.
        """
        order = range(len(targets)) if sending is None else sending
        self.sources = tuple(sources)
        self.targets = tuple(targets)
        self.sending = tuple(place for place in order if targets[place] != PROC_NULL)
        self.receiving = tuple(
            place for place, rank in enumerate(self.sources) if rank != PROC_NULL
        )
        seen: Counter[int] = Counter()
        turns = []
        for place in self.receiving:
            turns.append(seen[self.sources[place]])
            seen[self.sources[place]] += 1
        self.turns = tuple(turns)
        self.members = tuple(seen)
