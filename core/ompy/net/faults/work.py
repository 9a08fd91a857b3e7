"""What a fault script makes of work: of what is posted to an emulated NIC, and asked of a file."""

from __future__ import annotations

from typing import Final, NamedTuple


class Work(NamedTuple):
    """What becomes of one piece of work.

    Attributes:
        error: number of the error that it ends with instead of being done; 0: it is done; `SHORT`:
            a write takes a part of the bytes.
        hold: how many ns later than else.
    """

    error: int = 0
    hold: int = 0


UNTOUCHED: Final = Work()
SHORT: Final = -1  # no number of an error
# what stands for a rail where a file is asked
READ: Final = "disk read"
WRITE: Final = "disk write"
OTHER: Final = "disk"
STORAGE_RAILS: Final = frozenset({READ, WRITE, OTHER})
