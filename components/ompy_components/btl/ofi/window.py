"""The window of one peer: numbers, what has been taken, what is owed.

Providers need not keep the order of messages, so what has been taken is a number up to which there
is everything, and a set of those beyond it. Numbers are as the wire has them: 32 bits, from 1.
"""

from __future__ import annotations

from typing import Final

from ompy.compiled import ccall, cclass

from ompy_components.btl.ofi.headers import NUMBERS

_MASK: Final = NUMBERS - 1


@cclass
class Window:
    """Both directions of one generation of a path.

    Attributes:
        size: fragments that may be sent and not acknowledged.
        sent: number of the last fragment sent.
        acknowledged: up to which the peer has taken ours.
        taken: up to which we have taken the peer's.
        told: what of that the peer has been told.
    """

    _beyond: set[int]
    acknowledged: int
    sent: int
    size: int
    taken: int
    told: int
    __slots__ = tuple(__annotations__)

    def __init__(self, size: int) -> None:
        self.size = size
        self._beyond = set()
        self.sent = self.acknowledged = self.taken = self.told = 0

    @ccall
    def open(self) -> int:
        """Fragments that were sent and are not acknowledged."""
        return (self.sent - self.acknowledged) & _MASK

    @ccall
    def full(self) -> bool:
        """No fragment may be sent now."""
        return self.open() >= self.size

    @ccall
    def owed(self) -> int:
        """Fragments taken that the peer has not been told of."""
        return (self.taken - self.told) & _MASK

    @ccall
    def next(self) -> int:
        """The number of the next fragment."""
        return (self.sent + 1) & _MASK

    @ccall
    def accept(self, number: int) -> bool:
        """Whether a fragment of the peer is new; then it is taken."""
        ahead: int = (number - self.taken) & _MASK
        if not 0 < ahead <= self.size or number in self._beyond:
            return False
        if ahead > 1:
            self._beyond.add(number)
            return True
        self.taken = number
        while self._beyond:
            following: int = (self.taken + 1) & _MASK
            if following not in self._beyond:
                break
            self._beyond.remove(following)
            self.taken = following
        return True

    @ccall
    def lacks(self, number: int) -> bool:
        """Whether fragments up to a number that the peer has sent have not been taken."""
        return 0 < ((number - self.taken) & _MASK) <= self.size

    @ccall
    def acknowledge(self, number: int) -> int:
        """The peer says up to which it has taken ours. Returns how many more that are.

        Raises:
            ValueError: it cannot have taken what was not sent.
        """
        more: int = (number - self.acknowledged) & _MASK
        if more > _MASK // 2:
            return 0  # an older message, that was overtaken
        if more > self.open():
            raise ValueError(f"{number} is acknowledged, and {self.sent} is the last one sent")
        self.acknowledged = number
        return more

    @ccall
    def tell(self) -> None:
        """A message went out that says what has been taken."""
        self.told = self.taken
