"""The PML contract: point-to-point messages with MPI's matching rules.

The MPI floor calls it with valid arguments: ranks exist, PROC_NULL is handled above. Any
thread of the rank may call; the PML takes the rank's lock itself. The memory under a
convertor is the user's, and stays untouched until the request completes.

Tags of users are 0 and up. Negative tags are internal (collectives); ANY_TAG never matches
them.

Source: reference openmpi.md 3.1 and 3.2, seed ob1-protocols.rst.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from ompy.data.convertor import Convertor
from ompy.data.errors import MPIError
from ompy.data.request import Request
from ompy.mca.component import ApiVersion, Component

if TYPE_CHECKING:
    from ompy.frameworks.bml import Bml
    from ompy.frameworks.communicator import Communicator
    from ompy.frameworks.context import RankContext

API: Final[ApiVersion] = (2, 0)  # reference openmpi.md 0.6: PML 2.0.0 (Open MPI 4.x)

# communication modes; seed: standard, buffered, synchronous and ready
STANDARD: Final = 0
BUFFERED: Final = 1
SYNCHRONOUS: Final = 2
READY: Final = 3


class MatchedMessage:
    """A message taken out of matching by a matched probe, not yet received.

    Attributes:
        source: rank in the communicator.
        tag: of the message.
        length: bytes.
    """

    __slots__ = ("length", "source", "tag")

    source: int
    tag: int
    length: int


class Pml:
    """Point-to-point for one rank."""

    __slots__ = ()

    def add_communicator(self, communicator: Communicator) -> None:
        """Begin matching for a communicator; what arrived early is delivered now."""
        raise NotImplementedError

    def remove_communicator(self, communicator: Communicator) -> None:
        """End matching for a communicator."""
        raise NotImplementedError

    def isend(
        self, communicator: Communicator, convertor: Convertor, target: int, tag: int, mode: int
    ) -> Request:
        """Begin to send.

        Returns:
            A request; complete when the memory may be reused (synchronous mode: and when
            the receive was matched). A buffered send needs the caller's own copy: the
            PML treats the mode as standard.

        Raises:
            MPIError: the peer cannot be reached.
        """
        raise NotImplementedError

    def irecv(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> Request:
        """Begin to receive from a rank or ANY_SOURCE, a tag or ANY_TAG.

        The request completes with `ERR_TRUNCATE` when the message is longer than the
        convertor; what fits is stored.
        """
        raise NotImplementedError

    def iprobe(self, communicator: Communicator, source: int, tag: int) -> Request | None:
        """A message that a receive would match now, as a completed request; or None."""
        raise NotImplementedError

    def probe(self, communicator: Communicator, source: int, tag: int) -> Request:
        """Wait for a message that a receive would match; it stays to be received."""
        raise NotImplementedError

    def improbe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage | None:
        """Take a message out of matching, or None if there is none."""
        raise NotImplementedError

    def mprobe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage:
        """Wait for a message and take it out of matching."""
        raise NotImplementedError

    def imrecv(self, message: MatchedMessage, convertor: Convertor) -> Request:
        """Begin to receive a message taken out of matching."""
        raise NotImplementedError

    def cancel(self, request: Request) -> None:
        """Cancel a receive that is not matched yet; anything else goes on."""
        raise NotImplementedError

    def send(
        self, communicator: Communicator, convertor: Convertor, target: int, tag: int, mode: int
    ) -> None:
        """Send, and return when the memory may be reused."""
        self.wait(communicator, self.isend(communicator, convertor, target, tag, mode))

    def recv(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> Request:
        """Receive; the completed request says what came."""
        return self.wait(communicator, self.irecv(communicator, convertor, source, tag))

    def wait(self, communicator: Communicator, request: Request) -> Request:
        """Wait for a request; raises MPIError if it failed."""
        communicator.context.engine.wait(request)
        if request.error:
            raise MPIError(request.error, request.detail)
        return request

    def finalize(self) -> None:
        """Deliver what was accepted and end."""
        raise NotImplementedError


class PmlComponent(Component):
    """Base of PML components."""

    framework: ClassVar[str] = "pml"

    def init(self, context: RankContext, bml: Bml) -> Pml:
        """The PML of one rank.

        Raises:
            NotAvailable: it cannot work here; the reason is kept.
        """
        raise NotImplementedError
