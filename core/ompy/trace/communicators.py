"""Who is in which communicator, as the GROUP events of a traced job say.

A rank writes one when it first makes a call of a communicator: its members by their ranks in the
world, in the order of their ranks in the communicator. Context ids are used again, so what is
meant is the last one that the rank has written before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from ompy.trace.sink import Event

GROUP: Final = "GROUP"
_RANKS_MAX: Final = 1 << 20  # of one communicator; arbitrary: damage must not take all memory


class Communicator(NamedTuple):
    """One communicator.

    Attributes:
        context: its id.
        name: as the program knows it.
        members: world ranks, by rank in it.
        remote: of one between two groups the other group's, which messages are for.
    """

    context: int
    name: str
    members: tuple[int, ...]
    remote: tuple[int, ...] = ()

    @property
    def peers(self) -> tuple[int, ...]:
        """Whom its ranks name."""
        return self.remote or self.members


def members_text(ranks: Sequence[int]) -> str:
    """World ranks as text: `0-3,7`, where ranks that follow each other are one run."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def members_of(text: str) -> tuple[int, ...]:
    """What `members_text` made.

    Raises:
        ValueError: it is none, or of more ranks than a communicator can have.
    """
    found: list[int] = []
    for run in text.split(",") if text else ():
        low, dash, high = run.partition("-")
        first, last = int(low), int(high if dash else low)
        if not 0 <= first <= last or len(found) + last - first >= _RANKS_MAX:
            raise ValueError(f"{run} is no run of ranks")
        found += range(first, last + 1)
    return tuple(found)


class Communicators:
    """The communicators that each rank knows, at the moment up to which events were taken in."""

    def __init__(self, ranks: Iterable[int]) -> None:
        """Before the first event.

        Args:
            ranks: of the job: the world of a rank that has said nothing yet.
        """
        self._known: dict[tuple[int, int], Communicator] = {}
        self._world = Communicator(0, "MPI_COMM_WORLD", tuple(sorted(ranks)))

    def take_event(self, event: Event) -> None:
        """A GROUP event."""
        fields: dict[str, Any] = dict(event.fields)
        members, remote = members_of(fields["members"]), members_of(fields.get("remote", ""))
        made = Communicator(fields["context"], fields["comm"], members, remote)
        self._known[event.rank, made.context] = made

    def of(self, rank: int, context: int) -> Communicator:
        """The communicator that a rank knows by a context id; the world, if it has said none."""
        return self._known.get((rank, context), self._world)
