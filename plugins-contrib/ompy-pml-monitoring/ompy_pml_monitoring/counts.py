"""What one rank has sent and received, by peer, and its form on the way to rank 0."""

from __future__ import annotations

import json
from typing import Any, Final

KINDS: Final = ("user", "internal")  # by `tag < 0`: messages of the program, and of collectives
FORMAT: Final = 1  # arbitrary: counts the forms a report has had
BUCKETS: Final = 65  # sizes of up to 64 bits; reference openmpi.md 3.4: lengths are 64-bit


class Tally:
    """Messages and bytes, by world rank of the peer."""

    __slots__ = ("bytes", "messages")

    def __init__(self, ranks: int) -> None:
        self.messages = [0] * ranks
        self.bytes = [0] * ranks

    def add(self, peer: int, size: int) -> None:
        """One more message of `size` bytes."""
        self.messages[peer] += 1
        self.bytes[peer] += size


class Counts:
    """All counts of one rank.

    Attributes:
        sent: to each peer, by kind: `sent[tag < 0]`.
        received: from each peer, by kind.
        sizes: messages sent, by kind and by the bits of their size: 0, 1, 2-3, 4-7, ... bytes.
    """

    __slots__ = ("ranks", "received", "sent", "sizes")

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.sent = tuple(Tally(ranks) for _ in KINDS)
        self.received = tuple(Tally(ranks) for _ in KINDS)
        self.sizes = tuple([0] * BUCKETS for _ in KINDS)

    def note_sent(self, peer: int, tag: int, size: int) -> None:
        """A message was handed over to be sent."""
        kind = tag < 0
        self.sent[kind].add(peer, size)
        self.sizes[kind][size.bit_length()] += 1

    def note_received(self, peer: int, tag: int, size: int) -> None:
        """A message has been received."""
        self.received[tag < 0].add(peer, size)

    def _columns(self) -> list[list[int]]:
        """The counts by peer, in the order they travel in."""
        tallies = (*self.sent, *self.received)
        return [column for tally in tallies for column in (tally.messages, tally.bytes)]

    def pack(self) -> bytes:
        """As bytes; peers without messages take no room."""
        rows = zip(range(self.ranks), *self._columns(), strict=True)
        sizes = [
            [[bits, count] for bits, count in enumerate(of_kind) if count] for of_kind in self.sizes
        ]
        told = {"format": FORMAT, "peers": [row for row in rows if any(row[1:])], "sizes": sizes}
        return json.dumps(told, separators=(",", ":")).encode()

    @classmethod
    def unpack(cls, data: bytes, ranks: int) -> Counts:
        """The counts a rank of a job of `ranks` ranks packed.

        Raises:
            ValueError: they are not in the form this version knows.
        """
        counts = cls(ranks)
        try:
            counts._fill(json.loads(data))
        except (KeyError, IndexError, TypeError, ValueError) as problem:
            raise ValueError(f"its counts cannot be read: {problem!r}") from None
        return counts

    def _fill(self, told: dict[str, Any]) -> None:
        if told["format"] != FORMAT:
            raise ValueError(f"format {told['format']} is not {FORMAT}")
        columns = self._columns()
        for peer, *row in told["peers"]:
            for column, value in zip(columns, row, strict=True):
                column[peer] = int(value)
        for of_kind, pairs in zip(self.sizes, told["sizes"], strict=True):
            for bits, count in pairs:
                of_kind[bits] = int(count)
