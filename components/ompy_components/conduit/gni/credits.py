"""Who may send how many requests.

A rank has so many credits for each peer. A request takes one; its reply brings it back, or the
hidden message that stands for the reply. They never become fewer than none or more than there were.

Source: seed gasnet (Active Message design); reference gasnet.md 5.2.
"""

from __future__ import annotations

from collections.abc import Sequence


class CreditError(Exception):
    """A credit came back that was not taken: a peer does not keep the protocol."""


class Credits:
    """This rank's credits, by peer."""

    __slots__ = ("_depths", "_left")

    def __init__(self, depths: Sequence[int]) -> None:
        """Have so many for each rank."""
        assert min(depths) > 0, "without a credit nothing can be asked"
        self._depths = list(depths)
        self._left = list(depths)

    def left(self, node: int) -> int:
        """How many there are for a peer."""
        return self._left[node]

    def take_credit(self, node: int) -> bool:
        """Take one, if there is one."""
        if not self._left[node]:
            return False
        self._left[node] -= 1
        return True

    def give(self, node: int, count: int = 1) -> None:
        """Some have come back.

        Raises:
            CreditError: more than were taken.
        """
        left = self._left[node] + count
        surplus = left - self._depths[node]
        if surplus > 0:
            raise CreditError(f"rank {node} gave back {surplus} credits too many")
        self._left[node] = left

    def taken(self, node: int) -> int:
        """How many of a peer's are taken."""
        return self._depths[node] - self._left[node]

    def outstanding(self) -> int:
        """How many are taken, of all peers'."""
        return sum(self._depths) - sum(self._left)
