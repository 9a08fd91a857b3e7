"""What a connection has carried."""

from __future__ import annotations

from typing import Final, NamedTuple


class Totals(NamedTuple):
    """What a connection has carried, as the kernel counts.

    Attributes:
        sent: bytes, without those sent again.
        received: bytes.
        again: segments that were sent again.
    """

    sent: int
    received: int
    again: int


NOTHING: Final = Totals(0, 0, 0)  # also where nobody knows
