"""monitoring for one rank: counts what passes, and tells when the rank finalizes.

A message counts as sent when the PML inside has taken it, and as received when its receive is
complete: with its whole length, also when the buffer was too short for it. Receives that were
cancelled or that failed count nothing. Every count is made with the rank's lock held.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from ompy.data.convertor import Convertor
from ompy.data.errors import ERR_TRUNCATE
from ompy.data.request import Request
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.context import RankContext
from ompy.frameworks.pml import MatchedMessage, Pml, PmlWrapper
from ompy.mca.parameter import Values

from ompy_pml_monitoring.counts import Counts

WORLD: Final = 0  # context id of COMM_WORLD in every rank
ROOT: Final = 0  # rank that shows the matrix


class Taken(MatchedMessage):
    """A message the PML inside has taken out of matching, and the communicator it came in."""

    __slots__ = ("communicator", "inner")

    def __init__(self, communicator: Communicator, inner: MatchedMessage) -> None:
        self.communicator = communicator
        self.inner = inner
        self.source = inner.source
        self.tag = inner.tag
        self.length = inner.length


class Monitoring(PmlWrapper):
    """The counting PML of one rank.

    Attributes:
        counts: so far; world ranks throughout.
    """

    __slots__ = ("_context", "_lock", "_values", "_world", "counts")

    def __init__(self, context: RankContext, inner: Pml, values: Values) -> None:
        super().__init__(inner)
        self.counts = Counts(context.size)
        self._context = context
        self._lock = context.engine.lock
        self._values = values
        self._world: Communicator | None = None

    def add_communicator(self, communicator: Communicator) -> None:
        """Remember the world: the counts will travel in it."""
        if communicator.context_id == WORLD:
            self._world = communicator
        self.inner.add_communicator(communicator)

    def remove_communicator(self, communicator: Communicator) -> None:
        """Forget the world with its owner."""
        if communicator is self._world:
            self._world = None
        self.inner.remove_communicator(communicator)

    def isend(
        self, communicator: Communicator, convertor: Convertor, target: int, tag: int, mode: int
    ) -> Request:
        """Send; what the PML inside refuses counts nothing."""
        size = convertor.size
        with self._lock:
            request = self.inner.isend(communicator, convertor, target, tag, mode)
            self.counts.note_sent(communicator.procs[target].rank, tag, size)
        return request

    def irecv(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> Request:
        """Receive; count on completion."""
        with self._lock:
            request = self.inner.irecv(communicator, convertor, source, tag)
            self._await(communicator, request)
        return request

    def imrecv(self, message: MatchedMessage, convertor: Convertor) -> Request:
        """Receive a message that was taken; count on completion."""
        assert isinstance(message, Taken), "the message came from another PML"
        with self._lock:
            request = self.inner.imrecv(message.inner, convertor)
            self._await(message.communicator, request)
        return request

    def improbe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage | None:
        """Take a message and remember its communicator; it counts when it is received."""
        found = self.inner.improbe(communicator, source, tag)
        return None if found is None else Taken(communicator, found)

    def mprobe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage:
        """Take a message and remember its communicator; it counts when it is received."""
        return Taken(communicator, self.inner.mprobe(communicator, source, tag))

    def _await(self, communicator: Communicator, request: Request) -> None:
        """Count a receive now if it is complete, else in its completion."""
        if request.complete:
            self._received(communicator, request)
        else:
            request.notify(partial(self._received, communicator, request))

    def _received(self, communicator: Communicator, request: Request) -> None:
        if request.cancelled or request.error not in (0, ERR_TRUNCATE):
            return
        peer = communicator.procs[request.source].rank
        self.counts.note_received(peer, request.tag, request.length)

    def finalize(self) -> None:
        """Bring the counts to rank 0, which shows them; then the PML inside finalizes."""
        try:
            if self._values.output != "none":
                self._tell()
        finally:
            self.inner.finalize()

    def _tell(self) -> None:
        from ompy_pml_monitoring.collection import Collection

        patience = self._values.patience * 1_000_000_000
        collection = Collection(self._context, self.inner, self._world, patience)
        if self._context.rank != ROOT:
            collection.hand_in(self.counts, ROOT)
            return
        from ompy_pml_monitoring.output import show
        from ompy_pml_monitoring.traffic import Traffic

        reports, missing = collection.collect(self.counts)
        show(Traffic(self._context.size, reports, missing), self._values)
