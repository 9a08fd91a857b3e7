"""What waits for anybody when a member has died that the program has not acknowledged.

The one that died may have been who would have sent. So a receive from ANY_SOURCE, or a probe, is
told of it; a receive that was begun stays to be completed, once `Ack_failed` says that the program
knows (the chapter on fault tolerance of the MPI Forum, ERR_PROC_FAILED_PENDING). Here it fails and
is kept, and is posted anew then: behind what was posted meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.data.errors import ERR_PROC_FAILED, ERR_PROC_FAILED_PENDING, ERR_REVOKED, MPIError
from ompy.data.request import Request
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.context import RankContext
from ompy.frameworks.proc import Proc

from ompy_components.pml.ob1.matching import Matching, RecvRequest

if TYPE_CHECKING:
    from ompy_components.pml.ob1.module import Ob1


class InDoubt:
    """Receives of one rank that failed as pending."""

    __slots__ = ("_context", "_kept", "_ob1")

    def __init__(self, ob1: Ob1, context: RankContext) -> None:
        self._ob1 = ob1
        self._context = context
        self._kept: dict[int, list[RecvRequest]] = {}  # by context

    def because_of(self, communicator: Communicator) -> Proc | None:
        """Who has died there unacknowledged; None where nobody has, or may."""
        recovery = self._context.recovery
        return None if recovery is None else recovery.unacknowledged(communicator)

    def look_at(self, matching: Matching) -> int:
        """Fail users' receives from anybody, if they are in doubt; how many that was."""
        proc = self.because_of(matching.communicator)
        if proc is None:
            return 0
        waiting = [request for request in matching.wild.members() if request.wanted_tag >= -1]
        for request in waiting:
            matching.wild.remove(request)
            self._kept.setdefault(matching.communicator.context_id, []).append(request)
            request.fail(ERR_PROC_FAILED_PENDING, f"{proc} {proc.departed}: {request.story()}")
        return len(waiting)

    def resume(self, communicator: Communicator) -> None:
        """Post them anew."""
        with self._context.engine.lock:
            for request in self._kept.pop(communicator.context_id, ()):
                request.complete = False
                request.error, request.detail = 0, ""
                self._ob1.receiving.post(request)

    def forget(self, communicator: Communicator, why: str) -> None:
        """The communicator is revoked: they never go on."""
        for request in self._kept.pop(communicator.context_id, ()):
            request.error, request.detail = ERR_REVOKED, f"{why}: {request.story()}"

    def error_of(self, request: Request) -> MPIError:
        """The error of a request that nobody will wait for again."""
        if request.error != ERR_PROC_FAILED_PENDING:
            return MPIError(request.error, request.detail)
        for context_id, kept in self._kept.items():
            self._kept[context_id] = [other for other in kept if other is not request]
        return MPIError(ERR_PROC_FAILED, request.detail)
