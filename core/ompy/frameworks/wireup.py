"""The wire-up contract: how processes of a job learn each other's addresses (the modex)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ompy.data.errors import ERR_RANK, ERR_UNSUPPORTED_OPERATION, MPIError
from ompy.data.request import Request
from ompy.frameworks.needs import Need, Needing
from ompy.frameworks.proc import Modex, Proc


class Inquiry(Request, Needing):
    """What was asked of the launcher, complete when it has answered.

    Attributes:
        answer: what it said.
        number: of the question, by which the launcher knows it.
        needed: what others have to do before it does; None if it answers by itself.
    """

    __slots__ = ("answer", "needed", "number")

    def __init__(self, number: int = 0) -> None:
        super().__init__()
        self.answer = b""
        self.number = number
        self.needed: Need | None = None

    def need(self) -> Need | None:
        """The same."""
        return self.needed


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

        The others hear of it (`fault_tolerance/departures.py`), unless they are at it themselves.

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

    def found_job(self) -> None:
        """See that there is a launcher who can be asked; of effect where nobody launched this rank.

        Raises:
            MPIError: ERR_SPAWN, there can be none.
        """

    def procs_from(self, rank: int) -> Sequence[Proc]:
        """The processes of the job from a number on, as far as they are known of.

        Args:
            rank: in the job; of one that was started later.

        Raises:
            MPIError: ERR_RANK, there is none.
        """
        raise MPIError(ERR_RANK, f"there is no rank {rank} in this job")

    def ask_launcher(self, what: str, header: Mapping[str, Any], body: bytes = b"") -> Inquiry:
        """Ask the launcher something; who waits for the answer waits with the engine.

        Args:
            what: `spawn`, or one of what `runtime/machines/launcher/ports.py` knows.
            header: small values.
            body: more.

        Raises:
            MPIError: there is no launcher that could answer.
        """
        raise MPIError(ERR_UNSUPPORTED_OPERATION, f"{what}: nobody has launched this process")

    def abort(self, code: int, reason: str) -> None:
        """End the whole job with exit code `code`; does not return in a launched process."""
        raise NotImplementedError
