"""The pointer that all ranks of a file share: a word in a window of the first rank.

Ranks of one host reach it past its owner; from other hosts they wait until that one is in a call of
MPI, or has a thread for it (osc_base_progress_thread). No file is made for it, so none is left.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

from ompy.mpi.collectives.operation import OPERATIONS, SUM, Op
from ompy.mpi.communicators.intracomm import Intracomm
from ompy.mpi.constants import MODE_NOCHECK

if TYPE_CHECKING:
    from ompy.mpi.state import CommState
    from ompy.mpi.windows.windows import Win

WORD: Final = 8  # bytes; POSIX: int64_t
REPLACE: Final = OPERATIONS["REPLACE"]
NO_OP: Final = OPERATIONS["NO_OP"]


class SharedPointer:
    """A number that the members of a communicator have in common: etypes of a view."""

    def __init__(self, comm: CommState) -> None:
        """Make it, 0; collective.

        Raises:
            MPIException: there is no window for it.
        """
        self._value = 0
        self._window: Win | None = None
        if comm.size > 1:
            from ompy.mpi.windows.windows import Win

            size = 0 if comm.communicator.rank else WORD
            self._window = Win.Allocate(size, WORD, comm=Intracomm._adopt(comm))
            if size:
                self._window.tomemory()[:] = bytes(WORD)
            Intracomm._adopt(comm).Barrier()
            self._window.Lock_all(MODE_NOCHECK)

    def add_number(self, number: int) -> int:
        """Add to it; what it was before, which nobody else gets."""
        return self._update(number, SUM)

    def value(self) -> int:
        """What it is."""
        return self._update(0, NO_OP)

    def assign(self, number: int) -> None:
        """Have another value."""
        self._update(number, REPLACE)

    def _update(self, number: int, operation: Op) -> int:
        if self._window is None:
            before = self._value
            if operation != NO_OP:
                self._value = number + (before if operation == SUM else 0)
            return before
        given, was = array("q", [number]), array("q", [0])
        self._window.Fetch_and_op(given, was, 0, 0, operation)
        self._window.Flush(0)
        return was[0]

    def free(self) -> None:
        """Give it back; collective."""
        if self._window is not None:
            self._window.Unlock_all()
            self._window.Free()
            self._window = None
