"""What a fault script makes of work that is posted to an emulated NIC."""

from __future__ import annotations

from typing import Final, NamedTuple


class Work(NamedTuple):
    """What becomes of one piece of work.

    Attributes:
        error: number of the error that it ends with instead of being done; 0: it is done.
        hold: how many ns later than else.
    """

    error: int = 0
    hold: int = 0


UNTOUCHED: Final = Work()
