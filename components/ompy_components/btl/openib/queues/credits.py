"""Who may send how much: credits of a peer's own buffers, tokens for shared ones.

Source: reference openmpi.md 5.3.
"""

from __future__ import annotations

from ompy_components.btl.openib.headers import CM_MAX, CREDITS_MASK
from ompy_components.btl.openib.queues.receive_queues import PerPeer


class PeerCredits:
    """Both directions of one `P` queue to one peer.

    As sender it spends a credit for each fragment, and an entry of the peer's reserve for each
    CREDITS message. As receiver it counts what it owes: buffers posted again, and messages on
    reserved ones it has seen.

    Attributes:
        available: fragments that may be sent.
        owed: credits the peer is to get back.
        seen: messages on reserved buffers the peer is to hear of.
        reserve: messages that may be sent without a credit.
        spent: buffers that have been read and not posted again.
    """

    __slots__ = ("_entry", "available", "owed", "reserve", "seen", "spent")

    def __init__(self, entry: PerPeer) -> None:
        self._entry = entry
        self.available = entry.num
        self.reserve = entry.rsv
        self.owed = self.seen = self.spent = 0

    # -- as sender

    def spend_credit(self) -> bool:
        """Spend a credit; false when there is none."""
        if not self.available:
            return False
        self.available -= 1
        return True

    def take_reserve(self) -> bool:
        """Spend a reserved buffer of the peer; false when there is none."""
        if not self.reserve:
            return False
        self.reserve -= 1
        return True

    def gained(self, count: int, seen: int) -> None:
        """The peer has given back."""
        self.available += count
        self.reserve += seen
        assert self.available <= self._entry.num, "more credits than the peer has buffers"
        assert self.reserve <= self._entry.rsv, "more reserve than the peer has buffers"

    # -- as receiver

    def used(self) -> int:
        """A fragment has been read. Returns how many buffers are to be posted again now."""
        self.spent += 1
        if self._entry.num - self.spent > self._entry.low:
            return 0
        count, self.spent = self.spent, 0
        self.owed += count
        return count

    def give(self) -> tuple[int, int]:
        """What goes with the next header: credits, and messages seen."""
        count, seen = min(self.owed, CREDITS_MASK), min(self.seen, CM_MAX)
        self.owed -= count
        self.seen -= seen
        return count, seen

    @property
    def pressing(self) -> bool:
        """So much is owed that it is worth a message of its own, if there is reserve for one."""
        return self.owed >= self._entry.win and self.reserve > 0


class Tokens:
    """Sends that a module may have under way on one `S` queue.

    Attributes:
        available: of them.
    """

    __slots__ = ("_most", "available")

    def __init__(self, most: int) -> None:
        self.available = self._most = most

    def spend_token(self) -> bool:
        """Spend one; false when there is none."""
        if not self.available:
            return False
        self.available -= 1
        return True

    def give_back(self) -> None:
        """One send is done."""
        self.available += 1
        assert self.available <= self._most, "a token came back twice"
