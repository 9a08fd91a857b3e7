"""The receiver's half of the reliability machine: what has come, and which ACK is owed for it.

A new packet makes an ACK due after a pause, in which others may join it. What has been taken before
makes it due now, as the ACK must have been lost. Any packet to the peer may carry it.

Source: seed usnic (reliability); reference usnic.md 9, 10.
"""

from __future__ import annotations

from ompy.compiled import Shown, ccall, cclass, cfunc

from ompy_components.btl.usnic.reliability.limits import Limits
from ompy_components.btl.usnic.reliability.numbers import GAP_TOLD
from ompy_components.btl.usnic.reliability.receive_window import NEW, Arrival, ReceiveWindow
from ompy_components.btl.usnic.statistics import Statistics


@cclass
class Receiver:
    """The packets of one peer.

    Attributes:
        arrived: what the peer has sent.
        ack_needed: whether the peer is owed an ACK.
        ack_at: when that is due at the latest, ns.
    """

    _ack_delay: int
    _controls: bool
    _selects: bool
    _statistics: Shown[Statistics]
    _told: int
    ack_at: int
    ack_needed: bool
    arrived: ReceiveWindow
    __slots__ = tuple(__annotations__)

    def __init__(self, limits: Limits, statistics: Statistics, expected: int) -> None:
        """Expect the peer's segment with the number `expected`."""
        self._statistics = statistics
        self._ack_delay = limits.ack_delay
        self._controls = limits.congestion_control
        self._selects = limits.selective and self._controls
        self._told = 0  # how often the peer has been told what has arrived since something did
        self.ack_at = 0
        self.ack_needed = False
        self.arrived = ReceiveWindow(expected)

    @ccall
    def receive(self, sequence: int, now: int) -> Arrival:
        """A packet of the peer is here: take it if it is new, and see to its ACK."""
        arrival: Arrival = self.arrived.judge(sequence)
        if arrival is NEW:
            self.arrived.record(sequence)
            self._told = 0
            self._owe(now + self._ack_delay)
        else:
            self._count(arrival)
            self._owe(now)
        return arrival

    @ccall
    def acknowledge_now(self, now: int) -> None:
        """What the peer sent is whole: it should hear so now."""
        self._owe(now)

    @cfunc
    def _owe(self, at: int) -> None:
        self.ack_at = min(self.ack_at, at) if self.ack_needed else at
        self.ack_needed = True

    def _count(self, arrival: Arrival) -> None:
        if arrival is Arrival.DUPLICATE:
            self._statistics.num_dup_recvs += 1
        elif arrival is Arrival.LOW:
            self._statistics.num_oow_low_recvs += 1
        else:
            self._statistics.num_oow_high_recvs += 1

    @ccall
    def take_ack(self) -> int | None:
        """The number to acknowledge with a packet that is being sent; None when none is owed.

        Behind a gap the peer is still owed an ACK of its own, which says more.
        """
        if not self.ack_needed:
            return None
        self.ack_needed = self._selects and self.arrived.has_gap()
        return self.arrived.acknowledged()

    @ccall
    def take_whole_ack(self, most: int, now: int) -> tuple[int, bytes]:
        """What an ACK that goes alone says: the number, and what is behind it in `most` bytes."""
        behind = self.arrived.behind_gap(most) if self._selects else b""
        self._told += 1
        self.ack_needed = bool(behind) and self._told < GAP_TOLD
        self.ack_at = now + self._ack_delay
        return self.arrived.acknowledged(), behind
