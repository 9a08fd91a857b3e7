"""The traffic of a whole job: the counts of its ranks, put together and compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ompy_pml_monitoring.counts import KINDS, Counts, Tally

Matrix = list[list[int]]  # a row for each sender, a column for each receiver


class Side(NamedTuple):
    """Messages and bytes between all ranks, as senders or as receivers counted them."""

    messages: Matrix
    bytes: Matrix


class Lost(NamedTuple):
    """What one rank sent to another and that one has not received.

    Attributes:
        kind: one of KINDS.
        source: that sent it.
        target: that did not receive it.
        messages: how many; negative if more were received than sent.
        bytes: in them.
    """

    kind: str
    source: int
    target: int
    messages: int
    bytes: int


class Traffic:
    """What the ranks of a job sent each other.

    Attributes:
        ranks: how many there are.
        missing: why there are no counts of a rank, by rank.
        sent: as the senders counted, by kind; nothing in the rows of missing ranks.
        received: as the receivers counted, by kind; nothing in the columns of missing ranks.
        sizes: messages sent, by kind and by the bits of their size.
    """

    def __init__(
        self, ranks: int, reports: Mapping[int, Counts], missing: Mapping[int, str]
    ) -> None:
        """Put the counts of the ranks that reported together."""
        self.ranks = ranks
        self.missing = dict(missing)
        nothing = Counts(ranks)
        every = [reports.get(rank, nothing) for rank in range(ranks)]
        self.sent: dict[str, Side] = {}
        self.received: dict[str, Side] = {}
        self.sizes: dict[str, list[int]] = {}
        for index, kind in enumerate(KINDS):
            self.sent[kind] = _side([counts.sent[index] for counts in every])
            received = _side([counts.received[index] for counts in every])
            self.received[kind] = Side(*(_transposed(matrix) for matrix in received))
            of_kind = [counts.sizes[index] for counts in every]
            self.sizes[kind] = [sum(column) for column in zip(*of_kind, strict=True)]

    def known(self, kind: str) -> Side:
        """What was sent, as far as anybody knows: of a missing sender, what others received."""
        pairs = zip(self.sent[kind], self.received[kind], strict=True)
        return Side(
            *(
                [received[rank] if rank in self.missing else row for rank, row in enumerate(sent)]
                for sent, received in pairs
            )
        )

    def lost(self) -> list[Lost]:
        """Where sender and receiver both reported and do not agree."""
        found = []
        here = [rank for rank in range(self.ranks) if rank not in self.missing]
        for kind in KINDS:
            sent, received = self.sent[kind], self.received[kind]
            for source in here:
                for target in here:
                    messages = sent.messages[source][target] - received.messages[source][target]
                    size = sent.bytes[source][target] - received.bytes[source][target]
                    if messages or size:
                        found.append(Lost(kind, source, target, messages, size))
        return found


def _side(tallies: list[Tally]) -> Side:
    return Side([tally.messages for tally in tallies], [tally.bytes for tally in tallies])


def _transposed(matrix: Matrix) -> Matrix:
    return [list(column) for column in zip(*matrix, strict=True)]
