"""How often the paths to peers have broken (README.md, "Both ends")."""

from __future__ import annotations


class Epochs:
    """Of one domain: of the path to each rank, as far as is known."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def number_of(self, rank: int) -> int:
        """The one that a new connection belongs to."""
        return self._numbers.get(rank, 0)

    def end_epoch(self, rank: int, epoch: int) -> None:
        """That one is over, if it was not before."""
        self._numbers[rank] = max(self.number_of(rank), epoch + 1)
