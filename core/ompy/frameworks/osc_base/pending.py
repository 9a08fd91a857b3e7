"""What one rank has under way at another in a window."""

from __future__ import annotations

from functools import partial
from typing import Final

from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.data.request import Request
from ompy.frameworks.osc_base.headers import FIRST_TAG, TAGS
from ompy.frameworks.pml import Pml
from ompy.frameworks.proc import Proc

# to follow the name of a rank that lives
GIVEN_UP: Final = "has given the window up, as a member has died"
DONE_ALREADY: Final = 1  # what is missing before `begun`: nothing completes while it is being made


class Pending(Request):
    """One operation: complete when all its messages are. The rank's lock is held in all calls."""

    __slots__ = ("_missing", "keep")

    def __init__(self, keep: object = None) -> None:
        """Make one that has not begun; `keep` lives as long as it."""
        super().__init__()
        self._missing = DONE_ALREADY
        self.keep = keep

    def follow(self, request: Request) -> None:
        """One more message of it."""
        self._missing += 1
        request.notify(partial(self._ended, request))

    def begun(self) -> None:
        """All its messages are under way."""
        self._less()

    def _ended(self, request: Request) -> None:
        if request.error:
            self.fail(request.error, request.detail)
        self._less()

    def _less(self) -> None:
        self._missing -= 1
        if not self._missing and not self.complete:
            self.finish()


class Peer:
    """Another member of a window, as a target of this rank.

    Attributes:
        rank, proc: in the window's communicator; the process.
        open: operations that are not complete here.
        awaited: those that wait for an answer, and the receive that it goes to, by tag.
        written: something was sent there that has no answer of its own, and nothing was heard
            since.
        told: something was sent there that is not answered, and nothing that is since.
        problem: what went wrong first since this was asked for last.
        posts: epochs that it has opened for this rank and that have not begun.
        must_post: an epoch has begun, the peer's POST has not been waited for.
        must_lock: `Lock_all` was called, its lock has not been asked for.
    """

    def __init__(self, rank: int, proc: Proc) -> None:
        self.rank = rank
        self.proc = proc
        self.open: set[Request] = set()
        self.awaited: dict[int, tuple[Pending, Request]] = {}
        self.written = False
        self.told = False
        self.problem: MPIError | None = None
        self.posts = 0
        self.must_post = False
        self.must_lock = False
        self._tag = 0

    def tag(self) -> int:
        """The tag of the next data; the next odd number is that of the answer."""
        self._tag = (self._tag + 1) % TAGS
        return FIRST_TAG + 2 * self._tag

    def opened(self, pending: Pending) -> Pending:
        """An operation has begun."""
        pending.begun()
        if not pending.complete:
            self.open.add(pending)
        pending.notify(partial(self._closed, pending))
        return pending

    def _closed(self, pending: Pending) -> None:
        self.open.discard(pending)
        if pending.error and self.problem is None:
            self.problem = MPIError(pending.error, pending.detail)

    def expect(self, tag: int, pending: Pending, receive: Request) -> None:
        """An operation waits for an answer under the tag behind `tag`."""
        self.awaited[tag] = (pending, receive)
        pending.follow(receive)
        pending.notify(partial(self.awaited.pop, tag, None))

    def refused(self, pml: Pml, tag: int, code: int, detail: str) -> None:
        """There will be no answer."""
        pending, receive = self.awaited.get(tag, (None, None))
        if pending is not None and receive is not None:
            pending.fail(code, detail)
            pml.cancel(receive)

    def departed(self, pml: Pml) -> None:
        """The process has ended: what waits for its answers fails."""
        for tag in list(self.awaited):
            self.refused(pml, tag, ERR_PROC_FAILED, f"{self.proc} {self.proc.left or GIVEN_UP}")

    def take_problem(self) -> MPIError | None:
        """What went wrong first since the last call."""
        problem, self.problem = self.problem, None
        return problem
