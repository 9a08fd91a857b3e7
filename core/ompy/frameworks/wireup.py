"""The wire-up contract: how processes of a job learn each other's addresses (the modex)."""

from __future__ import annotations

from collections.abc import Sequence

from ompy.frameworks.proc import Modex


class WireUp:
    """put, fence and get between the processes of one job.

    Calls come from the thread that initialises MPI or makes a first contact, with the rank's
    lock held.
    """

    def publish(self, key: str, value: bytes) -> None:
        """Add to what others can look up about this process after `commit`."""
        raise NotImplementedError

    def commit(self) -> None:
        """Make everything published visible, at once."""
        raise NotImplementedError

    def lookup(self, rank: int) -> Modex:
        """What process `rank` has committed; waits until it has.

        Raises:
            MPIError: ERR_PROC_FAILED, when that process has ended without committing.
        """
        raise NotImplementedError

    def fence(self) -> None:
        """Return when every process of the job has called it."""
        raise NotImplementedError

    def leaving(self, told: Sequence[int]) -> None:
        """Say that this rank has begun to finalize; waits for nothing.

        The others hear of it (`departures.py`), unless they are at it themselves.

        Args:
            told: ranks it may have sent something to, which hear from it what that was.
        """

    def set_expendable(self, on: bool) -> None:
        """Say whether the job goes on if this rank ends before it has finalized.

        Who waits for it then gets ERR_PROC_FAILED. Of no effect where another launcher decides.

        Args:
            on: it does.
        """

    def leaves_shared_memory(self) -> None:
        """Say that files in /dev/shm stay behind if this process is killed.

        Their names begin with its number and a colon. Whoever started it removes them then; here,
        nobody does.
        """

    def abort(self, code: int, reason: str) -> None:
        """End the whole job with exit code `code`; does not return in a launched process."""
        raise NotImplementedError
